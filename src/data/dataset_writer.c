/* Offsets and ids of a side grow together, but stand one after the other in the file. So they go to
 * files without a name first, and are put together at the end. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/writer.h"
#include "data/dataset.h"
#include "data/format.h"
#include "data/spill.h"

struct fth_dataset_writer {
    char *path;
    fth_spill offsets[2], ids[2];
    fth_fds_header header;
};

fth_err fth_dataset_writer_new(const char *path, int n_sides, const fth_data_side *sides,
                               fth_dataset_writer **out) {
    fth_err err = FTH_OK;
    uint64_t zero = 0;
    fth_dataset_writer *w = calloc(1, sizeof *w);
    if (!w || !(w->path = strdup(path))) {
        err = fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", path);
        goto fail;
    }
    memcpy(w->header.magic, FTH_FDS_MAGIC, sizeof w->header.magic);
    w->header.version = FTH_FDS_VERSION;
    w->header.order = FTH_FDS_ORDER;
    w->header.n_sides = (uint32_t)n_sides;
    w->header.id_bytes = 2;
    for (int s = 0; s < n_sides; s++) {
        fth_special_ids ids = sides[s].special;
        if (sides[s].vocab > UINT16_MAX + 1) w->header.id_bytes = 4;
        w->header.side[s] = (fth_fds_side){.vocab = (uint32_t)sides[s].vocab,
                                           .bos = ids.bos,
                                           .pad = ids.pad,
                                           .eos = ids.eos,
                                           .unk = ids.unk};
        FTH_TRY_OR(err, fth_spill_open(&w->offsets[s], w->path), fail);
        FTH_TRY_OR(err, fth_spill_open(&w->ids[s], w->path), fail);
        FTH_TRY_OR(err, fth_spill_put(&w->offsets[s], &zero, sizeof zero), fail);
    }
    *out = w;
    return FTH_OK;
fail:
    fth_dataset_writer_free(w);
    return err;
}

void fth_dataset_writer_free(fth_dataset_writer *w) {
    if (!w) return;
    for (int s = 0; s < 2; s++) {
        fth_spill_fini(&w->offsets[s]);
        fth_spill_fini(&w->ids[s]);
    }
    free(w->path);
    free(w);
}

static fth_err put_ids(fth_dataset_writer *w, int side, const int32_t *ids, size_t n) {
    uint16_t narrow[512];
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= w->header.side[side].vocab)
            return fth_fail(FTH_BAD_INPUT, "%s: token id %d is not in [0, %u)", w->path, ids[i],
                            w->header.side[side].vocab);
    if (w->header.id_bytes == 4) return fth_spill_put(&w->ids[side], ids, 4 * n);
    for (size_t from = 0; from < n;) {
        size_t k = 0;
        while (k < 512 && from < n) narrow[k++] = (uint16_t)ids[from++];
        FTH_TRY(fth_spill_put(&w->ids[side], narrow, 2 * k));
    }
    return FTH_OK;
}

fth_err fth_dataset_writer_add(fth_dataset_writer *w, const int32_t *const ids[2],
                               const size_t n[2], const size_t words[2], const size_t bytes[2]) {
    for (uint32_t s = 0; s < w->header.n_sides; s++) {
        fth_fds_side *side = &w->header.side[s];
        if (n[s] > INT32_MAX)
            return fth_fail(FTH_BAD_INPUT, "%s: a sentence of %zu tokens", w->path, n[s]);
        FTH_TRY(put_ids(w, (int)s, ids[s], n[s]));
        side->tokens += n[s];
        side->words += words[s];
        side->bytes += bytes[s];
        if (n[s] > side->longest) side->longest = (uint32_t)n[s];
        FTH_TRY(fth_spill_put(&w->offsets[s], &side->tokens, sizeof side->tokens));
    }
    w->header.sentences++;
    return FTH_OK;
}

static fth_err give_all(fth_dataset_writer *w, fth_spill_take *take, void *state) {
    for (uint32_t s = 0; s < w->header.n_sides; s++) {
        FTH_TRY(fth_spill_give(&w->offsets[s], take, state));
        FTH_TRY(fth_spill_give(&w->ids[s], take, state));
    }
    return FTH_OK;
}

/* The check sums of the blocks, while they are made. */
typedef struct block_sums {
    uint32_t *crc; /* [FTH_FDS_BLOCKS] */
    uint64_t at, block;
} block_sums;

static fth_err sum_blocks(void *state, const void *data, size_t size) {
    block_sums *b = state;
    const char *from = data;
    while (size) {
        const uint64_t left = b->block - b->at % b->block;
        const size_t n = size < left ? size : (size_t)left;
        uint32_t *crc = &b->crc[b->at / b->block];
        *crc = fth_crc32(*crc, from, n);
        from += n;
        b->at += n;
        size -= n;
    }
    return FTH_OK;
}

static fth_err write_bytes(void *state, const void *data, size_t size) {
    return fth_writer_put(state, data, size);
}

/* The header stands first and has the sums of all that follows: so the parts are read twice. */
static fth_err complete_header(fth_dataset_writer *w) {
    fth_fds_header *h = &w->header;
    fth_fds_layout layout;
    for (uint32_t s = 0; s < h->n_sides; s++) {
        h->side[s].offsets_crc = w->offsets[s].crc;
        h->side[s].ids_crc = w->ids[s].crc;
    }
    if (!fth_fds_layout_of(h, &layout))
        return fth_fail(FTH_FAILED, "%s: too large for a data set", w->path);
    h->file_size = layout.file_size;
    h->n_blocks = FTH_FDS_BLOCKS;
    block_sums sums = {.crc = h->block_crc, .block = fth_fds_block(h)};
    FTH_TRY(give_all(w, sum_blocks, &sums));
    h->crc = fth_crc32(0, h, offsetof(fth_fds_header, crc));
    return FTH_OK;
}

fth_err fth_dataset_writer_finish(fth_dataset_writer *w) {
    fth_err err;
    fth_writer out = {0};
    FTH_TRY(complete_header(w));
    FTH_TRY_OR(err, fth_writer_open(&out, w->path), fail);
    FTH_TRY_OR(err, fth_writer_put(&out, &w->header, sizeof w->header), fail);
    FTH_TRY_OR(err, give_all(w, write_bytes, &out), fail);
    err = fth_writer_commit(&out);
fail:
    fth_writer_fini(&out);
    return err;
}
