/* pick.c: log-softmax of a row, its best words, and a draw by temperature, top-k and top-p from a
 * counted random number. */
#include "decode/pick.h"

#include <math.h>
#include <stdlib.h>

#include "backend/top_words.h"

bool fth_log_softmax(const float *logits, int32_t n, double temperature, float *out) {
    /* below that only the best words have a probability, and the others keep their order */
    const float scale = (float)(1 / fmax(temperature, 1e-30));
    float most = 0;
    int32_t at;
    /* less the largest, which a low temperature would make infinite */
    if (temperature != 1) fth_row_best(logits, n, 1, &most, &at);
    for (int32_t i = 0; i < n; i++) out[i] = (logits[i] - most) * scale;
    const float lse = fth_row_lse(out, n);
    for (int32_t i = 0; i < n; i++) out[i] -= lse;
    return isfinite(lse);
}

int32_t fth_pick_best(const float *logp, int32_t n, int32_t wanted, double sum, int32_t from,
                      fth_candidate *out) {
    float best[wanted];
    int32_t token[wanted];
    const int32_t count = fth_row_best(logp, n, wanted, best, token);
    for (int32_t i = 0; i < count; i++)
        out[i] =
            (fth_candidate){.sum = sum + best[i], .logp = best[i], .from = from, .token = token[i]};
    return count;
}

static int by_sum(const void *a, const void *b) {
    const fth_candidate *x = a, *y = b;
    if (x->sum != y->sum) return x->sum < y->sum ? 1 : -1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

int32_t fth_sort_candidates(fth_candidate *c, int32_t n, int32_t most) {
    enum { FEW = 512 }; /* so many are put where they belong one by one */
    if (n <= most || most > FEW) {
        qsort(c, (size_t)n, sizeof *c, by_sum);
        return n < most ? n : most;
    }
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        const fth_candidate it = c[i];
        if (count == most && by_sum(&c[most - 1], &it) < 0) continue;
        int32_t to = count < most ? count++ : most - 1;
        for (; to > 0 && by_sum(&c[to - 1], &it) > 0; to--) c[to] = c[to - 1];
        c[to] = it;
    }
    return count;
}

int32_t fth_pick_random(const float *logp, int32_t n, int32_t topk, double topp, double u,
                        fth_candidate *scratch) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++)
        if (logp[i] > -INFINITY) scratch[count++] = (fth_candidate){.sum = logp[i], .token = i};
    count = fth_sort_candidates(scratch, count, topk > 0 ? topk : count);
    if (count == 0) return -1;
    /* less the best one, whose own probability may be 0 as a float: rules strike words out */
    const double best = scratch[0].sum;
    double total = 0, mass = 0;
    for (int32_t i = 0; i < count; i++) {
        total += exp(scratch[i].sum - best);
        if (topp > 0 && total * exp(best) >= topp) count = i + 1;
    }
    for (int32_t i = 0; i < count; i++) {
        mass += exp(scratch[i].sum - best);
        if (u * total < mass) return scratch[i].token;
    }
    return scratch[count - 1].token;
}
