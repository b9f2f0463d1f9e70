/* gemm_tiles_work.h: what a thread has to do for a product on tiles (gemm_tiles.c), and in which
 * order: sets of strips of B, blocks of A that meet them, and what is done between the unit's
 * instructions. */
#ifndef FTH_BACKEND_CPU_PRODUCT_GEMM_TILES_WORK_H
#define FTH_BACKEND_CPU_PRODUCT_GEMM_TILES_WORK_H

#include "backend/cpu/product/gemm_tiles_end.h"

#ifdef FTH_REAL_IS_bf16
enum {
    DEPTH = 512,                        /* of a block of A: 32 KB */
    SET_DEPTH = 2048,                   /* most of k that a set has */
    SET_NUMBERS = 8 * SIDE * SET_DEPTH, /* of bf16: 1 MB */
    MOST_BLOCKS = 64,                   /* of C whose sums wait for the rest of k */
    APART = 0                           /* strips of a set whose sums are added up apart */
};
#else
enum {
    DEPTH = 128, /* 24 KB */
    SET_DEPTH = 512,
    APART = 12,
    SET_NUMBERS = APART * SIDE * SET_DEPTH * PARTS, /* 1.1 MB */
    MOST_BLOCKS = 128
};
#endif
enum {
    PLACE = PARTS * SQUARE, /* numbers of a packed square */
    TWO_TILES = SQUARE * (int)sizeof(uint16_t),
    FEW_STRIPS = 4, /* do not pay for packing A */
    FAR = 1024      /* numbers: lines of rows so far apart fall together */
};

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

/* Work for a turn between two steps of the unit (context: a work). The fewer instructions the
 * better. */
typedef void turn(void *context);

/* What a thread works with. */
typedef struct work {
    const gemm *g;
    fth_cpu_share rows, columns;
    const uint16_t *ready; /* B as it was packed before; NULL: not yet */
    int64_t width, height; /* columns and rows of a set */
    int64_t ring;          /* how many places for sums are used */
    uint16_t *a, *a_next;  /* [DEPTH / SIDE][PLACE] the present block and the next: */
    uint16_t *a_room;      /* [2][DEPTH / SIDE][PLACE] in turn here */
    uint16_t *b;           /* [strips][depth / SIDE][PLACE] the present set */
    float *sums;           /* [MOST_BLOCKS][SIDE][SIDE] */
    float *apart;          /* [APART][SIDE][SIDE] sums over the present set, for `sums` */
    bool few;              /* strips */
    bool narrow;           /* few tiles are used at a time */

    result done; /* the last block, of which finish makes results, so many rows in a turn */
    turn *finish;
    int64_t finished_at_once;

    place next; /* of which prepare makes the block of A ready, so many parts every so many turns */
    turn *prepare;
    int64_t part, parts, parts_at_once, interval, wait;

    const char *ask,
        *asked; /* the rest of a strip of B, ready: asked for, so many bytes in a turn */
    int64_t asked_at_once;
} work;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t pieces_of(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

/* Strips of n columns, steps of n numbers along k, blocks of n rows. */
static int64_t sides(int64_t n) {
    return pieces_of(n, SIDE);
}

/* How often the unit gives the rest of the core time in so many steps. */
static int64_t turns(int64_t steps) {
    return PARTS * steps;
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

#endif
