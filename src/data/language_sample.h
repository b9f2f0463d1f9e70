/* language_sample.h: the text that a vocabulary of many languages is made of, drawn by temperature.
 *
 * Language l has a share of B_l^(1/T) / sum_k B_k^(1/T) of the bytes, B_l being those of its
 * training files, each counted once. What has less than its share is repeated: its lines come
 * floor(r) or floor(r) + 1 times, as often as makes r on average, by a number drawn for the
 * line. */
#ifndef FTH_DATA_LANGUAGE_SAMPLE_H
#define FTH_DATA_LANGUAGE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/languages.h"
#include "data/records.h"
#include "data/sample.h"

/* Zeroed: empty, may be freed. */
typedef struct fth_language_sample {
    fth_sample *of;         /* [n] by language */
    double *wanted;         /* [n] bytes of text */
    int64_t *bytes, *lines; /* [n] of the training files */
    int32_t n;
    int64_t cut; /* lines that were cut, as fth_sample_add_cut counts them */
    /* where fth_language_sample_next stands */
    int32_t at;
    uint64_t line;
    int64_t copies; /* of the newest line, still to come */
    const char *text;
    size_t length;
} fth_language_sample;

/* Reads the training files: `budget` bytes of text at most, words of at most `longest`
 * characters. */
fth_err fth_language_sample_read(fth_language_sample *s, const fth_languages *languages,
                                 const fth_text_spec *text, uint64_t budget, size_t longest);

/* The lines, one after the other; state is the fth_language_sample. An fth_text_next of
 * tokenizer.h. */
fth_err fth_language_sample_next(void *state, const char **text, size_t *length);
void fth_language_sample_fini(fth_language_sample *s);

#endif
