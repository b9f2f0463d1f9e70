/* gemm_tiles_work.h: what a thread has to do for a product on tiles (gemm_tiles.c), and in which order: sets
 * of strips of B, blocks of A that meet them, and the jobs that are done between the unit's instructions. */
#ifndef FTH_BACKEND_CPU_KERNEL_GEMM_TILES_WORK_H
#define FTH_BACKEND_CPU_KERNEL_GEMM_TILES_WORK_H

#include "backend/cpu/kernel/gemm_tiles_end.h"

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
    FINISHED = 4,   /* rows of C at a time become results */
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

/* Work in pieces that are spread over some steps of the unit. */
typedef struct work work;
typedef void pieces(const work *w, int64_t begin, int64_t end); /* does them */
typedef struct job {
    pieces *of;
    int64_t next, end;     /* pieces to be done */
    int64_t pieces, steps; /* so many pieces in so many steps */
    int64_t credit;
} job;

/* What a thread works with. */
struct work {
    const gemm *g;
    fth_share rows, columns;
    const uint16_t *ready; /* B as it was packed before; NULL: not yet */
    const uint16_t *asked; /* the strip of it that ask_job asks for */
    int64_t width, height; /* columns and rows of a set */
    int64_t ring;          /* how many places for sums are used */
    uint16_t *a, *a_next;  /* [DEPTH / SIDE][PLACE] the present block and the next: */
    uint16_t *a_room;      /* [2][DEPTH / SIDE][PLACE] in turn here */
    uint16_t *b;           /* [strips][depth / SIDE][PLACE] the present set */
    float *sums;           /* [MOST_BLOCKS][SIDE][SIDE] */
    float *apart;          /* [APART][SIDE][SIDE] sums over the present set, for `sums` */
    bool few;              /* strips */
    bool narrow;           /* few tiles are used at a time */
    place next;            /* of rows_job */
    result done;           /* of finish_job */
    job rows_job, ask_job, finish_job;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Strips of n columns, steps of n numbers along k, blocks of n rows. */
static int64_t sides(int64_t n) {
    return (n + SIDE - 1) / SIDE;
}

/* How often the unit gives the rest of the core time along so much of k. */
static int64_t turns(int64_t depth) {
    return PARTS * sides(depth);
}

/* ---- jobs ---- */

static void start(job *j, pieces *of, int64_t n, int64_t steps) {
    *j = (job){.of = of, .end = n, .pieces = n, .steps = steps};
}

static void complete(const work *w, job *j, int64_t end) {
    if (j->next >= end) return;
    j->of(w, j->next, end);
    j->next = end;
}

/* What is due after a step. */
static void advance(const work *w, job *j) {
    int64_t end = j->next;
    if (end == j->end) return;
    for (j->credit += j->pieces; j->credit >= j->steps; j->credit -= j->steps) end++;
    complete(w, j, least(end, j->end));
}

static void meanwhile(void *context) {
    work *w = context;
    advance(w, &w->finish_job);
    advance(w, &w->ask_job);
    advance(w, &w->rows_job);
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
