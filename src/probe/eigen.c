/* eigen.c: Jacobi's rotations, one pair of rows after the other, until little is left beside the
 * diagonal. */
#include "probe/eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rotates rows and columns p and q of m, and columns p and q of v, so that m[p][q] becomes 0. */
static void rotate(double *m, double *v, int32_t n, int32_t p, int32_t q) {
    double apq = m[p * n + q];
    if (apq == 0) return;
    double theta = (m[q * n + q] - m[p * n + p]) / (2 * apq);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (int32_t k = 0; k < n; k++) {
        double mp = m[k * n + p], mq = m[k * n + q], vp = v[k * n + p], vq = v[k * n + q];
        m[k * n + p] = c * mp - s * mq;
        m[k * n + q] = s * mp + c * mq;
        v[k * n + p] = c * vp - s * vq;
        v[k * n + q] = s * vp + c * vq;
    }
    for (int32_t k = 0; k < n; k++) {
        double mp = m[p * n + k], mq = m[q * n + k];
        m[p * n + k] = c * mp - s * mq;
        m[q * n + k] = s * mp + c * mq;
    }
}

/* Sum of squares beside the diagonal, and on it. */
static void weigh(const double *m, int32_t n, double *beside, double *on) {
    *beside = *on = 0;
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++) *(i == j ? on : beside) += m[i * n + j] * m[i * n + j];
}

fth_err fth_first_eigenvector(const double *matrix, int32_t n, double *vector, double *value) {
    size_t size = (size_t)n * (size_t)n;
    double *m = malloc(sizeof *m * size), *v = calloc(size, sizeof *v), beside, on;
    if (!m || !v) {
        free(m);
        free(v);
        return fth_fail(FTH_NO_MEMORY, "no memory for a matrix of %d rows", n);
    }
    memcpy(m, matrix, sizeof *m * size);
    for (int32_t i = 0; i < n; i++) v[i * n + i] = 1;
    weigh(m, n, &beside, &on);
    for (int sweep = 0; sweep < 60 && beside > 1e-30 * on; sweep++) {
        for (int32_t p = 0; p < n; p++)
            for (int32_t q = p + 1; q < n; q++) rotate(m, v, n, p, q);
        weigh(m, n, &beside, &on);
    }
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (m[i * n + i] > m[best * n + best]) best = i;
    for (int32_t i = 0; i < n; i++) vector[i] = v[i * n + best];
    *value = m[best * n + best];
    free(m);
    free(v);
    return FTH_OK;
}
