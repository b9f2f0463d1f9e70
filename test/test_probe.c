/* links: probe */
/* The analyses of fathom probe: every method and architecture against the PyTorch reference's
 * numbers (test/golden/probe), on each device; and what must hold for any model. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/device/device.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "store/safetensors.h"
#include "close.h"
#include "probe/eigen.h"
#include "probe/series.h"
#include "train/padded.h"
#include "train/trainer.h"
#include "train/weights.h"

#define PLACE_FILE "batch.safetensors"
#include "place.h"

#define TRACES TEST_DIR "/golden/trace"
#define GOLDEN TEST_DIR "/golden/probe"
#define SERIES GOLDEN "/series"

static fth_device *opened(const char *name) {
    fth_device *dev = NULL;
    assert_int_equal(fth_device_open(name, "fp32", 2, &dev), FTH_OK);
    return dev;
}

static fth_table table_for(const fth_analysis *a) {
    return (fth_table){.columns = a->columns, .n_numbers = a->n_numbers, .has_word = a->has_word};
}

/* ---- lines of CSV ---- */

/* Numbers are near, words equal. Gradients that are 0 but for rounding have an absolute bound. */
static void same_line(const char *where, const char *got, const char *want, double tolerance) {
    const char *g = got, *w = want;
    while (*g && *w && *g != '\n' && *w != '\n') {
        size_t n = strcspn(g, ",\n"), m = strcspn(w, ",\n");
        char *end;
        double x = strtod(g, NULL), y = strtod(w, &end);
        if (m == 0 || end != w + m) {
            if (n != m || memcmp(g, w, n) != 0)
                fail_msg("%s: got %.*s, expected %.*s", where, (int)strcspn(got, "\n"), got,
                         (int)strcspn(want, "\n"), want);
        } else if (!is_close(x, y, tolerance * fabs(y) + 1e-9)) {
            fail_msg("%s: got %.*s, expected %.*s", where, (int)strcspn(got, "\n"), got,
                     (int)strcspn(want, "\n"), want);
        }
        g += n + (g[n] == ',');
        w += m + (w[m] == ',');
    }
    if ((*g && *g != '\n') || (*w && *w != '\n')) fail_msg("%s: lines of other length", where);
}

static const char *next_line(const char *at) {
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

/* Lines of `want` that begin with "what,", or all for NULL, against all of `csv`. */
static int same_rows(const char *where, const char *what, const char *csv, const char *want,
                     double tolerance) {
    int n = 0;
    size_t prefix = what ? strlen(what) + 1 : 0;
    for (; *want; want = next_line(want)) {
        if (what && (strncmp(want, what, prefix - 1) != 0 || want[prefix - 1] != ',')) continue;
        if (!*csv) fail_msg("%s: too few rows of %s", where, what ? what : "it");
        same_line(where, csv, want + prefix, tolerance);
        csv = next_line(csv);
        n++;
    }
    if (*csv) fail_msg("%s: too many rows: %s", where, csv);
    return n;
}

/* ---- golden ---- */

static const char *const whats[] = {"gradnorm", "places", "lninput", "similarity", "sparsity"};

/* Flags of a trace that count for a probe. */
static void flags_of(const char *folder, fth_probe_spec *spec) {
    char *path = fth_strdup_printf("%s/case.json", folder);
    json_t *json = NULL;
    assert_int_equal(fth_json_load(path, &json), FTH_OK);
    const json_t *args = json_object_get(json, "args");
    for (size_t i = 0; i + 1 < json_array_size(args); i += 2) {
        const char *flag = json_string_value(json_array_get(args, i));
        double value = strtod(json_string_value(json_array_get(args, i + 1)), NULL);
        if (strcmp(flag, "--update") == 0) spec->update = (int64_t)value;
        if (strcmp(flag, "--label-smoothing") == 0) spec->smoothing = value;
    }
    json_decref(json);
    free(path);
}

static void one_case(fth_device *dev, const char *name, const char *want, double tolerance) {
    char *folder = fth_strdup_printf("%s/%s", TRACES, name);
    char *batch = fth_strdup_printf("%s/batch.safetensors", folder);
    fth_probe_spec spec = {.device = dev, .batch = batch, .max_tokens = 4096};
    flags_of(folder, &spec);
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        const fth_analysis *a = NULL;
        fth_str csv = {0};
        assert_int_equal(fth_analysis_find(whats[i], &a), FTH_OK);
        fth_table table = table_for(a);
        char *prefix = fth_strdup_printf("%s,", whats[i]);
        bool exists = strstr(want, prefix) != NULL;
        fth_err err = fth_probe_model(a, &spec, folder, &table);
        if (err != (exists ? FTH_OK : FTH_USAGE))
            fail_msg("%s %s: %s", name, whats[i], fth_error_message());
        if (exists) {
            assert_int_equal(fth_table_csv(&table, &csv), FTH_OK);
            same_rows(name, whats[i], next_line(csv.text), want, tolerance);
        }
        free(prefix);
        fth_str_fini(&csv);
        fth_table_fini(&table);
    }
    free(folder);
    free(batch);
}

static void all_cases(const char *device, double tolerance) {
    fth_device *dev = opened(device);
    DIR *dir = opendir(GOLDEN);
    assert_non_null(dir);
    int cases = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char *ending = strstr(e->d_name, ".csv"), *text = NULL;
        size_t size;
        if (!ending) continue;
        char *path = fth_strdup_printf("%s/%s", GOLDEN, e->d_name);
        assert_int_equal(fth_file_read(path, &text, &size), FTH_OK);
        *ending = '\0';
        one_case(dev, e->d_name, text, tolerance);
        free(path);
        free(text);
        cases++;
    }
    closedir(dir);
    fth_device_close(dev);
    assert_true(cases >= 17 * 3);
}

static void golden_on_ref(void **state) {
    (void)state;
    all_cases("ref", 1e-5);
}

static void golden_on_cpu(void **state) {
    (void)state;
    all_cases("cpu", 1e-4);
}

/* ---- series ---- */

static const char *const models[] = {SERIES "/model-9", SERIES "/model-2", SERIES "/model-0",
                                     SERIES "/model-5"};

static fth_table run_series(const char *what, const fth_probe_spec *spec, int32_t n,
                            const char *init, fth_err expected) {
    const fth_analysis *a = NULL;
    fth_series s;
    assert_int_equal(fth_analysis_find(what, &a), FTH_OK);
    fth_table table = table_for(a);
    assert_int_equal(fth_series_of_models(&s, models, n, init), FTH_OK);
    assert_int_equal(fth_probe_series(a, spec, &s, &table), expected);
    fth_series_fini(&s);
    return table;
}

static void series_case(const char *device, const char *what, double tolerance) {
    fth_device *dev = opened(device);
    fth_probe_spec spec = {
        .device = dev, .batch = SERIES "/batch.safetensors", .max_tokens = 7, .grid = 5};
    fth_table table = run_series(what, &spec, 4, NULL, FTH_OK);
    char *path = fth_strdup_printf("%s/%s.csv", SERIES, what), *want = NULL;
    size_t size;
    fth_str csv = {0};
    assert_int_equal(fth_file_read(path, &want, &size), FTH_OK);
    assert_int_equal(fth_table_csv(&table, &csv), FTH_OK);
    assert_true(same_rows(what, NULL, csv.text, want, tolerance) > 4);
    free(path);
    free(want);
    fth_str_fini(&csv);
    fth_table_fini(&table);
    fth_device_close(dev);
}

static void series_golden(void **state) {
    (void)state;
    series_case("ref", "update", 1e-5);
    series_case("cpu", "update", 1e-4);
    series_case("ref", "trajectory", 1e-5);
    series_case("cpu", "trajectory", 1e-4);
}

static void trajectory_ends(void **state) {
    (void)state;
    fth_device *dev = opened("ref");
    fth_probe_spec spec = {
        .device = dev, .batch = SERIES "/batch.safetensors", .max_tokens = 4096, .grid = 3};
    fth_table pca = run_series("trajectory", &spec, 4, NULL, FTH_OK);
    spec.angle = true;
    fth_table angle = run_series("trajectory", &spec, 4, NULL, FTH_OK);
    assert_int_equal(pca.n, 4 + 9);
    assert_int_equal(angle.n, 4); /* no plane, no surface */
    for (int k = 0; k < 2; k++) {
        const fth_probe_row *row = k ? angle.row : pca.row;
        assert_true(row[0].number[0] == 0 && row[0].number[1] == 0);
        assert_true(row[3].number[0] == 1 && row[3].number[1] == 0);
        assert_true(row[1].number[1] > 0);
    }
    assert_true(pca.row[1].number[0] == angle.row[1].number[0]);
    fth_table_fini(&pca);
    fth_table_fini(&angle);
    fth_table few = run_series("trajectory", &spec, 2, NULL, FTH_USAGE);
    fth_table_fini(&few);
    few = run_series("update", &spec, 1, NULL, FTH_USAGE);
    fth_table_fini(&few);
    few = run_series("update", &spec, 1, SERIES "/model-0", FTH_OK);
    assert_int_equal(few.n, 2);
    assert_true(few.row[0].number[0] == 0 && few.row[1].number[0] > 1);
    fth_table_fini(&few);
    fth_device_close(dev);
}

static void eigenvectors(void **state) {
    (void)state;
    const double matrix[] = {2, -1, 0, -1, 2, -1, 0, -1, 2};
    double v[3], value;
    assert_int_equal(fth_first_eigenvector(matrix, 3, v, &value), FTH_OK);
    assert_close(value, 2 + sqrt(2), 1e-12);
    assert_close(fabs(v[1]), sqrt(0.5), 1e-12);
    assert_close(v[0], v[2], 1e-12);
    assert_true(v[0] * v[1] < 0);
    const double nothing[] = {0, 0, 0, 0};
    assert_int_equal(fth_first_eigenvector(nothing, 2, v, &value), FTH_OK);
    assert_true(value == 0);
}

/* ---- what holds for any model ---- */

static const char *const some[] = {"deepnorm-encdec", "dlcl-pre-encdec", "admin-dec",
                                   "rezero-encdec",   "normformer-enc",  "rfixup-encdec"};
enum { N_SOME = sizeof some / sizeof *some };

/* Pieces of the probe set give what the whole does, dropout masks included. */
static void pieces(void **state) {
    (void)state;
    fth_device *dev = opened("ref");
    for (int i = 0; i < N_SOME * 2; i++) {
        char *folder = fth_strdup_printf("%s/%s", TRACES, some[i / 2]);
        char *batch = fth_strdup_printf("%s/batch.safetensors", folder);
        fth_probe_spec spec = {.device = dev, .batch = batch, .dropout = i % 2, .seed = 3};
        for (size_t k = 0; k < sizeof whats / sizeof *whats; k++) {
            const fth_analysis *a = NULL;
            assert_int_equal(fth_analysis_find(whats[k], &a), FTH_OK);
            fth_table whole = table_for(a), parts = table_for(a);
            spec.max_tokens = 1000;
            fth_err err = fth_probe_model(a, &spec, folder, &whole);
            spec.max_tokens = 6;
            assert_int_equal(fth_probe_model(a, &spec, folder, &parts), err);
            assert_int_equal(whole.n, parts.n);
            for (int64_t r = 0; r < whole.n; r++)
                for (int c = 0; c < whole.n_numbers; c++)
                    assert_close(whole.row[r].number[c], parts.row[r].number[c],
                                 1e-11 * fabs(whole.row[r].number[c]) + 1e-13);
            fth_table_fini(&whole);
            fth_table_fini(&parts);
        }
        free(folder);
        free(batch);
    }
    fth_device_close(dev);
}

/* A trainer over the whole probe set of a subject. */
static void train_once(fth_subject *s, fth_trainer *t, fth_update *u) {
    const fth_batch *batch = &s->set.all.store.batch;
    fth_recipe recipe = {
        .smoothing = s->spec->smoothing, .dropout = s->spec->dropout, .seed = s->spec->seed};
    fth_trainer_spec size = {
        .src_tokens = batch->side[0].rows, .tgt_tokens = batch->side[1].rows, .max_len = 16};
    assert_int_equal(fth_trainer_init(t, &s->model, s->spec->device, &recipe, &size), FTH_OK);
    assert_int_equal(fth_arenas_load(s->spec->device, &t->arenas, s->flat), FTH_OK);
    assert_int_equal(fth_trainer_gradients(t, 1, &batch, 1, u), FTH_OK);
}

/* The squares of all layers and of what belongs to no layer add up to the norm that a run logs; and
 * asking for gradients changes no bit of those of the parameters. */
static void sum_rule(void **state) {
    (void)state;
    fth_device *dev = opened("cpu");
    for (int i = 0; i < N_SOME; i++) {
        char *folder = fth_strdup_printf("%s/%s", TRACES, some[i]);
        char *batch = fth_strdup_printf("%s/batch.safetensors", folder);
        fth_probe_spec spec = {.device = dev,
                               .batch = batch,
                               .max_tokens = 1000,
                               .update = 1,
                               .smoothing = 0.1,
                               .dropout = i % 2,
                               .seed = 5};
        fth_subject s;
        fth_look look;
        fth_trainer t;
        fth_update u;
        fth_table table = {.columns = "gp,ga", .n_numbers = 2};
        assert_int_equal(fth_subject_open(&s, &spec, folder), FTH_OK);
        train_once(&s, &t, &u);
        assert_int_equal(fth_table_subject(&table, "x", &s.model.config), FTH_OK);
        assert_int_equal(fth_probe_gradnorm(&s, &table), FTH_OK);
        double sum = 0;
        for (int64_t r = 0; r < table.n; r++)
            sum += table.row[r].number[0] * table.row[r].number[0];
        for (int32_t p = 0; p < s.model.params.n; p++) {
            const fth_param *param = &s.model.params.param[p];
            const float *g = (const float *)s.arenas.grad + param->offset;
            for (int64_t e = 0; param->layer < 0 && e < fth_param_size(param); e++)
                sum += (double)g[e] * (double)g[e];
        }
        assert_close(sqrt(sum), u.gnorm, 1e-6 * u.gnorm);
        assert_memory_equal(s.arenas.grad, t.arenas.grad, sizeof(float) * (size_t)s.arenas.n);
        /* all gradients that taps can give, and no pieces */
        assert_int_equal(
            fth_look_open(&look, &s, (fth_graph_spec){.backward = true}, FTH_TAP_DY | FTH_TAP_DZ),
            FTH_OK);
        assert_int_equal(fth_look_run(&look, 1, NULL, NULL), FTH_OK);
        assert_memory_equal(s.arenas.grad, t.arenas.grad, sizeof(float) * (size_t)s.arenas.n);
        assert_true(look.loss == u.loss);
        fth_look_close(&look);
        fth_trainer_fini(&t);
        fth_table_fini(&table);
        fth_subject_close(&s);
        free(folder);
        free(batch);
    }
    fth_device_close(dev);
}

/* Taps that ask for no gradient leave the operations as they are. */
static void taps_change_nothing(void **state) {
    (void)state;
    for (int i = 0; i < N_SOME; i++) {
        char *folder = fth_strdup_printf("%s/%s", TRACES, some[i]);
        fth_model model;
        float *flat = NULL;
        fth_graph plain, tapped;
        fth_outputs out;
        fth_taps taps = {0};
        fth_graph_spec spec = {.backward = true, .dropout = true};
        assert_int_equal(fth_weights_read(folder, &model, &flat), FTH_OK);
        assert_int_equal(fth_model_graph(&model, &spec, &plain, &out), FTH_OK);
        spec.taps = &taps;
        assert_int_equal(fth_model_graph(&model, &spec, &tapped, &out), FTH_OK);
        assert_int_equal(plain.n_ops, tapped.n_ops);
        assert_int_equal(plain.n_values, tapped.n_values);
        for (int32_t k = 0; k < plain.n_ops; k++) {
            const fth_op *a = &plain.op[k], *b = &tapped.op[k];
            assert_int_equal(a->kind, b->kind);
            assert_memory_equal(a->in, b->in, sizeof *a->in * (size_t)a->n_in);
            assert_memory_equal(a->out, b->out, sizeof *a->out * (size_t)a->n_out);
        }
        int32_t crossed = model.config.arch == FTH_ENCDEC ? 3 : 2;
        assert_int_equal(taps.n_sub,
                         2 * model.config.encoder_layers + crossed * model.config.decoder_layers);
        for (int32_t k = 0; k < taps.n_sub; k++) {
            const fth_tap *tap = &taps.sub[k];
            assert_true(tap->x && tap->f && tap->y && !tap->dy && !tap->dz);
            assert_true((tap->act != 0) == (tap->sub == FTH_FFN));
            assert_true((tap->q && tap->k && tap->v && tap->lse) == (tap->sub != FTH_FFN));
            assert_ptr_equal(fth_taps_by_output(&taps, tap->y), tap);
            fth_taps_keep(&tapped, tap->y);
            assert_true(tapped.value[tap->y].keep);
        }
        fth_taps_fini(&taps);
        fth_graph_fini(&plain);
        fth_graph_fini(&tapped);
        free(flat);
        fth_model_fini(&model);
        free(folder);
    }
}

/* Under dropout the sum inside of a fused operation has a gradient that nothing else computes. A
 * dropout that never drops must give what the others give. */
static void passed_over(void **state) {
    (void)state;
    static const char *const cases[] = {"deepnorm-encdec", "admin-encdec", "normformer-encoder-off",
                                        "branchnorm-enc"};
    for (int i = 0; i < 4 * 2; i++) {
        fth_device *dev = opened(i % 2 ? "cpu" : "ref");
        char *folder = fth_strdup_printf("%s/%s", TRACES, cases[i / 2]);
        char *batch = fth_strdup_printf("%s/batch.safetensors", folder);
        fth_probe_spec spec = {.device = dev, .batch = batch, .max_tokens = 100};
        double squares[2][32] = {{0}};
        for (int k = 0; k < 2; k++) {
            fth_subject s;
            fth_look look;
            spec.dropout = k;
            assert_int_equal(fth_subject_open(&s, &spec, folder), FTH_OK);
            s.model.config.dropout = 1e-12;
            assert_int_equal(fth_look_open(&look, &s, (fth_graph_spec){.backward = true},
                                           FTH_TAP_DY | FTH_TAP_DZ),
                             FTH_OK);
            assert_true(2 * look.taps.n_sub <= 32);
            for (int32_t n = 0; n < look.taps.n_sub; n++) {
                assert_true(look.taps.sub[n].dy && look.taps.sub[n].dz);
                assert_int_equal(fth_look_at(&look, look.taps.sub[n].dy, 2 * n), FTH_OK);
                assert_int_equal(fth_look_at(&look, look.taps.sub[n].dz, 2 * n + 1), FTH_OK);
            }
            assert_int_equal(fth_look_run(&look, 3, fth_see_squares, squares[k]), FTH_OK);
            fth_look_close(&look);
            fth_subject_close(&s);
        }
        for (int n = 0; n < 32; n++)
            assert_close(squares[0][n], squares[1][n], 1e-5 * squares[0][n]);
        assert_true(squares[0][5] > 0);
        free(folder);
        free(batch);
        fth_device_close(dev);
    }
}

/* ---- surface ---- */

static fth_table surface_of(fth_subject *s) {
    fth_table table = {.columns = "a,b,loss", .n_numbers = 3};
    assert_int_equal(fth_table_subject(&table, "x", &s->model.config), FTH_OK);
    assert_int_equal(fth_probe_surface(s, &table), FTH_OK);
    assert_int_equal(table.n, (int64_t)s->spec->grid * s->spec->grid);
    return table;
}

static void surface_centre(void **state) {
    (void)state;
    fth_device *dev = opened("cpu");
    for (int i = 0; i < N_SOME; i++) {
        char *folder = fth_strdup_printf("%s/%s", TRACES, some[i]);
        char *batch = fth_strdup_printf("%s/batch.safetensors", folder);
        fth_probe_spec spec = {
            .device = dev, .batch = batch, .max_tokens = 9, .grid = 5, .seed = 1};
        fth_subject s;
        fth_look look;
        assert_int_equal(fth_subject_open(&s, &spec, folder), FTH_OK);
        fth_table table = surface_of(&s);
        assert_int_equal(fth_look_open(&look, &s, (fth_graph_spec){0}, 0), FTH_OK);
        assert_int_equal(fth_look_run(&look, 1, NULL, NULL), FTH_OK);
        const double *centre = table.row[12].number;
        assert_true(centre[0] == 0 && centre[1] == 0 && centre[2] == look.loss);
        assert_true(table.row[0].number[0] == -1 && table.row[24].number[1] == 1);
        assert_true(table.row[7].number[2] != centre[2] && table.row[11].number[2] != centre[2]);
        fth_table_fini(&table);
        /* rows of length 0 have no direction, and vectors never have one */
        for (int32_t p = 0; p < s.model.params.n; p++) {
            const fth_param *param = &s.model.params.param[p];
            if (fth_role_is_matrix(param->role))
                memset(s.flat + param->offset, 0, sizeof *s.flat * (size_t)fth_param_size(param));
        }
        assert_int_equal(fth_subject_load(&s, s.flat), FTH_OK);
        table = surface_of(&s);
        for (int64_t r = 1; r < table.n; r++)
            assert_true(table.row[r].number[2] == table.row[0].number[2]);
        fth_table_fini(&table);
        fth_look_close(&look);
        fth_subject_close(&s);
        free(folder);
        free(batch);
    }
    fth_device_close(dev);
}

/* ---- refusals ---- */

static void refusals(void **state) {
    (void)state;
    fth_device *dev = opened("ref");
    static const struct {
        const char *what, *model, *says;
    } cases[] = {
        {"places", "preln-encdec", "no LN after the addition"},
        {"places", "rezero-enc", "no LN after the addition"},
        {"lninput", "rezero-dec", "has no layer norm"},
        {"lninput", "b2t-noln-dec", "has no layer norm"},
        {"sparsity", "preln-gelu-learned-none", "gelu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fth_analysis *a = NULL;
        char *folder = fth_strdup_printf("%s/%s", TRACES, cases[i].model);
        char *batch = fth_strdup_printf("%s/batch.safetensors", folder);
        fth_probe_spec spec = {.device = dev, .batch = batch, .max_tokens = 100};
        assert_int_equal(fth_analysis_find(cases[i].what, &a), FTH_OK);
        fth_table table = table_for(a);
        assert_int_equal(fth_probe_model(a, &spec, folder, &table), FTH_USAGE);
        assert_non_null(strstr(fth_error_message(), cases[i].says));
        fth_table_fini(&table);
        free(folder);
        free(batch);
    }
    const fth_analysis *a = NULL;
    assert_int_equal(fth_analysis_find("gradnrom", &a), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "did you mean gradnorm?"));
    fth_device_close(dev);
}

/* ---- batch files ---- */

typedef struct matrix {
    int64_t n, width;
    const int32_t *ids;
} matrix;

static const int32_t words[] = {4, 5, 2, 6, 2, 1}; /* 1: pad */
#define GOOD                                                                                       \
    { 2, 3, words }

/* The error of a file of these for a model of arch encdec, or "" for none. */
static const char *batch_error(const char *path, const fth_config *c, const matrix m[3]) {
    static const char *const names[] = {"src", "tgt_in", "tgt_out"};
    fth_st_tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = (fth_st_tensor){.name = names[i],
                               .dtype = FTH_ST_I32,
                               .rank = 2,
                               .shape = {m[i].n, m[i].width},
                               .data = m[i].ids ? m[i].ids : words};
    fth_padded batch;
    assert_int_equal(fth_st_write(path, t, 3, NULL, NULL, NULL), FTH_OK);
    fth_err err = fth_padded_read(path, c, &batch);
    if (err == FTH_OK) fth_padded_fini(&batch);
    assert_true(err == FTH_OK || err == FTH_BAD_INPUT);
    return err == FTH_OK ? "" : fth_error_message();
}

static void bad_batches(void **state) {
    const place *p = *state;
    static const int32_t high[] = {4, 5, 2, 6, 11, 1}, low[] = {4, -7, 2, 6, 2, 1};
    static const int32_t under_pad[] = {4, 5, 2, 6, 2, 99};
    static const struct {
        matrix m[3];
        const char *says;
    } cases[] = {
        {{GOOD, GOOD, GOOD}, ""},
        {{{2147483647, 0, NULL}, GOOD, GOOD}, "tensor src is [2147483647, 0], must have at most"},
        {{{4294967298, 0, NULL}, GOOD, GOOD}, "tensor src is [4294967298, 0], must have at most"},
        {{{0, 4294967298, NULL}, GOOD, GOOD}, "tensor src is [0, 4294967298], must have at most"},
        {{GOOD, {2, 3, NULL}, {3, 2, NULL}}, "tensor tgt_out is [3, 2], must be [2, 3]"},
        {{{2, 3, high}, GOOD, GOOD}, "tensor src: [1, 1] is 11, outside of the vocabulary of 11"},
        {{GOOD, {2, 3, low}, GOOD}, "tensor tgt_in: [0, 1] is -7, outside of the vocabulary"},
        {{GOOD, GOOD, {2, 3, high}}, "tensor tgt_out: [1, 1] is 11, outside"},
        {{GOOD, GOOD, {2, 3, low}}, "tensor tgt_out: [0, 1] is -7, outside"},
        {{GOOD, GOOD, {2, 3, under_pad}}, ""},
    };
    fth_config c = fth_config_default();
    c.src_vocab = c.tgt_vocab = 11;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = batch_error(p->file, &c, cases[i].m);
        if (!strstr(said, cases[i].says) || !*said != !*cases[i].says)
            fail_msg("\"%s\", not \"%s\"", said, cases[i].says);
        if (*said) assert_non_null(strstr(said, p->file));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_on_ref),
        cmocka_unit_test(golden_on_cpu),
        cmocka_unit_test(series_golden),
        cmocka_unit_test(trajectory_ends),
        cmocka_unit_test(eigenvectors),
        cmocka_unit_test(pieces),
        cmocka_unit_test(sum_rule),
        cmocka_unit_test(taps_change_nothing),
        cmocka_unit_test(passed_over),
        cmocka_unit_test(surface_centre),
        cmocka_unit_test(refusals),
        cmocka_unit_test_setup_teardown(bad_batches, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
