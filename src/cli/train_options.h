/* train_options.h: the options of a run, for the verbs that make one or look at one. */
#ifndef FTH_CLI_TRAIN_OPTIONS_H
#define FTH_CLI_TRAIN_OPTIONS_H

#include "cli/common_options.h"
#include "run/run.h"

#define TRAIN_OPTIONS(X)                                                                           \
    X(STR, save_dir, "run", FTH_SHOWN_AS("FOLDER"),                                                \
      "run folder: checkpoints, log.jsonl, config.yaml; an unfinished run there goes on")          \
    X(CHOICE, validate_score, "", FTH_CHOICES("bleu|chrf"),                                        \
      "translate the validation data too, and log this score; default: none")                      \
    X(I64, validate_beam, "", FTH_RANGE(1, 256), "hypotheses of that translation; default: 4")     \
    X(I64, validate_sentences, "", FTH_MIN(1), "translate only the first so many; default: all")   \
    X(CHOICE, best_by, "", FTH_CHOICES("nll|score"),                                               \
      "what the best checkpoint is best by, and patience; default: nll")                           \
    X(STR, restore_file, "", FTH_SHOWN_AS("MODEL"), "start from the weights of this model")        \
    X(BOOL, reset_schedule, "false", FTH_ANY,                                                      \
      "with --restore-file: begin the method's schedule anew, instead of at its end")              \
    X(I64, seed, "1", FTH_MIN(0), "of initial values, dropout and the order of the data")          \
    X(I64, max_tokens, "4096", FTH_RANGE(1, 16777216),                                             \
      "source tokens, and target tokens, of a batch at most")                                      \
    X(I64, update_freq, "1", FTH_RANGE(1, 65536), "batches whose gradients make one update")       \
    X(I64, max_epoch, "0", FTH_MIN(0), "passes over the data; 0: no limit")                        \
    X(I64, patience, "0", FTH_MIN(0), "validations without a better score before it ends; 0: off") \
    X(I64, save_interval_updates, "1000", FTH_MIN(0), "updates between checkpoints")               \
    X(I64, validate_interval_updates, "1000", FTH_MIN(0), "updates between validations")           \
    X(I64, keep_last, "5", FTH_MIN(0), "checkpoints to keep, beside the best; 0: all")             \
    X(I64, log_interval, "100", FTH_MIN(1), "updates between lines of log.jsonl")                  \
    X(I64, telemetry, "0", FTH_MIN(0),                                                             \
      "updates between measurements of every sub-layer in log.jsonl (doc/telemetry.md); 0: none")  \
    X(F64, stop_time_hours, "0", FTH_MIN(0), "end, with a checkpoint, after so long; 0: off")      \
    X(I64, judge_after, "", FTH_MIN(0),                                                            \
      "updates before a run that learns nothing counts as failed; default: the larger of 400 "     \
      "and the warm-up")                                                                           \
    X(SIZE, memory_budget, "", FTH_ANY,                                                            \
      "memory to stay within, by recomputing layers; 0: any; default: no limit")                   \
    X(I64, tokens_per_sample, "512", FTH_RANGE(2, 65535),                                          \
      "block length of a language model (--arch dec)")                                             \
    X(BOOL, strict, "false", FTH_ANY, "a sentence that does not fit a batch is an error")          \
    X(BOOL, quiet, "false", FTH_ANY, "no progress, only warnings")
FTH_OPTIONS(fth_train_options, "run", TRAIN_OPTIONS)

/* Every group of options of a run, in the order of --help. */
enum { FTH_RUN_GROUPS = 4 };
typedef struct fth_run_options {
    fth_train_options train;
    fth_model_options model;
    fth_optimiser_options optimiser;
    fth_device_options device;
    fth_option_group groups[FTH_RUN_GROUPS];
} fth_run_options;

/* Sets the groups up, to be read by fth_verb_options. */
void fth_run_options_init(fth_run_options *o);

/* The run that the options describe, without data set and YAML. */
fth_err fth_run_spec_from_options(const fth_run_options *o, fth_run_spec *spec);

#endif
