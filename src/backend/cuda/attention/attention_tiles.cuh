/* attention_tiles.cuh: what every tile of 64 rows has to do with the rows of the other side in an
 * attention, as lists that come to the GPU with the batch, those with the most to do first. Kernels
 * walk over such a list with as many blocks as the GPU holds at once: who has done a tile goes on
 * with another, and all end at about the same time. */
#ifndef FTH_BACKEND_CUDA_ATTENTION_ATTENTION_TILES_CUH
#define FTH_BACKEND_CUDA_ATTENTION_ATTENTION_TILES_CUH

#include <cuda_runtime.h>
#include <stdint.h>

enum {
    FTH_CUDA_TILE = 64,      /* rows */
    FTH_CUDA_ATTENTIONS = 6, /* source, target, cross; the same when none looks ahead */
    FTH_CUDA_ONE_SENTENCE = 1,
    /* Its sentences lie in it whole and their rows of the other side are the same numbers. */
    FTH_CUDA_CLOSED = 2
};

struct fth_cuda_tile {
    int32_t row, row_end;       /* rows of the batch; none in the tail of a buffer */
    int32_t begin, end;         /* rows of the other side that some row sees */
    int32_t all_begin, all_end; /* those that all 64 rows see */
    int32_t flags, unused;
};

/* Lists of an attention: tiles of queries with what they see, tiles of keys with what sees them; of
 * the latter only those that are not closed. */
struct fth_cuda_tiles {
    fth_cuda_tile *queries, *keys;
    int32_t *n_keys;
};

/* One side of a batch. */
struct fth_cuda_rows {
    const int32_t *sentence, *offsets; /* by row, by sentence */
    int32_t rows, capacity;
};

void fth_cuda_list_tiles(const fth_cuda_rows *q, const fth_cuda_rows *k, bool causal,
                         const fth_cuda_tiles *out);

static __host__ __device__ inline int32_t fth_cuda_n_tiles(int32_t rows) {
    return (rows + FTH_CUDA_TILE - 1) / FTH_CUDA_TILE;
}

#endif
