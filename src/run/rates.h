/* rates.h: which parameters learn more slowly than others, and which do not at all. */
#ifndef FTH_RUN_RATES_H
#define FTH_RUN_RATES_H

#include "base/str.h"
#include "model/model.h"

typedef struct fth_rates {
    double layer_decay;        /* from layer to layer downwards; 0, 1: all learn at one rate */
    const char *const *freeze; /* [n_freeze] patterns, borrowed */
    size_t n_freeze;
} fth_rates;

/* Whether a pattern means a parameter: its parts, between dots, are the first parts of the name. A
 * part is a word in which * stands for anything, or numbers A-B. */
bool fth_rates_match(const char *pattern, const char *name);

/* Sets the shares of a model's parameters. What was frozen, and how the rate falls, is appended to
 * *said (NULL: nobody wants to know); nothing where all learn at one rate. FTH_USAGE: a pattern
 * means no parameter, or nothing is left to train. */
fth_err fth_rates_set(const fth_rates *rates, fth_model *model, fth_str *said);

#endif
