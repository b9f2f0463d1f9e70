/* Offsets and ids of a side grow together, but stand one after the other in the file. So they go to
 * files without a name first, and are put together at the end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "base/writer.h"
#include "data/dataset.h"
#include "data/format.h"

enum { PART_BUFFER = 1 << 18 };

/* A part of the file to be. */
typedef struct part {
    FILE *file; /* removed already from its folder: nothing is left behind */
    char *buffer;
    uint32_t crc;
    uint64_t size;
} part;

struct fth_dataset_writer {
    char *path;
    part offsets[2], ids[2];
    fth_fds_header header;
};

static fth_err write_failed(const char *path) {
    return fth_fail(FTH_IO, "%s: cannot write: %s", path, strerror(errno ? errno : EIO));
}

static fth_err part_open(part *p, const char *path) {
    char *name = fth_strdup_printf("%s.part-XXXXXX", path);
    if (!name || !(p->buffer = malloc(PART_BUFFER))) {
        free(name);
        return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", path);
    }
    int fd = mkstemp(name);
    if (fd >= 0) {
        unlink(name);
        p->file = fdopen(fd, "w+");
        if (!p->file) close(fd);
    }
    free(name);
    if (!p->file) return write_failed(path);
    setvbuf(p->file, p->buffer, _IOFBF, PART_BUFFER);
    return FTH_OK;
}

static void part_fini(part *p) {
    if (p->file) fclose(p->file);
    free(p->buffer);
}

static fth_err part_put(part *p, const char *path, const void *data, size_t size) {
    if (!size) return FTH_OK;
    errno = 0;
    if (fwrite(data, 1, size, p->file) != size) return write_failed(path);
    p->crc = fth_crc32(p->crc, data, size);
    p->size += size;
    return FTH_OK;
}

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
        FTH_TRY_OR(err, part_open(&w->offsets[s], path), fail);
        FTH_TRY_OR(err, part_open(&w->ids[s], path), fail);
        FTH_TRY_OR(err, part_put(&w->offsets[s], path, &zero, sizeof zero), fail);
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
        part_fini(&w->offsets[s]);
        part_fini(&w->ids[s]);
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
    if (w->header.id_bytes == 4) return part_put(&w->ids[side], w->path, ids, 4 * n);
    for (size_t from = 0; from < n;) {
        size_t k = 0;
        while (k < 512 && from < n) narrow[k++] = (uint16_t)ids[from++];
        FTH_TRY(part_put(&w->ids[side], w->path, narrow, 2 * k));
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
        FTH_TRY(part_put(&w->offsets[s], w->path, &side->tokens, sizeof side->tokens));
    }
    w->header.sentences++;
    return FTH_OK;
}

/* Takes the bytes of the file after its header, in their order. */
typedef struct taker {
    fth_err (*take)(void *state, const void *data, size_t size);
    void *state;
} taker;

/* A part, and zeros up to the next one. */
static fth_err give_part(const taker *to, part *p, const char *path, char *buffer) {
    static const char zeros[FTH_FDS_ALIGN];
    errno = 0;
    if (fflush(p->file) != 0 || fseeko(p->file, 0, SEEK_SET) != 0) return write_failed(path);
    for (uint64_t left = p->size; left;) {
        size_t n = fread(buffer, 1, left < PART_BUFFER ? (size_t)left : PART_BUFFER, p->file);
        if (n == 0) return fth_fail(FTH_IO, "%s: cannot read back what was written", path);
        FTH_TRY(to->take(to->state, buffer, n));
        left -= n;
    }
    return to->take(to->state, zeros, (size_t)(fth_fds_align(p->size) - p->size));
}

static fth_err give_all(fth_dataset_writer *w, const taker *to) {
    char *buffer = malloc(PART_BUFFER);
    if (!buffer) return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", w->path);
    fth_err err = FTH_OK;
    for (uint32_t s = 0; err == FTH_OK && s < w->header.n_sides; s++) {
        err = give_part(to, &w->offsets[s], w->path, buffer);
        if (err == FTH_OK) err = give_part(to, &w->ids[s], w->path, buffer);
    }
    free(buffer);
    return err;
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
    FTH_TRY(give_all(w, &(taker){sum_blocks, &sums}));
    h->crc = fth_crc32(0, h, offsetof(fth_fds_header, crc));
    return FTH_OK;
}

fth_err fth_dataset_writer_finish(fth_dataset_writer *w) {
    fth_err err;
    fth_writer out = {0};
    FTH_TRY(complete_header(w));
    FTH_TRY_OR(err, fth_writer_open(&out, w->path), fail);
    FTH_TRY_OR(err, fth_writer_put(&out, &w->header, sizeof w->header), fail);
    FTH_TRY_OR(err, give_all(w, &(taker){write_bytes, &out}), fail);
    err = fth_writer_commit(&out);
fail:
    fth_writer_fini(&out);
    return err;
}
