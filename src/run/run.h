/* run.h: a training run: a folder with checkpoints, a log and its configuration, that can be killed
 * at any moment and goes on where it was. */
#ifndef FTH_RUN_RUN_H
#define FTH_RUN_RUN_H

#include "base/log.h"
#include "base/options.h"
#include "data/batcher.h"
#include "data/folder.h"
#include "data/masking.h"
#include "run/rates.h"
#include "data/spec_augment.h"
#include "run/scorer.h"
#include "train/trainer.h"

/* How an encoder's data are changed: what is hidden, and how pictures differ from epoch to
 * epoch. */
typedef struct fth_encoder_data {
    double mask_prob, mask_keep, mask_random;
    fth_mask_unit mask_unit;
    double mask_patches;
    int32_t crop;
    bool flip;
    double erase;
    double mixup;
} fth_encoder_data;

/* Everything that a run is told. */
typedef struct fth_run_spec {
    const char *data;                /* data set folder */
    const char *save_dir;            /* RUN */
    const char *yaml;                /* the resolved options, for RUN/config.yaml */
    const fth_option_group *options; /* [n_options] the tables that they come from */
    size_t n_options;
    fth_config config;        /* vocabularies and special ids are set from the data */
    const char *restore_file; /* "" or a model folder whose weights the run starts from */
    const char *init_from;    /* "" or one of another task, of which it takes what fits */
    double init_scale;        /* of the layers' initial values; 1: as the method has them */
    fth_recipe recipe;
    fth_rates rates; /* which parameters learn more slowly, or not at all */
    int64_t max_tokens, update_freq;
    int64_t max_update, max_epoch, patience; /* 0: no limit, but for max_update */
    int64_t save_interval, validate_interval, keep_last, log_interval;
    int64_t memory_budget;
    int64_t block;               /* language model, masked or not: tokens of a block */
    double sampling_temperature; /* of directions; 0: that of the data set */
    fth_encoder_data encoder;
    fth_spec_augment spec_augment; /* of recordings in training; zeroed: none */
    int32_t conv_channels;         /* of a model that reads recordings */
    bool
        head_given; /* the configuration's head was asked for, and is not to be found by the data */
    bool tensorboard;    /* events for it beside log.jsonl */
    int64_t telemetry;   /* every so many updates all sub-layers are measured; 0: never */
    int64_t judge_after; /* updates before rules b to d of health.h are applied */
    fth_scorer_spec score;
    bool best_by_score;
    double stop_seconds; /* ends the run after so much time; 0: no limit */
    fth_ranks *ranks;    /* that train together; NULL: this process alone */
    int64_t pipeline; /* stages that the layers are cut into, each on a rank of its own; 1: none */
    bool reduce_fast; /* each rank adds up its own batches first (trainer.h) */
    bool strict;
    bool reset_schedule; /* with restore_file or init_from: the method's schedule begins anew */
} fth_run_spec;

/* Parts of its beginning: the configuration with the vocabularies and special ids of the data; the
 * batches; the longest sentence that one can have. */
fth_err fth_run_config(const fth_run_spec *spec, const fth_folder *folder, const fth_dataset *data,
                       fth_config *out);
fth_err fth_run_batcher(const fth_run_spec *spec, const fth_dataset *data,
                        const fth_item_spec *item, fth_batcher **out);
/* Tokens of its blocks; 0: labelled sentences and pictures are no blocks. */
int32_t fth_run_block(const fth_run_spec *spec, const fth_item_spec *item);
int64_t fth_run_longest(const fth_run_spec *spec, const fth_dataset *train,
                        const fth_dataset *valid);

/* What items of an encoder, or recordings, are made of. Zeroed: of neither, may be freed. It does
 * not move once it is made. */
typedef struct fth_run_items {
    fth_masking masking;
    fth_augment augment;
    fth_spec_augment spec_augment;
    uint8_t *word_start;
    fth_item_spec train,
        valid; /* validation sees the same masks each time, and pictures as they are */
} fth_run_items;
fth_err fth_run_items_init(fth_run_items *items, const fth_run_spec *spec, const fth_folder *folder,
                           const fth_dataset *data, const fth_config *config);
void fth_run_items_fini(fth_run_items *items);

/* How a run ended. */
typedef struct fth_run_result {
    int64_t updates;
    double best_nll, final_nll; /* of the validation data; NAN: never validated */
    double best_score;          /* NAN: none */
    double seconds;
} fth_run_result;

/* Trains until a limit is met. Of several ranks all call it, and rank 0 writes. FTH_DIVERGED: the
 * run failed (doc/analyses.md#when-a-run-has-failed), the message has the reason. FTH_STOPPED,
 * FTH_TERMINATED: SIGINT or SIGTERM came, a checkpoint was saved. */
fth_err fth_run(const fth_run_spec *spec, fth_device *device, fth_log *log, fth_run_result *result);

#endif
