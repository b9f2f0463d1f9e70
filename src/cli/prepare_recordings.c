/* prepare_recordings.c: which options go with recordings, and what they ask for. */
#include "cli/prepare_recordings.h"

#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/option_uses.h"

bool fth_has_recordings(const fth_recording_options *o) {
    return o->train_audio[0] || o->valid_audio[0] || o->test_audio[0];
}

/* Of the others, those that mean something to texts of recordings. */
static bool goes_with(const fth_option_group *group, const char *field) {
    static const char *const kept[] = {"out",
                                       "force",
                                       "strict",
                                       "bpe_dropout",
                                       "max_target_tokens",
                                       "threads",
                                       "model_type",
                                       "vocab_size",
                                       "character_coverage",
                                       "byte_fallback",
                                       "user_symbols",
                                       "normalization",
                                       "tokenizer_sample",
                                       "tokenizer"};
    if (strncmp(group->title, "recordings", 10) == 0) return true;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strcmp(kept[i], field) == 0) return true;
    return false;
}

static fth_err check_others(const fth_option_group *groups, size_t n) {
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const char *const name[] = {groups[g].table[i].field, NULL};
            if (!goes_with(&groups[g], name[0]))
                FTH_TRY(
                    fth_refuse_options(groups, n, name, "is for other data; there are recordings"));
        }
    return FTH_OK;
}

fth_err fth_recordings_refuse(const fth_option_group *groups, size_t n) {
    static const char *const all[] = {
        "sample_rate", "features", "feature_norm", "speeds", "max_frames", "skip_bad_audio", NULL};
    return fth_refuse_options(groups, n, all, "is for recordings; needs --train-audio");
}

static fth_feature_norm norm_of(const char *name) {
    fth_feature_norm norm = FTH_FEATURE_NORM_UTTERANCE;
    while (norm < FTH_FEATURE_NORM_NONE && strcmp(name, fth_feature_norm_name(norm)) != 0) norm++;
    return norm;
}

/* "0.9,1,1.1" */
static fth_err take_speeds(const char *text, fth_prepare_audio *audio) {
    const int most = sizeof audio->speeds / sizeof *audio->speeds;
    for (const char *at = text; *at;) {
        char *end;
        const double speed = strtod(at, &end);
        const bool more = *end == ',' && end[1];
        if (end == at || (*end && !more) || !(speed >= 0.5 && speed <= 2) ||
            audio->n_speeds == most)
            return fth_fail(FTH_USAGE,
                            "--speeds %s: must be 1 to %d numbers from 0.5 to 2, as "
                            "0.9,1,1.1",
                            text, most);
        audio->speeds[audio->n_speeds++] = speed;
        at = end + more;
    }
    return FTH_OK;
}

fth_err fth_recordings_take(const fth_recording_options *o, const fth_option_group *groups,
                            size_t n, int strict, fth_prepare_audio *audio,
                            fth_text_file files[FTH_N_SPLITS], fth_prepare *p) {
    const char *const manifests[FTH_N_SPLITS] = {o->train_audio, o->valid_audio, o->test_audio};
    FTH_TRY(check_others(groups, n));
    *audio = (fth_prepare_audio){.rate = (int32_t)o->sample_rate,
                                 .features = (int32_t)o->features,
                                 .norm = norm_of(o->feature_norm),
                                 .max_frames = o->max_frames,
                                 .strict = strict,
                                 .skip_bad = o->skip_bad_audio,
                                 .threads = p->threads ? p->threads : fth_cores_usable().threads,
                                 .log = p->log};
    FTH_TRY(take_speeds(o->speeds, audio));
    for (int i = 0; i < FTH_N_SPLITS; i++) {
        const char *path = manifests[i];
        if (!path[0]) continue;
        if (strcmp(path, "-") == 0)
            return fth_fail(FTH_USAGE,
                            "--%s-audio -: a manifest is read twice and cannot be standard input",
                            fth_split_name(i));
        audio->manifest[i] = path;
        files[i] = (fth_text_file){path, path};
        p->text[i].kind = FTH_TEXT_PLAIN;
        p->text[i].files[0] = &files[i];
        p->text[i].n_files[0] = 1;
    }
    p->audio = audio;
    p->max_tokens[0] = p->max_tokens[1]; /* the texts are the only side */
    p->strict = 0;
    return FTH_OK;
}
