/* search_limits.c: how long outputs may be, and how many words of a row a device should choose. */
#include <math.h>

#include "decode/search.h"

int32_t fth_search_max_len(const fth_search_spec *spec, int32_t source_length) {
    double most = floor(spec->max_len_a * source_length + (double)spec->max_len_b);
    double limit = spec->max_positions - 1;
    return (int32_t)fmax(1, fmin(most, limit));
}

int32_t fth_search_top(const fth_search_spec *spec, int n_steppers, int32_t vocab) {
    const int32_t struck = 4; /* begin, pad, end, unknown word */
    const int32_t k = 2 * spec->beam + struck;
    const bool all = spec->sampling || spec->unkpen < 0 || spec->constrained;
    if (all || k > FTH_TOP_MOST || vocab > FTH_TOP_VOCAB) return 0;
    if (n_steppers == 1) return k;
    const int32_t more = k + spec->beam; /* the longer the lists, the lower their bound */
    return more < FTH_TOP_MOST ? more : FTH_TOP_MOST;
}
