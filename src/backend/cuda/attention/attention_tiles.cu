/* attention_tiles.cu: makes the lists of attention_tiles.cuh, on the host. */
#include "backend/cuda/attention/attention_tiles.cuh"

#include <algorithm>

namespace {
struct range {
    int32_t begin, end;
};

/* The rows of the other side that belong to a row: keys that a query sees, or queries that see a
 * key (`ahead`). Both ends grow with the row. */
range seen_rows(const fth_cuda_rows *mine, const fth_cuda_rows *other, bool causal, bool ahead,
                int32_t row) {
    const int32_t sentence = mine->sentence[row];
    range r = {other->offsets[sentence], other->offsets[sentence + 1]};
    if (causal && ahead) r.begin = row;
    if (causal && !ahead) r.end = row + 1;
    return r;
}

bool is_closed(const fth_cuda_rows *q, const fth_cuda_rows *k, int32_t row) {
    const int32_t q_end = std::min(row + FTH_CUDA_TILE, q->rows);
    const int32_t k_end = std::min(row + FTH_CUDA_TILE, k->rows);
    if (row >= q->capacity) return false; /* no tile of queries would do it */
    if (row >= q->rows || row >= k->rows) return row >= q->rows && row >= k->rows;
    const int32_t low = q->sentence[row], high = q->sentence[q_end - 1];
    return q->offsets[low] == row && q->offsets[high + 1] == q_end && k->offsets[low] == row &&
           k->offsets[high + 1] == k_end;
}

fth_cuda_tile tile_at(const fth_cuda_rows *mine, const fth_cuda_rows *other, bool causal,
                      bool ahead, int32_t row) {
    fth_cuda_tile t = {};
    t.row = t.row_end = row;
    if (row >= mine->rows) return t;
    t.row_end = std::min(row + FTH_CUDA_TILE, mine->rows);
    const range low = seen_rows(mine, other, causal, ahead, row);
    const range high = seen_rows(mine, other, causal, ahead, t.row_end - 1);
    t.begin = low.begin, t.end = high.end;
    if (t.row_end - row == FTH_CUDA_TILE) t.all_begin = high.begin, t.all_end = low.end;
    if (mine->sentence[row] == mine->sentence[t.row_end - 1]) t.flags = FTH_CUDA_ONE_SENTENCE;
    return t;
}

void sort(fth_cuda_tile *tile, int32_t n) {
    std::sort(tile, tile + n, [](const fth_cuda_tile &a, const fth_cuda_tile &b) {
        const int32_t to_do = fth_cuda_n_tiles(a.end - a.begin);
        const int32_t other = fth_cuda_n_tiles(b.end - b.begin);
        return to_do != other ? to_do > other : a.row < b.row;
    });
}
} // namespace

void fth_cuda_list_tiles(const fth_cuda_rows *q, const fth_cuda_rows *k, bool causal,
                         const fth_cuda_tiles *out) {
    const int32_t n = fth_cuda_n_tiles(q->capacity), n_keys = fth_cuda_n_tiles(k->capacity);
    for (int32_t i = 0; i < n; i++) {
        const int32_t row = i * FTH_CUDA_TILE;
        out->queries[i] = tile_at(q, k, causal, false, row);
        if (is_closed(q, k, row)) out->queries[i].flags |= FTH_CUDA_CLOSED;
    }
    sort(out->queries, n);
    int32_t open = 0;
    for (int32_t i = 0; i < n_keys; i++)
        if (!is_closed(q, k, i * FTH_CUDA_TILE))
            out->keys[open++] = tile_at(k, q, causal, true, i * FTH_CUDA_TILE);
    sort(out->keys, open);
    *out->n_keys = open;
}
