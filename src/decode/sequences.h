/* sequences.h: the log-probabilities of given tokens.
 *
 * Sequences go through the model together, a token a step, and what several have in common at their
 * beginning is computed once: a step has a row for each different beginning that is still alive. So
 * four endings of a long prompt cost the prompt and four endings. */
#ifndef FTH_DECODE_SEQUENCES_H
#define FTH_DECODE_SEQUENCES_H

#include "decode/stepper.h"

typedef struct fth_sequence {
    int32_t source;     /* encdec: which sentence of the batch it belongs to; dec: 0 */
    const int32_t *ids; /* [n] with the first symbol */
    int32_t n, from;    /* the tokens from .. n - 1 are scored; 1 <= from < n */
    int32_t number;     /* the caller's */
    double logp;        /* result: the sum of their log-probabilities, nats */
} fth_sequence;

/* What a batch takes of a stepper: rows of its largest step, cache rows, steps. */
typedef struct fth_sequences_size {
    int32_t rows, length;
    int64_t tokens; /* rows of all steps: tokens computed */
} fth_sequences_size;

/* Sorts the sequences so that those with the same beginning stand together. */
void fth_sequences_sort(fth_sequence *s, int32_t n);

/* Of sorted ones. */
fth_sequences_size fth_sequences_measure(const fth_sequence *s, int32_t n);

/* Scores sorted sequences with a stepper whose batch has begun. FTH_FAILED where logits are not
 * finite. */
fth_err fth_sequences_score(fth_stepper *stepper, int32_t vocab, fth_sequence *s, int32_t n);

#endif
