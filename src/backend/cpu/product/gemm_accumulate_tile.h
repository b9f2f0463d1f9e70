/* gemm_accumulate_tile.h: the inner kernel of gemm_accumulate.c: a tile of C over a block of k,
 * both factors packed. The multiply-adds leave room for loads and stores, so a tile also asks for
 * lines that are needed later and copies a part of B's next panel.
 *
 * With AVX-512 the inner loop does one step of k: with two the compiler has too few registers, and
 * addresses that it keeps in vector registers come back behind the multiply-adds (10 % of the
 * time). */
#ifndef FTH_BACKEND_CPU_PRODUCT_GEMM_ACCUMULATE_TILE_H
#define FTH_BACKEND_CPU_PRODUCT_GEMM_ACCUMULATE_TILE_H

#include "backend/cpu/product/gemm_fma.h"

enum {
    PIECE = 8,      /* of k: one thing is asked for and one vector copied during so many steps */
    ASK = 256,      /* bytes that are asked for: 4 lines, one after the other */
    TILE = MR * NR, /* numbers of a tile */
    DEPTH = 128,    /* of k at a time: a panel stays in the first-level cache */
    TILES = 48,     /* of rows at a time */
    SLOTS = DEPTH / PIECE, /* what a tile can ask for */
    NEXT_LINES = (TILE / 16 + SLOTS - 1) / SLOTS
};

typedef struct sum_tile {
    int64_t k;
    const float *a; /* [k / PIECE][PIECE][MR], from piece to piece a_pitch */
    int64_t a_pitch;
    const float *b;         /* [k][NR] */
    const char *const *ask; /* [k / PIECE] */
    const real *from;       /* [copies / NV][NR] of B's next panel, ld apart: copied */
    float *to;              /* ... to here */
    int64_t ld, copies;     /* vectors; at most k / PIECE */
    const float *sums;      /* [MR][NR] over the blocks of k before; NULL: there are none */
    const float *next;      /* where the next tile has its own */
    float *c;
    int64_t ldc;
    bool adds; /* to what is in c */
} sum_tile;

/* A piece of k, while `ask` and the next tile's sums are asked for. */
inline_ void sum_piece(const int high, const float *restrict_ a, const float *restrict_ b,
                       const char *ask, const float *next, vf acc[MR][NV]) {
#pragma GCC unroll 2
    for (int i = 0; i < NEXT_LINES; i++) __builtin_prefetch(next + i * 16);
#if defined(__AVX512F__)
#pragma GCC unroll 1
#else
#pragma GCC unroll 2
#endif
    for (const char *end = ask + ASK; ask < end; ask += ASK / PIECE, a += MR, b += NR) {
        __builtin_prefetch(ask, 0, 2);
        tile_step(high, a, 1, b, acc);
    }
}

/* The tile of c gets what acc has, what was summed before and, if it adds, what it holds. */
inline_ void sum_store(const int high, const sum_tile *t, vf acc[MR][NV]) {
    if (t->sums)
#pragma GCC unroll 6
        for (int i = 0; i < high; i++)
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++)
                acc[i][j] = v_add(acc[i][j], v_load(t->sums + i * NR + j * VW));
    if (t->adds)
#pragma GCC unroll 6
        for (int i = 0; i < high; i++)
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++)
                acc[i][j] = v_add(acc[i][j], v_load(t->c + i * t->ldc + j * VW));
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) v_store(t->c + i * t->ldc + j * VW, acc[i][j]);
}

inline_ void sum_rows(const int high, const sum_tile *t) {
    const int64_t pieces = t->k / PIECE, copies = t->copies, a_pitch = t->a_pitch;
    const int64_t next_row = t->ld - NR + VW;
    const float *a = t->a, *b = t->b, *next = t->next;
    const real *from = t->from;
    float *to = t->to;
    int64_t n = 0;
    vf acc[MR][NV];
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) acc[i][j] = v_zero();
#pragma GCC unroll 1
    for (; n < copies; n++, a += a_pitch, b += PIECE * NR, next += NEXT_LINES * 16, to += VW) {
        v_store(to, v_load_real(from));
        from += n % NV == NV - 1 ? next_row : VW;
        sum_piece(high, a, b, t->ask[n], next, acc);
    }
#pragma GCC unroll 1
    for (; n < pieces; n++, a += a_pitch, b += PIECE * NR, next += NEXT_LINES * 16)
        sum_piece(high, a, b, t->ask[n], next, acc);
#pragma GCC unroll 1
    for (n = t->k % PIECE; n > 0; n--, a += MR, b += NR) tile_step(high, a, 1, b, acc);
    sum_store(high, t, acc);
}

#define SUM_CASE(n)                                                                                \
    case n: sum_rows(n, t); break;

/* A tile of `high` rows. */
static __attribute__((noinline)) void multiply_sum_tile(int64_t high, const sum_tile *t) {
    switch (high) {
        SUM_CASE(1)
        SUM_CASE(2)
        SUM_CASE(3)
        SUM_CASE(4)
#if defined(__AVX2__)
        SUM_CASE(5)
        SUM_CASE(6)
#endif
    }
}

#undef SUM_CASE

#endif
