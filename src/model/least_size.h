/* least_size.h: what a model takes at least, from its configuration alone: said before anything is
 * built, which takes half a minute and gigabytes with a hundred thousand layers. */
#ifndef FTH_MODEL_LEAST_SIZE_H
#define FTH_MODEL_LEAST_SIZE_H

#include "base/config.h"

/* Numbers in the matrices of layers and embeddings; biases, norms and what methods add come on
 * top. */
int64_t fth_least_parameters(const fth_config *c);

/* Numbers for each row of a batch that the forward pass must leave for the backward, where nothing
 * is made again: queries, keys, values and output of every attention, and the inner layer. */
int64_t fth_least_kept(const fth_config *c);

/* Bytes of the host's memory for the operations of a training: their description, their plan, those
 * of validation. */
int64_t fth_least_description(const fth_config *c);

/* FTH_NO_MEMORY where so many bytes for each parameter, and `more`, are not free; `where` names the
 * memory. */
fth_err fth_least_size_check(const fth_config *c, int64_t bytes_each, double more,
                             int64_t free_bytes, const char *where);

#endif
