#include "decode/pick.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of the vocabulary, in vectors ---- */

enum {
    LANES = 4,
    CHAINS = 4,
    STEP = LANES * CHAINS
}; /* CHAINS vectors that do not wait for each other */
typedef float floats __attribute__((vector_size(16)));
typedef int32_t ints __attribute__((vector_size(16)));

static inline floats load(const float *x) {
    floats v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline floats choose(ints mask, floats yes, floats no) {
    return (floats)((mask & (ints)yes) | (~mask & (ints)no));
}

static float largest(const float *x, int32_t n) {
    floats most[CHAINS];
    for (int c = 0; c < CHAINS; c++) most[c] = (floats){0} - INFINITY;
    int32_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (int c = 0; c < CHAINS; c++) {
            const floats v = load(x + i + c * LANES);
            most[c] = choose(v > most[c], v, most[c]);
        }
    float best = -INFINITY;
    for (int k = 0; k < STEP; k++) best = fmaxf(best, most[k / LANES][k % LANES]);
    for (; i < n; i++) best = x[i] > best ? x[i] : best;
    return best;
}

/* e^x for x <= 0 to 1e-7; below -87 it is as good as 0. */
static inline floats fast_exp(floats x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: the last bits are then a whole number */
    x = choose(x < -87.0f, (floats){0} - 87.0f, x); /* a NaN stays one */
    const floats moved = x * 1.44269504f + shift, whole = moved - shift;
    const floats r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    floats p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    return p * (floats)(((ints)moved - 0x4b400000 + 127) << 23); /* 2^whole */
}

/* Sum of e^(x - most). */
static double sum_of_exp(const float *x, int32_t n, float most) {
    enum { BLOCK = 64 * STEP }; /* summed in floats */
    double whole = 0;
    int32_t i = 0;
    while (i + STEP <= n) {
        const int32_t end = n - i < BLOCK ? n : i + BLOCK;
        floats sum[CHAINS] = {{0}};
        for (; i + STEP <= end; i += STEP)
            for (int c = 0; c < CHAINS; c++) sum[c] += fast_exp(load(x + i + c * LANES) - most);
        for (int k = 0; k < STEP; k++) whole += (double)sum[k / LANES][k % LANES];
    }
    for (; i < n; i++) whole += (double)fast_exp((floats){0} + (x[i] - most))[0];
    return whole;
}

void fth_log_softmax(const float *logits, int32_t n, double temperature, float *out) {
    const float scale = (float)(1 / temperature);
    for (int32_t i = 0; i < n; i++) out[i] = logits[i] * scale;
    const float most = largest(out, n);
    const float lse = most + (float)log(sum_of_exp(out, n, most));
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
