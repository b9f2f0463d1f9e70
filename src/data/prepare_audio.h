/* prepare_audio.h: recordings to features: reads every one of a manifest, many at once, and writes
 * the frames and the texts of each split, which prepare.c then cuts into tokens. */
#ifndef FTH_DATA_PREPARE_AUDIO_H
#define FTH_DATA_PREPARE_AUDIO_H

#include "audio/features.h"
#include "base/json.h"
#include "base/log.h"
#include "data/folder.h"

/* Everything is borrowed. */
typedef struct fth_prepare_audio {
    const char *manifest[FTH_N_SPLITS]; /* audio_list.h; NULL: this split is not there */
    int32_t rate;                       /* samples a second; 0: those of the first recording */
    int32_t features;
    fth_feature_norm norm;
    double speeds[8]; /* [n_speeds] of which each training recording gets a copy; 0: as it is */
    int n_speeds;
    int64_t max_frames; /* longer ones are left out */
    int strict;         /* one that is too long is an error */
    int skip_bad;       /* a recording that cannot be read is left out; else an error */
    int threads;
    fth_log *log;
} fth_prepare_audio;

/* What became of the rows of a manifest. */
typedef struct fth_audio_counts {
    int64_t read, written, frames;
    int64_t too_long, too_short, empty,
        unreadable;           /* left out; empty: of the training split alone */
    int64_t silent;           /* likewise; of the other splits they are kept */
    int64_t resampled, mixed; /* of another rate; of several channels */
} fth_audio_counts;

/* Writes FOLDER/SPLIT.frames, SPLIT.tgt.txt and speech.json. */
fth_err fth_prepare_audio_splits(const fth_prepare_audio *a, const char *folder,
                                 fth_audio_counts counts[FTH_N_SPLITS]);

/* Adds to a split's entry of dataset.json what it has of sound. */
fth_err fth_prepare_audio_describe(const char *folder, int split, const fth_audio_counts *counts,
                                   json_t *entry);

#endif
