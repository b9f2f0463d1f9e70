/* links: run base */
/* Events for TensorBoard: the sum of TFRecord, and records that its own reader has read
 * (test_events_python). */
#include "test_files.h"

#include "run/tensorboard.h"

/* Check values of RFC 3720, appendix B.4. */
static void sums(void **state) {
    (void)state;
    uint8_t bytes[32];
    assert_int_equal(fth_crc32c("", 0), 0);
    assert_int_equal(fth_crc32c("123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(fth_crc32c(bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(fth_crc32c(bytes, sizeof bytes), 0x62a8ab43);
}

static const char *const lines[] = {
    "{\"type\":\"start\",\"update\":0,\"device\":\"cpu\"}",
    "{\"type\":\"train\",\"update\":10,\"loss\":2.5,\"gnorm\":\"nan\",\"lr\":0.001}",
    "{\"type\":\"layers\",\"update\":10,\"stack\":\"encoder\",\"name\":\"grad_norm\","
    "\"values\":[0.5,null,1.5,2.5,\"inf\"]}",
    "{\"type\":\"valid\",\"update\":10,\"split\":\"valid\",\"nll_loss\":2.25,\"bleu\":12.5}",
    "{\"type\":\"checkpoint\",\"update\":10,\"path\":\"x\"}",
    "{\"type\":\"start\",\"update\":10,\"device\":\"cpu\"}",
    "{\"type\":\"warn\",\"update\":11,\"reason\":\"much\"}"};

/* test/golden/events has what these lines give at second 1000. FATHOM_WRITE_GOLDEN writes it. */
static void records(void **state) {
    (void)state;
    fth_str out = {0};
    char *golden = NULL;
    size_t size = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        json_t *line = NULL;
        assert_ok(fth_json_parse("line", lines[i], strlen(lines[i]), &line));
        const size_t before = out.length;
        assert_ok(fth_events_record(line, 1000, &out));
        if (strstr(lines[i], "checkpoint")) assert_int_equal(out.length, before); /* says nothing */
        json_decref(line);
    }
    const char *path = TEST_DIR "/golden/events";
    if (getenv("FATHOM_WRITE_GOLDEN")) put_bytes(path, out.text, out.length);
    assert_ok(fth_file_read(path, &golden, &size));
    assert_int_equal(out.length, size);
    assert_memory_equal(out.text, golden, size);
    free(golden);
    fth_str_fini(&out);
}

static void a_folder_that_cannot_be(void **state) {
    char path[512];
    fth_events e = {0};
    PATH(path, *state, "run");
    put_bytes(path, "x", 1); /* a file where the run's folder should be */
    assert_failed(fth_events_open(&e, path), FTH_IO, (const char *[]){"run", NULL});
    assert_ok(fth_events_line(&(fth_events){0}, NULL)); /* closed: nothing happens */
    fth_events_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(records),
                                       TEST(a_folder_that_cannot_be)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
