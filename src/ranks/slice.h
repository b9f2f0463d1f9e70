/* slice.h: how a flat arena is cut among ranks. It is divided into at most FTH_PIECES pieces of one
 * size, and each rank has pieces that adjoin. Sums are made piece by piece, so they do not depend
 * on the cut. */
#ifndef FTH_RANKS_SLICE_H
#define FTH_RANKS_SLICE_H

#include <stdint.h>

enum { FTH_PIECES = 4096, FTH_PIECE_ALIGNMENT = 64 };

typedef struct fth_slice {
    int64_t begin, end; /* elements */
} fth_slice;

/* Elements of a piece; the last may have fewer. */
static inline int64_t fth_piece_size(int64_t n) {
    const int64_t piece = (n + FTH_PIECES - 1) / FTH_PIECES;
    return (piece + FTH_PIECE_ALIGNMENT - 1) / FTH_PIECE_ALIGNMENT * FTH_PIECE_ALIGNMENT;
}

static inline int64_t fth_pieces(int64_t n) {
    return n ? (n + fth_piece_size(n) - 1) / fth_piece_size(n) : 0;
}

/* What one of `count` ranks has of n elements. */
static inline fth_slice fth_slice_of(int64_t n, int rank, int count) {
    if (n == 0) return (fth_slice){0, 0};
    const int64_t pieces = fth_pieces(n), size = fth_piece_size(n);
    const int64_t begin = pieces * rank / count * size, end = pieces * (rank + 1) / count * size;
    return (fth_slice){begin < n ? begin : n, end < n ? end : n};
}

#endif
