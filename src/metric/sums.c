/* sums.c: bootstrap resampling: scores of lines drawn with replacement give an interval (Koehn,
 * 2004), and paired ones a p-value. Randomisation: a p-value from lines that are exchanged. */
#include "metric/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

void fth_sum_rows(const double *rows, size_t n, size_t width, double *sums) {
    memset(sums, 0, width * sizeof *sums);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++) sums[k] += rows[i * width + k];
}

/* How often each line is drawn in one resample. */
static void draw(fth_rng *rng, size_t n, uint32_t *times /* [n] */) {
    memset(times, 0, n * sizeof *times);
    for (size_t i = 0; i < n; i++) times[fth_rng_below(rng, n)]++;
}

static void weighted_sums(const double *rows, const uint32_t *times, size_t n, size_t width,
                          double *sums) {
    memset(sums, 0, width * sizeof *sums);
    for (size_t i = 0; i < n; i++) {
        if (!times[i]) continue;
        for (size_t k = 0; k < width; k++) sums[k] += times[i] * rows[i * width + k];
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum / (double)n;
}

/* The share of resamples whose difference, centred, exceeds the one measured. */
static double paired_p(const double *base, const double *other, size_t n, double difference) {
    double mean = 0;
    size_t larger = 0;
    for (size_t i = 0; i < n; i++) mean += fabs(other[i] - base[i]) / (double)n;
    for (size_t i = 0; i < n; i++) larger += fabs(other[i] - base[i]) - mean > difference;
    return (double)(larger + 1) / (double)(n + 1);
}

static void interval(double *scores, size_t n, fth_resampled *out) {
    size_t cut = n / 40; /* 2.5 % at each end */
    qsort(scores, n, sizeof *scores, by_value);
    out->mean = mean_of(scores, n);
    out->half_width = 0.5 * (scores[n - cut - 1] - scores[cut]);
}

static double whole_score(const fth_resampling *r, const double *rows, double *sums) {
    fth_sum_rows(rows, r->n, r->width, sums);
    return r->score(sums, r->context);
}

fth_err fth_bootstrap(const fth_resampling *r, const double *const *rows, size_t n_systems,
                      fth_resampled *out) {
    fth_err err = FTH_OK;
    fth_rng rng;
    size_t n = r->resamples;
    uint32_t *times = malloc(r->n * sizeof *times);
    double *sums = malloc(r->width * sizeof *sums);
    double *scores = malloc(n_systems * n * sizeof *scores); /* [n_systems][n] */
    if (!times || !sums || !scores) {
        err = fth_fail(FTH_NO_MEMORY, "no memory for %zu resamples of %zu lines", n, r->n);
        goto done;
    }
    fth_rng_init(&rng, r->seed, 0);
    for (size_t i = 0; i < n; i++) {
        draw(&rng, r->n, times);
        for (size_t s = 0; s < n_systems; s++) {
            weighted_sums(rows[s], times, r->n, r->width, sums);
            scores[s * n + i] = r->score(sums, r->context);
        }
    }
    double base = whole_score(r, rows[0], sums);
    for (size_t s = n_systems; s-- > 0;) { /* system 0 last: sorting spoils the pairs */
        double difference = fabs(base - whole_score(r, rows[s], sums));
        out[s].p_value = s ? paired_p(scores, scores + s * n, n, difference) : 1;
        interval(scores + s * n, n, &out[s]);
    }
done:
    free(times);
    free(sums);
    free(scores);
    return err;
}

/* The difference of the scores of two systems after each line was exchanged or not. */
static double exchanged(const fth_resampling *r, const double *a, const double *b, fth_rng *rng,
                        double *sums /* [2 * width] */) {
    double *sum_a = sums, *sum_b = sums + r->width;
    uint64_t coins = 0;
    memset(sums, 0, 2 * r->width * sizeof *sums);
    for (size_t i = 0; i < r->n; i++, coins >>= 1) {
        if (i % 32 == 0) coins = fth_rng_below(rng, (uint64_t)1 << 32);
        const double *row_a = (coins & 1 ? b : a) + i * r->width;
        const double *row_b = (coins & 1 ? a : b) + i * r->width;
        for (size_t k = 0; k < r->width; k++) {
            sum_a[k] += row_a[k];
            sum_b[k] += row_b[k];
        }
    }
    return fabs(r->score(sum_a, r->context) - r->score(sum_b, r->context));
}

fth_err fth_randomization(const fth_resampling *r, const double *const *rows, size_t n_systems,
                          double *p) {
    double *sums = malloc(2 * r->width * sizeof *sums);
    if (!sums) return fth_fail(FTH_NO_MEMORY, "no memory for sums of %zu counts", r->width);
    const double base = whole_score(r, rows[0], sums);
    p[0] = 1;
    for (size_t s = 1; s < n_systems; s++) {
        const double difference = fabs(base - whole_score(r, rows[s], sums));
        size_t as_large = 0;
        fth_rng rng;
        fth_rng_init(&rng, r->seed, 1); /* stream 0 is the bootstrap's */
        for (size_t i = 0; i < r->resamples; i++)
            as_large += exchanged(r, rows[0], rows[s], &rng, sums) >= difference;
        p[s] = (double)(as_large + 1) / (double)(r->resamples + 1);
    }
    free(sums);
    return FTH_OK;
}
