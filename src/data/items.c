/* items.c: an item is a sentence with its end symbol, or a block of the stream of all sentences
 * that may begin in the middle of one. */
#include "data/items.h"

#include <string.h>

fth_err fth_items_init(fth_items *items, const fth_dataset *data, int64_t block, int64_t context) {
    *items = (fth_items){.data = data, .target = data->n_sides - 1, .n = data->sentences};
    if (block == 0) return FTH_OK;
    if (data->n_sides != 1)
        return fth_fail(FTH_BAD_INPUT, "%s: pairs; blocks are made of plain text", data->path);
    if (block < 1 || context < 0 || context >= block)
        return fth_fail(FTH_USAGE, "context-window %lld is not in [0, %lld), the tokens of a block",
                        (long long)context, (long long)block);
    items->stream = data->side[0].tokens + data->sentences;
    items->fresh = block - context;
    items->context = context;
    items->n = (items->stream + items->fresh - 1) / items->fresh;
    return FTH_OK;
}

/* The stream's tokens [*begin, *fresh) are context of block i, [*fresh, *end) are its own. */
static void block_range(const fth_items *items, int64_t i, int64_t *begin, int64_t *fresh,
                        int64_t *end) {
    *fresh = i * items->fresh;
    *begin = *fresh > items->context ? *fresh - items->context : 0;
    *end = *fresh + items->fresh < items->stream ? *fresh + items->fresh : items->stream;
}

fth_err fth_items_rows(const fth_items *items, int64_t i, int64_t *src, int64_t *tgt) {
    const fth_dataset *d = items->data;
    *src = 0;
    if (items->stream) {
        int64_t begin, fresh, end;
        block_range(items, i, &begin, &fresh, &end);
        *tgt = end - begin;
        return FTH_OK;
    }
    for (int s = 0; s < d->n_sides; s++) {
        int64_t length = fth_dataset_length(d, s, i);
        if (length < 0) return fth_dataset_damaged(d, s, i);
        *(s == items->target ? tgt : src) = length + 1;
    }
    return FTH_OK;
}

/* The first line of the stream whose end symbol is at or behind a token: line i begins at
 * offsets[i] + i. */
static int64_t line_at(const fth_dataset *d, int64_t token) {
    int64_t low = 0, high = d->sentences - 1;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (d->offsets[0][middle] + (uint64_t)middle <= (uint64_t)token)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Copies the stream's tokens [begin, end). */
static fth_err copy_stream(const fth_dataset *d, int64_t begin, int64_t end, int32_t *out) {
    int64_t line = line_at(d, begin);
    for (int64_t at = begin; at < end; line++) {
        if (line >= d->sentences) return fth_dataset_damaged(d, 0, d->sentences - 1);
        int64_t length = fth_dataset_length(d, 0, line);
        int64_t from = at - ((int64_t)d->offsets[0][line] + line);
        if (length < 0 || from < 0 || from > length) return fth_dataset_damaged(d, 0, line);
        int64_t n = length - from < end - at ? length - from : end - at;
        FTH_TRY(fth_dataset_copy(d, 0, line, from, n, out));
        out += n;
        at += n;
        if (at < end) {
            *out++ = d->side[0].special.eos;
            at++;
        }
    }
    return FTH_OK;
}

static fth_err fill_block(const fth_items *items, int64_t i, int32_t *in, int32_t *out) {
    const fth_dataset *d = items->data;
    int64_t begin, fresh, end;
    block_range(items, i, &begin, &fresh, &end);
    FTH_TRY(copy_stream(d, begin, end, out));
    if (begin == 0)
        in[0] = d->side[0].special.eos;
    else
        FTH_TRY(copy_stream(d, begin - 1, begin, in));
    memcpy(in + 1, out, (size_t)(end - begin - 1) * sizeof *in);
    for (int64_t k = begin; k < fresh; k++) out[k - begin] = -1;
    return FTH_OK;
}

fth_err fth_items_fill(const fth_items *items, int64_t i, int32_t *src, int32_t *in, int32_t *out) {
    const fth_dataset *d = items->data;
    if (items->stream) return fill_block(items, i, in, out);
    if (d->n_sides == 2) {
        int64_t n = fth_dataset_length(d, FTH_SOURCE, i);
        FTH_TRY(fth_dataset_copy(d, FTH_SOURCE, i, 0, n, src));
        src[n] = d->side[FTH_SOURCE].special.eos;
    }
    const fth_special_ids *special = &d->side[items->target].special;
    int64_t n = fth_dataset_length(d, items->target, i);
    FTH_TRY(fth_dataset_copy(d, items->target, i, 0, n, out));
    in[0] = special->bos;
    memcpy(in + 1, out, (size_t)n * sizeof *in);
    out[n] = special->eos;
    return FTH_OK;
}
