/* head.h: what is predicted from the rows of the top stack, and the loss. A head is one file of
 * this folder and a line in heads.def; it says what is computed, gradients are the graph's
 * affair. */
#ifndef FTH_HEAD_HEAD_H
#define FTH_HEAD_HEAD_H

#include "graph/builder.h"

/* What a batch brings as targets of a head. */
typedef enum fth_target_form {
    FTH_TARGET_WORDS, /* a word of every row, or none */
    FTH_TARGET_ROWS,  /* a class of every row, or none */
    FTH_TARGET_CLASS, /* a class of every sentence */
    FTH_TARGET_VALUE  /* a number of every sentence */
} fth_target_form;

/* What is wanted of it. */
typedef struct fth_head_spec {
    bool logits;      /* kept */
    bool row_nll;     /* kept, for heads with classes */
    double smoothing; /* label smoothing */
} fth_head_spec;

typedef struct fth_head_outputs {
    fth_loss loss;
    fth_val logits; /* [rows of the loss, classes]; 0 unless asked for */
} fth_head_outputs;

typedef struct fth_head {
    fth_extent rows; /* of the loss and of the logits, in an encoder */
    fth_target_form targets;
    /* x [rows of the top stack, d]; the builder stands outside of the stacks. */
    void (*build)(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_outputs *out);
} fth_head;

#define HEAD(id, name) extern const fth_head fth_head_##name;
#include "head/heads.def"
#undef HEAD

const fth_head *fth_head_of(const fth_config *c);

/* Rows of the loss and of the logits. */
fth_extent fth_head_rows(const fth_config *c);
/* The form of the targets: of pictures a row's is never a word. */
fth_target_form fth_head_targets(const fth_config *c);

/* ---- what heads share (head.c) ---- */

/* A linear map of the head: W [n, k] and b [n] under name.weight and name.bias. */
typedef struct fth_head_map {
    fth_val weight, bias;
} fth_head_map;
fth_head_map fth_head_map_at(fth_builder *b, int64_t n, int64_t k, const char *name);

/* Cross entropy of x W^T + b, with the logits where they are asked for. */
void fth_head_classify(fth_builder *b, const fth_head_spec *spec, fth_val x, fth_head_map map,
                       fth_head_outputs *out);

/* A row for every sentence: D tanh(W D(pooled) + b), pooled its first row or the mean of all. */
fth_val fth_head_sample(fth_builder *b, fth_val x);

#endif
