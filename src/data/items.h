/* items.h: the things that batches are made of: sentences, blocks of a text, pictures, recordings.
 *
 * Sentence i, two sides:  source = ids eos;  target in = bos ids;  target out = ids eos.
 * Sentence i, one side:   the target alone.
 * Block i, one side: the text is one stream, an eos after every line. Blocks of `fresh` tokens lie
 * end to end; a block is given with up to `context` tokens before it, on which there is no loss
 * (-1). The input is the stream one token earlier, an eos before its very first token.
 *
 * Recording i: a source row for every four of its frames, and the target of its sentence.
 *
 * An encoder's items have a source alone: Sentence i: bos ids eos. Block i: bos, then its part of
 * the stream. Picture i: its patches, the class token's row before them. With masking, what is to
 * be guessed stands in `src_out`, -1 elsewhere; with places the class of each patch, or of
 * each word at its first token. */
#ifndef FTH_DATA_ITEMS_H
#define FTH_DATA_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/masking.h"
#include "data/mixup.h"
#include "data/spec_augment.h"

/* What items are made of a split. */
typedef struct fth_item_spec {
    int64_t block;   /* > 0: blocks of at most so many tokens, context included */
    int64_t context; /* of them, tokens that are only read; not for encoders */
    bool encoder;
    const fth_masking *masking; /* an encoder's text; NULL: nothing is masked */
    /* Pictures: */
    const fth_augment *augment; /* NULL: as they are */
    fth_mixup mixup;            /* a 0: none */
    bool class_token;
    double masked; /* share of the patches; 0: none */
    uint64_t seed; /* chooses them */
    bool places;   /* classes of patches, or of words' first tokens, are targets, from the data */
    const fth_spec_augment *spec_augment; /* recordings; NULL: as they are */
} fth_item_spec;

typedef struct fth_items {
    const fth_dataset *data;
    fth_item_spec spec;
    int target;     /* the side of the target: the last one */
    int64_t n;      /* items */
    int64_t stream; /* blocks: tokens of the stream; 0: sentences */
    int64_t fresh;  /* blocks: tokens with loss in each but the last */
    float *picture; /* [3, channels, height, width] room to change one and mix it with another */
    uint8_t *map;   /* [height, width] likewise */
} fth_items;

/* Where an item is written. What it does not have may be NULL. */
typedef struct fth_item_rows {
    int32_t *src;      /* [rows of src] ids; of pictures nothing */
    int32_t *src_out;  /* [rows of src] an encoder's targets */
    int32_t *in, *out; /* [rows of tgt] */
    float *numbers;    /* [patches, numbers of a patch], or rows of frames */
    int32_t *masked;   /* [patches], or rows of frames: 1 without its odd step */
    int32_t *label;    /* one class */
    float *value;      /* or one number */
} fth_item_rows;

fth_err fth_items_init(fth_items *items, const fth_dataset *data, const fth_item_spec *spec);
void fth_items_fini(fth_items *items);

/* How many rows an item has on each side. */
fth_err fth_items_rows(const fth_items *items, int64_t i, int64_t *src, int64_t *tgt);

/* Numbers of a patch or of a row of frames, 0 where items are text. */
int32_t fth_items_width(const fth_items *items);

/* Writes an item as it is in an epoch. */
fth_err fth_items_fill(const fth_items *items, int64_t i, int64_t epoch, const fth_item_rows *to);

#endif
