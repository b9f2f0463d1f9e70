/* train_options.h: the options of a run, for the verbs that make one or look at one. */
#ifndef FTH_CLI_TRAIN_OPTIONS_H
#define FTH_CLI_TRAIN_OPTIONS_H

#include "cli/device_options.h"
#include "cli/model_options.h"
#include "cli/optimiser_options.h"
#include "run/run.h"

#define TRAIN_OPTIONS(X)                                                                           \
    X(STR, save_dir, "run", FTH_FREE(FTH_SHOWN_AS("FOLDER")),                                      \
      "run folder: checkpoints, log.jsonl, config.yaml; an unfinished run there goes on")          \
    X(CHOICE, validate_score, "", FTH_SAID(FTH_CHOICES("bleu|chrf|wer|cer")),                      \
      "translate the validation data too, and log this score; default: none")                      \
    X(I64, validate_beam, "", FTH_SAID(FTH_RANGE(1, 256)),                                         \
      "hypotheses of that translation; default: 4")                                                \
    X(I64, validate_sentences, "", FTH_SAID(FTH_MIN(1)),                                           \
      "translate only the first so many; default: all")                                            \
    X(CHOICE, best_by, "", FTH_KEPT(FTH_CHOICES("nll|score")),                                     \
      "what the best checkpoint is best by, and patience; default: nll")                           \
    X(STR, restore_file, "", FTH_KEPT(FTH_SHOWN_AS("MODEL")),                                      \
      "start from the weights of this model")                                                      \
    X(STR, init_from, "", FTH_KEPT(FTH_SHOWN_AS("MODEL")),                                         \
      "start from what fits of a model of another task (fine-tuning); the rest begins fresh")      \
    X(BOOL, reset_schedule, "false", FTH_KEPT(FTH_ANY),                                            \
      "with --restore-file or --init-from: begin the method's schedule anew, instead of at its "   \
      "end")                                                                                       \
    X(I64, seed, "1", FTH_KEPT(FTH_MIN(0)),                                                        \
      "of initial values, dropout and the order of the data")                                      \
    X(F64, init_scale, "1", FTH_KEPT(FTH_ABOVE(0)),                                                \
      "multiplies the initial weights of the layers, whatever the method makes of them")           \
    X(I64, max_tokens, "4096", FTH_KEPT(FTH_RANGE(1, 16777216)),                                   \
      "source tokens, of recordings rows of 40 ms, and target tokens of a batch, each, at most")   \
    X(I64, update_freq, "", FTH_KEPT(FTH_RANGE(1, 65536)),                                         \
      "batches whose gradients make one update; default: one of each rank")                        \
    X(I64, max_epoch, "0", FTH_SAID(FTH_MIN(0)), "passes over the data; 0: no limit")              \
    X(I64, patience, "0", FTH_SAID(FTH_MIN(0)),                                                    \
      "validations without a better score before it ends; 0: off")                                 \
    X(I64, save_interval_updates, "1000", FTH_SAID(FTH_MIN(0)), "updates between checkpoints")     \
    X(I64, validate_interval_updates, "1000", FTH_SAID(FTH_MIN(0)), "updates between validations") \
    X(I64, keep_last, "5", FTH_SAID(FTH_MIN(0)), "checkpoints to keep, beside the best; 0: all")   \
    X(I64, log_interval, "100", FTH_FREE(FTH_MIN(1)), "updates between lines of log.jsonl")        \
    X(CHOICE, log_format, "jsonl", FTH_FREE(FTH_CHOICES("jsonl|tensorboard")),                     \
      "tensorboard: what log.jsonl has also as events in RUN/tensorboard")                         \
    X(I64, telemetry, "0", FTH_FREE(FTH_MIN(0)),                                                   \
      "updates between measurements of every sub-layer in log.jsonl (doc/telemetry.md); 0: none")  \
    X(F64, stop_time_hours, "0", FTH_SAID(FTH_MIN(0)),                                             \
      "end, with a checkpoint, after so long; 0: off")                                             \
    X(I64, judge_after, "", FTH_SAID(FTH_MIN(0)),                                                  \
      "updates before a run that learns nothing counts as failed; default: the larger of 400 "     \
      "and the warm-up")                                                                           \
    X(SIZE, memory_budget, "", FTH_FREE(FTH_ANY),                                                  \
      "memory to stay within, by recomputing layers; 0: any; default: no limit")                   \
    X(I64, tokens_per_sample, "512", FTH_KEPT(FTH_RANGE(2, 65535)),                                \
      "block length of a language model (--arch dec, or --head masked-token)")                     \
    X(I64, ranks, "", FTH_FREE(FTH_RANGE(1, 65536)),                                               \
      "processes on this machine that train together, started by mpirun (doc/clusters.md); "       \
      "default: one, or those that mpirun or srun has started")                                    \
    X(STR, devices, "", FTH_FREE(FTH_SHOWN_AS("LIST")),                                            \
      "where ranks compute, one after the other, as cuda:0,cuda:1; starts as many ranks")          \
    X(I64, pipeline, "", FTH_FREE(FTH_RANGE(1, 65536)),                                            \
      "stages that the layers are cut into, each on a rank of its own (doc/clusters.md); "         \
      "default: one")                                                                              \
    X(CHOICE, reduce, "exact", FTH_SAID(FTH_CHOICES("exact|fast")),                                \
      "how ranks add up gradients: the same bits for any number of them, or each its own batches " \
      "first, with one exchange an update")                                                        \
    X(F64, rank_timeout, "20", FTH_FREE(FTH_ABOVE(0)),                                             \
      "seconds after which a rank that is silent is lost, and the others end")                     \
    X(F64, sampling_temperature, "", FTH_KEPT(FTH_RANGE(1, 1e6)),                                  \
      "how evenly the directions of many languages come: 1 as they are, more: evener; default: "   \
      "that of the data set")                                                                      \
    X(BOOL, strict, "false", FTH_KEPT(FTH_ANY),                                                    \
      "a sentence that does not fit a batch is an error")                                          \
    X(BOOL, quiet, "false", FTH_FREE(FTH_ANY), "no progress, only warnings")
FTH_OPTIONS(fth_train_options, "run", TRAIN_OPTIONS)

#define ENCODER_OPTIONS(X)                                                                         \
    X(F64, mask_prob, "0.15", FTH_BELOW(0, 1), "masked-token: share of a text's tokens to guess")  \
    X(F64, mask_keep, "0.1", FTH_RANGE(0, 1), "of these, the share that stays as it is")           \
    X(F64, mask_random, "0.1", FTH_RANGE(0, 1), "of these, the share that becomes another token")  \
    X(CHOICE, mask_unit, "piece", FTH_CHOICES("piece|word|span"),                                  \
      "what is masked at once: pieces, whole words, spans of 3 pieces in the mean")                \
    X(F64, mask_patches, "0.4", FTH_BELOW(0, 1), "masked-token: share of a picture's patches")     \
    X(I64, augment_crop, "0", FTH_RANGE(0, 1024),                                                  \
      "pictures are shifted by up to so many pixels in training")                                  \
    X(BOOL, augment_flip, "false", FTH_ANY, "every second picture is mirrored in training")        \
    X(F64, augment_erase, "0", FTH_RANGE(0, 1),                                                    \
      "how often a part of a picture is hidden in training (random erasing)")                      \
    X(F64, mixup, "0", FTH_RANGE(0, 100),                                                          \
      "head class: each training picture is mixed with another, by a share from Beta(X, X); 0.2 "  \
      "is usual, 0: not")
FTH_OPTIONS(fth_encoder_options, "data of encoders (--arch enc)", ENCODER_OPTIONS)

#define RATE_OPTIONS(X)                                                                            \
    X(F64, layer_lr_decay, "1", FTH_UP_TO(0, 1),                                                   \
      "what a layer's learning rate is multiplied by for the layer below it; the top layer's by "  \
      "it once, the head's not at all")                                                            \
    X(LIST, freeze, "", FTH_SHOWN_AS("NAME"),                                                      \
      "parameters that stay as they are: a name or its beginning, as encoder.layers.0-5 or "       \
      "encoder.embed*")
FTH_OPTIONS(fth_rate_options, "rates of parameters", RATE_OPTIONS)

#define SPEECH_OPTIONS(X)                                                                          \
    X(I64, conv_channels, "1024", FTH_RANGE(2, 131072),                                            \
      "width of the first convolution over the frames, even")                                      \
    X(CHOICE, specaugment, "none", FTH_CHOICES("none|lb|ld|sm|ss"),                                \
      "hide parts of recordings in training, by a policy of SpecAugment; what follows changes it") \
    X(I64, freq_mask_n, "", FTH_RANGE(0, 1000),                                                    \
      "bands of features that are hidden; default: by the policy")                                 \
    X(I64, freq_mask_f, "", FTH_RANGE(1, 1000),                                                    \
      "each narrower than so many; default: by the policy")                                        \
    X(I64, time_mask_n, "", FTH_RANGE(0, 1000),                                                    \
      "stretches of time that are hidden; default: by the policy")                                 \
    X(I64, time_mask_t, "", FTH_RANGE(1, 1000000),                                                 \
      "each shorter than so many frames; default: by the policy")                                  \
    X(F64, time_mask_p, "", FTH_RANGE(0, 1),                                                       \
      "and than this share of the recording; default: by the policy")
FTH_OPTIONS(fth_speech_options, "recordings", SPEECH_OPTIONS)

/* Every group of options of a run, in the order of --help. */
enum { FTH_RUN_GROUPS = 7 };
typedef struct fth_run_options {
    fth_train_options train;
    fth_model_options model;
    fth_encoder_options encoder;
    fth_speech_options speech;
    fth_optimiser_options optimiser;
    fth_rate_options rates;
    fth_device_options device;
    fth_option_group groups[FTH_RUN_GROUPS];
} fth_run_options;

/* Sets the groups up, to be read by fth_verb_options. */
void fth_run_options_init(fth_run_options *o);

/* The run that the options describe, without data set and YAML. */
fth_err fth_run_spec_from_options(const fth_run_options *o, fth_run_spec *spec);

#endif
