/* features.h: a recording as a model reads it: filter-bank values, normalised, in 16 bits. The same
 * recording gives the same numbers in a data set and in generate. */
#ifndef FTH_AUDIO_FEATURES_H
#define FTH_AUDIO_FEATURES_H

#include "audio/filter_bank.h"
#include "audio/sound.h"

enum { FTH_MOST_FEATURES = 256 };

/* What is taken away from each value, and what it is divided by. */
typedef enum fth_feature_norm {
    FTH_FEATURE_NORM_UTTERANCE, /* mean and deviation of the recording */
    FTH_FEATURE_NORM_GLOBAL,    /* of the training recordings */
    FTH_FEATURE_NORM_NONE
} fth_feature_norm;

const char *fth_feature_norm_name(fth_feature_norm norm);

/* Zeroed: there is no sound. */
typedef struct fth_speech_facts {
    int32_t rate;     /* samples a second; recordings of another are resampled */
    int32_t features; /* numbers of a frame */
    fth_feature_norm norm;
    double mean[FTH_MOST_FEATURES], deviation[FTH_MOST_FEATURES]; /* [features] with GLOBAL */
} fth_speech_facts;

/* What became of a recording. */
typedef enum fth_feature_state {
    FTH_FEATURES_THERE,
    FTH_FEATURES_TOO_LONG, /* more frames than are allowed: it was not read */
    FTH_FEATURES_TOO_SHORT /* shorter than one window of 25 ms */
} fth_feature_state;

typedef struct fth_features {
    uint16_t *frames; /* [n, features] halves */
    int64_t n;
    fth_feature_state state;
    int32_t file_rate, channels; /* of the file */
    bool silent;                 /* every sample is 0 */
} fth_features;

/* A frame every 10 ms. bank is of the rate and the features of the facts; several threads may use
 * it at once. FTH_BAD_INPUT with the file's name, as of fth_sound_read. max_frames 0: no bound. A
 * zeroed one, or one that failed, may be given to fini. */
fth_err fth_features_read(const fth_filter_bank *bank, const fth_speech_facts *facts,
                          const fth_clip *clip, int64_t max_frames, fth_features *out);
void fth_features_fini(fth_features *f);

#endif
