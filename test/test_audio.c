/* links: audio store base */
/* Filter banks against torchaudio's (golden/audio/make_golden.py), and sound files as they come:
 * stereo, silent, of another rate, cut, empty, too long, none at all. */
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
#include <sndfile.h>

#include "audio/filter_bank.h"
#include "audio/sound.h"
#include "base/file.h"
#include "group_folder.h"
#include "store/safetensors.h"

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The sound of make_golden.py, in parts of 32,768. */
static float *sound(int64_t n) {
    float *out = malloc(sizeof *out * (size_t)n);
    int64_t state = 12345;
    for (int64_t i = 0; i < n; i++) {
        state = (state * 1103515245 + 12345) % (INT64_C(1) << 31);
        const int64_t noise = (state >> 16) % 2001 - 1000, period = 20 + i / 100;
        const int64_t saw = (i % period) * 400 / period * (1 + i / 1000 % 7);
        out[i] = (float)(noise * (1 + i / 500 % 4) + saw) / 32768.0f;
    }
    return out;
}

static void equal_to_kaldi(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t rate, n, bins;
    } rows[] = {{"rate-8000", 8000, 2500, 80},
                {"rate-16000", 16000, 4000, 80},
                {"bins-23", 16000, 1234, 23}};
    fth_st_file *golden = NULL;
    assert_int_equal(fth_st_open(TEST_DIR "/golden/audio/filter_bank.safetensors", &golden),
                     FTH_OK);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const fth_st_tensor *t = fth_st_find(golden, rows[k].name);
        fth_filter_bank *f = NULL;
        assert_non_null(t);
        assert_int_equal(fth_filter_bank_new(rows[k].rate, rows[k].bins, &f), FTH_OK);
        const int64_t frames = fth_filter_bank_frames(f, rows[k].n);
        assert_int_equal(frames, t->shape[0]);
        const size_t size = fth_st_count(t);
        assert_int_equal(frames * rows[k].bins, (int64_t)size);
        float *sample = sound(rows[k].n), *got = malloc(sizeof *got * size),
              *want = malloc(sizeof *want * size);
        assert_int_equal(fth_filter_bank_apply(f, sample, rows[k].n, got), FTH_OK);
        assert_int_equal(fth_st_to_f32(golden, t, want), FTH_OK);
        for (size_t i = 0; i < size; i++)
            if (!(fabsf(got[i] - want[i]) <= 1e-4f))
                fail_msg("%s: value %zu is %g, Kaldi has %g", rows[k].name, i, (double)got[i],
                         (double)want[i]);
        fth_filter_bank_free(f);
        free(sample);
        free(got);
        free(want);
    }
    fth_st_close(golden);
}

static void short_and_silent_sound(void **state) {
    (void)state;
    fth_filter_bank *f = NULL;
    float silence[500] = {0}, out[4 * 80];
    assert_int_equal(fth_filter_bank_new(8000, 80, &f), FTH_OK);
    assert_int_equal(fth_filter_bank_frames(f, 199), 0);
    assert_int_equal(fth_filter_bank_frames(f, 200), 1);
    assert_int_equal(fth_filter_bank_frames(f, 500), 4);
    assert_int_equal(fth_filter_bank_apply(f, silence, 500, out), FTH_OK);
    for (int i = 0; i < 4 * 80; i++) assert_true(fabsf(out[i] - -15.9423847f) < 1e-5f);
    fth_filter_bank_normalise(out, 4, 80);
    for (int i = 0; i < 4 * 80; i++) assert_true(out[i] == 0);
    fth_filter_bank_free(f);
    float ramp[4] = {1, 2, 3, 4};
    fth_filter_bank_normalise(ramp, 4, 1);
    assert_true(fabsf(ramp[0] + 1.3416408f) < 1e-6f && fabsf(ramp[3] - 1.3416408f) < 1e-6f);
    assert_int_equal(fth_filter_bank_new(999, 80, &f), FTH_USAGE);
    assert_int_equal(fth_filter_bank_new(16000, 2, &f), FTH_USAGE);
}

/* A file of n seconds at 8,000 samples a second. */
static void write_sound(const char *name, int format, int channels, int64_t n, float strength) {
    SF_INFO info = {.samplerate = 8000, .channels = channels, .format = format};
    SNDFILE *file = sf_open(path_of(name), SFM_WRITE, &info);
    assert_non_null(file);
    float *sample = sound(n), *all = calloc((size_t)(n * channels + 1), sizeof *all);
    for (int64_t i = 0; i < n; i++) /* the second channel is silent */
        all[i * channels] = strength * sample[i];
    assert_int_equal(sf_writef_float(file, all, n), n);
    sf_close(file);
    free(sample);
    free(all);
}

static void cut(const char *name, const char *whole, double share) {
    char *data;
    size_t size;
    assert_int_equal(fth_file_read(path_of(whole), &data, &size), FTH_OK);
    assert_int_equal(fth_file_write(path_of(name), data, (size_t)((double)size * share)), FTH_OK);
    free(data);
}

static void files_as_they_come(void **state) {
    (void)state;
    fth_sound s;
    write_sound("mono.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 4000, 1);
    assert_int_equal(fth_sound_read(&(fth_clip){.path = path_of("mono.wav")}, 8000, 60, &s),
                     FTH_OK);
    assert_true(s.n == 4000 && s.channels == 1 && s.file_rate == 8000 && !s.silent);
    float *wanted = sound(4000);
    for (int i = 0; i < 4000; i++) assert_true(fabsf(s.sample[i] - wanted[i]) < 1e-4f);
    fth_sound_fini(&s);
    static const struct {
        const char *name;
        int format;
    } kinds[] = {{"stereo.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                 {"stereo.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
                 {"stereo.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS}};
    for (size_t k = 0; k < 3; k++) {
        write_sound(kinds[k].name, kinds[k].format, 2, 4000, 1);
        assert_int_equal(fth_sound_read(&(fth_clip){.path = path_of(kinds[k].name)}, 8000, 60, &s),
                         FTH_OK);
        assert_true(s.n == 4000 && s.channels == 2 && !s.silent);
        for (int i = 0; k < 2 && i < 4000; i++)
            assert_true(fabsf(s.sample[i] - wanted[i] / 2) < 1e-4f);
        fth_sound_fini(&s);
    }
    free(wanted);
    assert_int_equal(fth_sound_read(&(fth_clip){.path = path_of("mono.wav")}, 16000, 60, &s),
                     FTH_OK);
    assert_true(s.rate == 16000 && s.file_rate == 8000 && llabs(s.n - 8000) < 50);
    fth_sound_fini(&s);
    float *part = sound(4000);
    assert_int_equal(fth_sound_read(&(fth_clip){path_of("mono.wav"), 700, 40, 0}, 8000, 60, &s),
                     FTH_OK);
    assert_true(s.n == 40);
    for (int i = 0; i < 40; i++) assert_true(fabsf(s.sample[i] - part[700 + i]) < 1e-4f);
    fth_sound_fini(&s);
    free(part);
    write_sound("silent.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 4000, 0);
    assert_int_equal(fth_sound_read(&(fth_clip){.path = path_of("silent.wav")}, 8000, 60, &s),
                     FTH_OK);
    assert_true(s.silent);
    fth_sound_fini(&s);
    double seconds;
    int32_t rate;
    assert_int_equal(fth_sound_look(&(fth_clip){.path = path_of("mono.wav")}, &seconds, &rate),
                     FTH_OK);
    assert_true(seconds == 0.5 && rate == 8000);
    const fth_clip faster = {path_of("mono.wav"), 1000, 2000, 2};
    assert_int_equal(fth_sound_look(&faster, &seconds, &rate), FTH_OK);
    assert_true(seconds == 0.125);
    assert_int_equal(fth_sound_read(&faster, 8000, 60, &s), FTH_OK);
    assert_true(llabs(s.n - 1000) < 50);
    fth_sound_fini(&s);
}

static void broken_files(void **state) {
    (void)state;
    cut("cut.wav", "mono.wav", 0.5);
    cut("cut.flac", "stereo.flac", 0.6);
    cut("head.wav", "mono.wav", 0.003);
    write_sound("empty.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 0, 1);
    write_sound("long.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 1, 1800 * 8000, 0.5f);
    assert_int_equal(fth_file_write(path_of("text.wav"), "no sound at all\n", 16), FTH_OK);
    static const struct {
        const char *name, *says;
    } rows[] = {{"cut.wav", "cut.wav: the file is cut short"},
                {"cut.flac", "cut.flac: the file is cut short"},
                {"head.wav", "head.wav: no sound that can be read"},
                {"empty.wav", "empty.wav: there is no sample in it"},
                {"long.wav", "long.wav: 1800.0 seconds; must be at most 60"},
                {"text.wav", "text.wav: no sound that can be read"},
                {"missing.wav", "missing.wav: no sound that can be read: "},
                {".", "no sound that can be read"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_sound s;
        if (fth_sound_read(&(fth_clip){.path = path_of(rows[i].name)}, 8000, 60, &s) !=
            FTH_BAD_INPUT)
            fail_msg("%s was read", rows[i].name);
        if (!strstr(fth_error_message(), rows[i].says))
            fail_msg("%s: \"%s\"", rows[i].name, fth_error_message());
        fth_sound_fini(&s);
    }
    fth_sound s;
    const fth_clip beyond = {path_of("mono.wav"), 3999, 2, 0};
    assert_int_equal(fth_sound_read(&beyond, 8000, 60, &s), FTH_BAD_INPUT);
    assert_non_null(strstr(fth_error_message(), "has 4000 samples; there are not 2 from 3999 on"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_kaldi), cmocka_unit_test(short_and_silent_sound),
        cmocka_unit_test(files_as_they_come), cmocka_unit_test(broken_files)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
