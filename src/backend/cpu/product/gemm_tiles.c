/* gemm_tiles.c: products on tiles of the matrix unit (backend/cpu/tile/pairs.h), of bf16, or of
 * floats in three parts (tiles_pack_parts.h). 2 m n k operations, of floats six times as many;
 * bound by the unit, and by the second-level cache, which gives it B.
 *
 * Both factors become tiles. A set of strips of B, 32 columns each, stays in the second-level cache
 * while blocks of 32 rows of A meet it; such a block, at most DEPTH deep, stays in the first-level
 * cache. The unit works by itself, so all other work is cut into small pieces that are done between
 * its instructions: while a block of C is multiplied, the sums of the last one become results, and
 * the next block of A is packed, or asked for where it lies, as is B where it has been packed
 * before. */
#include "backend/cpu/product/gemm_tiles_work.h"

int64_t FTH_NAME(gemm_tiles_bytes)(void) {
    return (2 * PARTS * SIDE * DEPTH + SET_NUMBERS) * (int64_t)sizeof(uint16_t) +
           (MOST_BLOCKS + APART) * SQUARE * (int64_t)sizeof(float);
}

/* ---- A ---- */

/* Whether the unit takes a block of A where it lies. Rows whose lines fall into few sets of the
 * cache drive each other out of it, but so few strips do not pay for packing. */
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

inline_ void prepare(void *context, const bool packs) {
    work *w = context;
    if (w->part == w->parts || --w->wait > 0) return;
    const int64_t end = least(w->part + w->parts_at_once, w->parts);
    for (int64_t i = w->part; i < end; i++) {
        const int64_t at = i / ROW_PARTS;
        const int part = (int)(i % ROW_PARTS);
        if (packs)
            pack_and_ask(ROWS, w->a_next + at * PLACE, square_of_a(w, at), square_of_a(w, at + 1),
                         part);
        else
            ask_for(ROWS, square_of_a(w, at), part * ROWS_AT_ONCE, ROWS_AT_ONCE);
    }
    w->part = end;
    w->wait = w->interval;
}

static void pack_next(void *context) {
    prepare(context, true);
}

static void ask_for_next(void *context) {
    prepare(context, false);
}

/* The next block of A is to be made ready in so many turns. */
static void choose_next(work *w, int64_t n_turns) {
    const bool lies = lies_well(w, &w->next);
    w->a_next = w->a == w->a_room ? w->a_room + PARTS * SIDE * DEPTH : w->a_room;
    w->prepare = lies ? ask_for_next : pack_next;
    w->part = 0;
    w->parts = lies && w->few ? 0 : ROW_PARTS * sides(depth_of(&w->next));
    w->parts_at_once = pieces_of(w->parts, n_turns);
    w->interval = w->parts ? n_turns / w->parts : 0;
    w->wait = 0;
}

static void complete_next(work *w) {
    w->interval = w->wait = 0;
    while (w->part < w->parts) w->prepare(w);
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

/* In the order of the memory, and before its first product: what is packed while the unit works
 * takes as long, and two sets would need room in the cache. */
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

/* To the second-level cache, every second line: its neighbour comes with it, and more lines than
 * that wait for one another. */
static void ask_for_strip(work *w) {
    const int64_t left = w->asked - w->ask;
    const int64_t now = least(w->asked_at_once, left);
    for (int64_t i = 0; i < now; i += 2 * TILE_LINE) __builtin_prefetch(w->ask + i, 0, 2);
    w->ask += now;
}

static void prepare_and_ask(void *context) {
    work *w = context;
    w->prepare(w);
    ask_for_strip(w);
}

/* What was packed before comes from far away when the first rows meet it: the next strip is asked
 * for while this one is multiplied. */
static void choose_strip(work *w, const place *p, int64_t strip, int64_t n_turns) {
    const bool last = strip + 1 == sides(p->set.n_columns);
    const place *at = last ? &w->next : p;
    if (at->row != w->rows.begin || at->set.column >= w->columns.end) return;
    const int64_t lines = sides(depth_of(at)) * PLACE * (int64_t)sizeof(uint16_t) / TILE_LINE;
    w->ask = (const char *)strip_at(w, at, last ? 0 : strip + 1);
    w->asked = w->ask + lines * TILE_LINE;
    w->asked_at_once = pieces_of(lines, 2 * n_turns) * 2 * TILE_LINE;
}

/* ---- C ---- */

/* Some rows of the block that is done. */
inline_ void finish(void *context, const ending t) {
    work *w = context;
    finish_rows(w->g, &w->done, least(w->finished_at_once, w->done.n_rows), t);
}

static void finish_sums(void *context) {
    finish(context, (ending){.bare = true, .full = true});
}

static void finish_outputs(void *context) {
    finish(context, (ending){.bare = true});
}

static void finish_others(void *context) {
    const work *w = context;
    finish(context, (ending){.full = w->g->c_full.data});
}

/* Columns at an edge, and what is rare. */
static void finish_any(void *context) {
    work *w = context;
    result *r = &w->done;
    const int64_t n = least(w->finished_at_once, r->n_rows), columns = least(SIDE, r->n_columns);
    for (int64_t i = 0; i < n; i++)
        FTH_NAME(gemm_finish_row)(w->g, r->row + i, r->column, columns, 0, r->sums + i * SIDE);
    leave_rows(r, n);
}

static turn *way_to_finish(const work *w) {
    const gemm *g = w->g;
    const bool bare = !g->addend.data && !g->pre.data && !g->saved.data;
    if (w->done.n_columns < SIDE || g->act == FTH_ACT_GELU) return finish_any;
    if (!bare) return finish_others;
    return g->c_full.data ? finish_sums : finish_outputs;
}

static void complete_done(work *w) {
    while (w->done.n_rows > 0) w->finish(w);
}

/* These are to become results in so many turns. */
static void choose_done(work *w, result r, int64_t n_turns) {
    complete_done(w);
    w->done = r;
    w->finish = way_to_finish(w);
    w->finished_at_once = pieces_of(SIDE, n_turns);
}

/* Sums for a strip and the rows of p; those that lay there before are used no more. */
static float *sums_of(work *w, const place *p, int64_t strip) {
    const int64_t block = (p->row - p->set.row) / SIDE * sides(p->set.n_columns) + strip;
    float *sums = w->sums + block % w->ring * SQUARE;
    if (w->done.sums >= sums && w->done.sums < sums + SQUARE) complete_done(w);
    return sums;
}

/* ---- the product ---- */

/* Six products of parts are added up where one of floats would be: so long a sum would lose more
 * than floats do. */
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
                         .context = w};
    for (int64_t s = 0; s < strips; s++) {
        float *sums = sums_of(w, p, s);
        if (w->ready) choose_strip(w, p, s, turns(steps));
        x.b = packed_tiles(strip_at(w, p, s));
        x.c = apart ? w->apart + s * SQUARE : sums;
        x.meanwhile[0] = w->done.n_rows > 0 ? w->finish : NULL;
        x.meanwhile[1] = w->ready ? prepare_and_ask : w->prepare;
        w->g->pairs->tiles.product(&x);
        if (apart && set_ends) add_block(sums, x.c);
        if (set_ends && p->set.l + p->set.depth == w->g->k)
            choose_done(w,
                        (result){p->row, p->set.column + s * SIDE, rows_of_block(p),
                                 p->set.n_columns - s * SIDE, sums},
                        turns(steps));
    }
}

static void multiply_share(work *w) {
    place at = {.set = {.column = w->columns.begin, .row = w->rows.begin}, .row = w->rows.begin};
    bool more = true, new_set = true;
    measure(w, &at.set);
    w->next = at;
    choose_next(w, 1);
    while (more) {
        complete_next(w);
        at = w->next;
        w->a = w->a_next;
        if (new_set && !w->ready) pack_set(w, &at.set);
        more = next_place(w, &w->next);
        new_set = w->next.set.number != at.set.number;
        if (more) choose_next(w, sides(at.set.n_columns) * turns(sides(depth_of(&at))));
        multiply(w, &at);
    }
    complete_done(w);
}

/* Strips of a set: as many as there is room for, all sets of nearly the same width. */
static int64_t strips_of_a_set(const gemm *g, int64_t strips) {
    const int64_t room = SET_NUMBERS / (PLACE * sides(least(g->k, SET_DEPTH)));
    const int64_t fit = least(MOST_BLOCKS, room), sets = (strips + fit - 1) / fit;
    return (strips + sets - 1) / sets;
}

void FTH_NAME(gemm_tiles)(const gemm *g, const void *panels, fth_cpu_share rows_,
                          fth_cpu_share columns, void *own) {
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
void FTH_NAME(pack_tiles)(const fth_tensor *w, fth_cpu_share panels, void *to) {
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
