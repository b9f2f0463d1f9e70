/* audio_batch.h: the features of a number of recordings, computed on many threads. */
#ifndef FTH_DATA_AUDIO_BATCH_H
#define FTH_DATA_AUDIO_BATCH_H

#include "audio/features.h"

/* A recording on its way. */
typedef struct fth_audio_item {
    fth_clip clip; /* its path is malloc'd */
    char *text;    /* malloc'd, as place; both may be NULL */
    char *place;   /* where it was named */
    fth_features features;
    fth_err err;
    char *message; /* with err, malloc'd */
} fth_audio_item;

/* Reads items[0..n). What is wrong with one stands in its err; the others are computed. */
fth_err fth_audio_batch_read(fth_audio_item *items, int64_t n, const fth_filter_bank *bank,
                             const fth_speech_facts *facts, int64_t max_frames, int threads);

void fth_audio_item_fini(fth_audio_item *item);

#endif
