/* generator.h: text or recordings in, text out: lines are cut into tokens, batched by length,
 * searched, and given back in the order they came. */
#ifndef FTH_DECODE_GENERATOR_H
#define FTH_DECODE_GENERATOR_H

#include "text/tokenizer.h"
#include "decode/search.h"

/* A model with its parameters on the device; several make an ensemble. */
typedef struct fth_generator_model {
    const char *name; /* for messages */
    const fth_model *model;
    const fth_arenas *arenas;
} fth_generator_model;

typedef struct fth_generator_spec {
    fth_search_spec search;
    int32_t batch;                  /* sentences at once, at most */
    int32_t max_tokens;             /* source tokens, or rows of four frames, at once at most */
    bool strict;                    /* a source that is too long is an error instead of being cut */
    const char *input;              /* what messages call the lines' file */
    const fth_tokenizer *src, *tgt; /* the same for a joint one; src unused by dec models */
} fth_generator_spec;

typedef struct fth_generator fth_generator;

/* Models, tokenizers and the device outlive the generator. All models share a vocabulary. */
fth_err fth_generator_new(const fth_generator_model *models, int n, fth_device *dev,
                          const fth_generator_spec *spec, fth_generator **out);
void fth_generator_free(fth_generator *g);

/* One line of input. */
typedef struct fth_input {
    const char *text;    /* source; a dec model continues it */
    const fth_ids *tags; /* what stands before the source (languages), NULL: nothing; encdec */
    const char *prefix;  /* forced beginning of the output, NULL: none */
    const char
        *constraints; /* phrases of the output, in their order, with tabs between; NULL: none */
    const uint16_t *frames; /* [n_frames, features] halves: a recording in place of text */
    int64_t n_frames;
    int64_t number; /* of the line, from 0 */
    bool skip;      /* gets no hypothesis */
} fth_input;

/* What was found for a line; good until the callback returns. An empty line has no hypothesis. */
typedef struct fth_output {
    const fth_input *input;
    const int32_t *source; /* [n_source] tokens, end symbol included */
    int32_t n_source;
    const fth_hypothesis *found; /* [n_found], best first */
    int32_t n_found;
} fth_output;

typedef fth_err fth_generator_take(void *context, const fth_output *output);

/* Generates for n lines; `take` is called in their order. */
fth_err fth_generate(fth_generator *g, const fth_input *lines, int64_t n, fth_generator_take *take,
                     void *context);

/* Totals so far. */
typedef struct fth_generator_totals {
    int64_t sentences, tokens; /* generated tokens of the best hypotheses, end symbols included */
    int64_t cut;               /* sources that were too long */
    double seconds;            /* of encoder and search */
} fth_generator_totals;
fth_generator_totals fth_generator_so_far(const fth_generator *g);

#endif
