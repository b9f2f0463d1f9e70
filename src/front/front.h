/* front.h: how an input becomes the rows that the first layer reads. A front is one file of this
 * folder and a line in fronts.def; it says what is computed, gradients are the graph's affair.
 * Decoders always begin with text. */
#ifndef FTH_FRONT_FRONT_H
#define FTH_FRONT_FRONT_H

#include "graph/builder.h"

/* What a batch brings for a front. */
typedef enum fth_input_form {
    FTH_INPUT_TOKENS, /* numbers of words */
    FTH_INPUT_IMAGES, /* the patches of pictures, row by row */
    FTH_INPUT_FRAMES  /* the frames of an utterance */
} fth_input_form;

typedef struct fth_front {
    fth_input_form input;
    /* x_0 of the encoder's stack, [source rows, d]; the builder stands in the stack. drop: with the
     * dropout of config, else the caller drops. */
    fth_val (*rows)(fth_builder *b, bool drop);
    /* Numbers in a row of the batch's input; NULL: it has none. */
    int32_t (*width)(const fth_config *c);
} fth_front;

#define FRONT(id, name) extern const fth_front fth_front_##name;
#include "front/fronts.def"
#undef FRONT

const fth_front *fth_front_of(const fth_config *c);

/* Numbers in a row of the input, 0 where it is tokens. */
int32_t fth_front_width(const fth_config *c);

/* ---- what fronts, heads and decoders share (text.c) ---- */

/* Words and positions of a stack: sqrt(d) E[token] + P[position], with the dropouts
 * (doc/mathematics.md#embeddings-and-positions). */
fth_val fth_front_words(fth_builder *b, fth_stack stack, bool drop);
/* The table of positions of the stack that is being built. */
fth_val fth_front_positions(fth_builder *b);
/* Words in bands (adaptive.c): their rows, their log-probabilities from the rows of the top stack,
 * the loss. */
fth_val fth_adaptive_words(fth_builder *b, bool drop);
fth_val fth_adaptive_logits(fth_builder *b, fth_val x);
fth_loss fth_adaptive_loss(fth_builder *b, fth_val x, bool per_row);

/* Logits of words, kept: by the matrix below, or log-probabilities of words in bands. */
fth_val fth_front_logits(fth_builder *b, fth_val x);
/* The matrix that turns rows into logits of words (doc/mathematics.md#output-layer). */
fth_val fth_front_output(fth_builder *b);

#endif
