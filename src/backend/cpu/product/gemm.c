/* gemm.c: a block of C at a time: packs a panel of B and rows of A, multiplies tiles of
 * registers over k, then adds the bias and takes the activation while the block is in the cache. */
#include "backend/cpu/product/gemm.h"

#include "backend/cpu/product/gemm_fma.h"
#include "backend/cpu/kernel/math.h"

enum {
    KC = 512,           /* of k at a time: a tile of A stays in the first-level cache */
    A_STRIDE = KC + 16, /* floats from row to row of a packed tile: rows fall into different sets */
    BLOCK_COLUMNS = 256,  /* of B: with KC rows they stay in the second-level cache */
    BLOCK_ROWS = 64 * MR, /* of C that meet them, where C needs a place in between */
    A_FLOATS = MR * A_STRIDE,
    B_FLOATS = (KC * NR + 16) * (BLOCK_COLUMNS / NR),
    C_FLOATS = BLOCK_ROWS * BLOCK_COLUMNS
};

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* What no unit of the device uses takes no memory. */
int64_t FTH_NAME(gemm_own_bytes)(const fth_device *dev) {
    const fth_cpu *cpu = (const fth_cpu *)dev;
    const int64_t floats = whole_lines(A_FLOATS) + B_FLOATS + whole_lines(C_FLOATS);
    int64_t bytes = most(floats * (int64_t)sizeof(float), FTH_NAME(gemm_accumulate_bytes)());
    if (cpu->parts || fth_cpu_pairs_on_tiles(cpu->pairs)) {
        bytes = most(bytes, FTH_NAME(gemm_tiles_bytes)());
        bytes = most(bytes, FTH_NAME(gemm_tiles_accumulate_bytes)());
    }
#ifdef FTH_REAL_IS_bf16
    else if (cpu->pairs)
        bytes = most(bytes, FTH_NAME(gemm_pairs_bytes)());
#endif
    return (bytes + 63) / 64 * 64;
}

/* ---- after the product ---- */

void FTH_NAME(gemm_finish_row)(const gemm *g, int64_t row, int64_t j, int64_t n, int64_t l,
                               float *restrict_ acc) {
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
        if (gemm_adds(g, l)) {
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

/* ---- packing ---- */

/* A tile of rows of A: [n][A_STRIDE]. */
static void pack_rows(float *restrict_ to, const real *restrict_ from, int64_t ld, int64_t n,
                      int64_t k) {
    int64_t l = 0;
    for (; l + VW <= k; l += VW)
        for (int64_t i = 0; i < n; i++)
            v_store(to + i * A_STRIDE + l, v_load_real(from + i * ld + l));
    for (; l < k; l++)
        for (int64_t i = 0; i < n; i++) to[i * A_STRIDE + l] = from_real(from[i * ld + l]);
}

/* VW columns of a panel from VW rows of b, over k: a transposition. */
static void pack_transposed(float *restrict_ to, const real *restrict_ from, int64_t ld,
                            int64_t k) {
    int64_t l = 0;
    for (; l + VW <= k; l += VW) {
        vf r[VW];
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) r[i] = v_load_real(from + i * ld + l);
        v_transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < VW; i++) v_store(to + (l + i) * NR, r[i]);
    }
    for (; l < k; l++)
        for (int i = 0; i < VW; i++) to[l * NR + i] = from_real(from[i * ld + l]);
}

/* The same where the columns of B lie in rows of b. */
static void pack_b_columns(float *restrict_ to, const real *restrict_ from, int64_t ld, int64_t n,
                           int64_t k) {
    for (int64_t j = 0; j < n; j += VW) {
        float *panel = to + j / NR * panel_stride(k) + j % NR;
        if (j + VW <= n) {
            pack_transposed(panel, from + j * ld, ld, k);
            continue;
        }
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < VW; i++)
                panel[l * NR + i] = j + i < n ? from_real(from[(j + i) * ld + l]) : 0;
    }
    for (int64_t j = v_round(n); j % NR; j += VW) { /* the rest of the last panel */
        float *panel = to + j / NR * panel_stride(k) + j % NR;
        for (int64_t l = 0; l < k; l++) v_store(panel + l * NR, v_zero());
    }
}

/* ---- the product ---- */

/* A block of C and of k that one thread is at. */
typedef struct block {
    fth_cpu_share rows, columns, k;
} block;

/* What a thread works with. */
typedef struct work {
    bool direct;           /* tiles go straight to C; else through acc */
    bool whole_a, whole_b; /* A, B are used where they lie */
    float *a;              /* [MR][A_STRIDE] */
    float *b;              /* [panels][KC][NR] */
    float *acc;            /* [BLOCK_ROWS][BLOCK_COLUMNS] */
} work;

/* Whole tiles of floats with at most a ReLU behind them need no second look. */
static bool is_direct(const gemm *g) {
    const bool floats = g->c_full.data || REAL_DTYPE == FTH_F32;
    return floats && g->n % NR == 0 && g->act != FTH_ACT_GELU && !g->pre.data;
}

static full_rows direct_c(const gemm *g) {
    return g->c_full.data ? g->c_full : (full_rows){(float *)(void *)g->c.data, g->c.ld};
}

/* The tile at (row, column) of C. */
static gemm_tile direct_tile(const gemm *g, const block *b, int64_t row, int64_t column) {
    const full_rows c = direct_c(g);
    gemm_tile t = {.c = c.data + row * c.ld + column, .ldc = c.ld};
    if (b->k.begin > 0) {
        t.addend = t.c;
        t.ld_addend = t.ldc;
    } else if (g->bias) {
        t.addend = g->bias + column;
    } else if (g->addend.data) {
        t.addend = (const float *)(const void *)g->addend.data + row * g->addend.ld + column;
        t.ld_addend = g->addend.ld;
    }
    if (b->k.end < g->k || g->act == FTH_ACT_NONE) return t;
    if (g->saved.data) {
        t.gate = (const float *)(const void *)g->saved.data + row * g->saved.ld + column;
        t.ld_gate = g->saved.ld;
    } else {
        t.relu = true;
    }
    return t;
}

static gemm_tile acc_tile(const work *w, const block *b, int64_t row, int64_t column) {
    float *acc = w->acc + (row - b->rows.begin) * BLOCK_COLUMNS + column - b->columns.begin;
    gemm_tile t = {.c = acc, .ldc = BLOCK_COLUMNS};
    if (b->k.begin > 0) {
        t.addend = acc;
        t.ld_addend = BLOCK_COLUMNS;
    }
    return t;
}

static void pack_b(const gemm *g, const work *w, const block *b) {
    const int64_t n = b->columns.end - b->columns.begin, k = b->k.end - b->k.begin;
    if (g->b_by_column)
        pack_b_columns(w->b, g->b.data + b->columns.begin * g->b.ld + b->k.begin, g->b.ld, n, k);
    else
        pack_b_rows(w->b, panel_stride(k), g->b.data + b->k.begin * g->b.ld + b->columns.begin,
                    g->b.ld, n, k);
}

/* One tile of rows with all columns of the block. */
static void multiply_rows(const gemm *g, const work *w, const block *b, gemm_factors *f,
                          fth_cpu_share rows_) {
    for (int64_t j = b->columns.begin; j < b->columns.end; j += NR) {
        const gemm_tile t =
            w->direct ? direct_tile(g, b, rows_.begin, j) : acc_tile(w, b, rows_.begin, j);
        f->b = w->whole_b ? (const float *)(const void *)g->b.data + b->k.begin * g->b.ld + j
                          : w->b + (j - b->columns.begin) / NR * panel_stride(f->k);
        multiply_tile(rows_.end - rows_.begin, false, f, &t);
    }
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Where a tile of rows finds its part of A: where it lies, or packed now. */
static const float *factor_a(const gemm *g, const work *w, const block *b, fth_cpu_share rows_) {
    const real *a = g->a.data + rows_.begin * g->a.ld + b->k.begin;
    if (w->whole_a) return (const float *)(const void *)a;
    pack_rows(w->a, a, g->a.ld, rows_.end - rows_.begin, b->k.end - b->k.begin);
    return w->a;
}

/* All tiles of the block, of nearly the same height, for its part of k. */
static void multiply_block(const gemm *g, const work *w, const block *b) {
    const int64_t n = b->rows.end - b->rows.begin, tiles = (n + MR - 1) / MR;
    gemm_factors f = {.k = b->k.end - b->k.begin,
                      .a_step = w->whole_a ? g->a.ld : A_STRIDE,
                      .b_step = w->whole_b ? g->b.ld : NR};
    for (int64_t i = 0; i < tiles; i++) {
        const fth_cpu_share at = {b->rows.begin + n * i / tiles,
                                  b->rows.begin + n * (i + 1) / tiles};
        f.a = factor_a(g, w, b, at);
        multiply_rows(g, w, b, &f, at);
    }
}

static void finish_block(const gemm *g, const work *w, const block *b) {
    for (int64_t row = b->rows.begin; row < b->rows.end && !w->direct; row++)
        FTH_NAME(gemm_finish_row)
    (g, row, b->columns.begin, b->columns.end - b->columns.begin, b->k.begin,
     w->acc + (row - b->rows.begin) * BLOCK_COLUMNS);
}

/* A thread's rows and columns of C. */
static void multiply_share(const gemm *g, const work *w, fth_cpu_share rows_,
                           fth_cpu_share columns) {
    const int64_t height = w->direct ? g->m : BLOCK_ROWS;
    block b;
    for (int64_t j = columns.begin; j < columns.end; j += BLOCK_COLUMNS) {
        b.columns = (fth_cpu_share){j, least(j + BLOCK_COLUMNS, columns.end)};
        for (int64_t i = rows_.begin; i < rows_.end; i += height) {
            b.rows = (fth_cpu_share){i, least(i + height, rows_.end)};
            for (int64_t l = 0; l < g->k; l += KC) {
                b.k = (fth_cpu_share){l, least(l + KC, g->k)};
                /* with one block of k, what the first rows have packed serves the others too */
                if (!w->whole_b && (i == rows_.begin || g->k > KC)) pack_b(g, w, &b);
                multiply_block(g, w, &b);
            }
            finish_block(g, w, &b);
        }
    }
}

/* How many threads share the rows; the others of the team share the columns. Threads that share
 * rows each pack all columns, so columns are shared first, as long as each thread keeps a whole
 * block; thin products leave the rows where they are, in their thread's cache. */
static int row_threads(const fth_team *team, int64_t n) {
    int by_rows = 1;
    while (by_rows < team->n_threads &&
           (team->n_threads % by_rows || n * by_rows / team->n_threads < BLOCK_COLUMNS))
        by_rows++;
    return by_rows;
}

void FTH_NAME(gemm)(const gemm *g, const fth_team *team, void *own) {
    if (g->m == 0 || g->n == 0 || g->k == 0) return;
    if (g->m <= GEMM_FEW_ROWS && g->b_by_column && !g->accumulate && !g->b_full.data) {
        FTH_NAME(gemm_dots)(g, team, own);
        return;
    }
    if (g->accumulate && !g->pairs) {
        FTH_NAME(gemm_accumulate)(g, team, own);
        return;
    }
    const bool tiles = fth_cpu_pairs_on_tiles(g->pairs); /* these pack A while they multiply */
    if (g->accumulate && tiles) {
        FTH_NAME(gemm_tiles_accumulate)(g, team, own);
        return;
    }
    const int by_rows =
        g->accumulate ? gemm_row_threads(team, g, g->m, g->n) : row_threads(team, g->n);
    const int by_columns = team->n_threads / by_rows;
    const fth_team row_team = {team->thread / by_columns, by_rows, NULL};
    const fth_team column_team = {team->thread % by_columns, by_columns, NULL};
    const bool floats = REAL_DTYPE == FTH_F32;
    float *a = own;
    const work w = {.direct = is_direct(g),
                    .whole_a = floats,
                    .whole_b = floats && !g->b_by_column && gemm_is_thin(g->b) && g->n % NR == 0,
                    .a = a,
                    .b = a + whole_lines(A_FLOATS),
                    .acc = a + whole_lines(A_FLOATS) + B_FLOATS};
    const int64_t grain = tiles ? FTH_TILES_SIDE : g->pairs ? FTH_PAIRS_COLUMNS : NR;
    const fth_cpu_share rows_ = fth_team_share(&row_team, g->m, tiles ? FTH_TILES_SIDE : 1);
    const fth_cpu_share columns = fth_team_share(&column_team, g->n, grain);
    if (tiles) {
        FTH_NAME(gemm_tiles)(g, NULL, rows_, columns, own);
        return;
    }
#ifdef FTH_REAL_IS_bf16
    if (g->pairs) {
        FTH_NAME(gemm_pairs)(g, rows_, columns, own);
        return;
    }
#endif
    multiply_share(g, &w, rows_, columns);
}
