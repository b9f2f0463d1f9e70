#include "decode/pick.h"

#include <math.h>
#include <stdlib.h>

void fth_log_softmax(const float *logits, int32_t n, double temperature, float *out) {
    float scale = (float)(1 / temperature), most = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        out[i] = logits[i] * scale;
        if (out[i] > most) most = out[i];
    }
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)expf(out[i] - most);
    float lse = most + (float)log(sum);
    for (int32_t i = 0; i < n; i++) out[i] -= lse;
}

/* Keeps out[0 .. *count) sorted, best first, while candidates come in order of their token. */
static void insert(fth_candidate *out, int32_t *count, int32_t wanted, fth_candidate c) {
    int32_t at = *count < wanted ? (*count)++ : wanted - 1;
    while (at > 0 && out[at - 1].logp < c.logp) {
        out[at] = out[at - 1];
        at--;
    }
    out[at] = c;
}

int32_t fth_pick_best(const float *logp, int32_t n, int32_t wanted, double sum, int32_t from,
                      fth_candidate *out) {
    int32_t count = 0;
    float worst = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (!(logp[i] > worst)) continue;
        fth_candidate c = {.sum = sum + logp[i], .logp = logp[i], .from = from, .token = i};
        insert(out, &count, wanted, c);
        if (count == wanted) worst = out[wanted - 1].logp;
    }
    return count;
}

static int by_sum(const void *a, const void *b) {
    const fth_candidate *x = a, *y = b;
    if (x->sum != y->sum) return x->sum < y->sum ? 1 : -1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

int32_t fth_sort_candidates(fth_candidate *c, int32_t n, int32_t most) {
    qsort(c, (size_t)n, sizeof *c, by_sum);
    return n < most ? n : most;
}

int32_t fth_pick_random(const float *logp, int32_t n, int32_t topk, double topp, double u,
                        fth_candidate *scratch) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++)
        if (logp[i] > -INFINITY) scratch[count++] = (fth_candidate){.sum = logp[i], .token = i};
    count = fth_sort_candidates(scratch, count, topk > 0 ? topk : count);
    double total = 0, mass = 0;
    for (int32_t i = 0; i < count; i++) {
        total += exp(scratch[i].sum);
        if (topp > 0 && total >= topp) count = i + 1;
    }
    for (int32_t i = 0; i < count; i++) {
        mass += exp(scratch[i].sum);
        if (u * total < mass) return scratch[i].token;
    }
    return scratch[count - 1].token;
}
