/* search.h: beam search and sampling over one batch of sources. */
#ifndef FTH_DECODE_SEARCH_H
#define FTH_DECODE_SEARCH_H

#include "decode/stepper.h"

typedef struct fth_search_spec {
    int32_t beam;     /* hypotheses kept; sampling: samples drawn */
    double lenpen;    /* score = sum of log-probabilities / length^lenpen, end symbol counted */
    double unkpen;    /* taken off the log-probability of the unknown word */
    double max_len_a; /* at most a * source length + b tokens */
    int64_t max_len_b;
    int64_t min_len;         /* tokens before the end symbol at least */
    int32_t no_repeat_ngram; /* no n-gram of this size twice; 0: off */
    /* Diverse beam search (Vijayakumar et al. 2018): so many parts of the beam, searched one after
     * the other; a word that an earlier part has chosen in the same step costs `diversity`. 0 and
     * 1: one part. */
    int32_t groups;
    double diversity;
    bool sampling;
    int32_t topk;       /* draw from the k likeliest; 0: all */
    double topp;        /* draw from the likeliest that together have this probability; 0: all */
    double temperature; /* divides the logits */
    uint64_t seed;
    bool constrained; /* batches have constraints */
    int32_t bos, pad, eos, unk;
    int32_t first; /* what the decoder reads first */
    int32_t max_positions;
} fth_search_spec;

/* The sources of a batch. */
typedef struct fth_search_batch {
    int32_t n_sent;
    const int32_t *offsets, *ids; /* as fth_stepper_begin takes them; or, ids NULL, rows of */
    const float *frames;          /* frames, as fth_stepper_begin_frames */
    const int32_t *masked;
    const int32_t *prefix_offsets; /* [n_sent + 1] forced first tokens, NULL: none */
    const int32_t *prefix_ids;
    const int32_t *constraint_offsets; /* [n_sent + 1] what each output must have (constraints.h),
                                          NULL: nothing */
    const int32_t *constraint_ids;
    const int64_t *number; /* [n_sent] of the sentence in the input: sampling draws by it */
} fth_search_batch;

typedef struct fth_hypothesis {
    int32_t n;       /* tokens, end symbol included unless the length ran out */
    int32_t *tokens; /* [n] */
    float *logp;     /* [n] log-probability of each */
    double sum;      /* of logp */
    double score;    /* normalised */
    int32_t met;     /* tokens of its constraint; those that have more come first */
} fth_hypothesis;

/* The finished hypotheses of each sentence, best first. */
typedef struct fth_search_result {
    fth_arena arena;
    int32_t n_sent;
    int32_t *count;         /* [n_sent] */
    fth_hypothesis **found; /* [n_sent][count] */
    int64_t tokens;         /* generated, end symbols included */
} fth_search_result;

/* Words of a row that the device should choose for such a search (fth_stepper_spec.top): twice the
 * beam, and as many more as the rules can strike out; of several models another beam. 0 where
 * all words are needed: samples, a bonus for the unknown word; or where that is more than a device
 * chooses. */
int32_t fth_search_top(const fth_search_spec *spec, int n_steppers, int32_t vocab);

/* Searches with one model, or with the mean of the probabilities of several. Each stepper holds
 * beam * n_sent rows, and all choose as many words. Where a device has chosen too few words for a
 * row, that row is looked at whole: what is found does not depend on it. */
fth_err fth_search(fth_stepper *const *steppers, int n_steppers, int32_t vocab,
                   const fth_search_spec *spec, const fth_search_batch *batch,
                   fth_search_result *out);
void fth_search_result_fini(fth_search_result *r);

/* Most tokens for a source of so many. */
int32_t fth_search_max_len(const fth_search_spec *spec, int32_t source_length);

#endif
