/* linear.c: the three products of a linear map: y = act(x W^T + b), dx = (dy W + addend)
 * act'(saved), dW += dy^T x (or =, where dW is not kept) with db. 2 R n k operations each; bound by
 * the multiply-add units. */
#include "backend/cpu/product/gemm_panels.h"
#include "backend/cpu/product/linear_digits.h"
#include "backend/cpu/product/linear_int8.h"
#include "backend/cpu/product/weights.h"

/* Bytes of scratch that each thread has for itself. */
static int64_t own_bytes(const fth_device *dev) {
    const int64_t whole = FTH_NAME(gemm_own_bytes)(dev), panels = FTH_NAME(gemm_panels_bytes)();
    return panels > whole ? panels : whole;
}

static void *own_part(const fth_exec *ex, const fth_team *team) {
    return (char *)ex->scratch + team->thread * own_bytes(ex->device);
}

/* Few rows are multiplied with what has been rounded before. */
static void set_weights(const fth_exec *ex, fth_val v, gemm *g, const fth_team *team) {
    void *place = (char *)ex->scratch + ex->device->threads * own_bytes(ex->device);
    const matrix w = matrix_in(ex, v, g->m > GEMM_FEW_ROWS ? g->pairs : NULL, place, team);
    g->b = w.b;
    g->b_full = w.full;
}

/* Gradients of thin maps: threads share the rows instead of dW, since each has those rows in its
 * cache that it has made itself; each adds up a dW of its own, and these are added in the end. */
enum { THIN_FLOATS = 1 << 16 };

static bool is_thin(const fth_device *dev, int64_t m, int64_t n) {
    return dev->threads > 1 && m * n <= THIN_FLOATS;
}

/* Floats of a thread's dW and db. */
static int64_t thin_floats(int64_t m, int64_t n) {
    return whole_lines(m * n) + whole_lines(m);
}

FTH_SCRATCH(linear) {
    int64_t bytes = dev->threads * own_bytes(dev);
    if (op->kind == FTH_KIND_linear_dw) {
        const int64_t m = g->value[op->in[LINEAR_DW_DY]].width;
        const int64_t n = g->value[op->in[LINEAR_DW_X]].width;
        if (is_thin(dev, m, n)) bytes += threads_scratch_bytes(dev, thin_floats(m, n));
    } else {
        bytes +=
            weights_bytes(dev, g, op->in[op->kind == FTH_KIND_linear ? LINEAR_W : LINEAR_DX_W]);
    }
    const fth_cpu *cpu = (const fth_cpu *)dev;
    if (op->kind != FTH_KIND_linear || !(cpu->int8 || cpu->parts)) return bytes;
    const fth_value *x = &g->value[op->in[LINEAR_X]];
    const int64_t n_rows = x->extent == FTH_ROWS_FIXED ? x->rows : capacity[x->extent];
    const int64_t whole = cpu->int8 ? FTH_NAME(linear_int8_bytes)(dev, n_rows, x->width)
                                    : FTH_NAME(linear_digits_bytes)(dev, n_rows, x->width);
    return whole > bytes ? whole : bytes;
}

FTH_PART(linear) {
    const fth_tensor *x = fth_arg(ex, op->in[LINEAR_X]), *w = fth_arg(ex, op->in[LINEAR_W]);
    gemm g = {.m = fth_rows_now(ex, x),
              .n = w->rows,
              .k = w->width,
              .a = rows_of(ex, op->in[LINEAR_X]),
              .b_by_column = true,
              .bias = vector_of(ex, op->in[LINEAR_B]),
              .act = op->u.linear.act,
              .pre = rows_of(ex, op->out[LINEAR_PRE]),
              .c = rows_of(ex, op->out[LINEAR_Y])};
    const fth_int8 *int8 = fth_cpu_packed_int8(ex, op->in[LINEAR_W]);
    const void *panels = fth_cpu_packed_panels(ex, op->in[LINEAR_W]);
    g.pairs = fth_cpu_packed_unit(ex);
    if (int8 && fth_cpu_packed_digits(ex))
        FTH_NAME(linear_digits)(ex, &g, int8, team);
    else if (int8)
        FTH_NAME(linear_int8)(ex, &g, int8, team);
    else if (panels && (g.m <= FTH_PANEL_ROWS || g.pairs)) /* pairs take longer to pack */
        FTH_NAME(gemm_panels)(&g, panels, team, own_part(ex, team));
    else {
        g.pairs = unit_for(ex, g.m, g.n, g.k);
        set_weights(ex, op->in[LINEAR_W], &g, team);
        gemm_in_scratch(ex, &g, team);
    }
}

FTH_PART(linear_dx) {
    const fth_tensor *dy = fth_arg(ex, op->in[LINEAR_DX_DY]), *w = fth_arg(ex, op->in[LINEAR_DX_W]);
    gemm g = {.m = fth_rows_now(ex, dy),
              .n = w->width,
              .k = w->rows,
              .a = rows_of(ex, op->in[LINEAR_DX_DY]),
              .addend = rows_of(ex, op->in[LINEAR_DX_ADDEND]),
              .saved = rows_of(ex, op->in[LINEAR_DX_SAVED]),
              .act = op->in[LINEAR_DX_SAVED] ? op->u.linear.act : FTH_ACT_NONE,
              .c = rows_of(ex, op->out[LINEAR_DX_DX])};
    g.pairs = unit_for(ex, g.m, g.n, g.k);
    set_weights(ex, op->in[LINEAR_DX_W], &g, team);
    gemm_in_scratch(ex, &g, team);
}

/* db += sums of columns [columns) of n_rows rows of dy. */
static void column_sums(rows dy, int64_t n_rows, fth_cpu_share columns, float *restrict_ db) {
    enum { COLUMNS = 64 }; /* summed at a time, in registers */
    for (int64_t j = columns.begin; j < columns.end; j += COLUMNS) {
        const int64_t n = columns.end - j < COLUMNS ? columns.end - j : COLUMNS;
        float sum[COLUMNS] = {0};
        if (n == COLUMNS) {
            for (int64_t row = 0; row < n_rows; row++)
#pragma omp simd
                for (int64_t i = 0; i < COLUMNS; i++)
                    sum[i] += from_real(dy.data[row * dy.ld + j + i]);
        } else {
            for (int64_t row = 0; row < n_rows; row++)
#pragma omp simd
                for (int64_t i = 0; i < n; i++) sum[i] += from_real(dy.data[row * dy.ld + j + i]);
        }
        for (int64_t i = 0; i < n; i++) db[j + i] += sum[i];
    }
}

/* Where a thread's own dW [m, n] and db [m] are. */
static full_rows thin_part(const fth_exec *ex, const gemm *g, int thread) {
    float *base = (float *)(void *)((char *)ex->scratch +
                                    ex->device->threads * FTH_NAME(gemm_own_bytes)(ex->device));
    return (full_rows){base + thread * whole_lines(thin_floats(g->m, g->n)), g->n};
}

/* dW and db: a thread adds up its part of the rows. */
static void thin_rows(const fth_exec *ex, const gemm *g, const fth_team *team, bool bias) {
    const fth_cpu_share mine = fth_team_share(team, g->k, 1);
    const full_rows part = thin_part(ex, g, team->thread);
    float *db = part.data + whole_lines(g->m * g->n);
    gemm own = *g;
    own.k = mine.end - mine.begin;
    own.a.data += mine.begin * g->a.ld;
    own.b.data += mine.begin * g->b.ld;
    own.c_full = part;
    own.fresh = false;
    own.a_sums = g->a_sums ? db : NULL;
    memset(part.data, 0, sizeof *part.data * (size_t)thin_floats(g->m, g->n));
    void *scratch = (char *)ex->scratch + team->thread * FTH_NAME(gemm_own_bytes)(ex->device);
    if (g->c_full.data) FTH_NAME(gemm)(&own, &(fth_team){.n_threads = 1}, scratch);
    if (bias && !(own.a_sums && g->c_full.data))
        column_sums(own.a, own.k, (fth_cpu_share){0, g->m}, db);
}

/* A thread's share of dW and db gets what the threads have added up, in their order. */
static void thin_sums(const fth_exec *ex, const gemm *g, const fth_team *team, float *db) {
    const fth_cpu_share mine = fth_team_share(team, g->m, 1);
    for (int thread = 0; thread < team->n_threads; thread++) {
        const full_rows part = thin_part(ex, g, thread);
        const float *part_db = part.data + whole_lines(g->m * g->n);
        for (int64_t i = mine.begin; g->c_full.data && i < mine.end; i++) {
            float *restrict_ to = g->c_full.data + i * g->c_full.ld;
            const float *restrict_ from = part.data + i * part.ld;
            if (g->fresh && thread == 0) memset(to, 0, sizeof *to * (size_t)g->n);
#pragma omp simd
            for (int64_t j = 0; j < g->n; j++) to[j] += from[j];
        }
        for (int64_t i = mine.begin; db && i < mine.end; i++) db[i] += part_db[i];
    }
}

/* Without rows there is no product, but a dW that is not added to gets its zeros. */
static void clear_share(const gemm *g, const fth_team *team) {
    const fth_cpu_share mine = fth_team_share(team, g->m, 1);
    for (int64_t i = mine.begin; i < mine.end; i++)
        memset(g->c_full.data + i * g->c_full.ld, 0, sizeof(float) * (size_t)g->n);
}

FTH_PART(linear_dw) {
    const fth_tensor *dy = fth_arg(ex, op->in[LINEAR_DW_DY]), *x = fth_arg(ex, op->in[LINEAR_DW_X]);
    float *db = vector_of(ex, op->out[LINEAR_DW_DB]);
    gemm g = {.m = dy->width,
              .n = x->width,
              .k = fth_rows_now(ex, x),
              .a = rows_of(ex, op->in[LINEAR_DW_DY]),
              .b = rows_of(ex, op->in[LINEAR_DW_X]),
              .c_full = full_of(ex, op->out[LINEAR_DW_DW]),
              .accumulate = true,
              .fresh = !fth_adds_to(ex, op->out[LINEAR_DW_DW])};
    g.pairs = unit_for_sums(ex, g.m, g.n, g.k);
    g.a_sums = g.pairs && !fth_cpu_pairs_on_tiles(g.pairs) ? NULL : db;
    if (is_thin(ex->device, g.m, g.n)) {
        thin_rows(ex, &g, team, db != NULL);
        fth_team_wait(team);
        thin_sums(ex, &g, team, db);
        return;
    }
    if (g.c_full.data && g.fresh && g.k == 0) clear_share(&g, team);
    if (g.c_full.data) gemm_in_scratch(ex, &g, team);
    if (db && !(g.a_sums && g.c_full.data))
        column_sums(g.a, g.k, fth_team_share(team, g.m, 16), db);
}
