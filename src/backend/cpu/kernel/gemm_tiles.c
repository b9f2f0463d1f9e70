/* gemm_tiles.c: products of bf16 on tiles of the matrix unit (backend/cpu/pairs.h). 2 m n k operations;
 * bound by the unit, and by the second-level cache, which gives it B.
 *
 * Both factors become tiles. A set of strips of B, 32 columns each, stays in the second-level cache while
 * blocks of 32 rows of A meet it; such a block, at most DEPTH deep, stays in the first-level cache. The
 * unit works by itself, so all other work is cut into small pieces that are done between its
 * instructions: while a block of C is multiplied, the sums of the last one become results, and the next
 * block of A and the next strips of B are packed. */
#include "backend/cpu/kernel/gemm.h"

#ifdef FTH_REAL_IS_bf16

#include "backend/cpu/kernel/tiles_pack.h"

enum {
    DEPTH = 512,                        /* of a block of A: 32 KB */
    SET_DEPTH = 2048,                   /* most of k that a set has */
    SET_NUMBERS = 4 * SIDE * SET_DEPTH, /* of bf16: 512 KB */
    MOST_BLOCKS = 32,                   /* of C whose sums wait for the rest of k */
    FEW_STRIPS = 4                      /* do not pay for packing A */
};

int64_t FTH_NAME(gemm_tiles_bytes)(void) {
    return 2 * (SIDE * DEPTH + SET_NUMBERS) * (int64_t)sizeof(real) +
           MOST_BLOCKS * SQUARE * (int64_t)sizeof(float);
}

/* Strips of B and the rows of A that meet them. */
typedef struct set {
    int64_t number;
    int64_t column, row, l; /* the first of each, */
    int64_t n_columns, n_rows, depth;
} set;

/* A block of A that meets a set. */
typedef struct place {
    set set;
    int64_t row, l; /* its first */
} place;

/* Work in pieces that are spread over some steps of the unit. */
typedef struct work work;
typedef struct job {
    void (*piece)(const work *w, int64_t i);
    int64_t next, end;     /* pieces to be done */
    int64_t pieces, steps; /* so many pieces in so many steps */
    int64_t credit;
} job;

/* A block of C whose sums are complete. */
typedef struct result {
    int64_t row, column, n_columns;
    float *sums; /* [SIDE][SIDE] */
} result;

/* What a thread works with. */
struct work {
    const gemm *g;
    fth_share rows, columns;
    const real *panels;    /* B as it was packed before; NULL: not yet */
    int64_t width, height; /* columns and rows of a set */
    int64_t ring;          /* how many places for sums are used */
    real *a, *a_next;      /* [DEPTH / SIDE][SQUARE] the present block and the next */
    real *b[2];            /* [strips][depth / SIDE][SQUARE] of sets with even and odd numbers */
    float *sums;           /* [MOST_BLOCKS][SIDE][SIDE] */
    place next;            /* what pack_a packs */
    set coming;            /* what pack_b packs */
    result done;           /* what finish finishes */
    job pack_a, pack_b, finish;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Strips of n columns, steps of n numbers along k, blocks of n rows. */
static int64_t sides(int64_t n) {
    return (n + SIDE - 1) / SIDE;
}

/* ---- jobs ---- */

static void start(job *j, int64_t pieces, int64_t steps) {
    *j = (job){.piece = j->piece, .end = pieces, .pieces = pieces, .steps = steps};
}

/* What is due after a step. */
static void advance(const work *w, job *j) {
    if (j->next == j->end) return;
    for (j->credit += j->pieces; j->credit >= j->steps && j->next < j->end; j->credit -= j->steps)
        j->piece(w, j->next++);
}

static void complete(const work *w, job *j, int64_t end) {
    while (j->next < end) j->piece(w, j->next++);
}

static void meanwhile(void *context) {
    work *w = context;
    advance(w, &w->finish);
    advance(w, &w->pack_b);
    advance(w, &w->pack_a);
}

/* ---- the order of things ---- */

static void measure(const work *w, set *s) {
    s->n_columns = least(w->width, w->columns.end - s->column);
    s->n_rows = least(w->height, w->rows.end - s->row);
    s->depth = least(SET_DEPTH, w->g->k - s->l);
}

static bool next_set(const work *w, set *s) {
    s->number++;
    s->l += SET_DEPTH;
    if (s->l >= w->g->k) {
        s->l = 0;
        s->row += w->height;
    }
    if (s->row >= w->rows.end) {
        s->row = w->rows.begin;
        s->column += w->width;
    }
    measure(w, s);
    return s->column < w->columns.end;
}

static bool next_place(const work *w, place *p) {
    p->l += DEPTH;
    if (p->l >= p->set.l + p->set.depth) {
        p->l = p->set.l;
        p->row += SIDE;
    }
    if (p->row < p->set.row + p->set.n_rows) return true;
    if (!next_set(w, &p->set)) return false;
    p->row = p->set.row;
    p->l = p->set.l;
    return true;
}

static int64_t depth_of(const place *p) {
    return least(DEPTH, p->set.l + p->set.depth - p->l);
}

static int64_t rows_of_block(const place *p) {
    return least(SIDE, p->set.row + p->set.n_rows - p->row);
}

/* ---- A ---- */

/* Whether the unit takes a block of A where it lies. */
static bool lies_well(const work *w, const place *p) {
    const bool few = w->columns.end - w->columns.begin <= FEW_STRIPS * SIDE;
    const bool whole = rows_of_block(p) == SIDE && depth_of(p) % SIDE == 0;
    return few && whole && !w->g->accumulate;
}

static fth_tiles tiles_of_a(const work *w, const place *p) {
    const rows a = w->g->a;
    const int64_t stride = a.ld * (int64_t)sizeof(real);
    if (!lies_well(w, p))
        return (fth_tiles){w->a, TILE_LINE, TILE_ROWS * TILE_LINE, 2 * TILE_ROWS * TILE_LINE};
    return (fth_tiles){a.data + p->row * a.ld + p->l, stride, TILE_ROWS * stride, TILE_LINE};
}

/* A square of the next block. */
static void pack_a_piece(const work *w, int64_t i) {
    const rows a = w->g->a;
    const int64_t row = w->next.row, n = w->g->m - row;
    const int64_t l = w->next.l + i * SIDE, depth = w->g->k - l;
    real *to = w->a_next + i * SQUARE;
    if (w->g->accumulate)
        pack_turned(to, (square){a.data + l * a.ld + row, a.ld, depth, n});
    else
        pack_rows(to, (square){a.data + row * a.ld + l, a.ld, n, depth});
}

/* ---- B ---- */

/* A square of the coming set: strip by strip. */
static void pack_b_piece(const work *w, int64_t i) {
    const rows b = w->g->b;
    const int64_t steps = sides(w->coming.depth);
    const int64_t column = w->coming.column + i / steps * SIDE, n = w->g->n - column;
    const int64_t l = w->coming.l + i % steps * SIDE, depth = w->g->k - l;
    real *to = w->b[w->coming.number % 2] + i * SQUARE;
    if (w->g->b_by_column)
        pack_pairs_turned(to, (square){b.data + column * b.ld + l, b.ld, n, depth});
    else
        pack_pairs(to, (square){b.data + l * b.ld + column, b.ld, depth, n});
}

/* The first set is packed strip by strip while its first rows are multiplied, every other one during all
 * of the set before it. */
static void choose_strips(work *w, const place *p) {
    const set *s = &p->set;
    if (w->panels) return;
    if (w->coming.number < s->number) {
        const int64_t pieces = sides(s->n_columns) * sides(s->depth);
        w->coming = *s;
        start(&w->pack_b, pieces, pieces);
        return;
    }
    set next = *s;
    if (w->coming.number > s->number || w->pack_b.next < w->pack_b.end || !next_set(w, &next))
        return;
    const int64_t left = sides(s->row + s->n_rows - p->row) * sides(s->n_columns) * sides(s->depth);
    w->coming = next;
    start(&w->pack_b, sides(next.n_columns) * sides(next.depth), left);
}

/* A strip of the present set, from l on. */
static fth_tiles tiles_of_b(work *w, const place *p, int64_t strip) {
    const set *s = &p->set;
    const int64_t steps = sides(s->depth), line = TILE_ROWS * TILE_LINE;
    if (!w->panels && w->coming.number == s->number) complete(w, &w->pack_b, (strip + 1) * steps);
    const real *strip_ = w->b[s->number % 2] + (strip * steps + sides(p->l - s->l)) * SQUARE;
    if (w->panels)
        strip_ = w->panels + ((s->column / SIDE + strip) * sides(w->g->k) + sides(p->l)) * SQUARE;
    return (fth_tiles){strip_, TILE_LINE, line, 2 * line};
}

/* ---- C ---- */

/* A row of a block. What most products have behind them is done in one go. */
static void finish_piece(const work *w, int64_t i) {
    const gemm *g = w->g;
    const result *r = &w->done;
    float *sums = r->sums + i * SIDE;
    const int64_t row = r->row + i, column = r->column;
    if (r->n_columns < SIDE || g->act == FTH_ACT_GELU) {
        FTH_NAME(gemm_finish_row)(g, row, column, least(SIDE, r->n_columns), 0, sums);
        return;
    }
#pragma GCC unroll 8
    for (int64_t j = 0; j < SIDE; j += VW) {
        vf x = v_load(sums + j);
        if (g->bias) x = v_add(x, v_load(g->bias + column + j));
        if (g->addend.data)
            x = v_add(x, v_load_real(g->addend.data + row * g->addend.ld + column + j));
        if (g->pre.data) v_store_real(g->pre.data + row * g->pre.ld + column + j, x);
        if (g->act == FTH_ACT_RELU && g->saved.data)
            x = v_gate(x, v_load_real(g->saved.data + row * g->saved.ld + column + j));
        else if (g->act == FTH_ACT_RELU)
            x = v_relu(x);
        if (g->c_full.data) {
            float *c = g->c_full.data + row * g->c_full.ld + column + j;
            v_store(c, gemm_adds(g, 0) ? v_add(v_load(c), x) : x);
        } else {
            v_store_real(g->c.data + row * g->c.ld + column + j, x);
        }
    }
}

/* Sums for a strip and the rows of p; those that lay there before are used no more. */
static float *sums_of(work *w, const place *p, int64_t strip) {
    const int64_t block = (p->row - p->set.row) / SIDE * sides(p->set.n_columns) + strip;
    float *sums = w->sums + block % w->ring * SQUARE;
    if (sums == w->done.sums) complete(w, &w->finish, w->finish.end);
    return sums;
}

/* ---- the product ---- */

/* The present block of A with all strips of its set. */
static void multiply(work *w, const place *p) {
    const int64_t strips = sides(p->set.n_columns), steps = sides(depth_of(p));
    fth_tiles_block x = {.two = rows_of_block(p) > TILE_ROWS,
                         .add = p->l > 0,
                         .a = tiles_of_a(w, p),
                         .steps = steps,
                         .c_stride = SIDE * (int)sizeof(float),
                         .meanwhile = meanwhile,
                         .context = w};
    for (int64_t s = 0; s < strips; s++) {
        float *sums = sums_of(w, p, s);
        x.b = tiles_of_b(w, p, s);
        x.c = sums;
        w->g->pairs->tiles.product(&x);
        if (p->l + depth_of(p) < w->g->k) continue;
        complete(w, &w->finish, w->finish.end);
        w->done = (result){p->row, p->set.column + s * SIDE, p->set.n_columns - s * SIDE, sums};
        start(&w->finish, rows_of_block(p), steps);
    }
}

/* The next block of A, to be packed during some steps. */
static void choose_rows(work *w, int64_t steps) {
    start(&w->pack_a, lies_well(w, &w->next) ? 0 : sides(depth_of(&w->next)), steps);
}

static void multiply_share(work *w) {
    place at = {.set = {.column = w->columns.begin, .row = w->rows.begin}, .row = w->rows.begin};
    bool more = true;
    measure(w, &at.set);
    w->next = at;
    choose_rows(w, 1);
    while (more) {
        complete(w, &w->pack_a, w->pack_a.end);
        at = w->next;
        real *packed = w->a_next;
        w->a_next = w->a;
        w->a = packed;
        more = next_place(w, &w->next);
        if (more) choose_rows(w, sides(at.set.n_columns) * sides(depth_of(&at)));
        choose_strips(w, &at);
        multiply(w, &at);
    }
    complete(w, &w->finish, w->finish.end);
}

void FTH_NAME(gemm_tiles)(const gemm *g, const void *panels, fth_share rows_, fth_share columns,
                          void *own) {
    if (rows_.begin >= rows_.end || columns.begin >= columns.end) return;
    const int64_t depth = sides(least(g->k, SET_DEPTH)) * SIDE;
    const int64_t strips =
        least(least(MOST_BLOCKS, SET_NUMBERS / (SIDE * depth)), sides(columns.end - columns.begin));
    real *a = own, *b = a + 2 * SIDE * DEPTH;
    work w = {.g = g,
              .rows = rows_,
              .columns = columns,
              .panels = panels,
              .width = strips * SIDE,
              .height = g->k <= SET_DEPTH ? rows_.end - rows_.begin : MOST_BLOCKS / strips * SIDE,
              .ring = g->k <= DEPTH       ? 2
                      : g->k <= SET_DEPTH ? strips
                                          : MOST_BLOCKS,
              .a = a,
              .a_next = a + SIDE * DEPTH,
              .b = {b, b + SET_NUMBERS},
              .sums = (float *)(void *)(b + 2 * SET_NUMBERS),
              .coming = {.number = -1},
              .pack_a = {.piece = pack_a_piece},
              .pack_b = {.piece = pack_b_piece},
              .finish = {.piece = finish_piece}};
    g->pairs->tiles.begin();
    multiply_share(&w);
    g->pairs->tiles.end();
}

#endif
