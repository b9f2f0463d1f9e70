/* top_words.h: one row of numbers, one for each word of a vocabulary. Generation looks at all of
 * them in every step, so the same vectors are compiled for each instruction set; the results have
 * the same bits on all of them. */
#ifndef FTH_BACKEND_TOP_WORDS_H
#define FTH_BACKEND_TOP_WORDS_H

#include <stdint.h>

/* log of the sum of e^x[i]; -inf when all are -inf. */
float fth_row_lse(const float *x, int32_t n);

/* The k largest, best first, equal ones by their index: values and indices [k]. -inf and NaN are
 * left out. Returns how many. */
int32_t fth_row_best(const float *x, int32_t n, int32_t k, float *best, int32_t *index);

/* out[i] = log of the mean over k of e^x[k][i], of `count` rows. out is none of them. The bits of a
 * number do not depend on where it stands. */
void fth_row_mix(const float *const *x, int count, int32_t n, float *out);

#endif
