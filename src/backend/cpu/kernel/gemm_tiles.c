/* gemm_tiles.c: products on tiles of the matrix unit (backend/cpu/pairs.h), of bf16, or of floats in three
 * parts (tiles_pack_parts.h). 2 m n k operations, of floats six times as many; bound by the unit, and by
 * the second-level cache, which gives it B.
 *
 * Both factors become tiles. A set of strips of B, 32 columns each, stays in the second-level cache while
 * blocks of 32 rows of A meet it; such a block, at most DEPTH deep, stays in the first-level cache. The
 * unit works by itself, so all other work is cut into small pieces that are done between its
 * instructions: while a block of C is multiplied, the sums of the last one become results, and the next
 * block of A is packed, or asked for where it lies, as is B where it has been packed before. */
#include "backend/cpu/kernel/gemm_tiles_work.h"

int64_t FTH_NAME(gemm_tiles_bytes)(void) {
    return (2 * PARTS * SIDE * DEPTH + SET_NUMBERS) * (int64_t)sizeof(uint16_t) +
           (MOST_BLOCKS + APART) * SQUARE * (int64_t)sizeof(float);
}

/* ---- A ---- */

/* Whether the unit takes a block of A where it lies. Rows whose lines fall into few sets of the cache
 * drive each other out of it, but so few strips do not pay for packing. */
static bool lies_well(const work *w, const place *p) {
    const bool whole = rows_of_block(p) == SIDE && depth_of(p) % SIDE == 0;
    const bool apart = w->g->a.ld % FAR != 0;
    return REAL_DTYPE == FTH_BF16 && whole && (apart || w->few);
}

static fth_tiles packed_tiles(const uint16_t *first) {
    return (fth_tiles){first, TILE_LINE, TWO_TILES / 2, PARTS * TWO_TILES, TWO_TILES};
}

static fth_tiles tiles_of_a(const work *w, const place *p) {
    const rows a = w->g->a;
    const int64_t stride = a.ld * (int64_t)sizeof(real);
    if (!lies_well(w, p)) return packed_tiles(w->a);
    return (fth_tiles){a.data + p->row * a.ld + p->l, stride, TILE_ROWS * stride, TILE_LINE, 0};
}

/* A square of the next block of A. */
static square square_of_a(const work *w, int64_t i) {
    const rows a = w->g->a;
    const int64_t row = w->next.row, l = w->next.l + i * SIDE;
    return (square){(const char *)(a.data + row * a.ld + l), a.ld * (int64_t)sizeof *a.data,
                    w->g->m - row, w->g->k - l};
}

static void ask_for_rows(const work *w, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        ask_for(ROWS, square_of_a(w, i / ROW_PARTS), (int)(i % ROW_PARTS) * ROWS_AT_ONCE,
                ROWS_AT_ONCE);
}

static void pack_next_rows(const work *w, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = i / ROW_PARTS;
        pack_and_ask(ROWS, w->a_next + at * PLACE, square_of_a(w, at), square_of_a(w, at + 1),
                     (int)(i % ROW_PARTS));
    }
}

/* ---- B ---- */

inline_ square square_of_b(const gemm *g, const set *s, const packing how, int64_t strip,
                           int64_t step) {
    const bool floats = how == FLOATS || how == FLOATS_TURNED;
    const bool turned = how == PAIRS_TURNED || how == FLOATS_TURNED;
    const int64_t column = s->column + strip * SIDE, n = g->n - column;
    const int64_t l = s->l + step * SIDE, depth = g->k - l;
    const int64_t size = floats ? sizeof(float) : sizeof(real),
                  ld = floats ? g->b_full.ld : g->b.ld;
    const char *first = floats ? (const char *)g->b_full.data : (const char *)g->b.data;
    if (turned) return (square){first + (column * ld + l) * size, ld * size, n, depth};
    return (square){first + (l * ld + column) * size, ld * size, depth, n};
}

/* All squares of a set: strip by strip where columns of B lie in rows, else step by step. */
inline_ void pack_strips(const work *w, const set *s, const packing how) {
    const bool turned = how == PAIRS_TURNED || how == FLOATS_TURNED;
    const int64_t strips = sides(s->n_columns), steps = sides(s->depth);
    const int64_t inner = turned ? steps : strips, outer = turned ? strips : steps;
    square x = square_of_b(w->g, s, how, 0, 0);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            const int64_t next_j = j + 1 < inner ? j + 1 : 0, next_i = next_j ? i : i + 1;
            const int64_t strip = turned ? i : j, step = turned ? j : i;
            const square next = turned ? square_of_b(w->g, s, how, next_i, next_j)
                                       : square_of_b(w->g, s, how, next_j, next_i);
            for (int part = 0; part < TURNED_PARTS; part++)
                pack_and_ask(how, w->b + (strip * steps + step) * PLACE, x, next, part);
            x = next;
        }
}

/* In the order of the memory, and before its first product: what is packed while the unit works takes as
 * long, and two sets would need room in the cache. */
static void pack_set(const work *w, const set *s) {
    const bool by_column = w->g->b_by_column;
#ifdef FTH_REAL_IS_bf16
    if (w->g->b_full.data) {
        if (by_column)
            pack_strips(w, s, FLOATS_TURNED);
        else
            pack_strips(w, s, FLOATS);
        return;
    }
#endif
    if (by_column)
        pack_strips(w, s, PAIRS_TURNED);
    else
        pack_strips(w, s, PAIRS);
}

/* A strip of a set, from the place's l on. */
static const uint16_t *strip_at(const work *w, const place *p, int64_t strip) {
    const set *s = &p->set;
    if (w->ready)
        return w->ready + ((s->column / SIDE + strip) * sides(w->g->k) + sides(p->l)) * PLACE;
    return w->b + (strip * sides(s->depth) + sides(p->l - s->l)) * PLACE;
}

/* Half of a place at a time, to the second-level cache, every second line: its neighbour comes with it, and
 * more lines than that wait for one another. */
static void ask_for_strip(const work *w, int64_t begin, int64_t end) {
    enum { HALF = PLACE * (int)sizeof(uint16_t) / 2 };
    const char *from = (const char *)w->asked;
    for (int64_t i = begin * HALF; i < end * HALF; i += 2 * TILE_LINE)
        __builtin_prefetch(from + i, 0, 2);
}

/* What was packed before comes from far away when the first rows meet it: the next strip is asked for while
 * this one is multiplied. */
static void choose_ready_strip(work *w, const place *p, int64_t strip, int64_t steps) {
    const bool last = strip + 1 == sides(p->set.n_columns);
    const place *at = last ? &w->next : p;
    if (!w->ready || at->row != w->rows.begin || at->set.column >= w->columns.end) return;
    w->asked = strip_at(w, at, last ? 0 : strip + 1);
    start(&w->ask_job, ask_for_strip, 2 * sides(depth_of(at)), PARTS * steps);
}

/* ---- C ---- */

/* Some rows at a time of the block that is done. */
inline_ void finish(const work *w, int64_t begin, int64_t end, const ending t) {
    finish_rows(w->g, &w->done, begin * FINISHED, least(end * FINISHED, w->done.n_rows), t);
}

static void finish_sums(const work *w, int64_t begin, int64_t end) {
    finish(w, begin, end, (ending){.bare = true, .full = true});
}

static void finish_outputs(const work *w, int64_t begin, int64_t end) {
    finish(w, begin, end, (ending){.bare = true});
}

static void finish_others(const work *w, int64_t begin, int64_t end) {
    finish(w, begin, end, (ending){.full = w->g->c_full.data});
}

/* Columns at an edge, and what is rare. */
static void finish_any(const work *w, int64_t begin, int64_t end) {
    const result *r = &w->done;
    const int64_t n = least(SIDE, r->n_columns), last = least(end * FINISHED, r->n_rows);
    for (int64_t i = begin * FINISHED; i < last; i++)
        FTH_NAME(gemm_finish_row)(w->g, r->row + i, r->column, n, 0, r->sums + i * SIDE);
}

static pieces *way_to_finish(const work *w) {
    const gemm *g = w->g;
    const bool bare = !g->addend.data && !g->pre.data && !g->saved.data;
    if (w->done.n_columns < SIDE || g->act == FTH_ACT_GELU) return finish_any;
    if (!bare) return finish_others;
    return g->c_full.data ? finish_sums : finish_outputs;
}

/* Sums for a strip and the rows of p; those that lay there before are used no more. */
static float *sums_of(work *w, const place *p, int64_t strip) {
    const int64_t block = (p->row - p->set.row) / SIDE * sides(p->set.n_columns) + strip;
    float *sums = w->sums + block % w->ring * SQUARE;
    if (sums == w->done.sums) complete(w, &w->finish_job, w->finish_job.end);
    return sums;
}

/* ---- the product ---- */

/* Six products of parts are added up where one of floats would be: so long a sum would lose more than
 * floats do. */
static bool adds_apart(const place *p) {
    return APART && p->set.l > 0;
}

static void add_block(float *restrict_ sums, const float *restrict_ more) {
#pragma GCC unroll 4
    for (int i = 0; i < SQUARE; i += VW)
        v_store(sums + i, v_add(v_load(sums + i), v_load(more + i)));
}

/* The present block of A with all strips of its set. */
static void multiply(work *w, const place *p) {
    const bool apart = adds_apart(p), set_ends = p->l + depth_of(p) == p->set.l + p->set.depth;
    const int64_t strips = sides(p->set.n_columns), steps = sides(depth_of(p));
    fth_tiles_block x = {.two = rows_of_block(p) > TILE_ROWS,
                         .narrow = w->narrow,
                         .add = p->l > (apart ? p->set.l : 0),
                         .parts = PARTS > 1,
                         .a = tiles_of_a(w, p),
                         .steps = steps,
                         .c_stride = SIDE * (int)sizeof(float),
                         .meanwhile = meanwhile,
                         .context = w};
    for (int64_t s = 0; s < strips; s++) {
        float *sums = sums_of(w, p, s);
        choose_ready_strip(w, p, s, steps);
        x.b = packed_tiles(strip_at(w, p, s));
        x.c = apart ? w->apart + s * SQUARE : sums;
        w->g->pairs->tiles.product(&x);
        if (apart && set_ends) add_block(sums, x.c);
        if (p->l + depth_of(p) < w->g->k) continue;
        complete(w, &w->finish_job, w->finish_job.end);
        w->done = (result){p->row, p->set.column + s * SIDE, rows_of_block(p),
                           p->set.n_columns - s * SIDE, sums};
        start(&w->finish_job, way_to_finish(w), SIDE / FINISHED, PARTS * steps);
    }
}

/* The next block of A, to be made ready during some steps. */
static void choose_rows(work *w, int64_t steps) {
    const int64_t parts = ROW_PARTS * sides(depth_of(&w->next));
    w->a_next = w->a == w->a_room ? w->a_room + PARTS * SIDE * DEPTH : w->a_room;
    if (!lies_well(w, &w->next))
        start(&w->rows_job, pack_next_rows, parts, steps);
    else
        start(&w->rows_job, ask_for_rows, w->few ? 0 : parts, steps);
}

static void multiply_share(work *w) {
    place at = {.set = {.column = w->columns.begin, .row = w->rows.begin}, .row = w->rows.begin};
    bool more = true, new_set = true;
    measure(w, &at.set);
    w->next = at;
    choose_rows(w, 1);
    while (more) {
        complete(w, &w->rows_job, w->rows_job.end);
        at = w->next;
        w->a = w->a_next;
        if (new_set && !w->ready) pack_set(w, &at.set);
        more = next_place(w, &w->next);
        new_set = w->next.set.number != at.set.number;
        if (more) choose_rows(w, sides(at.set.n_columns) * turns(depth_of(&at)));
        multiply(w, &at);
    }
    complete(w, &w->finish_job, w->finish_job.end);
}

/* Strips of a set: as many as there is room for, all sets of nearly the same width. */
static int64_t strips_of_a_set(const gemm *g, int64_t strips) {
    const int64_t room = SET_NUMBERS / (PLACE * sides(least(g->k, SET_DEPTH)));
    const int64_t fit = least(MOST_BLOCKS, room), sets = (strips + fit - 1) / fit;
    return (strips + sets - 1) / sets;
}

void FTH_NAME(gemm_tiles)(const gemm *g, const void *panels, fth_share rows_, fth_share columns,
                          void *own) {
    if (rows_.begin >= rows_.end || columns.begin >= columns.end) return;
    const int64_t n_rows = rows_.end - rows_.begin;
    const int64_t strips = strips_of_a_set(g, sides(columns.end - columns.begin));
    uint16_t *a = own, *b = a + 2 * PARTS * SIDE * DEPTH;
    work w = {.g = g,
              .rows = rows_,
              .columns = columns,
              .ready = panels,
              .width = strips * SIDE,
              .height = g->k <= SET_DEPTH ? n_rows : MOST_BLOCKS / strips * SIDE,
              .ring = g->k <= DEPTH       ? 2
                      : g->k <= SET_DEPTH ? strips
                                          : MOST_BLOCKS,
              .a_room = a,
              .b = b,
              .apart = (float *)(void *)(b + SET_NUMBERS),
              .sums = (float *)(void *)(b + SET_NUMBERS) + APART * SQUARE,
              .few = columns.end - columns.begin <= FEW_STRIPS * SIDE,
              .narrow = g->pairs->tiles.crowded &&
                        g->pairs->tiles.crowded(n_rows * (columns.end - columns.begin) * g->k)};
    g->pairs->tiles.begin();
    multiply_share(&w);
    g->pairs->tiles.end();
}

/* ---- packing before ---- */

#ifdef FTH_REAL_IS_bf16
void FTH_NAME(pack_tiles)(const fth_tensor *w, fth_share panels, void *to) {
    enum { STRIPS = FTH_PAIRS_COLUMNS / SIDE }; /* of a panel */
    const int64_t size = sizeof(real), steps = sides(w->width);
    for (int64_t i = panels.begin * STRIPS * steps; i < panels.end * STRIPS * steps; i++) {
        const int64_t column = i / steps * SIDE, l = i % steps * SIDE;
        const square x = {(const char *)w->data + (column * w->ld + l) * size, w->ld * size,
                          w->rows - column, w->width - l};
        for (int part = 0; part < TURNED_PARTS; part++)
            pack(PAIRS_TURNED, (uint16_t *)to + i * PLACE, x, part);
    }
}
#endif
