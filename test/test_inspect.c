/* links: inspect base */
/* Logs of runs, whole and broken: what is read of them, how it is thinned, and the page's data. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/philox.h"
#include "close.h"
#include "inspect/page.h"
#include "inspect/values.h"
#include "inspect/run_view_json.h"
#include "inspect/run_views.h"

#define PLACE_FILE "log.jsonl"
#include "place.h"

static void append(const place *p, const char *text) {
    FILE *f = fopen(p->file, "a");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void poll_view(fth_run_view *v, bool expect_change) {
    bool changed;
    assert_int_equal(fth_run_view_poll(v, &changed), FTH_OK);
    assert_int_equal(changed, expect_change);
}

/* ---- thinning ---- */

static void a_curve_keeps_its_extremes(void **state) {
    (void)state;
    fth_curve c;
    assert_int_equal(fth_curve_init(&c, "train.loss"), FTH_OK);
    const int n = 100000;
    double sum = 0;
    for (int i = 1; i <= n; i++) {
        double x = i == 77777 ? 1000 : i == 33333 ? -5 : sin(i);
        sum += x;
        fth_curve_add(&c, i, x);
    }
    double low = INFINITY, high = -INFINITY, mean = 0;
    int64_t count = 0;
    for (int32_t i = 0; i < c.n; i++) {
        low = fmin(low, c.point[i].low);
        high = fmax(high, c.point[i].high);
        mean += c.point[i].mean * (double)c.point[i].finite;
        count += c.point[i].finite;
        assert_true(i == 0 || c.point[i].first == c.point[i - 1].last + 1);
    }
    assert_true(c.n <= FTH_CURVE_POINTS && c.n > FTH_CURVE_POINTS / 4);
    assert_int_equal(count, n);
    assert_true(low == -5 && high == 1000);
    assert_close(mean, sum, 1e-6 * n);
    assert_true(fth_curve_lowest(&c, NULL) == -5);
    fth_curve_fini(&c);
}

static void a_curve_counts_faults_and_goes_back(void **state) {
    (void)state;
    fth_curve c;
    assert_int_equal(fth_curve_init(&c, "x"), FTH_OK);
    assert_true(isnan(fth_curve_lowest(&c, NULL)));
    fth_curve_add(&c, 1, 2);
    fth_curve_add(&c, 2, NAN);
    fth_curve_add(&c, 3, 1);
    assert_int_equal(c.point[1].faults, 1);
    int64_t at = 0;
    assert_true(fth_curve_lowest(&c, &at) == 1 && at == 3);
    fth_curve_rewind(&c, 2);
    assert_int_equal(c.n, 2);
    assert_true(fth_curve_lowest(&c, &at) == 2 && at == 1);
    fth_curve_rewind(&c, 0);
    assert_int_equal(c.n, 0);
    fth_curve_fini(&c);
}

static void a_heat_map_is_thinned_evenly(void **state) {
    (void)state;
    fth_heat h;
    enum { LAYERS = 1000, KINDS = 3, LINES = 2000 };
    assert_int_equal(fth_heat_init(&h, "decoder", "grad_norm", LAYERS * KINDS, LAYERS), FTH_OK);
    assert_int_equal(h.kinds, KINDS);
    assert_int_equal(h.per_bin, 5);
    assert_int_equal(h.bins, 200);
    float *line = malloc(sizeof *line * LAYERS * KINDS);
    assert_non_null(line);
    for (int u = 1; u <= LINES; u++) {
        for (int l = 0; l < LAYERS; l++)
            for (int k = 0; k < KINDS; k++) line[l * KINDS + k] = (float)(u * 10 + k);
        line[7 * KINDS + 1] = u == 1 ? (float)NAN : FTH_HEAT_NONE;
        for (int l = 10; l < 15; l++) line[l * KINDS] = FTH_HEAT_NONE;
        fth_heat_add(&h, u, line);
    }
    assert_true(h.rows <= FTH_HEAT_ROWS && h.rows > FTH_HEAT_ROWS / 4);
    for (int32_t r = 0; r < h.rows; r++) {
        assert_int_equal(h.update[r], 1 + r * h.stride);
        const float *row = h.cell + (size_t)r * KINDS * (size_t)h.bins;
        assert_true(row[2 * h.bins + 50] == (float)(h.update[r] * 10 + 2));
        assert_true(row[2] == FTH_HEAT_NONE);       /* layers 11 to 15 have none */
        assert_true(r == 0 ? isnan(row[h.bins + 1]) /* a fault is not averaged away */
                           : row[h.bins + 1] == (float)(h.update[r] * 10 + 1));
    }
    free(line);
    fth_heat_fini(&h);
}

static void an_odd_heat_map_has_one_kind(void **state) {
    (void)state;
    fth_heat h;
    assert_int_equal(fth_heat_init(&h, "encoder", "x", 7, 2), FTH_OK);
    assert_int_equal(h.kinds, 1);
    assert_int_equal(h.layers, 7);
    fth_heat_fini(&h);
}

/* ---- layers lines, read fast and read by the JSON parser ---- */

static void fast_lines_are_read_like_slow_ones(void **state) {
    static const struct {
        const char *values;
        int n; /* -1: left to the parser */
    } cases[] = {
        {"0.1,2,3e-5,-1.5E+2,1e300,4.9406564584124654e-324,null,\"nan\",\"inf\",\"-inf\"", 10},
        {"0.00012345678901234567,12345678901234567", 2},
        {"1, 2", -1}, /* a blank: the parser's business */
        {"", -1},
        {"1,", -1},
        {"1e", -1},
        {"1.", -1},
        {"-", -1},
        {"\"x\"", -1},
        {"nul", -1},
        {"1}", -1},
        {"[1]", -1},
        {"1]}x", -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[400];
        float got[200];
        size_t n = 0;
        fth_values_line head;
        snprintf(line, sizeof line,
                 "{\"type\":\"layers\",\"update\":12,\"stack\":\"encoder\",\"name\":\"g\","
                 "\"values\":[%s]}",
                 cases[i].values);
        assert_true(fth_values_head(line, strlen(line), &head));
        assert_int_equal(head.update, 12);
        assert_string_equal(head.stack, "encoder");
        assert_int_equal(fth_values_read(&head, got, &n), cases[i].n >= 0);
        if (cases[i].n < 0) continue;
        assert_int_equal(n, cases[i].n);
        json_t *parsed;
        assert_int_equal(fth_json_parse("line", line, strlen(line), &parsed), FTH_OK);
        for (size_t k = 0; k < n; k++) {
            double want = (double)FTH_HEAT_NONE;
            const json_t *value = json_array_get(json_object_get(parsed, "values"), k);
            if (!json_is_null(value)) assert_int_equal(fth_json_to_double(value, &want), FTH_OK);
            float f = (float)want;
            bool same = isnan(f) ? isnan(got[k])
                                 : f == got[k] || is_close(got[k], f, 1e-6 * fabs((double)f));
            assert_true(same);
        }
        json_decref(parsed);
    }
}

/* ---- runs ---- */

static const char *const start_line = "{\"type\":\"start\",\"update\":0,\"parameters\":12,"
                                      "\"config\":\"arch: encdec\\nmax-update: 20\\n"
                                      "encoder-layers: 2\\ndecoder-layers: 1\\n\"}\n";

static void a_run_that_is_being_written(void **state) {
    const place *p = *state;
    fth_run_view v;
    assert_int_equal(fth_run_view_init(&v, p->folder), FTH_OK);
    poll_view(&v, false);
    assert_int_equal(v.state, FTH_VIEW_MISSING);
    assert_non_null(strstr(v.problem, "log.jsonl: cannot open"));
    append(p, start_line);
    append(p,
           "{\"type\":\"train\",\"update\":5,\"nll_loss\":3.5,\"gnorm\":\"inf\"}\n{\"type\":\"tra");
    poll_view(&v, true);
    assert_int_equal(v.state, FTH_VIEW_OPEN);
    assert_string_equal(v.problem, "");
    assert_string_equal(fth_run_view_setting(&v, "encoder-layers"), "2");
    assert_int_equal(v.update, 5);
    assert_int_equal(fth_run_view_curve(&v, "train.gnorm")->point[0].faults, 1);
    poll_view(&v, false);
    append(p, "in\",\"update\":10,\"nll_loss\":3}\n{\"type\":\"layers\",\"update\":10,\"stack\":"
              "\"encoder\",\"name\":\"grad_norm\",\"values\":[1,2,3,null]}\n");
    poll_view(&v, true);
    assert_int_equal(v.broken, 0);
    assert_int_equal(v.update, 10);
    assert_int_equal(v.n_heats, 1);
    assert_int_equal(v.heat[0].kinds, 2);
    assert_true(v.heat[0].cell[3] == FTH_HEAT_NONE && v.heat[0].cell[0] == 1);
    append(p, "{\"type\":\"valid\",\"split\":\"valid\",\"update\":10,\"nll_loss\":2.5}\n"
              "{\"type\":\"valid\",\"split\":\"valid\",\"update\":20,\"nll_loss\":2.75}\n"
              "{\"type\":\"end\",\"update\":20}\n");
    poll_view(&v, true);
    assert_int_equal(v.state, FTH_VIEW_ENDED);
    int64_t at;
    assert_true(fth_run_view_best(&v, &at) == 2.5 && at == 10 && fth_run_view_final(&v) == 2.75);
    fth_run_view_fini(&v);
}

static void a_resumed_run_forgets_what_is_done_again(void **state) {
    const place *p = *state;
    fth_run_view v;
    append(p, start_line);
    append(
        p,
        "{\"type\":\"valid\",\"update\":5,\"nll_loss\":4}\n{\"type\":\"valid\",\"update\":9,"
        "\"nll_loss\":1}\n{\"type\":\"layers\",\"update\":9,\"stack\":\"decoder\",\"name\":\"g\","
        "\"values\":[1,2,3]}\n{\"type\":\"diverged\",\"update\":9}\n{\"type\":\"tr\n"
        "{\"type\":\"start\",\"update\":7}\n{\"type\":\"valid\",\"update\":9,\"nll_loss\":3}\n");
    assert_int_equal(fth_run_view_init(&v, p->folder), FTH_OK);
    poll_view(&v, true);
    assert_int_equal(v.state, FTH_VIEW_OPEN);
    assert_null(v.end);
    assert_true(fth_run_view_best(&v, NULL) == 3);
    assert_int_equal(v.heat[0].rows, 0);
    assert_int_equal(v.broken, 1);
    assert_int_equal(v.broken_line, 6);
    fth_run_view_fini(&v);
}

static void a_log_that_is_replaced_is_read_anew(void **state) {
    const place *p = *state;
    fth_run_view v;
    append(p, start_line);
    append(p, "{\"type\":\"train\",\"update\":5,\"nll_loss\":3.5}\n");
    assert_int_equal(fth_run_view_init(&v, p->folder), FTH_OK);
    poll_view(&v, true);
    assert_int_equal(unlink(p->file), 0);
    poll_view(&v, true); /* gone is a change */
    assert_int_equal(v.state, FTH_VIEW_MISSING);
    append(p, "{\"type\":\"train\",\"update\":1,\"nll_loss\":9}\n");
    poll_view(&v, true);
    assert_int_equal(fth_run_view_curve(&v, "train.nll_loss")->n, 1);
    assert_int_equal(v.update, 1);
    fth_run_view_fini(&v);
}

static void lines_that_are_wrong_are_counted(void **state) {
    static const char *const lines[] = {
        "{",
        "[1]",
        "7",
        "null",
        "{}",
        "{\"type\":3}",
        "{\"type\":\"train\"}",
        "{\"type\":\"train\",\"update\":-1,\"loss\":1}",
        "{\"type\":\"train\",\"update\":1.5}",
        "{\"type\":\"layers\",\"update\":1}",
        "{\"type\":\"layers\",\"update\":1,\"stack\":\"encoder\",\"name\":\"g\",\"values\":[]}",
        "{\"type\":\"layers\",\"update\":1,\"stack\":\"a stack with a long "
        "name\",\"name\":\"g\",\"values\":[1]}",
        "{\"type\":\"train\",\"type\":\"train\",\"update\":1}",
        "\xff\xfe",
        "{\"type\":\"train\",\"update\":1}x"};
    const place *p = *state;
    size_t n = sizeof lines / sizeof *lines;
    fth_run_view v;
    append(p, start_line);
    for (size_t i = 0; i < n; i++) {
        append(p, lines[i]);
        append(p, "\n\n  \n"); /* blank lines are fine */
    }
    append(p, "{\"type\":\"other\",\"update\":2}\n{\"type\":\"warn\",\"update\":2,\"text\":\"</"
              "script>\"}\n");
    assert_int_equal(fth_run_view_init(&v, p->folder), FTH_OK);
    poll_view(&v, true);
    assert_int_equal(v.broken, n);
    assert_int_equal(v.broken_line, 2);
    assert_int_equal(v.n_warnings, 1);
    fth_run_view_fini(&v);
}

static void a_line_without_end_is_bounded(void **state) {
    const place *p = *state;
    FILE *f = fopen(p->file, "w");
    assert_non_null(f);
    char *block = malloc(1 << 20);
    assert_non_null(block);
    memset(block, 'x', 1 << 20);
    for (int i = 0; i < 20; i++) assert_int_equal(fwrite(block, 1, 1 << 20, f), 1 << 20);
    fputs("\n{\"type\":\"train\",\"update\":1,\"loss\":1}\n", f);
    fclose(f);
    free(block);
    fth_run_view v;
    assert_int_equal(fth_run_view_init(&v, p->folder), FTH_OK);
    poll_view(&v, true);
    assert_int_equal(v.tail.skipped, 1);
    assert_int_equal(v.update, 1);
    fth_run_view_fini(&v);
}

/* ---- what the page gets ---- */

static json_t *data_of(const place *p, fth_str *text) {
    const char *folders[] = {p->folder};
    fth_run_views views;
    bool changed;
    json_t *data;
    assert_int_equal(fth_run_views_init(&views, folders, 1), FTH_OK);
    assert_int_equal(fth_run_views_poll(&views, &changed), FTH_OK);
    assert_int_equal(fth_run_views_json((const fth_run_view *const *)views.view, 1, false, text),
                     FTH_OK);
    assert_int_equal(fth_json_parse("data", text->text, text->length, &data), FTH_OK);
    fth_run_views_fini(&views);
    return data;
}

static void the_data_of_a_page(void **state) {
    const place *p = *state;
    char path[100];
    fth_str text = {0}, page = {0};
    append(p, start_line);
    append(p, "{\"type\":\"train\",\"update\":5,\"nll_loss\":3.5,\"gnorm\":\"nan\"}\n"
              "{\"type\":\"warn\",\"update\":5,\"text\":\"</script><script>alert(1)</script>\"}\n"
              "{\"type\":\"layers\",\"update\":5,\"stack\":\"encoder\",\"name\":\"g\",\"values\":"
              "[1e-3,0,1,\"inf\"]}\n");
    snprintf(path, sizeof path, "%s/samples.jsonl", p->folder);
    const char samples[] =
        "{\"source\":\"a\",\"hypotheses\":[{\"text\":\"<b>\",\"score\":-1.5}]}\nbroken\n"
        "{\"source\":\"c\",\"hypotheses\":[]}\n";
    assert_int_equal(fth_file_write(path, samples, strlen(samples)), FTH_OK);
    snprintf(path, sizeof path, "%s/diverged.json", p->folder);
    assert_int_equal(fth_file_write(path, "{\"fault\": ", 10), FTH_OK);
    json_t *data = data_of(p, &text), *run = json_array_get(json_object_get(data, "runs"), 0);
    assert_null(strchr(text.text, '<'));
    assert_non_null(strstr(json_string_value(json_object_get(run, "diverged")), "not JSON"));
    assert_int_equal(json_array_size(json_object_get(run, "samples")), 1);
    json_t *heat = json_array_get(json_object_get(run, "heats"), 0);
    /* kinds apart: 0.001 and 1, then 0 and inf; log scale from 1e-3 to 1 */
    assert_string_equal(json_string_value(json_object_get(heat, "cells")), "BQD//wQAAgA=");
    assert_true(json_is_true(json_object_get(heat, "log")));
    assert_int_equal(fth_page(&text, &page), FTH_OK);
    assert_non_null(strstr(page.text, "function build() {")); /* all files are there */
    assert_non_null(strstr(page.text, ".tiles"));
    const char *first = strstr(page.text, "</script>"), *second = strstr(first + 1, "</script>");
    assert_non_null(second);
    assert_null(strstr(second + 1, "</script>"));
    assert_null(strstr(page.text, "http://") ? strstr(page.text, "src=\"http") : NULL);
    json_decref(data);
    fth_str_fini(&text);
    fth_str_fini(&page);
}

/* Bytes of a good log changed, cut and swapped at random: never a crash, always data that parse. */
static void damaged_logs_are_survived(void **state) {
    const place *p = *state;
    static const char *const good =
        "{\"type\":\"start\",\"update\":0,\"config\":\"encoder-layers: 2\\ndecoder-layers: "
        "1\\n\"}\n"
        "{\"type\":\"train\",\"update\":5,\"nll_loss\":3.5,\"gnorm\":1.25,\"lr\":1e-4}\n"
        "{\"type\":\"valid\",\"split\":\"valid\",\"update\":5,\"nll_loss\":3.25}\n"
        "{\"type\":\"layers\",\"update\":5,\"stack\":\"encoder\",\"name\":\"grad_norm\",\"values\":"
        "[1,2,3,4]}\n"
        "{\"type\":\"layers\",\"update\":9,\"stack\":\"encoder\",\"name\":\"grad_norm\",\"values\":"
        "[1,null,\"nan\",4e-9]}\n"
        "{\"type\":\"warn\",\"update\":5,\"text\":\"slow\"}\n{\"type\":\"diverged\",\"update\":9,"
        "\"where\":\"x\"}\n";
    size_t size = strlen(good);
    char *bytes = malloc(size);
    assert_non_null(bytes);
    fth_rng rng;
    fth_rng_init(&rng, 8, 1);
    for (int round = 0; round < 3000; round++) {
        memcpy(bytes, good, size);
        size_t length = size;
        for (int k = 0; k <= round % 7; k++) {
            size_t at = fth_rng_below(&rng, size), other = fth_rng_below(&rng, size);
            uint32_t what = fth_rng_u32(&rng) % 4;
            if (what == 0) length = at + 1;
            if (what == 1) bytes[at] = bytes[other];
            if (what == 2) memmove(bytes + at, bytes + other, size - (at > other ? at : other));
            if (what == 3) bytes[at] = (char)fth_rng_u32(&rng);
        }
        unlink(p->file);
        FILE *f = fopen(p->file, "w");
        assert_non_null(f);
        fwrite(bytes, 1, length, f);
        fclose(f);
        fth_str text = {0};
        json_decref(data_of(p, &text));
        fth_str_fini(&text);
    }
    free(bytes);
}

static void wrong_folders_are_refused(void **state) {
    const place *p = *state;
    fth_run_views views;
    const char *twice[] = {p->folder, p->folder};
    assert_int_equal(fth_run_views_init(&views, twice, 2), FTH_USAGE);
    append(p, "\n");
    const char *file[] = {p->file};
    assert_int_equal(fth_run_views_init(&views, file, 1), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "must be a run folder"));
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_keeps_its_extremes),
        cmocka_unit_test(a_curve_counts_faults_and_goes_back),
        cmocka_unit_test(a_heat_map_is_thinned_evenly),
        cmocka_unit_test(an_odd_heat_map_has_one_kind),
        cmocka_unit_test(fast_lines_are_read_like_slow_ones),
        WITH_FOLDER(a_run_that_is_being_written),
        WITH_FOLDER(a_resumed_run_forgets_what_is_done_again),
        WITH_FOLDER(a_log_that_is_replaced_is_read_anew),
        WITH_FOLDER(lines_that_are_wrong_are_counted),
        WITH_FOLDER(a_line_without_end_is_bounded),
        WITH_FOLDER(the_data_of_a_page),
        WITH_FOLDER(damaged_logs_are_survived),
        WITH_FOLDER(wrong_folders_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
