/* optimiser_options.h: the learning rate, its schedule and Adam, of train, trace and bench. */
#ifndef FTH_CLI_OPTIMISER_OPTIONS_H
#define FTH_CLI_OPTIMISER_OPTIONS_H

#include "base/options.h"
#include "train/trainer.h"

#define OPTIMISER_OPTIONS(X)                                                                       \
    X(F64, lr, "0.0005", FTH_SAID(FTH_ABOVE(0)), "peak learning rate")                             \
    X(CHOICE, lr_scheduler, "inverse_sqrt",                                                        \
      FTH_SAID(FTH_CHOICES(                                                                        \
          "inverse_sqrt|inverse_sqrt_nowarmup|constant|linear|cosine|polynomial|wsd")),            \
      "how the rate changes")                                                                      \
    X(I64, warmup_updates, "4000", FTH_SAID(FTH_RANGE(0, 1e12)),                                   \
      "updates in which the rate rises to its peak")                                               \
    X(F64, warmup_init_lr, "1e-7", FTH_SAID(FTH_MIN(0)), "rate where the rise begins")             \
    X(I64, max_update, "100000", FTH_SAID(FTH_MIN(1)), "updates of the whole run")                 \
    X(F64, end_learning_rate, "", FTH_SAID(FTH_MIN(0)),                                            \
      "polynomial, wsd: the rate at --max-update; default: 0")                                     \
    X(F64, power, "", FTH_SAID(FTH_ABOVE(0)), "polynomial: of the share that is left; default: 1") \
    X(I64, decay_updates, "", FTH_SAID(FTH_MIN(1)),                                                \
      "wsd: updates of the way down, the last ones; default: a fifth of --max-update")             \
    X(STR, adam_betas, "0.9,0.98", FTH_KEPT(FTH_SHOWN_AS("B1,B2")),                                \
      "decay of Adam's two averages")                                                              \
    X(F64, adam_eps, "1e-8", FTH_KEPT(FTH_ABOVE(0)), "added to the root of Adam's second average") \
    X(F64, weight_decay, "0.0001", FTH_KEPT(FTH_MIN(0)), "decoupled, of every parameter")          \
    X(F64, clip_norm, "0", FTH_KEPT(FTH_MIN(0)),                                                   \
      "largest gradient norm; 0: no clipping, and no memory for the gradients of layers")          \
    X(F64, label_smoothing, "0", FTH_KEPT(FTH_BELOW(0, 1)),                                        \
      "share of the target spread over all words")
FTH_OPTIONS(fth_optimiser_options, "optimiser", OPTIMISER_OPTIONS)

/* Refuses options of other schedules than the one that is asked for. */
fth_err fth_check_schedule(const fth_option_group *groups, size_t n,
                           const fth_optimiser_options *o);

/* Everything of a recipe but dropout and seed. */
fth_err fth_recipe_from_options(const fth_optimiser_options *o, fth_recipe *out);

#endif
