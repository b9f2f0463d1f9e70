/* links: base */
/* Messages, progress, JSON and files of JSON lines. */
#include <float.h>
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
#include "base/log.h"
#include "base/philox.h"
#include "base/progress.h"

/* A log that writes into memory. */
typedef struct capture {
    fth_log log;
    char *text;
    size_t size;
} capture;

static void begin(capture *c, bool terminal) {
    *c = (capture){0};
    c->log.out = open_memstream(&c->text, &c->size);
    assert_non_null(c->log.out);
    c->log.terminal = terminal;
}

static void end(capture *c, const char *expected) {
    fclose(c->log.out);
    assert_string_equal(c->text, expected);
    free(c->text);
}

static void messages_go_to_the_log(void **state) {
    (void)state;
    capture c;
    begin(&c, false);
    fth_log_info(&c.log, "%d updates", 5);
    fth_log_warn(&c.log, "old file");
    c.log.quiet = true;
    fth_log_info(&c.log, "not shown");
    fth_log_warn(&c.log, "shown");
    fth_log_info(NULL, "no log");
    fth_log_warn(NULL, "no log");
    fth_log_wipe(NULL);
    end(&c, "5 updates\nwarning: old file\nwarning: shown\n");
    fth_log log;
    FILE *file = tmpfile();
    assert_non_null(file);
    fth_log_init(&log, file, true);
    assert_true(log.out == file && log.quiet && !log.terminal && !log.line_open);
    fclose(file);
}

static double told_time(void *context) {
    return *(double *)context;
}

static void progress_in_a_pipe_is_plain_lines(void **state) {
    (void)state;
    capture c;
    double now = 100;
    fth_progress p;
    begin(&c, false);
    fth_progress_init(&p, &c.log, (fth_clock){told_time, &now}, "train", "updates", 1000, 10000);
    fth_progress_update(&p, 1001, NULL); /* too early */
    now = 105;
    fth_progress_update(&p, 2000, "loss 3.4");
    now = 107;
    fth_progress_update(&p, 2500, "loss 3.3"); /* too early */
    now = 110;
    fth_progress_update(&p, 3000, NULL);
    now = 145;
    fth_progress_end(&p);
    end(&c, "train: 2000/10000 updates (20%), 200 updates/s, 0:40 left, loss 3.4\n"
            "train: 3000/10000 updates (30%), 200 updates/s, 0:35 left, loss 3.3\n"
            "train: 3000/10000 updates (30%), 44.4 updates/s, in 0:45, loss 3.3\n");
}

static void progress_slows_down_with_time(void **state) {
    (void)state;
    capture c;
    double now = 0;
    fth_progress p;
    begin(&c, false);
    fth_progress_init(&p, &c.log, (fth_clock){told_time, &now}, "read", "lines", 0, 0);
    int64_t done = 0;
    for (; now < 36000; now += 1) fth_progress_update(&p, done += 1500, NULL);
    fflush(c.log.out);
    size_t lines = 0;
    for (const char *s = c.text; *s; s++) lines += *s == '\n';
    assert_in_range(lines, 620, 720); /* one a minute in the long run, a few dozen before */
    assert_memory_equal(c.text, "read: 9000 lines, 1.8k lines/s, in 0:05\n", 40);
    fclose(c.log.out);
    assert_non_null(strstr(c.text, "in 9:59:"));
    free(c.text);
}

static void progress_on_a_terminal_is_a_bar(void **state) {
    (void)state;
    capture c;
    double now = 0;
    fth_progress p;
    begin(&c, true);
    fth_progress_init(&p, &c.log, (fth_clock){told_time, &now}, "train", "updates", 0, 200);
    p.width = 90;
    now = 0.05;
    fth_progress_update(&p, 1, NULL); /* too early */
    now = 10;
    fth_progress_update(&p, 100, "loss 3.4");
    assert_true(c.log.line_open);
    fth_log_info(&c.log, "saved");
    now = 20;
    fth_progress_update(&p, 200, "");
    now = 21;
    fth_progress_end(&p);
    assert_false(c.log.line_open);
    end(&c, "\rtrain [============>           ]  50%  100/200 updates  10 updates/s  0:10 left  "
            "loss 3.4"
            "\033[K\r\033[Ksaved\n"
            "\rtrain [==================================] 100%  200/200 updates  10 updates/s  "
            "0:00 left"
            "\033[K"
            "\rtrain [==================================] 100%  200/200 updates  9.52 updates/s  "
            "in 0:21"
            "\033[K\n");
}

static void progress_fits_any_terminal(void **state) {
    (void)state;
    for (int width = 0; width < 200; width += 7) {
        capture c;
        double now = 0;
        fth_progress p;
        char extra[200];
        memset(extra, 'x', sizeof extra - 1);
        extra[sizeof extra - 1] = '\0';
        begin(&c, true);
        fth_progress_init(&p, &c.log, (fth_clock){told_time, &now}, "generate", "sentences", 0, 7);
        p.width = width;
        now = 1;
        fth_progress_update(&p, 9, extra); /* more than all must not break the bar either */
        fflush(c.log.out);
        assert_true(strlen(c.text) <= (size_t)(width > 1 ? width - 1 : 1) + strlen("\r\033[K"));
        fclose(c.log.out);
        free(c.text);
    }
    fth_progress p;
    fth_progress_init(&p, NULL, fth_real_clock(), "x", "y", 0, 1);
    fth_progress_update(&p, 1, NULL);
    fth_progress_end(&p);
}

static char path[] = "/tmp/fathom-log-XXXXXX";

static int make_file(void **state) {
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static void json_is_read_strictly(void **state) {
    (void)state;
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"{\"a\": 1,\n \"a\": 2}", ":2:4: not JSON: duplicate object key"},
        {"{\"a\": 1,}", ":1:9: not JSON: "},
        {"", ":1:1: not JSON: "},
        {"{} x", ":1:4: not JSON: end of file expected"},
        {"[1e999]", ":1:6: not JSON: real number overflow"},
        {"[\"\\u0000\"]", ":1:9: not JSON: \\u0000 is not allowed"},
        {"[\"\xFF\"]", ":1:2: not JSON: "},
        {"nan", ":1:3: not JSON: "},
        {"[99999999999999999999]", ":1:21: not JSON: too big integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *value;
        assert_int_equal(fth_file_write(path, cases[i].text, strlen(cases[i].text)), FTH_OK);
        assert_int_equal(fth_json_load(path, &value), FTH_BAD_INPUT);
        assert_null(value);
        assert_memory_equal(fth_error_message(), path, strlen(path));
        if (!strstr(fth_error_message(), cases[i].place)) fail_msg("%s", fth_error_message());
        assert_null(strchr(fth_error_message(), '\n'));
    }
    json_t *value;
    assert_int_equal(fth_json_load("/nowhere/x.json", &value), FTH_NOT_FOUND);
    assert_int_equal(fth_json_parse("text", "[1, 2.5]", 8, &value), FTH_OK);
    assert_int_equal(json_array_size(value), 2);
    json_decref(value);
}

static void json_is_written_in_one_way(void **state) {
    (void)state;
    static const char text[] =
        "{\"z\": [1, 2.0, -0.1, true, false, null], \"a\": {\"deep\": {}, \"t\\u0007\\n\\\"\\\\\": "
        "\"gr\xC3\xBC\xC3\x9F\"}, \"e\": []}";
    json_t *value;
    fth_str out = {0};
    assert_int_equal(fth_json_parse("text", text, sizeof text - 1, &value), FTH_OK);
    assert_int_equal(fth_json_write(value, 0, &out), FTH_OK);
    assert_string_equal(out.text, "{\"z\":[1,2.0,-0.1,true,false,null],\"a\":{\"deep\":{},"
                                  "\"t\\u0007\\u000a\\\"\\\\\":\"gr\xC3\xBC\xC3\x9F\"},\"e\":[]}");
    fth_str_clear(&out);
    assert_int_equal(fth_json_write(value, 2, &out), FTH_OK);
    assert_string_equal(out.text, "{\n  \"z\": [1, 2.0, -0.1, true, false, null],\n  \"a\": {\n"
                                  "    \"deep\": {},\n    \"t\\u0007\\u000a\\\"\\\\\": "
                                  "\"gr\xC3\xBC\xC3\x9F\"\n  },\n  \"e\": []\n}");
    json_t *again;
    assert_int_equal(fth_json_parse("text", out.text, out.length, &again), FTH_OK);
    assert_true(json_equal(value, again));
    json_decref(again);
    json_decref(value);
    assert_int_equal(fth_json_write(NULL, 0, &out), FTH_NO_MEMORY);
    fth_str_fini(&out);
}

static void json_numbers_read_back(void **state) {
    (void)state;
    double numbers[2000] = {0.0,  -0.0, 1.0,        1e100,   -1e-300,  5e-324,   0.1,
                            1e15, 1e22, 123456789., DBL_MAX, INFINITY, -INFINITY};
    fth_rng rng;
    fth_rng_init(&rng, 3, 1);
    for (size_t i = 13; i < 2000; i++) { /* any bits, but NaNs of one kind only */
        uint64_t bits = (uint64_t)fth_rng_u32(&rng) << 32 | fth_rng_u32(&rng);
        memcpy(&numbers[i], &bits, 8);
        if (isnan(numbers[i])) numbers[i] = NAN;
    }
    for (size_t i = 0; i < 2000; i++) {
        json_t *array = json_array(), *again;
        fth_str out = {0};
        double x;
        assert_int_equal(json_array_append_new(array, fth_json_number(numbers[i])), 0);
        assert_int_equal(fth_json_write(array, 0, &out), FTH_OK);
        assert_int_equal(fth_json_parse("text", out.text, out.length, &again), FTH_OK);
        assert_int_equal(fth_json_to_double(json_array_get(again, 0), &x), FTH_OK);
        if (isnan(numbers[i]))
            assert_true(isnan(x));
        else
            assert_memory_equal(&x, &numbers[i], 8);
        fth_str_fini(&out);
        json_decref(array);
        json_decref(again);
    }
    json_t *integer = json_integer(7), *word = json_string("infinite");
    double x;
    assert_int_equal(fth_json_to_double(integer, &x), FTH_OK);
    assert_true(x == 7);
    assert_int_equal(fth_json_to_double(word, &x), FTH_BAD_INPUT);
    assert_int_equal(fth_json_to_double(NULL, &x), FTH_BAD_INPUT);
    json_decref(integer);
    json_decref(word);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_to_the_log),
        cmocka_unit_test(progress_in_a_pipe_is_plain_lines),
        cmocka_unit_test(progress_slows_down_with_time),
        cmocka_unit_test(progress_on_a_terminal_is_a_bar),
        cmocka_unit_test(progress_fits_any_terminal),
        cmocka_unit_test(json_is_read_strictly),
        cmocka_unit_test(json_is_written_in_one_way),
        cmocka_unit_test(json_numbers_read_back),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
