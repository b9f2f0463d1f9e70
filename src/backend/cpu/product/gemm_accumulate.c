/* gemm_accumulate.c: C += A B with A by columns, the gradients of weights (dW += dy^T x): m and n
 * are the widths of a map, k the rows of a batch. 2 m n k operations, bound by the multiply-add
 * units as long as nothing is waited for: A and B are packed for the tiles and come from the
 * third-level cache or from memory, as does C, once.
 *
 * A thread goes through blocks of C that fit into its second-level cache, where their sums stay,
 * and for each through all of k, DEPTH at a time. A panel of B stays in the first-level cache while
 * A's tiles pass by; the next panel is copied meanwhile, and what comes after it is asked for. Sums
 * over k are made in pieces that do not depend on the threads. */
#include "backend/cpu/product/gemm_accumulate_tile.h"

enum {
    ROWS = TILES * MR, /* of C at a time */
    COLUMNS = 512,
    EVEN = 8 * MR,    /* rows: blocks begin where a vector of A does */
    THIN_DEPTH = 512, /* of k at a time where nothing is packed */
#if defined(__AVX2__)
    ROW_READS = 8, /* numbers that are read and written for a row of a tile */
#else
    ROW_READS = MR,
#endif
    UNIT = PIECE * MR, /* of A: a piece of k of a tile */
    A_FLOATS = SLOTS * (TILES * UNIT + 32),
    PANEL_FLOATS = DEPTH * NR + 16
};

/* What a thread works with, arrays in whole cache lines, and what it multiplies. */
typedef struct work {
    float panel[2][PANEL_FLOATS];    /* [k][NR] of B: this one and the next */
    float a[A_FLOATS];               /* [k / PIECE][tiles][PIECE][MR] */
    float sums[ROWS * COLUMNS];      /* [panels][tiles][MR][NR] over the blocks of k so far */
    float edge[TILE];                /* a tile that C has not enough columns for */
    float a_sums[TILES * ROW_READS]; /* [tiles][ROW_READS] over columns of A so far */
    const char *asks[TILES * SLOTS]; /* [tiles][k / PIECE] what a panel's tiles ask for */
    const gemm *g;
    fth_cpu_share rows, columns;
    int64_t n_rows, n_columns, n_k; /* blocks */
    int64_t depth;                  /* of k at a time */
    float *out_sums;                /* [m] sums of columns of A are added here; NULL: not */
    int turn;                       /* the panel that is multiplied */
} work;

int64_t FTH_NAME(gemm_accumulate_bytes)(void) {
    return whole_lines((int64_t)sizeof(work) / 4 + 16) * 4;
}

typedef struct block {
    fth_cpu_share rows, columns, k;
    bool first, last; /* of k */
    int64_t tiles, panels, a_pitch;
} block;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* How many pieces of size `most` there are. */
static int64_t pieces_in(int64_t n, int64_t most) {
    return (n + most - 1) / most;
}

/* Piece i of n of a thread's rows or columns, which are handed out in groups. */
static fth_cpu_share part_of(fth_cpu_share all, int64_t i, int64_t n, int64_t group) {
    const int64_t groups = pieces_in(all.end - all.begin, group);
    return (fth_cpu_share){all.begin + groups * i / n * group,
                           least(all.begin + groups * (i + 1) / n * group, all.end)};
}

static block block_at(const work *w, int64_t number) {
    const int64_t l = number % w->n_k, c = number / w->n_k;
    block b = {.rows = part_of(w->rows, c / w->n_columns, w->n_rows, EVEN),
               .columns = part_of(w->columns, c % w->n_columns, w->n_columns, NR),
               .k = {l * w->depth, least((l + 1) * w->depth, w->g->k)},
               .first = l == 0,
               .last = l + 1 == w->n_k};
    b.tiles = pieces_in(b.rows.end - b.rows.begin, MR);
    b.panels = pieces_in(b.columns.end - b.columns.begin, NR);
    b.a_pitch = (b.tiles * UNIT + 31) / 32 * 32 + 16; /* neighbours fall into different sets */
    return b;
}

/* ---- A ---- */

#if defined(__AVX2__)
typedef __m256 row_part;
inline_ row_part row_zero(void) {
    return _mm256_setzero_ps();
}
inline_ row_part row_load(const real *from) {
#ifdef FTH_REAL_IS_bf16
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
#else
    return _mm256_loadu_ps(from);
#endif
}
inline_ void row_store(float *to, row_part x) {
    _mm256_storeu_ps(to, x);
}
#else
typedef vf row_part;
inline_ row_part row_zero(void) {
    return v_zero();
}
inline_ row_part row_load(const real *from) {
    return v_load_real(from);
}
inline_ void row_store(float *to, row_part x) {
    v_store(to, x);
}
#endif

/* PIECE of k of a tile, and up to 2 floats behind it; sums += their sums. */
inline_ void pack_unit(float *restrict_ to, const real *restrict_ from, int64_t ld,
                       float *restrict_ sums) {
    row_part sum = row_zero(), before;
#pragma GCC unroll 8
    for (int64_t l = 0; l < PIECE; l++) {
        const row_part x = row_load(from + l * ld);
        row_store(to + l * MR, x);
        sum += x;
    }
    memcpy(&before, sums, sizeof before);
    row_store(sums, before + sum);
}

/* The same number by number: n of k, `high` columns. */
static void pack_edge(float *restrict_ to, const real *restrict_ from, int64_t ld,
                      float *restrict_ sums, int64_t n, int64_t high) {
    for (int64_t i = 0; i < high; i++) {
        float sum = 0;
        for (int64_t l = 0; l < n; l++) {
            to[l * MR + i] = from_real(from[l * ld + i]);
            sum += to[l * MR + i];
        }
        sums[i] += sum;
    }
}

/* A block's part of A. With the last of k the sums of its columns are complete. */
static void pack_a(work *w, const block *b) {
    const int64_t ld = w->g->a.ld, k = b->k.end - b->k.begin, m = b->rows.end - b->rows.begin;
    const real *from = w->g->a.data + b->k.begin * ld + b->rows.begin;
    for (int64_t l = 0; l < k; l += PIECE, from += PIECE * ld) {
        float *to = w->a + l / PIECE * b->a_pitch, *sums = w->a_sums;
        int64_t i = 0;
        for (; l + PIECE <= k && i + ROW_READS <= m; i += MR, to += UNIT, sums += ROW_READS) {
            for (int ahead = 0; ahead < UNIT; ahead += 16)
                __builtin_prefetch(to + 4 * UNIT + ahead, 1);
            pack_unit(to, from + i, ld, sums);
        }
        for (; i < m; i += MR, to += UNIT, sums += ROW_READS)
            pack_edge(to, from + i, ld, sums, least(PIECE, k - l), least(MR, m - i));
    }
    if (!b->last) return;
    for (int64_t i = 0; i < m && w->out_sums && b->columns.begin == w->columns.begin; i++)
        w->out_sums[b->rows.begin + i] += w->a_sums[i / MR * ROW_READS + i % MR];
    memset(w->a_sums, 0, sizeof w->a_sums);
}

/* ---- panels of B ---- */

/* Where a panel lies; from is NULL: there is none. */
typedef struct panel {
    const real *from;
    int64_t k, columns;
} panel;

/* Panel p of a block; behind its last one those of the next block (NULL: there is none). */
static panel panel_at(const work *w, const block *b, const block *next, int64_t p) {
    if (p >= b->panels && next) {
        p -= b->panels;
        b = next;
    }
    if (p >= b->panels) return (panel){0};
    const int64_t column = b->columns.begin + p * NR;
    return (panel){w->g->b.data + b->k.begin * w->g->b.ld + column, b->k.end - b->k.begin,
                   least(NR, b->columns.end - column)};
}

/* A panel from row l on. */
static void pack_panel(const work *w, const panel *p, int64_t l, float *to) {
    const int64_t ld = w->g->b.ld;
    if (p->from) pack_b_rows(to + l * NR, 0, p->from + l * ld, ld, p->columns, p->k - l);
}

/* ---- asking ---- */

/* Rows of the next block's A that are still to be asked for. */
typedef struct asker {
    const char *at;
    int64_t rows, step, bytes; /* bytes of a row */
    int64_t done;              /* bytes */
    int64_t each;              /* asks of a tile */
} asker;

static asker asker_of(const work *w, const block *b, const block *next) {
    if (!next) return (asker){0};
    const int64_t size = (int64_t)sizeof(real), ld = w->g->a.ld;
    asker q = {.at = (const char *)(w->g->a.data + next->k.begin * ld + next->rows.begin),
               .rows = next->k.end - next->k.begin,
               .step = ld * size,
               .bytes = (next->rows.end - next->rows.begin) * size};
    q.each = pieces_in(q.rows * pieces_in(q.bytes, ASK), b->tiles * b->panels);
    return q;
}

/* n asks for A; fewer at its end. */
static void ask_a(asker *q, const char **asks, int64_t n) {
    for (; n > 0 && q->rows > 0; n--) {
        *asks++ = q->at + q->done;
        q->done += ASK;
        if (q->done < q->bytes) continue;
        q->done = 0;
        q->at += q->step;
        q->rows--;
    }
}

/* What the tiles of panel p ask for: a panel that comes later, the next block's A and, with the
 * last of k, C's next rows. */
static void plan_asks(work *w, const block *b, int64_t p, const panel *later, asker *q) {
    const int64_t slots = (b->k.end - b->k.begin) / PIECE;
    const int64_t rows_each = least(pieces_in(later->k, b->tiles), slots);
    const int64_t a_each = least(q->each, slots - rows_each), others = rows_each + a_each;
    const full_rows c = w->g->c_full;
    for (int64_t i = 0; i < b->tiles * slots; i++) w->asks[i] = (const char *)w->panel;
    for (int64_t t = 0; t < b->tiles; t++) {
        const char **asks = w->asks + t * slots;
        for (int64_t l = t * rows_each; l < least((t + 1) * rows_each, later->k); l++)
            *asks++ = (const char *)(later->from + l * w->g->b.ld);
        ask_a(q, asks, a_each);
    }
    for (int64_t t = 0; b->last && others + MR <= slots && t + 1 < b->tiles; t++) {
        const int64_t row = b->rows.begin + (t + 1) * MR;
        for (int64_t i = 0; i < least(MR, b->rows.end - row); i++)
            w->asks[t * slots + others + i] =
                (const char *)(c.data + (row + i) * c.ld + b->columns.begin + p * NR);
    }
}

/* Before the first block: its A and its first panels. */
static void ask_first(const work *w, const block *b) {
    const rows a = w->g->a, x = w->g->b;
    const int64_t line = 64 / (int64_t)sizeof(real);
    const int64_t columns = least(b->columns.begin + 2 * NR, b->columns.end);
    for (int64_t l = b->k.begin; l < b->k.end; l++) {
        for (int64_t i = b->rows.begin; i < b->rows.end; i += line)
            __builtin_prefetch(a.data + l * a.ld + i, 0, 2);
        for (int64_t j = b->columns.begin; j < columns; j += line)
            __builtin_prefetch(x.data + l * x.ld + j, 0, 2);
    }
}

/* ---- multiplying ---- */

/* The part of w->edge that C has columns for. */
static void finish_edge(const work *w, int64_t row, int64_t high, int64_t column, int64_t n) {
    const full_rows to = w->g->c_full;
    for (int64_t i = 0; i < high; i++) {
        float *restrict_ c = to.data + (row + i) * to.ld + column;
        const float *restrict_ edge = w->edge + i * NR;
        for (int64_t j = 0; j < n; j++) c[j] = w->g->fresh ? edge[j] : c[j] + edge[j];
    }
}

/* All tiles of panel p of a block, while the next panel is copied. */
static void multiply_panel(work *w, const block *b, const block *next, int64_t p, asker *q) {
    const full_rows c = w->g->c_full;
    const int64_t k = b->k.end - b->k.begin, column = b->columns.begin + p * NR;
    const int64_t n = least(NR, b->columns.end - column), slots = k / PIECE;
    const panel coming = panel_at(w, b, next, p + 1), later = panel_at(w, b, next, p + 2);
    const int64_t copied = coming.columns == NR ? coming.k : 0; /* rows, by the tiles */
    float *to = w->panel[!w->turn], *sums = w->sums + p * b->tiles * TILE;
    sum_tile t = {.k = k,
                  .a_pitch = b->a_pitch,
                  .b = w->panel[w->turn],
                  .ld = w->g->b.ld,
                  .ldc = b->last && n == NR ? c.ld : NR,
                  .adds = b->last && n == NR && !w->g->fresh};
    int64_t done = 0;
    plan_asks(w, b, p, &later, q);
    for (int64_t i = 0; i < b->tiles; i++, sums += TILE) {
        const int64_t row = b->rows.begin + i * MR, high = least(MR, b->rows.end - row);
        const int64_t rows_ = least(slots / NV, copied - done);
        t.a = w->a + i * UNIT;
        t.ask = w->asks + i * slots;
        t.sums = b->first ? NULL : sums;
        t.next = sums + TILE;
        t.c = !b->last ? sums : n == NR ? c.data + row * c.ld + column : w->edge;
        t.from = coming.from + done * t.ld;
        t.to = to + done * NR;
        t.copies = rows_ * NV;
        done += rows_;
        multiply_sum_tile(high, &t);
        if (b->last && n < NR) finish_edge(w, row, high, column, n);
    }
    pack_panel(w, &coming, done, to);
    w->turn = !w->turn;
}

static void multiply_blocks(work *w) {
    const int64_t n = w->n_rows * w->n_columns * w->n_k;
    block now = block_at(w, 0);
    const panel first = panel_at(w, &now, NULL, 0);
    ask_first(w, &now);
    memset(w->a_sums, 0, sizeof w->a_sums);
    pack_a(w, &now);
    pack_panel(w, &first, 0, w->panel[w->turn]);
    for (int64_t i = 0; i < n; i++) {
        const block coming = i + 1 < n ? block_at(w, i + 1) : now;
        const block *next = i + 1 < n ? &coming : NULL;
        asker q = asker_of(w, &now, next);
        for (int64_t p = 0; p < now.panels; p++) multiply_panel(w, &now, next, p, &q);
        if (next) pack_a(w, next);
        now = coming;
    }
}

/* ---- thin maps ---- */

/* sums += n columns of k rows. */
static void add_columns(float *restrict_ sums, const real *restrict_ from, int64_t ld, int64_t n,
                        int64_t k) {
    int64_t i = 0;
    for (; i + VW <= n; i += VW) {
        vf sum = v_zero();
        for (int64_t l = 0; l < k; l++) sum = v_add(sum, v_load_real(from + l * ld + i));
        v_store(sums + i, v_add(v_load(sums + i), sum));
    }
    for (; i < n; i++) {
        float sum = 0;
        for (int64_t l = 0; l < k; l++) sum += from_real(from[l * ld + i]);
        sums[i] += sum;
    }
}

/* Both factors are short rows of floats that are in the caches: they are used where they lie. */
static void multiply_thin(const gemm *g, fth_cpu_share rows_, int64_t depth) {
    const full_rows c = g->c_full;
    for (int64_t l = 0; l < g->k; l += depth) {
        gemm_factors f = {.k = least(depth, g->k - l), .a_step = g->a.ld, .b_step = g->b.ld};
        for (int64_t q = 0; q < f.k && g->a_sums; q += PIECE)
            add_columns(g->a_sums + rows_.begin, g->a.data + (l + q) * g->a.ld + rows_.begin,
                        g->a.ld, rows_.end - rows_.begin, least(PIECE, f.k - q));
        for (int64_t i = rows_.begin; i < rows_.end; i += MR)
            for (int64_t j = 0; j < g->n; j += NR) {
                gemm_tile t = {.c = c.data + i * c.ld + j, .ldc = c.ld, .ld_addend = c.ld};
                if (gemm_adds(g, l)) t.addend = t.c;
                f.a = (const float *)(const void *)(g->a.data + l * g->a.ld + i);
                f.b = (const float *)(const void *)(g->b.data + l * g->b.ld + j);
                multiply_tile(least(MR, rows_.end - i), true, &f, &t);
            }
    }
}

/* ---- threads ---- */

/* k in blocks of nearly the same size, whole pieces. */
static int64_t depth_of(int64_t k, int64_t most) {
    return pieces_in(pieces_in(k, pieces_in(k, most)), PIECE) * PIECE;
}

void FTH_NAME(gemm_accumulate)(const gemm *g, const fth_team *team, void *own) {
    if (REAL_DTYPE == FTH_F32 && gemm_is_thin(g->a) && gemm_is_thin(g->b) && g->n % NR == 0) {
        multiply_thin(g, fth_team_share(team, g->m, MR), depth_of(g->k, THIN_DEPTH));
        return;
    }
    const int by_rows = gemm_row_threads(team, g, ROWS, COLUMNS),
              by_columns = team->n_threads / by_rows;
    const fth_team row_team = {team->thread / by_columns, by_rows, NULL};
    const fth_team column_team = {team->thread % by_columns, by_columns, NULL};
    work *w = own;
    w->g = g;
    w->rows = fth_team_share(&row_team, g->m, VW);
    w->columns = fth_team_share(&column_team, g->n, NR);
    w->n_rows = pieces_in(w->rows.end - w->rows.begin, ROWS);
    w->n_columns = pieces_in(w->columns.end - w->columns.begin, COLUMNS);
    w->depth = depth_of(g->k, DEPTH);
    w->n_k = pieces_in(g->k, w->depth);
    w->out_sums = column_team.thread == 0 ? g->a_sums : NULL;
    w->turn = 0;
    if (w->n_rows > 0 && w->n_columns > 0) multiply_blocks(w);
}
