#include "decode/pick.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of the vocabulary ----
 *
 * Every step looks at all words of every hypothesis while nothing else runs, so the same vectors of 16
 * are compiled for each instruction set. Products are not fused into sums (-ffp-contract=off): the
 * numbers are the same on all of them. */

enum { LANES = 16, LOOK = 8 * LANES }; /* LOOK: words that are looked at before they are compared */
typedef float floats __attribute__((vector_size(64)));
typedef int32_t ints __attribute__((vector_size(64)));
#define inline_ static inline __attribute__((always_inline))

inline_ void load(floats *v, const float *x) {
    memcpy(v, x, sizeof *v);
}

/* *to = mask ? yes : *to */
inline_ void choose(floats *to, const ints *mask, const floats *yes) {
    *to = (floats)((*mask & (ints)*yes) | (~*mask & (ints)*to));
}

inline_ float largest(const float *x, int32_t n) {
    floats most = (floats){0} - INFINITY;
    int32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        floats v;
        load(&v, x + i);
        const ints more = v > most;
        choose(&most, &more, &v);
    }
    float best = -INFINITY;
    for (int k = 0; k < LANES; k++) best = most[k] > best ? most[k] : best;
    for (; i < n; i++) best = x[i] > best ? x[i] : best;
    return best;
}

/* e^x for x <= 0 to 1e-7, in place; below -87 it is as good as 0. */
inline_ void fast_exp(floats *v) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: the last bits are then a whole number */
    floats x = *v;
    const floats least = (floats){0} - 87.0f;
    const ints below = x < least;
    choose(&x, &below, &least); /* a NaN stays one */
    const floats moved = x * 1.44269504f + shift, whole = moved - shift;
    const floats r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    floats p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    *v = p * (floats)(((ints)moved - 0x4b400000 + 127) << 23); /* 2^whole */
}

/* Sum of e^(x - most). */
inline_ double sum_of_exp(const float *x, int32_t n, float most) {
    enum { BLOCK = 64 * LANES }; /* summed in floats */
    double whole = 0;
    int32_t i = 0;
    while (i + LANES <= n) {
        const int32_t end = n - i < BLOCK ? n : i + BLOCK;
        floats sum = {0};
        for (; i + LANES <= end; i += LANES) {
            floats v;
            load(&v, x + i);
            v -= most;
            fast_exp(&v);
            sum += v;
        }
        for (int k = 0; k < LANES; k++) whole += (double)sum[k];
    }
    for (; i < n; i++) {
        floats v = (floats){0} + (x[i] - most);
        fast_exp(&v);
        whole += (double)v[0];
    }
    return whole;
}

inline_ void log_softmax(const float *logits, int32_t n, float scale, float *out) {
    for (int32_t i = 0; i < n; i++) out[i] = logits[i] * scale;
    const float most = largest(out, n);
    const float lse = most + (float)log(sum_of_exp(out, n, most));
    for (int32_t i = 0; i < n; i++) out[i] -= lse;
}

/* From word i on in steps of LOOK: where the next words are of which one is better than `worst`; n or
 * more when there are none. */
inline_ int32_t next_better(const float *x, int32_t i, int32_t n, float worst) {
    while (i < n && !(largest(x + i, n - i < LOOK ? n - i : LOOK) > worst)) i += LOOK;
    return i;
}

#define ROWS(name, on)                                                                             \
    on static void log_softmax_##name(const float *logits, int32_t n, float scale, float *out) {   \
        log_softmax(logits, n, scale, out);                                                        \
    }                                                                                              \
    on static int32_t next_better_##name(const float *x, int32_t i, int32_t n, float worst) {      \
        return next_better(x, i, n, worst);                                                        \
    }

ROWS(plain, )
#ifdef __x86_64__
ROWS(avx2, __attribute__((target("avx2"))))
ROWS(avx512, __attribute__((target("avx512f"))))
#define CHOOSE(name, ...)                                                                          \
    (__builtin_cpu_supports("avx512f") ? name##_avx512(__VA_ARGS__)                                \
     : __builtin_cpu_supports("avx2")  ? name##_avx2(__VA_ARGS__)                                  \
                                       : name##_plain(__VA_ARGS__))
#else
#define CHOOSE(name, ...) name##_plain(__VA_ARGS__)
#endif

void fth_log_softmax(const float *logits, int32_t n, double temperature, float *out) {
    CHOOSE(log_softmax, logits, n, (float)(1 / temperature), out);
}

/* ---- picking ---- */

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
    for (int32_t at = 0; (at = CHOOSE(next_better, logp, at, n, worst)) < n; at += LOOK)
        for (int32_t i = at; i < n && i < at + LOOK; i++) {
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
