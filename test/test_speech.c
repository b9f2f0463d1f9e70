/* links: train */
/* Batches of frames as they should not be, and how those that are right are packed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/config_json.h"
#include "store/safetensors.h"
#include "train/padded.h"

enum { SENTENCES = 2, FRAMES = 6, FEATURES = 3, WORDS = 2 };

static fth_config config;
static char path[] = "/tmp/fathom-speech-XXXXXX";

static int make_file(void **state) {
    (void)state;
    const int fd = mkstemp(path);
    return fd >= 0 && close(fd) == 0 &&
                   fth_config_read(TEST_DIR "/golden/speech/postln/config.json", &config) == FTH_OK
               ? 0
               : -1;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

/* A batch with these counts, and frames of `rank` dimensions and `features` numbers. */
static fth_err read_batch(const int32_t *counts, int rank, int64_t features, fth_padded *out) {
    static float frames[SENTENCES * FRAMES * (FEATURES + 1)];
    static const int32_t words[SENTENCES * WORDS] = {0, 4, 0, 5};
    for (int i = 0; i < SENTENCES * FRAMES * (FEATURES + 1); i++) frames[i] = (float)(i + 1);
    fth_st_tensor tensors[] = {
        {.name = "frame_count",
         .dtype = FTH_ST_I32,
         .rank = 1,
         .shape = {SENTENCES},
         .data = counts},
        {.name = "frames", .dtype = FTH_ST_F32, .rank = rank, .data = frames},
        {.name = "tgt_in",
         .dtype = FTH_ST_I32,
         .rank = 2,
         .shape = {SENTENCES, WORDS},
         .data = words},
        {.name = "tgt_out",
         .dtype = FTH_ST_I32,
         .rank = 2,
         .shape = {SENTENCES, WORDS},
         .data = words},
    };
    const int64_t shapes[2][3] = {{SENTENCES, FRAMES * features}, {SENTENCES, FRAMES, features}};
    memcpy(tensors[1].shape, shapes[rank - 2], sizeof shapes[0]);
    assert_int_equal(fth_st_write(path, tensors, 4, NULL, NULL, NULL), FTH_OK);
    return fth_padded_read(path, &config, out);
}

static void frames_fill_rows(void **state) {
    (void)state;
    fth_padded p;
    assert_int_equal(read_batch((const int32_t[]){5, 2}, 3, FEATURES, &p), FTH_OK);
    const fth_packed_numbers *in = &p.store.batch.input;
    assert_true(in->rows == 3 && in->width == 4 * FEATURES && p.side[FTH_SRC].width == 2);
    const int32_t offsets[] = {0, 2, 3}, masked[] = {0, 1, 1};
    assert_memory_equal(in->offsets, offsets, sizeof offsets);
    assert_memory_equal(in->masked, masked, sizeof masked);
    for (int i = 0; i < 5 * FEATURES; i++) assert_true(in->data[i] == (float)(i + 1));
    for (int i = 5 * FEATURES; i < 8 * FEATURES; i++) assert_true(in->data[i] == 0);
    for (int i = 0; i < 2 * FEATURES; i++)
        assert_true(in->data[8 * FEATURES + i] == (float)(FRAMES * FEATURES + i + 1));
    for (int i = 2 * FEATURES; i < 4 * FEATURES; i++) assert_true(in->data[8 * FEATURES + i] == 0);
    fth_padded_fini(&p);
}

static void broken_batches(void **state) {
    (void)state;
    static const struct {
        int32_t counts[SENTENCES];
        int rank;
        int64_t features;
        const char *says;
    } rows[] = {{{0, 2}, 3, FEATURES, "tensor frame_count: [0] is 0, must be 1 to 6"},
                {{6, 7}, 3, FEATURES, "tensor frame_count: [1] is 7, must be 1 to 6"},
                {{6, -1}, 3, FEATURES, "tensor frame_count: [1] is -1"},
                {{6, 6}, 3, FEATURES + 1, "the last of 4; must be [B, F, 3]"},
                {{6, 6}, 2, FEATURES, "tensor frames has 2 dimensions"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_padded p;
        if (read_batch(rows[i].counts, rows[i].rank, rows[i].features, &p) != FTH_BAD_INPUT)
            fail_msg("case %zu was read", i);
        if (!strstr(fth_error_message(), rows[i].says))
            fail_msg("case %zu: \"%s\"", i, fth_error_message());
    }
    config.max_positions = 1;
    fth_padded p;
    assert_int_equal(read_batch((const int32_t[]){5, 2}, 3, FEATURES, &p), FTH_BAD_INPUT);
    assert_non_null(strstr(fth_error_message(), "a sentence has 2 rows, max_positions is 1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_fill_rows),
                                       cmocka_unit_test(broken_batches)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
