/* gemm_accumulate.c: C += A B with A by columns, the gradients of weights (dW += dy^T x): m and n are
 * the widths of a map, k the rows of a batch. 2 m n k operations, bound by the multiply-add units as
 * long as nothing is waited for: A and B are packed for the tiles, C is read and written once for
 * every DEPTH of k, and all three come from the third-level cache or from memory.
 *
 * So a thread's part is a row of blocks, STRIP x COLUMNS x DEPTH, and while one is multiplied the next
 * one's factors are packed, some of k after each row of tiles, from lines that the tiles have asked
 * for before, as C's next rows. Sums over k are made in pieces that do not depend on the threads. */
#include "backend/cpu/kernel/gemm_fma.h"

enum {
    DEPTH = 176,       /* of k at a time: what is packed, twice, stays in the second-level cache */
    WHOLE_DEPTH = 512, /* where nothing is packed */
    COLUMNS = 512,     /* of C at a time */
    STRIP = 32 * MR,   /* rows of C at a time */
    PIECE = 8,         /* of k: what is packed at once */
    MOST_ASKS = 192,   /* during a row of tiles */
    A_FLOATS = STRIP / MR * (DEPTH * MR + 16),
    B_FLOATS = (DEPTH * NR + 16) * (COLUMNS / NR),
    ACC_FLOATS = MR * COLUMNS
};

int64_t FTH_NAME(gemm_accumulate_bytes)(void) {
    return (2 * (whole_lines(A_FLOATS) + B_FLOATS) + ACC_FLOATS) * (int64_t)sizeof(float);
}

/* What a thread multiplies and works with. */
typedef struct work {
    const gemm *g;
    fth_share rows, columns;
    int64_t depth;                         /* of k at a time */
    int64_t n_strips, n_columns, n_blocks; /* blocks: strips inside, then columns, then k */
    bool direct;                           /* tiles go straight to C; else through acc */
    bool whole_a, whole_b;                 /* A, B are used where they lie */
    float *sums;                           /* [m] sums of columns of A are added here; NULL: not */
    float *a[2];                           /* [tiles][depth][MR]: this block's, the next one's */
    float *b[2];                           /* [panels][depth][NR] */
    float *acc;                            /* [MR][COLUMNS] */
} work;

typedef struct block {
    fth_share rows, columns, k;
    float *a, *b; /* where its factors are packed */
    bool new_b;   /* the block before had other columns or another k */
} block;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static block block_at(const work *w, int64_t number) {
    const int64_t strip = number % w->n_strips, of_b = number / w->n_strips;
    const int64_t tiles = (w->rows.end - w->rows.begin + MR - 1) / MR;
    const int64_t j = w->columns.begin + of_b % w->n_columns * COLUMNS;
    const int64_t l = of_b / w->n_columns * w->depth;
    return (block){
        .rows = {w->rows.begin + tiles * strip / w->n_strips * MR,
                 least(w->rows.begin + tiles * (strip + 1) / w->n_strips * MR, w->rows.end)},
        .columns = {j, least(j + COLUMNS, w->columns.end)},
        .k = {l, least(l + w->depth, w->g->k)},
        .a = w->a[number % 2],
        .b = w->b[of_b % 2],
        .new_b = strip == 0};
}

/* ---- packing ---- */

/* Floats from tile to tile of packed columns of A: some more than the tile has, since copies of a
 * row's part are made in whole vectors. */
inline_ int64_t tile_stride(int64_t k) {
    return k * MR + 16;
}

#if defined(__AVX512F__) && defined(FTH_REAL_IS_f32)
/* PIECE of k for a tile, [PIECE][MR]: three vectors, each from parts of three or four rows. */
inline_ void pack_tile(float *restrict_ to, const float *restrict_ from, int64_t ld) {
    __m512 a = _mm512_maskz_loadu_ps(0x003f, from);
    a = _mm512_mask_loadu_ps(a, 0x0fc0, from + ld - 6);
    a = _mm512_mask_loadu_ps(a, 0xf000, from + 2 * ld - 12);
    __m512 b = _mm512_maskz_loadu_ps(0x0003, from + 2 * ld + 4);
    b = _mm512_mask_loadu_ps(b, 0x00fc, from + 3 * ld - 2);
    b = _mm512_mask_loadu_ps(b, 0x3f00, from + 4 * ld - 8);
    b = _mm512_mask_loadu_ps(b, 0xc000, from + 5 * ld - 14);
    __m512 c = _mm512_maskz_loadu_ps(0x000f, from + 5 * ld + 2);
    c = _mm512_mask_loadu_ps(c, 0x03f0, from + 6 * ld - 4);
    c = _mm512_mask_loadu_ps(c, 0xfc00, from + 7 * ld - 10);
    _mm512_storeu_ps(to, a);
    _mm512_storeu_ps(to + 16, b);
    _mm512_storeu_ps(to + 32, c);
}
enum { TILE_READS = MR }; /* columns that pack_tile reads */
#else
/* At least MR numbers; up to 8 are read and written. */
inline_ void copy_tile_row(float *restrict_ to, const real *restrict_ from) {
#if defined(__AVX2__) && defined(FTH_REAL_IS_bf16)
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
#elif defined(__AVX2__)
    _mm256_storeu_ps(to, _mm256_loadu_ps(from));
#else
    for (int i = 0; i < MR; i++) to[i] = from_real(from[i]);
#endif
}

/* PIECE of k for a tile: [PIECE][MR], and up to 2 floats behind it. */
inline_ void pack_tile(float *restrict_ to, const real *restrict_ from, int64_t ld) {
#pragma GCC unroll 8
    for (int64_t l = 0; l < PIECE; l++) copy_tile_row(to + l * MR, from + l * ld);
}
enum { TILE_READS = 8 };
#endif

/* sums += n columns of `k` rows. */
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

/* n of k, from l on, of a block's A, counted from where the block begins; PIECE at most. */
static void pack_a(const work *w, const block *b, int64_t l, int64_t n) {
    const int64_t stride = tile_stride(b->k.end - b->k.begin), ld = w->g->a.ld;
    const int64_t columns = b->rows.end - b->rows.begin;
    const real *from = w->g->a.data + (b->k.begin + l) * ld + b->rows.begin;
    float *to = b->a + l * MR;
    int64_t i = 0;
    if (w->sums && b->columns.begin == w->columns.begin)
        add_columns(w->sums + b->rows.begin, from, ld, columns, n);
    if (w->whole_a) return;
    for (; n == PIECE && i + TILE_READS <= columns; i += MR, to += stride)
        pack_tile(to, from + i, ld);
    for (; i < columns; i++) {
        float *tile = b->a + i / MR * stride + i % MR + l * MR;
        for (int64_t q = 0; q < n; q++) tile[q * MR] = from_real(from[q * ld + i]);
    }
}

/* The same of its B. */
static void pack_b(const work *w, const block *b, int64_t l, int64_t n) {
    const rows from = w->g->b;
    pack_b_rows(b->b + l * NR, panel_stride(b->k.end - b->k.begin),
                from.data + (b->k.begin + l) * from.ld + b->columns.begin, from.ld,
                b->columns.end - b->columns.begin, n);
}

/* Pieces [begin, end) of a block. */
static void pack_pieces(const work *w, const block *b, fth_share pieces) {
    const int64_t k = b->k.end - b->k.begin;
    for (int64_t l = pieces.begin * PIECE; l < k && l < pieces.end * PIECE; l += PIECE) {
        if (!w->whole_a || w->sums) pack_a(w, b, l, least(PIECE, k - l));
        if (b->new_b && !w->whole_b) pack_b(w, b, l, least(PIECE, k - l));
    }
}

/* ---- asking ---- */

typedef struct asks {
    const char *at[MOST_ASKS]; /* ASK bytes from here on */
    int64_t n;
} asks;

static void ask_rows(asks *q, const void *from, int64_t step, int64_t rows_, int64_t bytes) {
    const char *at = from;
    for (int64_t i = 0; i < rows_; i++, at += step)
        for (int64_t c = 0; c < bytes && q->n < MOST_ASKS; c += ASK) q->at[q->n++] = at + c;
}

/* What the packing of pieces of a block will read. */
static void ask_pieces(asks *q, const work *w, const block *b, fth_share pieces) {
    const rows a = w->g->a, x = w->g->b;
    const int64_t size = (int64_t)sizeof(real), l = b->k.begin + pieces.begin * PIECE;
    const int64_t n = least(b->k.end, b->k.begin + pieces.end * PIECE) - l;
    ask_rows(q, a.data + l * a.ld + b->rows.begin, a.ld * size, n,
             (b->rows.end - b->rows.begin) * size);
    if (b->new_b)
        ask_rows(q, x.data + l * x.ld + b->columns.begin, x.ld * size, n,
                 (b->columns.end - b->columns.begin) * size);
}

/* Rows of C from `row` on. */
static void ask_c(asks *q, const work *w, const block *b, int64_t row) {
    const full_rows c = w->g->c_full;
    const int64_t size = (int64_t)sizeof(float);
    ask_rows(q, c.data + row * c.ld + b->columns.begin, c.ld * size, least(MR, b->rows.end - row),
             (b->columns.end - b->columns.begin) * size);
}

/* What is needed after a block's tiles at `row`: C's next rows, and what is packed then. */
static void ask_ahead(asks *q, const work *w, const block *b, int64_t row, const block *next,
                      fth_share pieces) {
    q->n = 0;
    if (w->whole_a && w->whole_b) return; /* thin maps are in the caches anyway */
    if (row + MR < b->rows.end)
        ask_c(q, w, b, row + MR);
    else if (next)
        ask_c(q, w, next, next->rows.begin);
    if (next) ask_pieces(q, w, next, pieces);
}

/* ---- multiplying ---- */

static gemm_tile tile_at(const work *w, const block *b, int64_t row, int64_t column) {
    const full_rows c = w->g->c_full;
    if (!w->direct) return (gemm_tile){.c = w->acc + column - b->columns.begin, .ldc = COLUMNS};
    gemm_tile t = {.c = c.data + row * c.ld + column, .ldc = c.ld};
    if (gemm_adds(w->g, b->k.begin)) {
        t.addend = t.c;
        t.ld_addend = t.ldc;
    }
    return t;
}

/* A row of tiles, which ask for what is in q. */
static void multiply_rows(const work *w, const block *b, int64_t row, const asks *q) {
    const gemm *g = w->g;
    const int64_t high = least(MR, b->rows.end - row), k = b->k.end - b->k.begin;
    const int64_t n = b->columns.end - b->columns.begin, panels = (n + NR - 1) / NR;
    gemm_factors f = {.k = k,
                      .a = b->a + (row - b->rows.begin) / MR * tile_stride(k),
                      .a_step = MR,
                      .b_step = w->whole_b ? g->b.ld : NR};
    if (w->whole_a) {
        f.a = (const float *)(const void *)(g->a.data + b->k.begin * g->a.ld + row);
        f.a_step = g->a.ld;
    }
    const int64_t share = (q->n + panels - 1) / panels; /* of what is asked for, a tile's */
    for (int64_t p = 0; p < panels; p++) {
        const int64_t j = b->columns.begin + p * NR;
        const gemm_tile t = tile_at(w, b, row, j);
        f.b = w->whole_b ? (const float *)(const void *)(g->b.data + b->k.begin * g->b.ld + j)
                         : b->b + p * panel_stride(k);
        f.ask = q->at + least(p * share, q->n);
        f.n_asks = least(share, q->n - p * share);
        multiply_tile(high, true, &f, &t);
    }
    for (int64_t i = 0; i < high && !w->direct; i++) FTH_NAME(gemm_finish_row)
    (g, row + i, b->columns.begin, n, b->k.begin, w->acc + i * COLUMNS);
}

/* Pieces that are packed after tile t of the block before. */
static fth_share pieces_of(const block *b, int64_t t, int64_t tiles) {
    const int64_t pieces = (b->k.end - b->k.begin + PIECE - 1) / PIECE;
    return (fth_share){pieces * t / tiles, pieces * (t + 1) / tiles};
}

/* All tiles of a block, while the next one (NULL: there is none) is packed. */
static void multiply_block(const work *w, const block *b, const block *next) {
    const int64_t tiles = (b->rows.end - b->rows.begin + MR - 1) / MR;
    for (int64_t t = 0; t < tiles; t++) {
        asks q;
        const int64_t row = b->rows.begin + t * MR;
        const fth_share pieces = next ? pieces_of(next, t, tiles) : (fth_share){0, 0};
        ask_ahead(&q, w, b, row, next, pieces);
        multiply_rows(w, b, row, &q);
        if (next) pack_pieces(w, next, pieces);
    }
}

/* How many threads share the rows; the others of the team share the columns: as little packing as
 * can be. */
static int row_threads(const fth_team *team, int64_t m, int64_t n) {
    int best = 1;
    int64_t least_packed = INT64_MAX;
    for (int by_rows = 1; by_rows <= team->n_threads; by_rows++) {
        const int64_t high = m / by_rows, wide = n * by_rows / team->n_threads;
        const int64_t packed = high * ((wide + COLUMNS - 1) / COLUMNS) + wide;
        if (team->n_threads % by_rows || packed >= least_packed) continue;
        least_packed = packed;
        best = by_rows;
    }
    return best;
}

void FTH_NAME(gemm_accumulate)(const gemm *g, const fth_team *team, void *own) {
    const int by_rows = row_threads(team, g->m, g->n);
    const int by_columns = team->n_threads / by_rows;
    const fth_team row_team = {team->thread / by_columns, by_rows, NULL};
    const fth_team column_team = {team->thread % by_columns, by_columns, NULL};
    float *a = own, *b = a + 2 * whole_lines(A_FLOATS);
    work w = {.g = g,
              .rows = fth_team_share(&row_team, g->m, 1),
              .columns = fth_team_share(&column_team, g->n, NR),
              .direct = g->n % NR == 0,
              .whole_a = REAL_DTYPE == FTH_F32 && gemm_is_thin(g->a),
              .whole_b = REAL_DTYPE == FTH_F32 && gemm_is_thin(g->b) && g->n % NR == 0,
              .sums = column_team.thread == 0 ? g->a_sums : NULL,
              .a = {a, a + whole_lines(A_FLOATS)},
              .b = {b, b + B_FLOATS},
              .acc = b + 2 * B_FLOATS};
    const int64_t m = w.rows.end - w.rows.begin, n = w.columns.end - w.columns.begin;
    w.n_strips = (m + STRIP - 1) / STRIP;
    w.n_columns = (n + COLUMNS - 1) / COLUMNS;
    const int64_t most = w.whole_a && w.whole_b ? WHOLE_DEPTH : DEPTH;
    const int64_t depths = (g->k + most - 1) / most, each = (g->k + depths - 1) / depths;
    w.depth = (each + PIECE - 1) / PIECE * PIECE;
    w.n_blocks = w.n_strips * w.n_columns * ((g->k + w.depth - 1) / w.depth);
    if (w.n_blocks == 0) return;
    block now = block_at(&w, 0);
    pack_pieces(&w, &now, pieces_of(&now, 0, 1));
    for (int64_t i = 0; i < w.n_blocks; i++) {
        const bool last = i + 1 == w.n_blocks;
        const block next = last ? now : block_at(&w, i + 1);
        multiply_block(&w, &now, last ? NULL : &next);
        now = next;
    }
}
