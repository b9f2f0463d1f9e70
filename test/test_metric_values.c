/* links: metric base */
/* f1, accuracy, Matthews, Pearson, Spearman and intersection over union, through the program
 * itself (FATHOM_PROGRAM), against scikit-learn and SciPy (test/golden/metric/make_values.py). */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "score_program.h"

/* Runs "fathom score ARGUMENTS --ref ref --hyp hyp". */
static int run_values(const char *arguments, fth_str *out) {
    char all[256];
    snprintf(all, sizeof all, "%s --ref ref --hyp hyp", arguments);
    return run(all, out);
}

static void put_lines(const char *name, const json_t *lines) {
    fth_str text = {0};
    size_t i;
    const json_t *line;
    char path[256];
    json_array_foreach(lines, i, line)
        assert_int_equal(fth_str_addf(&text, "%s\n", json_string_value(line)), FTH_OK);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(fth_file_write(path, text.text, text.length), FTH_OK);
    fth_str_fini(&text);
}

static void check_number(const json_t *got, const json_t *wanted, const char *what) {
    if (json_is_string(wanted)) {
        assert_true(json_is_string(got));
        assert_string_equal(json_string_value(got), json_string_value(wanted));
        return;
    }
    assert_true(json_is_number(got));
    const double x = json_number_value(got), y = json_number_value(wanted);
    if (!(fabs(x - y) <= 1e-12)) fail_msg("%s: %.17g, expected %.17g", what, x, y);
}

static void check_case(const json_t *test, size_t number) {
    const char *metric = json_string_value(json_object_get(test, "metric"));
    const char *average = json_string_value(json_object_get(test, "average"));
    const char *positive = json_string_value(json_object_get(test, "positive"));
    char arguments[128], what[64], path[256];
    snprintf(what, sizeof what, "case %zu, %s", number, metric);
    snprintf(arguments, sizeof arguments, "%s --json%s%s%s%s", metric, average ? " --average " : "",
             average ? average : "", positive && *positive ? " --positive " : "",
             positive ? positive : "");
    put_lines("ref", json_object_get(test, "ref"));
    put_lines("hyp", json_object_get(test, "hyp"));
    fth_str out = {0};
    if (run_values(arguments, &out) != 0) fail_msg("%s: %s", what, out.text);
    const json_t *wanted = json_object_get(test, "score"), *iou = json_object_get(test, "iou");
    const bool undefined = json_is_string(wanted);
    const char *json = strchr(out.text, '{'); /* a warning stands before it */
    assert_true(undefined == (strstr(out.text, "warning: ") != NULL));
    snprintf(path, sizeof path, "%s/out.json", folder);
    assert_int_equal(fth_file_write(path, json, strlen(json)), FTH_OK);
    json_t *got = NULL;
    assert_int_equal(fth_json_load(path, &got), FTH_OK);
    check_number(json_object_get(got, "score"), wanted, what);
    const char *class;
    const json_t *value;
    json_object_foreach((json_t *)iou, class, value) /* NOLINT: reads only */
        check_number(json_object_get(json_object_get(got, "iou"), class), value, what);
    if (iou) assert_int_equal(json_object_size(json_object_get(got, "iou")), json_object_size(iou));
    json_decref(got);
    fth_str_fini(&out);
}

static void equal_to_others(void **state) {
    (void)state;
    json_t *json = NULL;
    const json_t *test;
    size_t i;
    assert_int_equal(fth_json_load(TEST_DIR "/golden/metric/values.json", &json), FTH_OK);
    json_array_foreach(json_object_get(json, "cases"), i, test) check_case(test, i);
    assert_true(i >= 50);
    json_decref(json);
}

static void says_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *ref, *hyp, *says;
        int status;
    } rows[] = {
        {"pearson", "1\n2\n", "1\nx\n", "hyp:2: \"x\" must be a number", 2},
        {"spearman", "1\n\n", "1\n2\n", "ref:2: \"\" must be a number", 2},
        {"pearson", "1\n", "2\n", "two lines or more are needed", 0},
        {"pearson", "1\n2\n", "1\nnan\n", "hyp:2: \"nan\" must be a number", 2},
        {"miou", "0 1\n", "0\n", "hyp:1: 1 numbers, but ref has more", 2},
        {"miou", "0\n1\n", "0\n1 2\n", "hyp:2: 2 numbers, but ref has fewer", 2},
        {"miou", "0 -2\n", "0 0\n", "ref:1: \"-2\" must be the number of a class, -1 to", 2},
        {"miou", "0\n", "-1\n", "hyp:1: \"-1\" must be the number of a class, 0 to", 2},
        {"miou", "0 1x\n", "0 1\n", "ref:1: \"1x\" must be the number of a class", 2},
        {"miou", "99999999999999999999\n", "1\n", "must be the number of a class", 2},
        {"f1", "0\n0\n", "0\n0\n", "warning: f1 of hyp is not defined: no line", 0},
        {"f1", " 1 \n0\n", "1\n0\n", "F1|nrefs:1|", 0},
        {"f1 --average macro --positive a", "a\n", "a\n", "--positive a: needs --average binary",
         2},
        {"f1 --average mean", "a\n", "a\n", "binary", 2},
        {"f1", "", "", "has no lines to score", 2},
        {"pearson", "", "", "has no lines to score", 2},
        {"miou", "", "", "has no lines to score", 2},
        {"accuracy --average macro", "a\n", "a\n", "accuracy does not use it", 2},
    };
    fth_str out = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_text("ref", rows[i].ref);
        put_text("hyp", rows[i].hyp);
        const int status = run_values(rows[i].arguments, &out);
        if (status != rows[i].status || !strstr(out.text, rows[i].says))
            fail_msg("%s: status %d, %s", rows[i].arguments, status, out.text);
    }
    fth_str_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_others),
        cmocka_unit_test(says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
