/* items.h: the things that batches are made of: sentences, or blocks of a text for a language
 * model.
 *
 * Sentence i, two sides:  source = ids eos;  target in = bos ids;  target out = ids eos.
 * Sentence i, one side:   the target alone.
 * Block i, one side: the text is one stream, an eos behind every line. Blocks of `fresh` tokens lie
 * end to end; a block is given with up to `context` tokens before it, on which there is no loss
 * (-1). The input is the stream one token earlier, an eos before its very first token. */
#ifndef FTH_DATA_ITEMS_H
#define FTH_DATA_ITEMS_H

#include <stdint.h>

#include "base/error.h"
#include "data/dataset.h"

typedef struct fth_items {
    const fth_dataset *data;
    int target;      /* the side of the target: the last one */
    int64_t n;       /* items */
    int64_t stream;  /* blocks: tokens of the stream; 0: sentences */
    int64_t fresh;   /* blocks: tokens with loss in each but the last */
    int64_t context; /* blocks: tokens before them at most */
} fth_items;

/* Sentences when block is 0; otherwise blocks of at most `block` tokens, context included. */
fth_err fth_items_init(fth_items *items, const fth_dataset *data, int64_t block, int64_t context);

/* How many rows an item has on each side. */
fth_err fth_items_rows(const fth_items *items, int64_t i, int64_t *src, int64_t *tgt);

/* Writes an item: src [rows of src], in and out [rows of tgt]. */
fth_err fth_items_fill(const fth_items *items, int64_t i, int32_t *src, int32_t *in, int32_t *out);

#endif
