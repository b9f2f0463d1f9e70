/* links: sweep inspect base */
/* Grids, means, fits and tables of sweeps, without running anything. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "close.h"
#include "sweep/table.h"

#define PLACE_FILE "some.sweep.yaml"
#include "place.h"

/* ---- numbers ---- */

/* The published points of DeepNet's figure 8 (doc/analyses.md#scaling-law). */
static void the_scaling_law_of_the_paper(void **state) {
    (void)state;
    const double depth[] = {200, 1000}, bleu[] = {31.1, 32.1};
    fth_fit fit;
    assert_int_equal(fth_fit_depth(depth, bleu, 2, &fit), FTH_OK);
    assert_close(fit.a, 0.621335, 5e-7);
    assert_close(fit.b, 27.8080, 5e-5);
    assert_close(fit.r2, 1, 1e-12);
}

static void a_fit_with_scatter(void **state) {
    (void)state;
    /* y = 2 ln(depth) - 1 and scatter that the line cannot follow */
    const double depth[] = {2, 2, 8, 8};
    double y[4];
    for (int i = 0; i < 4; i++) y[i] = 2 * log(depth[i]) - 1 + (i % 2 ? 0.5 : -0.5);
    fth_fit fit;
    assert_int_equal(fth_fit_depth(depth, y, 4, &fit), FTH_OK);
    assert_close(fit.a, 2, 1e-12);
    assert_close(fit.b, -1, 1e-12);
    double explained = pow(log(2), 2) * 4, scatter = 0.25; /* variances */
    assert_close(fit.r2, explained / (explained + scatter), 1e-12);
    assert_int_equal(fth_fit_depth(depth, y, 2, &fit), FTH_BAD_INPUT); /* one depth only */
    assert_int_equal(fth_fit_depth(depth, y, 0, &fit), FTH_BAD_INPUT);
    y[0] = NAN;
    assert_int_equal(fth_fit_depth(depth, y, 4, &fit), FTH_BAD_INPUT);
}

static void mean_and_deviation(void **state) {
    (void)state;
    const double x[] = {1, 2, 4};
    fth_spread s = fth_spread_of(x, 3);
    assert_close(s.mean, 7.0 / 3, 1e-15);
    assert_close(s.deviation, sqrt(7.0 / 3), 1e-15);
    s = fth_spread_of(x, 1);
    assert_true(s.mean == 1 && isnan(s.deviation));
    s = fth_spread_of(x, 0);
    assert_true(isnan(s.mean) && isnan(s.deviation));
}

/* ---- files ---- */

static void put(const place *p, const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    assert_int_equal(fth_file_write(path, text, strlen(text)), FTH_OK);
}

/* Does a run have this option with this value? */
static bool has(const fth_sweep_run *run, const char *flag, const char *value) {
    char word[200];
    snprintf(word, sizeof word, "%s=%s", flag, value);
    for (size_t i = 0; i < run->n_words; i++)
        if (strcmp(run->words[i], word) == 0) return true;
    return false;
}

static void a_grid_is_what_its_file_says(void **state) {
    const place *p = *state;
    fth_sweep_spec spec;
    fth_sweep_grid grid;
    put(p, "base.yaml", "data: here\nlr: 1\nd-model: 8\n");
    put(p, "some.sweep.yaml",
        "base: base.yaml\nseeds: [7, 8]\nmethod: [a, b]\na.steps: [1, 2, 3]\nlr: [0.1, 0.2]\n"
        "encoder-layers, decoder-layers: [2/3, 4]\nb.mode: x\nmethod-option: {k: v, l: w}\n");
    assert_int_equal(fth_sweep_spec_read(&spec, p->file, NULL, 0), FTH_OK);
    assert_string_equal(spec.name, "some.sweep");
    assert_int_equal(fth_sweep_grid_make(&spec, "a", 100, &grid), FTH_OK);
    assert_int_equal(grid.n, 2 * (3 * 2 * 2 + 2 * 2)); /* a has three steps, b has none */
    assert_int_equal(grid.rows, grid.n / 2);
    assert_true(fth_sweep_size(&spec, "a") == (double)grid.n);
    size_t a = 0;
    for (size_t i = 0; i < grid.n; i++) {
        const fth_sweep_run *run = &grid.run[i];
        assert_int_equal(run->row, i / 2);
        assert_true(has(run, "--seed", i % 2 ? "8" : "7"));
        assert_true(has(run, "--d-model", "8") && !has(run, "--lr", "1"));
        assert_true(has(run, "--method-option", "k=v") && has(run, "--method-option", "l=w"));
        bool three = has(run, "--encoder-layers", "2") && has(run, "--decoder-layers", "3");
        bool four = has(run, "--encoder-layers", "4") && has(run, "--decoder-layers", "4");
        assert_true(three != four);
        bool is_a = has(run, "--method", "a");
        assert_true(has(run, "--method-option", "mode=x") == !is_a);
        a += is_a;
        for (size_t k = 0; k < i; k++) assert_string_not_equal(run->name, grid.run[k].name);
    }
    assert_int_equal(a, 24);
    fth_sweep_grid_fini(&grid);
    fth_sweep_spec_fini(&spec);
}

/* The name of a run is what it is told, not where its line stands or what other runs there are. */
static void names_outlive_changes_of_the_file(void **state) {
    const place *p = *state;
    static const char *const files[] = {
        "data: d\nseeds: [1]\nlr: [0.1, 0.2]\nheads: 2\n",
        "heads: 2\nlr: [0.3, 0.2, 0.1]\ndata: d\nseeds: [5, 1]\njobs: 3\nthreads: 4\n",
        "data: d\nseeds: [1]\nlr: [0.1, 0.2]\nheads: 4\n"};
    const char *first = "lr=0.1_seed=1-4e2b48e2"; /* as folders of earlier sweeps are called */
    char name[2][200];
    for (int i = 0; i < 3; i++) {
        fth_sweep_spec spec;
        fth_sweep_grid grid;
        const char *found = NULL;
        put(p, "some.sweep.yaml", files[i]);
        assert_int_equal(fth_sweep_spec_read(&spec, p->file, NULL, 0), FTH_OK);
        assert_int_equal(fth_sweep_grid_make(&spec, "m", 100, &grid), FTH_OK);
        for (size_t k = 0; k < grid.n; k++)
            if (has(&grid.run[k], "--lr", "0.1") && has(&grid.run[k], "--seed", "1"))
                found = grid.run[k].name;
        assert_non_null(found);
        if (i == 0) assert_string_equal(found, first);
        if (i == 0) snprintf(name[0], sizeof name[0], "%s", found);
        if (i == 1) assert_string_equal(name[0], found);
        if (i == 2) assert_string_not_equal(name[0], found);
        fth_sweep_grid_fini(&grid);
        fth_sweep_spec_fini(&spec);
    }
}

static void a_million_runs_are_refused(void **state) {
    const place *p = *state;
    fth_sweep_spec spec;
    fth_sweep_grid grid;
    fth_str text = {0};
    assert_int_equal(fth_str_addf(&text, "data: d\n"), FTH_OK);
    for (int axis = 0; axis < 6; axis++) {
        assert_int_equal(fth_str_addf(&text, "o%d: [", axis), FTH_OK);
        for (int i = 0; i < 10; i++) assert_int_equal(fth_str_addf(&text, "%d, ", i), FTH_OK);
        assert_int_equal(fth_str_addf(&text, "]\n"), FTH_OK);
    }
    put(p, "some.sweep.yaml", text.text);
    assert_int_equal(fth_sweep_spec_read(&spec, p->file, NULL, 0), FTH_OK);
    assert_int_equal(fth_sweep_grid_make(&spec, "m", 10000, &grid), FTH_USAGE);
    assert_non_null(
        strstr(fth_error_message(), "its grid has 1000000 runs, must be at most 10000"));
    fth_sweep_grid_fini(&grid);
    fth_sweep_spec_fini(&spec);
    fth_str_fini(&text);
}

/* A list is looked through for repeated values before its length is judged. */
static void long_lists_are_read_at_once(void **state) {
    static const struct {
        const char *key, *last, *says;
    } cases[] = {{"lr", "n", "its grid has 300000 runs"},
                 {"lr", "7", ":2: lr: 7 is given twice"},
                 {"seeds", "300000", "its grid has 300000 runs"},
                 {"seeds", "7", ":2: seeds: 7 is given twice"}};
    const place *p = *state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fth_sweep_spec spec;
        fth_sweep_grid grid = {0};
        fth_str text = {0};
        assert_int_equal(fth_str_addf(&text, "data: d\n%s: [", cases[c].key), FTH_OK);
        for (int i = 0; i < 299999; i++) assert_int_equal(fth_str_addf(&text, "%d, ", i), FTH_OK);
        assert_int_equal(fth_str_addf(&text, "%s]\n", cases[c].last), FTH_OK);
        put(p, "some.sweep.yaml", text.text);
        const clock_t begin = clock();
        fth_err err = fth_sweep_spec_read(&spec, p->file, NULL, 0);
        if (err == FTH_OK) err = fth_sweep_grid_make(&spec, "m", 10000, &grid);
        assert_true(clock() - begin < 20 * CLOCKS_PER_SEC); /* by pairs: minutes */
        assert_int_equal(fth_exit_status(err), 2);
        if (!strstr(fth_error_message(), cases[c].says))
            fail_msg("%s: %s", cases[c].key, fth_error_message());
        fth_sweep_grid_fini(&grid);
        fth_sweep_spec_fini(&spec);
        fth_str_fini(&text);
    }
}

static void wrong_files_are_named_with_their_line(void **state) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"lr: 1\n", "names no data"},
        {"data: d\ncorpus:\n", "has data and also corpus"},
        {"data: d\nlr: []\n", ":2: lr: must have a value"},
        {"data: d\n\nlr:\n", ":3: lr: must have a value"},
        {"data: d\nlr: [1, 2, 1]\n", ":2: lr: 1 is given twice"},
        {"data: d\nseed: 1\n", ":2: seed: is written seeds"},
        {"data: d\nseeds: [1, x]\n", ":2: seeds x: must be whole numbers"},
        {"data: d\nseeds: [1, 1]\n", ":2: seeds: 1 is given twice"},
        {"data: d\njobs: 0\n", ":2: jobs 0: must be a whole number from 1"},
        {"data: d\njobs: [1]\n", ":2: jobs: must be one value"},
        {"data: d\nsave-dir: x\n", ":2: save-dir: is no option that a sweep can set"},
        {"data: d\nm.: 1\n", ":2: m.: must be METHOD.OPTION"},
        {"data: d\nm.x.y: 1\n", ":2: m.x.y: must be METHOD.OPTION"},
        {"data: d\nother.k: 1\n", ":2: other.k: no run has the method other"},
        {"corpus: 3\n", ":1: corpus: must be options"},
        {"base: none.yaml\n", "none.yaml"},
        {"data: d\nlr: {a: {b: 1}}\n", ":2: lr: its parts must be single values"},
    };
    const place *p = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_sweep_spec spec;
        fth_sweep_grid grid = {0};
        put(p, "some.sweep.yaml", cases[i].text);
        fth_err err = fth_sweep_spec_read(&spec, p->file, NULL, 0);
        if (err == FTH_OK) err = fth_sweep_grid_make(&spec, "m", 10, &grid);
        assert_int_equal(fth_exit_status(err), 2);
        if (!strstr(fth_error_message(), cases[i].says))
            fail_msg("%s\ngave: %s", cases[i].text, fth_error_message());
        fth_sweep_grid_fini(&grid);
        fth_sweep_spec_fini(&spec);
    }
}

/* ---- tables ---- */

/* Writes the log of a run that ended (or failed) with this nll. */
static void finish(const place *p, const fth_sweep_run *run, double best, bool failed) {
    char path[400], text[600];
    snprintf(path, sizeof path, "%s/runs/%s", p->folder, run->name);
    assert_int_equal(fth_make_dirs(path), FTH_OK);
    const char *layers = has(run, "--encoder-layers", "4") ? "4" : "2";
    snprintf(text, sizeof text,
             "{\"type\":\"start\",\"update\":0,\"config\":\"arch: encdec\\nencoder-layers: %s\\n"
             "decoder-layers: %s\\n\"}\n{\"type\":\"valid\",\"update\":5,\"nll_loss\":%.17g}\n"
             "{\"type\":\"valid\",\"update\":9,\"nll_loss\":%.17g}\n%s\n",
             layers, layers, best, best + 0.5,
             failed ? "{\"type\":\"diverged\",\"update\":9,\"reason\":\"it, \\\"failed\\\"\"}"
                    : "{\"type\":\"end\",\"update\":9}");
    snprintf(path, sizeof path, "runs/%s/log.jsonl", run->name);
    put(p, path, text);
}

static void tables_of_a_sweep(void **state) {
    const place *p = *state;
    fth_sweep_spec spec;
    fth_sweep_grid grid;
    fth_sweep_results r;
    fth_str text = {0};
    size_t fits;
    put(p, "some.sweep.yaml",
        "data: d\nseeds: [1, 2]\nencoder-layers, decoder-layers: [2, 4]\nact_x: [a_b, \"c,d\"]\n");
    assert_int_equal(fth_sweep_spec_read(&spec, p->file, NULL, 0), FTH_OK);
    assert_int_equal(fth_sweep_grid_make(&spec, "m", 100, &grid), FTH_OK);
    assert_int_equal(grid.n, 8);
    finish(p, &grid.run[0], 1, false);
    finish(p, &grid.run[1], 2, false);
    finish(p, &grid.run[2], 3, false); /* its second seed failed */
    finish(p, &grid.run[3], 9, true);
    finish(p, &grid.run[4], 0.5, false); /* its second seed is not begun */
    finish(p, &grid.run[6], 9, true);
    finish(p, &grid.run[7], 9, true);
    assert_int_equal(fth_sweep_results_read(&spec, &grid, p->folder, &r), FTH_OK);
    assert_int_equal(fth_sweep_table_csv(&r, &text), FTH_OK);
    assert_string_equal(
        text.text, "\"encoder-layers, decoder-layers\",act_x,runs,done,failed,best_mean,best_dev,"
                   "final_mean,final_dev,failed_last\n"
                   "2,a_b,2,2,0,1.5,0.707107,2,0.707107,\n2,\"c,d\",2,2,1,3,,3.5,,9.5\n"
                   "4,a_b,2,1,0,0.5,,1,,\n4,\"c,d\",2,2,2,,,,,9.5\n");
    fth_str_clear(&text);
    assert_int_equal(fth_sweep_table_markdown(&r, &text), FTH_OK);
    assert_non_null(
        strstr(text.text, "| 2 | a_b | 2 | 0 | 1.5000 ± 0.7071 | 2.0000 ± 0.7071 |  |\n"));
    assert_non_null(strstr(text.text, "| 4 | a_b | 1/2 | 0 | 0.5000 | 1.0000 |  |\n"));
    assert_non_null(strstr(text.text, "| 4 | c,d | 2 | 2 | failed | failed | 9.5000 ± 0.0000 |\n"));
    assert_non_null(strstr(text.text, "Scaling law: minus best dev NLL"));
    fth_str_clear(&text);
    assert_int_equal(fth_sweep_table_latex(&r, &text), FTH_OK);
    assert_non_null(strstr(text.text, "2 & a\\_b & 2 & 0 & $1.5000 \\pm 0.7071$ & "));
    fth_str_clear(&text);
    assert_int_equal(fth_sweep_table_runs(&r, &text), FTH_OK);
    assert_non_null(
        strstr(text.text, "2,\"c,d\",2,failed,9,9,9.5,9.5,\"it, \"\"failed\"\"\",runs/"));
    assert_non_null(strstr(text.text, "4,a_b,2,not begun,0,,,,,runs/"));
    fth_str_clear(&text);
    assert_int_equal(fth_sweep_table_fits(&r, false, &text, &fits), FTH_OK);
    assert_int_equal(fits, 1); /* "c,d" has one depth that did not fail */
    double a = 1 / log(2), b = -1.5 - a * log(4);
    char want[200];
    snprintf(want, sizeof want, "act_x,points,A,B,R2\na_b,2,%.6g,%.6g,1\n", a, b);
    assert_string_equal(text.text, want);
    fth_str_fini(&text);
    fth_sweep_results_fini(&r);
    fth_sweep_grid_fini(&grid);
    fth_sweep_spec_fini(&spec);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scaling_law_of_the_paper),
        cmocka_unit_test(a_fit_with_scatter),
        cmocka_unit_test(mean_and_deviation),
        WITH_FOLDER(a_grid_is_what_its_file_says),
        WITH_FOLDER(names_outlive_changes_of_the_file),
        WITH_FOLDER(a_million_runs_are_refused),
        WITH_FOLDER(long_lists_are_read_at_once),
        WITH_FOLDER(wrong_files_are_named_with_their_line),
        WITH_FOLDER(tables_of_a_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
