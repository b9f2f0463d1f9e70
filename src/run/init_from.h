/* init_from.h: the first weights of a run from a model of another task: what has the same name and
 * shape is taken over, the rest begins fresh, and both are said. */
#ifndef FTH_RUN_INIT_FROM_H
#define FTH_RUN_INIT_FROM_H

#include "base/str.h"
#include "model/model.h"

/* flat [params.size]: weights of `model`, drawn from seed or taken from the model folder.
 * same_words: both have one tokenizer; without, what belongs to single words is not taken. said: a
 * line with what was not taken, and what was left unused; doubt: what speaks against it, another
 * method. FTH_BAD_CONFIG where nothing fits. */
fth_err fth_init_from(const char *folder, const fth_model *model, uint64_t seed, bool same_words,
                      float *flat, fth_str *said, fth_str *doubt);

#endif
