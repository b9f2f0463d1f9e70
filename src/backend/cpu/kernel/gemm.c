#include "backend/cpu/kernel/gemm.h"

#include "backend/cpu/kernel/gemm_fma.h"
#include "backend/cpu/kernel/math.h"

enum {
    SLAB_BYTES = 8 << 20,   /* of packed B that the team shares at a time */
    BLOCK_COLUMNS = 8 * NR, /* of B that stay in the second-level cache */
    BLOCK_ROWS = 16 * MR    /* of A that meet them, where C needs a place in between */
};

/* Columns of a slab: as many whole panels as fit. */
static int64_t slab_columns(int64_t n, int64_t k) {
    const int64_t most = SLAB_BYTES / (int64_t)sizeof(float) / (k > 0 ? k : 1) / NR * NR;
    const int64_t all = (n + NR - 1) / NR * NR;
    return most < NR ? NR : most < all ? most : all;
}

int64_t FTH_NAME(gemm_shared_bytes)(int64_t n, int64_t k) {
    const int64_t all = (n + NR - 1) / NR * NR * k, panel = NR * k;
    const int64_t most = SLAB_BYTES / (int64_t)sizeof(float);
    const int64_t floats = all < most ? all : panel > most ? panel : most;
    return whole_lines(floats) * (int64_t)sizeof(float);
}

enum {
    A_FLOATS = (MR * A_STRIDE + 15) / 16 * 16,
    C_FLOATS = (BLOCK_ROWS * BLOCK_COLUMNS + 15) / 16 * 16
};

int64_t FTH_NAME(gemm_own_bytes)(void) {
    return (A_FLOATS + C_FLOATS) * (int64_t)sizeof(float);
}

/* ---- after the product ---- */

/* What remains to be done for columns [j, j + n) of a row whose sums are in acc. */
static void finish_row(const gemm *g, int64_t row, int64_t j, int64_t n, float *restrict_ acc) {
    if (g->bias) {
        const float *bias = g->bias + j;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) acc[i] += bias[i];
    }
    if (g->addend.data) {
        const real *more = g->addend.data + row * g->addend.ld + j;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) acc[i] += from_real(more[i]);
    }
    if (g->pre.data) {
        real *pre = g->pre.data + row * g->pre.ld + j;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) pre[i] = to_real(acc[i]);
    }
    if (g->saved.data && g->act != FTH_ACT_NONE) {
        const real *saved = g->saved.data + row * g->saved.ld + j;
        if (g->act == FTH_ACT_GELU) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) acc[i] *= gelu_slope(from_real(saved[i]));
        } else {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) acc[i] = from_real(saved[i]) > 0 ? acc[i] : 0.0f;
        }
    } else if (g->act == FTH_ACT_GELU) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) acc[i] = gelu(acc[i]);
    } else if (g->act == FTH_ACT_RELU) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) acc[i] = relu(acc[i]);
    }
    if (g->c_full.data) {
        float *c = g->c_full.data + row * g->c_full.ld + j;
        if (g->accumulate) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) c[i] += acc[i];
        } else {
            memcpy(c, acc, sizeof *c * (size_t)n);
        }
    } else {
        real *c = g->c.data + row * g->c.ld + j;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) c[i] = to_real(acc[i]);
    }
}

/* ---- which part of the work ---- */

/* What one thread multiplies of a slab. */
typedef struct work {
    const float *slab; /* [panels][k][NR] */
    int64_t first;     /* column of C where the slab begins */
    fth_share rows, panels;
    bool direct; /* tiles go straight to C; else through acc */
    float *a;    /* [MR][A_STRIDE] or [KC][MR] */
    float *acc;  /* [BLOCK_ROWS][BLOCK_COLUMNS] */
} work;

/* Whole tiles of floats with at most a ReLU behind them need no second look. */
static bool is_direct(const gemm *g) {
    const bool floats = g->c_full.data || REAL_DTYPE == FTH_F32;
    return floats && g->n % NR == 0 && g->act != FTH_ACT_GELU && !g->pre.data;
}

static full_rows direct_c(const gemm *g) {
    return g->c_full.data ? g->c_full : (full_rows){(float *)(void *)g->c.data, g->c.ld};
}

/* The tile at (row, column) of C for the block of k that begins at l. */
static gemm_tile direct_tile(const gemm *g, int64_t row, int64_t column, int64_t l) {
    const full_rows c = direct_c(g);
    gemm_tile t = {.c = c.data + row * c.ld + column, .ldc = c.ld};
    if (l > 0 || g->accumulate) {
        t.init = t.c;
        t.ld_init = t.ldc;
    } else if (g->bias) {
        t.init = g->bias + column;
    } else if (g->addend.data) {
        t.init = (const float *)(const void *)g->addend.data + row * g->addend.ld + column;
        t.ld_init = g->addend.ld;
    }
    if (l + KC < g->k || g->act == FTH_ACT_NONE) return t;
    if (g->saved.data) {
        t.gate = (const float *)(const void *)g->saved.data + row * g->saved.ld + column;
        t.ld_gate = g->saved.ld;
    } else {
        t.relu = true;
    }
    return t;
}

/* Rows [block.begin, block.end) with panels [panels.begin, panels.end) for one block of k. */
static void multiply_block(const gemm *g, const work *w, fth_share block, fth_share panels,
                           int64_t l) {
    const int64_t n_rows = block.end - block.begin, tiles = (n_rows + MR - 1) / MR;
    const int64_t k = g->k - l < KC ? g->k - l : KC;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t row = block.begin + n_rows * i / tiles;
        const int64_t height = block.begin + n_rows * (i + 1) / tiles - row;
        const real *a = g->a.data + (g->a_by_column ? l * g->a.ld + row : row * g->a.ld + l);
        pack_a(w->a, a, g->a.ld, g->a_by_column, height, k);
        for (int64_t p = panels.begin; p < panels.end; p++) {
            gemm_tile t;
            if (w->direct) {
                t = direct_tile(g, row, w->first + p * NR, l);
            } else {
                float *acc = w->acc + (row - block.begin) * BLOCK_COLUMNS + (p - panels.begin) * NR;
                t = (gemm_tile){l ? acc : NULL, BLOCK_COLUMNS, acc, BLOCK_COLUMNS, false, NULL, 0};
            }
            multiply_tile(height, g->a_by_column, k, w->a, w->slab + (p * g->k + l) * NR, &t);
        }
    }
}

static void multiply_slab(const gemm *g, const work *w) {
    const int64_t at_once = BLOCK_COLUMNS / NR, height = w->direct ? w->rows.end : BLOCK_ROWS;
    for (int64_t i = w->rows.begin; i < w->rows.end; i += height)
        for (int64_t p = w->panels.begin; p < w->panels.end; p += at_once) {
            const fth_share block = {i, i + height < w->rows.end ? i + height : w->rows.end};
            const fth_share panels = {p, p + at_once < w->panels.end ? p + at_once : w->panels.end};
            for (int64_t l = 0; l < g->k; l += KC) multiply_block(g, w, block, panels, l);
            if (w->direct) continue;
            const int64_t column = w->first + panels.begin * NR;
            const int64_t end = w->first + panels.end * NR, n = (end < g->n ? end : g->n) - column;
            for (int64_t row = block.begin; row < block.end; row++)
                finish_row(g, row, column, n, w->acc + (row - block.begin) * BLOCK_COLUMNS);
        }
}

/* The team packs columns [first, first + cols) of B. */
static void pack_slab(const gemm *g, const fth_team *team, float *slab, int64_t first,
                      int64_t cols) {
    const int64_t panels = (cols + NR - 1) / NR, blocks = (g->k + KC - 1) / KC;
    const fth_share mine = fth_team_share(team, panels * blocks, 1);
    for (int64_t i = mine.begin; i < mine.end; i++) {
        const int64_t p = i / blocks, l = i % blocks * KC, j = first + p * NR;
        const int64_t width = first + cols - j < NR ? first + cols - j : NR;
        const real *b = g->b.data + (g->b_by_column ? j * g->b.ld + l : l * g->b.ld + j);
        pack_b(slab + (p * g->k + l) * NR, b, g->b.ld, g->b_by_column, width,
               g->k - l < KC ? g->k - l : KC);
    }
}

/* How many threads share the rows; the others of the team share the columns. */
static int row_threads(const fth_team *team, int64_t m) {
    int n = team->n_threads;
    while (n > 1 && (team->n_threads % n || m / n < MR)) n--;
    return n;
}

void FTH_NAME(gemm)(const gemm *g, const fth_team *team, void *shared, void *own) {
    if (g->m == 0 || g->n == 0 || g->k == 0) return;
    const int by_rows = row_threads(team, g->m), by_columns = team->n_threads / by_rows;
    const fth_team row_team = {team->thread / by_columns, by_rows, NULL};
    const fth_team column_team = {team->thread % by_columns, by_columns, NULL};
    work w = {.slab = shared,
              .rows = fth_team_share(&row_team, g->m, 1),
              .direct = is_direct(g),
              .a = own,
              .acc = (float *)own + A_FLOATS};
    const int64_t step = slab_columns(g->n, g->k);
    for (int64_t j = 0; j < g->n; j += step) {
        const int64_t cols = g->n - j < step ? g->n - j : step;
        if (j > 0) fth_team_wait(team); /* for those who still read the slab before */
        pack_slab(g, team, shared, j, cols);
        fth_team_wait(team);
        w.first = j;
        w.panels = fth_team_share(&column_team, (cols + NR - 1) / NR, 1);
        multiply_slab(g, &w);
    }
}
