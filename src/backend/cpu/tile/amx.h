/* amx.h: tiles of the matrix unit: asking the system for them, their shape, and what is multiplied
 * on them at a time (tile_product.h). */
#ifndef FTH_BACKEND_CPU_TILE_AMX_H
#define FTH_BACKEND_CPU_TILE_AMX_H

#include <stdbool.h>
#include <stdint.h>

/* Whether tiles of bf16, or of 8 bits, can be used in this process; asks the system for leave. */
bool fth_amx_usable(void);
bool fth_amx_int8_usable(void);

/* Gives this thread eight tiles of 16 rows of 64 bytes, and takes them back. */
void fth_amx_begin(void);
void fth_amx_end(void);

/* Whether another hardware thread is at work on this thread's core: the two then share the places
 * for tiles, and few should be used. That changes, so it is found out again after so many
 * multiplications, about a millisecond; it takes some microseconds. Results should not depend on
 * it. */
bool fth_amx_is_crowded(int64_t multiplications);

/* gcc does not know that tileloadd reads memory: whatever was written there has to be there. */
static inline void fth_written(const void *numbers) {
    __asm__ volatile("" : : "r"(numbers) : "memory");
}

/* How the tiles of a factor lie in memory, in bytes. */
typedef struct fth_tiles {
    const void *first;
    int64_t stride; /* from row to row of a tile */
    int64_t other;  /* to the tile of the other 16 rows of A, or columns of B */
    int64_t next;   /* to the tile that comes next along k */
    int64_t part;   /* to the next part of the same tile, where there are parts */
} fth_tiles;

/* 32 rows, or 16, and 32 columns, or 16, of C = A B, or C + A B. */
typedef struct fth_tiles_block {
    bool two;    /* tiles of rows; else one */
    bool half;   /* 16 columns */
    bool narrow; /* with two: few tiles in use, for a crowded core */
    bool add;    /* to what is in c */
    /* A factor is the sum of three parts, the largest first, of which the last may be left out
     * where it meets another than the first: six products (bf16). */
    bool parts;
    fth_tiles a, b;
    int64_t steps; /* tiles along k */
    void *c;       /* [32 or 16][32 or 16] numbers of 4 bytes */
    int64_t c_stride;
    /* Called once a step, or a step and part: work for the rest of the core; NULL: nothing. */
    void (*meanwhile[2])(void *context);
    void *context;
} fth_tiles_block;

typedef void fth_tiles_product(const fth_tiles_block *x);

#endif
