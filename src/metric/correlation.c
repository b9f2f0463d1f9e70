/* correlation.c: Pearson's r of the numbers, and Spearman's rho as the r of their ranks, ties
 * sharing the mean rank. */
#include "metric/correlation.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "text/unicode.h"

static fth_err read_number(fth_text line, const char *name, size_t number, double *out) {
    char text[64];
    const fth_text t = fth_strip(line);
    if (t.length < sizeof text) {
        memcpy(text, t.text, t.length);
        text[t.length] = 0;
        if (strlen(text) == t.length && fth_parse_number(text, out)) return FTH_OK;
    }
    return fth_fail(FTH_BAD_INPUT, "%s:%zu: \"%.*s\" must be a number", name, number,
                    (int)(t.length < 60 ? t.length : 60), t.text);
}

static fth_err read_column(const fth_text *line, size_t n, const char *name, double *out) {
    for (size_t i = 0; i < n; i++) FTH_TRY(read_number(line[i], name, i + 1, &out[i]));
    return FTH_OK;
}

typedef struct placed {
    double value;
    size_t line;
} placed;

static int by_value(const void *a, const void *b) {
    const double x = ((const placed *)a)->value, y = ((const placed *)b)->value;
    return (x > y) - (x < y);
}

/* Numbers become their ranks from 1; equal ones get the mean of theirs. */
static fth_err rank(double *x, size_t n) {
    placed *order = malloc((n + 1) * sizeof *order);
    if (!order) return fth_fail(FTH_NO_MEMORY, "no memory for the ranks of %zu numbers", n);
    for (size_t i = 0; i < n; i++) order[i] = (placed){x[i], i};
    qsort(order, n, sizeof *order, by_value);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && order[end].value == order[i].value;) end++;
        for (size_t k = i; k < end; k++) x[order[k].line] = ((double)(i + end) + 1) / 2;
    }
    free(order);
    return FTH_OK;
}

/* Takes the mean away and divides by the largest number that is left, so that no square is too
 * large or too small. Returns false where all numbers are equal. */
static bool centre(double *x, size_t n) {
    long double sum = 0;
    double largest = 0;
    bool constant = true;
    for (size_t i = 0; i < n; i++) {
        constant = constant && x[i] == x[0];
        sum += (long double)x[i] / (long double)n;
    }
    if (constant) return false;
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)((long double)x[i] - sum);
        largest = fmax(largest, fabs(x[i]));
    }
    for (size_t i = 0; i < n; i++) x[i] /= largest;
    return largest > 0;
}

/* <x, y> / (|x| |y|) of centred columns */
static double pearson(double *x, double *y, size_t n) {
    long double xy = 0, xx = 0, yy = 0;
    if (n < 2) return (double)NAN;
    const bool varies = centre(x, n);
    if (!centre(y, n) || !varies) return (double)NAN;
    for (size_t i = 0; i < n; i++) {
        xy += (long double)x[i] * y[i];
        xx += (long double)x[i] * x[i];
        yy += (long double)y[i] * y[i];
    }
    return fmin(1, fmax(-1, (double)(xy / sqrtl(xx * yy))));
}

fth_err fth_correlation_corpus(const fth_text_pairs *c, fth_correlation kind,
                               const char *const names[2], double *out) {
    double *ref = malloc((2 * c->n + 1) * sizeof *ref), *hyp = ref ? ref + c->n : NULL;
    if (!ref) return fth_fail(FTH_NO_MEMORY, "no memory for %zu numbers", 2 * c->n);
    fth_err err = read_column(c->ref[0], c->n, names[0], ref);
    if (err == FTH_OK) err = read_column(c->hyp, c->n, names[1], hyp);
    if (err == FTH_OK && kind == FTH_SPEARMAN) err = rank(ref, c->n);
    if (err == FTH_OK && kind == FTH_SPEARMAN) err = rank(hyp, c->n);
    if (err == FTH_OK) *out = pearson(ref, hyp, c->n);
    free(ref);
    return err;
}
