/* train_state.h: state.json of a checkpoint: where a training run stands, and the sums of the other
 * files, so that a cut file or a flipped byte is found before training goes on from it. */
#ifndef FTH_STORE_TRAIN_STATE_H
#define FTH_STORE_TRAIN_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "store/model_dir.h"

typedef struct fth_train_state {
    char version[32];    /* of the program that wrote it */
    int64_t update;      /* completed updates */
    int64_t epoch;       /* the epoch that the next batch belongs to, from 1 */
    int64_t position;    /* batches of that epoch that are done */
    int64_t window;      /* of the shuffled data that the next batch belongs to, from 0 */
    int64_t batch;       /* its number in that window, from 0 */
    int64_t seed;        /* key of all random numbers */
    int64_t rng_counter; /* random numbers drawn in sequence so far */
    double best_score;   /* NaN before the first validation */
    int64_t best_update; /* the update it was reached at */
    int64_t patience;    /* validations since then */
    double loss_scale;
    double alpha;       /* of the last update; 1 for methods without a schedule */
    int64_t tokens;     /* target tokens trained on */
    double wall;        /* seconds of training */
    uint64_t data_hash; /* of the data set that it began with (data/folder.h) */
    /* Not in the files of version 0.1.0: */
    int64_t validated;          /* the update of the newest validation; 0 before the first */
    double valid_nll;           /* of that validation; NaN: unknown */
    double first_nll, last_nll; /* of update 1 and of the newest; NaN: unknown */
    double log_loss, log_nll;   /* sums over tokens since the last line of the log, */
    double log_gnorm;           /* over updates, */
    int64_t log_tokens;         /* and how many there were */
    int64_t log_updates;
    int64_t stopped_at; /* update of a signal's checkpoint that the run went on from; 0: none */
} fth_train_state;

/* A run that has not begun: version of this program, epoch 1, no scores, scale and alpha 1. */
fth_train_state fth_train_state_default(void);

/* Appends the text of state.json. options: lines "key: value" of the run, NULL for none; others are
 * left out. */
fth_err fth_train_state_print(const fth_train_state *s, const char *options,
                              const fth_file_sums *sums, fth_str *out);

/* Reads it back; options (malloc'd, NULL for none) and sums may be NULL. FTH_BAD_INPUT names the
 * file, the key, the value and the rule; a changed byte anywhere that matters is one. */
fth_err fth_train_state_read(const char *path, fth_train_state *s, char **options,
                             fth_file_sums *sums);

#endif
