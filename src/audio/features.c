/* features.c: reads a recording, computes its filter bank, normalises and rounds. */
#include "audio/features.h"

#include <math.h>
#include <stdlib.h>

#include "base/half.h"

const char *fth_feature_norm_name(fth_feature_norm norm) {
    static const char *const names[] = {"utterance", "global", "none"};
    return names[norm];
}

static void normalise(const fth_speech_facts *facts, float *frames, int64_t n) {
    const int32_t bins = facts->features;
    if (facts->norm == FTH_FEATURE_NORM_UTTERANCE) fth_filter_bank_normalise(frames, n, bins);
    if (facts->norm != FTH_FEATURE_NORM_GLOBAL) return;
    for (int64_t i = 0; i < n; i++)
        for (int32_t b = 0; b < bins; b++) {
            float *x = &frames[i * bins + b];
            *x = (float)(((double)*x - facts->mean[b]) / facts->deviation[b]);
        }
}

static fth_err compute(const fth_filter_bank *bank, const fth_speech_facts *facts,
                       const fth_sound *sound, fth_features *out) {
    const size_t count = (size_t)out->n * (size_t)facts->features;
    float *values = malloc(sizeof *values * count);
    out->frames = malloc(sizeof *out->frames * count);
    fth_err err = values && out->frames
                      ? fth_filter_bank_apply(bank, sound->sample, sound->n, values)
                      : fth_fail(FTH_NO_MEMORY, "no memory for %lld frames", (long long)out->n);
    if (err == FTH_OK) normalise(facts, values, out->n);
    for (size_t i = 0; err == FTH_OK && i < count; i++) out->frames[i] = fth_half_from(values[i]);
    free(values);
    return err;
}

fth_err fth_features_read(const fth_filter_bank *bank, const fth_speech_facts *facts,
                          const fth_clip *clip, int64_t max_frames, fth_features *out) {
    fth_sound sound = {0};
    double seconds;
    *out = (fth_features){0};
    FTH_TRY(fth_sound_look(clip, &seconds, &out->file_rate));
    /* a frame begins every 10 ms, and a window has 15 ms more */
    if (max_frames && seconds > 0.01 * (double)max_frames + 0.1) {
        out->state = FTH_FEATURES_TOO_LONG;
        return FTH_OK;
    }
    fth_err err = fth_sound_read(clip, facts->rate, INFINITY, &sound);
    if (err == FTH_OK) {
        out->n = fth_filter_bank_frames(bank, sound.n);
        out->channels = sound.channels;
        out->silent = sound.silent;
        if (out->n == 0) out->state = FTH_FEATURES_TOO_SHORT;
        if (max_frames && out->n > max_frames) out->state = FTH_FEATURES_TOO_LONG;
        if (out->state == FTH_FEATURES_THERE) err = compute(bank, facts, &sound, out);
    }
    fth_sound_fini(&sound);
    return err;
}

void fth_features_fini(fth_features *f) {
    free(f->frames);
    *f = (fth_features){0};
}
