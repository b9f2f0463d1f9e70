/* links: data base */
/* Recordings in a data set: numbers of 16 bits, rows of frames, SpecAugment, manifests line by
 * line. */
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
#include "base/half.h"
#include "data/audio_list.h"
#include "data/frames.h"
#include "data/spec_augment.h"

/* Every half is itself again, and rounding takes the nearest of two neighbours. */
static void halves(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        if ((half & 0x7c00) == 0x7c00) continue;
        const float x = fth_half_to_float((uint16_t)half);
        assert_true(isfinite(x));
        assert_int_equal(fth_half_from(x), half);
    }
    static const struct {
        float x;
        uint16_t half;
    } rows[] = {{1.0f, 0x3c00},         {-2.0f, 0xc000},       {65504.0f, 0x7bff}, {1e9f, 0x7bff},
                {-1e9f, 0xfbff},        {0x1p-24f, 1},         {0x1p-26f, 0},      {0x1.8p-24f, 2},
                {1 + 0x1p-11f, 0x3c00}, {1 + 0x3p-11f, 0x3c02}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (fth_half_from(rows[i].x) != rows[i].half)
            fail_msg("%g becomes %04x", (double)rows[i].x, fth_half_from(rows[i].x));
    assert_true(isnan(fth_half_to_float(fth_half_from(NAN))));
}

static void rows_of_frames(void **state) {
    (void)state;
    static const int rows[] = {0, 1, 1, 1, 1, 2, 2, 2, 2, 3},
                     lack[] = {0, 1, 1, 0, 0, 1, 1, 0, 0, 1};
    for (int n = 1; n < 10; n++) {
        uint16_t frames[30];
        float numbers[3 * 4 * 3];
        int32_t masked[3];
        for (int i = 0; i < 3 * n; i++) frames[i] = fth_half_from((float)(i + 1));
        for (int i = 0; i < 36; i++) numbers[i] = -1;
        assert_int_equal(fth_frame_rows(n), rows[n]);
        fth_frames_unpack(frames, n, 3, numbers, masked);
        for (int i = 0; i < 12 * rows[n]; i++)
            assert_true(numbers[i] == (i < 3 * n ? (float)(i + 1) : 0.0f));
        for (int r = 0; r < rows[n]; r++)
            assert_int_equal(masked[r], r == rows[n] - 1 ? lack[n] : 0);
    }
}

enum { FRAMES = 200, BINS = 40 };

static void fill(float *x) {
    for (int i = 0; i < FRAMES * BINS; i++) x[i] = (float)(i % 97) + 1000;
}

/* Hidden frames and bins: whole ones with the mean. */
static void count_hidden(const float *x, int *frames, int *bins) {
    double mean = 0;
    *frames = *bins = 0;
    float whole[FRAMES * BINS];
    fill(whole);
    for (int i = 0; i < FRAMES * BINS; i++) mean += (double)whole[i] / (FRAMES * BINS);
    for (int f = 0; f < FRAMES; f++) {
        int hidden = 0;
        for (int b = 0; b < BINS; b++) hidden += fabs((double)x[f * BINS + b] - mean) < 1e-3;
        *frames += hidden == BINS;
    }
    for (int b = 0; b < BINS; b++) {
        int hidden = 0;
        for (int f = 0; f < FRAMES; f++) hidden += fabs((double)x[f * BINS + b] - mean) < 1e-3;
        *bins += hidden == FRAMES;
    }
}

static void spec_augment(void **state) {
    (void)state;
    static float x[FRAMES * BINS], again[FRAMES * BINS];
    fth_spec_augment a;
    assert_false(fth_spec_augment_policy("lx", &a));
    assert_true(fth_spec_augment_policy("ld", &a));
    assert_true(a.freq_n == 2 && a.freq_f == 27 && a.time_n == 2 && a.time_t == 100 &&
                a.time_p == 1.0);
    a = (fth_spec_augment){
        .freq_n = 1, .freq_f = 10, .time_n = 2, .time_t = 30, .time_p = 0.1, .seed = 7};
    int most_frames = 0, most_bins = 0, changed = 0, none = 0;
    for (int64_t item = 0; item < 300; item++) {
        int frames, bins;
        fill(x);
        fth_spec_augment_apply(&a, 1, item, FRAMES, BINS, x);
        fill(again);
        fth_spec_augment_apply(&a, 1, item, FRAMES, BINS, again);
        assert_memory_equal(x, again, sizeof x);
        fill(again);
        fth_spec_augment_apply(&a, 2, item, FRAMES, BINS, again);
        changed += memcmp(x, again, sizeof x) != 0;
        count_hidden(x, &frames, &bins);
        most_frames = frames > most_frames ? frames : most_frames;
        most_bins = bins > most_bins ? bins : most_bins;
        none += frames == 0 && bins == 0;
    }
    /* each of two stretches is shorter than 30 and than a tenth of 200 */
    assert_true(most_frames > 25 && most_frames <= 38);
    assert_int_equal(most_bins, 9);
    assert_true(changed > 290 && none < 20);
    fth_spec_augment_policy("none", &a);
    fill(x);
    fill(again);
    fth_spec_augment_apply(&a, 1, 1, FRAMES, BINS, x);
    assert_memory_equal(x, again, sizeof x);
}

/* Writes a list, reads it to its end; its error, or "". */
static const char *read_list(const char *text, int64_t *rows, fth_audio_row *last, char path[200]) {
    char name[] = "/tmp/fathom-list-XXXXXX";
    const int fd = mkstemp(name);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    fth_audio_list *l = NULL;
    fth_audio_row row;
    fth_err err = fth_audio_list_open(name, &l);
    *rows = 0;
    while (err == FTH_OK && (err = fth_audio_list_next(l, &row)) == FTH_OK && row.clip.path) {
        ++*rows;
        *last = row;
        snprintf(path, 200, "%s", row.clip.path);
    }
    fth_audio_list_free(l);
    unlink(name);
    return err ? fth_error_message() : "";
}

static void manifests(void **state) {
    (void)state;
    static const struct {
        const char *text, *says, *path; /* says "": the last row is of path */
        int64_t rows, start, length;
    } rows[] = {
        {"id\taudio\tn_frames\ttgt_text\na\tb.wav\t\tone\nc\td.wav\t12\ttwo\n", "", "/tmp/d.wav", 2,
         0, 0},
        {"tgt_text\taudio\nx\t/e.wav:10:20\n", "", "/e.wav", 1, 10, 20},
        {"audio\na:b:c.wav\n", "", "/tmp/a:b:c.wav", 1, 0, 0},
        {"a.wav\nb.wav:5:7", "", "b.wav", 2, 5, 7},
        {"b.wav:5\n", "", "b.wav:5", 1, 0, 0},
        {"id\taudio\ttgt_text\na\tb.wav\n", ":2: has 2 columns and the first line 3", "", 0, 0, 0},
        {"id\taudio\tn_frames\na\tb.wav\t-3\n",
         ":2: n_frames must be empty or a whole number, not '-3'", "", 0, 0, 0},
        {"id\taudio\na\t\n", ":2: no audio file is named", "", 0, 0, 0},
        {"id\taudio\na\tx.wav:0:0\n", ":2: /tmp/x.wav:0:0: a part of 0 samples", "", 0, 0, 0},
        {"id\taudio\na\tx.zip:0:9\n", "name the audio file", "", 0, 0, 0},
        {"id\tfile\n", ":1: a manifest begins with a line of column names; 'audio' is not", "", 0,
         0, 0},
        {"a.wav\n\nb.wav\n", ":2: no audio file is named", "", 0, 0, 0},
        {"", "an empty file", "", 0, 0, 0},
        {"id\taudio\n\xff\tb\n", "not UTF-8", "", 0, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t n;
        fth_audio_row last = {0};
        char path[200] = "";
        const char *says = read_list(rows[i].text, &n, &last, path);
        if (rows[i].says[0] ? !strstr(says, rows[i].says) : says[0] != 0)
            fail_msg("row %zu: \"%s\"", i, says);
        if (rows[i].says[0]) continue;
        assert_int_equal(n, rows[i].rows);
        assert_string_equal(path, rows[i].path);
        assert_true(last.clip.start == rows[i].start && last.clip.length == rows[i].length);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves), cmocka_unit_test(rows_of_frames),
                                       cmocka_unit_test(spec_augment), cmocka_unit_test(manifests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
