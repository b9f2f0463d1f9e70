/* linear_int8.c: linear maps with weights of 8 bits. Reads n k bytes of weights once; 2 m n k
 * integer operations. Few rows: bound by the memory; many: by the units. */
#include "backend/cpu/product/linear_int8.h"

/* Scratch: every thread's sums, then the rows in 8 bits and their scales. */
typedef struct areas {
    int32_t *sums; /* [FTH_INT8_ROWS][FTH_INT8_COLUMNS] of this thread */
    uint8_t *x;    /* [max(rows, threads)][ldx] */
    float *scale;  /* [max(rows, threads)] */
    int64_t ldx;
} areas;

enum { SUMS = FTH_INT8_ROWS * FTH_INT8_COLUMNS };

/* Whole lines: also enough for the paths that fill up groups. */
static int64_t row_bytes(int64_t k) {
    return (k + 63) / 64 * 64;
}

int64_t FTH_NAME(linear_int8_bytes)(const fth_device *dev, int64_t rows_, int64_t k) {
    const int64_t most = rows_ > dev->threads ? rows_ : dev->threads;
    return dev->threads * SUMS * (int64_t)sizeof(int32_t) +
           most * (row_bytes(k) + (int64_t)sizeof(float));
}

static areas areas_of(const fth_exec *ex, const fth_team *team, int64_t m, int64_t k) {
    int32_t *sums = ex->scratch;
    const int64_t most = m > team->n_threads ? m : team->n_threads, ldx = row_bytes(k);
    uint8_t *x = (uint8_t *)(sums + (int64_t)team->n_threads * SUMS);
    return (areas){sums + (int64_t)team->thread * SUMS, x, (float *)(void *)(x + most * ldx), ldx};
}

/* A row in 8 bits; returns its scale. One that is not finite gives a scale that is not either. */
static float quantize_row(const real *restrict_ x, int64_t k, int bias, uint8_t *restrict_ to,
                          int64_t padded) {
    int32_t top = 0; /* sizes of floats are ordered like their bits; those of NaN are the largest */
#pragma omp simd reduction(max : top)
    for (int64_t l = 0; l < k; l++) {
        const float size = fabsf(from_real(x[l]));
        int32_t bits;
        memcpy(&bits, &size, sizeof bits);
        top = bits > top ? bits : top;
    }
    float most;
    memcpy(&most, &top, sizeof most);
    const bool usable = most > 0 && most < INFINITY && 127 / most < INFINITY;
    const float inverse = usable ? 127 / most : 0;
    if (usable) {
#pragma omp simd
        for (int64_t l = 0; l < k; l++)
            to[l] = (uint8_t)((int)rintf(from_real(x[l]) * inverse) + bias);
    } else {
        memset(to, bias, (size_t)k);
    }
    for (int64_t l = k; l < padded; l++) to[l] = (uint8_t)bias;
    return most / 127;
}

/* Sums of a block of rows and a panel become rows of y. */
static void finish_panel(const gemm *g, const fth_int8 *w, const areas *s, bool biased, int64_t row,
                         int64_t n_rows, int64_t j) {
    const int64_t n = g->n - j < FTH_INT8_COLUMNS ? g->n - j : FTH_INT8_COLUMNS;
    const float *by_column = w->scale + j;
    const int32_t *offset = w->offset + j;
    for (int64_t i = 0; i < n_rows; i++) {
        const float by_row = s->scale[row + i];
        const int32_t *sums = s->sums + i * FTH_INT8_COLUMNS;
        float acc[FTH_INT8_COLUMNS];
#pragma omp simd
        for (int64_t c = 0; c < FTH_INT8_COLUMNS; c++)
            acc[c] = (float)(sums[c] - (biased ? offset[c] : 0)) * (by_row * by_column[c]);
        FTH_NAME(gemm_finish_row)(g, row + i, j, n, 0, acc);
    }
}

void FTH_NAME(linear_int8)(const fth_exec *ex, const gemm *g, const fth_int8 *w,
                           const fth_team *team) {
    const fth_int8_path *path = ((const fth_cpu_packed *)ex->own)->path;
    areas s = areas_of(ex, team, g->m, g->k);
    const int64_t padded = w->groups * FTH_INT8_DEPTH;
    const int bias = path->biased ? 128 : 0;
    if (g->m == 0) return;
    if (g->m == 1) { /* sooner done by every thread than waited for */
        s.x += team->thread * s.ldx;
        s.scale += team->thread;
        s.scale[0] = quantize_row(g->a.data, g->k, bias, s.x, padded);
    } else {
        const fth_cpu_share mine = fth_team_share(team, g->m, 1);
        for (int64_t i = mine.begin; i < mine.end; i++)
            s.scale[i] = quantize_row(g->a.data + i * g->a.ld, g->k, bias, s.x + i * s.ldx, padded);
        fth_team_wait(team);
    }
    const fth_cpu_share panels = fth_team_share(team, fth_int8_panels(g->n), 1);
    for (int64_t p = panels.begin; p < panels.end; p++) {
        const int8_t *panel = w->packed + p * padded * FTH_INT8_COLUMNS;
        for (int64_t i = 0; i < g->m; i += FTH_INT8_ROWS) {
            const int64_t n_rows = g->m - i < FTH_INT8_ROWS ? g->m - i : FTH_INT8_ROWS;
            path->product(n_rows, s.x + i * s.ldx, s.ldx, panel, w->groups, s.sums);
            finish_panel(g, w, &s, path->biased, i, n_rows, p * FTH_INT8_COLUMNS);
        }
    }
}
