/* top_words.c: sum of exponentials and the k largest of a row, in vectors of one width whatever the
 * machine has, so that the bits agree. */
#include "backend/top_words.h"

#include <math.h>
#include <string.h>

/* Vectors of 16. Products are not fused into sums (-ffp-contract=off): the numbers are the same on
 * all instruction sets. */

enum {
    LANES = 16,
    LOOK = 8 * LANES
}; /* LOOK: numbers that are looked at before they are compared */
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

inline_ float lse(const float *x, int32_t n) {
    const float most = largest(x, n);
    return most == -INFINITY ? most : most + (float)log(sum_of_exp(x, n, most));
}

/* log of x >= 1, in place: the exponent's, and a polynomial of what is left, between sqrt(1/2) and
 * sqrt(2). */
inline_ void fast_log(floats *v) {
    const ints bits = (ints)*v;
    floats m = (floats)((bits & 0x7fffff) | 0x3f800000); /* [1, 2) */
    ints e = (bits >> 23) - 127;
    const ints high = m > 1.41421356f;
    const floats half = m * 0.5f;
    choose(&m, &high, &half);
    e -= high; /* -1 where it is so */
    const floats r = m - 1, whole = __builtin_convertvector(e, floats);
    floats p = r * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * r + 1.1676998740e-1f;
    p = p * r - 1.2420140846e-1f;
    p = p * r + 1.4249322787e-1f;
    p = p * r - 1.6668057665e-1f;
    p = p * r + 2.0000714765e-1f;
    p = p * r - 2.4999993993e-1f;
    p = p * r + 3.3333331174e-1f;
    p = p * r * r * r - whole * 2.12194440e-4f - r * r * 0.5f;
    *v = r + p + whole * 0.693359375f;
}

/* LANES columns: the largest, and the logarithm of the others beside it. */
inline_ void mix_lanes(const float *const *x, int count, int32_t i, floats *out) {
    floats most, v, sum = {0};
    load(&most, x[0] + i);
    for (int k = 1; k < count; k++) {
        load(&v, x[k] + i);
        const ints more = v > most;
        choose(&most, &more, &v);
    }
    for (int k = 0; k < count; k++) {
        load(&v, x[k] + i);
        v -= most;
        fast_exp(&v);
        sum += v;
    }
    fast_log(&sum);
    *out = most + sum;
}

inline_ void mix(const float *const *x, int count, int32_t n, float *out) {
    const float less = (float)log(count);
    int32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        floats v;
        mix_lanes(x, count, i, &v);
        v -= less;
        memcpy(out + i, &v, sizeof v);
    }
    if (i == n) return;
    /* the last ones with others beside them, so that their bits are the same */
    float rest[count * LANES];
    const float *row[count];
    memset(rest, 0, sizeof rest);
    memset(row, 0, sizeof row);
    for (int k = 0; k < count; k++) {
        memcpy(rest + k * LANES, x[k] + i, sizeof *rest * (size_t)(n - i));
        row[k] = rest + k * LANES;
    }
    floats v;
    mix_lanes(row, count, 0, &v);
    v -= less;
    memcpy(out + i, &v, sizeof *out * (size_t)(n - i));
}

/* From i on in steps of LOOK: where the next numbers are of which one is better than `worst`; n or
 * more when there are none. */
inline_ int32_t next_better(const float *x, int32_t i, int32_t n, float worst) {
    while (i < n && !(largest(x + i, n - i < LOOK ? n - i : LOOK) > worst)) i += LOOK;
    return i;
}

#define ROWS(name, on)                                                                             \
    on static float lse_##name(const float *x, int32_t n) {                                        \
        return lse(x, n);                                                                          \
    }                                                                                              \
    on static void mix_##name(const float *const *x, int count, int32_t n, float *out) {           \
        mix(x, count, n, out);                                                                     \
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

float fth_row_lse(const float *x, int32_t n) {
    return CHOOSE(lse, x, n);
}

void fth_row_mix(const float *const *x, int count, int32_t n, float *out) {
    CHOOSE(mix, x, count, n, out);
}

int32_t fth_row_best(const float *x, int32_t n, int32_t k, float *best, int32_t *index) {
    int32_t count = 0;
    float worst = -INFINITY;
    for (int32_t at = 0; (at = CHOOSE(next_better, x, at, n, worst)) < n; at += LOOK)
        for (int32_t i = at; i < n && i < at + LOOK; i++) {
            if (!(x[i] > worst)) continue;
            int32_t to = count < k ? count++ : k - 1;
            for (; to > 0 && best[to - 1] < x[i]; to--) {
                best[to] = best[to - 1];
                index[to] = index[to - 1];
            }
            best[to] = x[i];
            index[to] = i;
            if (count == k) worst = best[k - 1];
        }
    return count;
}
