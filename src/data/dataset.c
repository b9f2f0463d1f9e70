/* dataset.c: maps the file and checks its header, offsets and ids against its size before anyone
 * reads it. */
#include "data/dataset.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "data/format.h"
#include "data/map.h"

static fth_err special_in_range(const char *path, const fth_fds_side *s) {
    const int32_t ids[] = {s->bos, s->pad, s->eos, s->unk};
    for (int i = 0; i < 4; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->vocab)
            return fth_fail(FTH_BAD_INPUT, "%s: damaged data set: special id %d is not in [0, %u)",
                            path, ids[i], s->vocab);
    return FTH_OK;
}

/* Everything that the header alone can tell. */
static fth_err check_header(const char *path, const fth_fds_header *h, uint64_t size,
                            fth_fds_layout *layout) {
    if (memcmp(h->magic, FTH_FDS_MAGIC, sizeof h->magic) != 0)
        return fth_fail(FTH_BAD_INPUT, "%s: not a data set of fathom", path);
    if (h->order != FTH_FDS_ORDER)
        return fth_fail(FTH_BAD_INPUT, "%s: the data set has another byte order", path);
    if (h->version != FTH_FDS_VERSION)
        return fth_fail(FTH_BAD_INPUT, "%s: data set version %u; this fathom reads version %d",
                        path, h->version, FTH_FDS_VERSION);
    if (fth_crc32(0, h, offsetof(fth_fds_header, crc)) != h->crc)
        return fth_fail(FTH_BAD_INPUT, "%s: damaged data set: wrong check sum of its header", path);
    if ((h->n_blocks != 0 && h->n_blocks != FTH_FDS_BLOCKS) || h->file_size < FTH_FDS_HEADER)
        return fth_fail(FTH_BAD_INPUT, "%s: damaged data set: an impossible header", path);
    if (h->n_sides < 1 || h->n_sides > 2 || (h->id_bytes != 2 && h->id_bytes != 4) ||
        !fth_fds_layout_of(h, layout) || layout->file_size != h->file_size)
        return fth_fail(FTH_BAD_INPUT, "%s: damaged data set: an impossible header", path);
    if (h->file_size != size)
        return fth_fail(FTH_BAD_INPUT, "%s: the data set has %llu bytes and must have %llu", path,
                        (unsigned long long)size, (unsigned long long)h->file_size);
    for (uint32_t s = 0; s < h->n_sides; s++) {
        if (h->side[s].vocab > INT32_MAX || h->side[s].longest > INT32_MAX ||
            h->side[s].longest > h->side[s].tokens)
            return fth_fail(FTH_BAD_INPUT, "%s: damaged data set: an impossible header", path);
        FTH_TRY(special_in_range(path, &h->side[s]));
    }
    return FTH_OK;
}

static void take_header(fth_dataset *d, const fth_fds_header *h, const fth_fds_layout *layout) {
    d->n_sides = (int)h->n_sides;
    d->hash = fth_hash64(h, sizeof *h);
    d->sentences = (int64_t)h->sentences;
    d->id_bytes = (int)h->id_bytes;
    for (int s = 0; s < d->n_sides; s++) {
        const fth_fds_side *f = &h->side[s];
        d->side[s] = (fth_data_side){
            .tokens = (int64_t)f->tokens,
            .words = (int64_t)f->words,
            .bytes = (int64_t)f->bytes,
            .vocab = (int32_t)f->vocab,
            .longest = (int32_t)f->longest,
            .special = {f->bos, f->pad, f->eos, f->unk},
        };
        d->offsets[s] = (const uint64_t *)((const char *)d->map + layout->offsets[s]);
        d->ids[s] = (const char *)d->map + layout->ids[s];
        d->offsets_crc[s] = f->offsets_crc;
        d->ids_crc[s] = f->ids_crc;
    }
}

/* The offsets begin and end where they must. */
static fth_err check_ends(const fth_dataset *d) {
    for (int s = 0; s < d->n_sides; s++)
        if (d->offsets[s][0] != 0 || d->offsets[s][d->sentences] != (uint64_t)d->side[s].tokens)
            return fth_fail(FTH_BAD_INPUT,
                            "%s: damaged data set: side %d's offsets do not span its %lld ids",
                            d->path, s, (long long)d->side[s].tokens);
    return FTH_OK;
}

fth_err fth_dataset_open(const char *path, fth_dataset **out) {
    fth_err err;
    fth_fds_header header;
    fth_fds_layout layout;
    fth_dataset *d = calloc(1, sizeof *d);
    if (!d || !(d->path = strdup(path))) {
        err = fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", path);
        goto fail;
    }
    FTH_TRY_OR(err, fth_map_file(path, FTH_FDS_HEADER, &d->map, &d->map_size), fail);
    memcpy(&header, d->map, sizeof header);
    FTH_TRY_OR(err, check_header(path, &header, d->map_size, &layout), fail);
    take_header(d, &header, &layout);
    FTH_TRY_OR(err, check_ends(d), fail);
    *out = d;
    return FTH_OK;
fail:
    fth_dataset_free(d);
    return err;
}

void fth_dataset_free(fth_dataset *d) {
    if (!d) return;
    fth_unmap_file(d->map, d->map_size);
    fth_vectors_free(d->labels);
    fth_vectors_free(d->images);
    fth_vectors_free(d->frames);
    fth_codebook_fini(&d->codebook);
    free(d->direction_first);
    free(d->path);
    free(d);
}

fth_dataset fth_dataset_part(const fth_dataset *d, int64_t first, int64_t n) {
    fth_dataset part = *d;
    part.sentences = n;
    for (int s = 0; s < d->n_sides; s++) part.offsets[s] += first;
    part.n_directions = 0;
    return part;
}

fth_err fth_dataset_damaged(const fth_dataset *d, int side, int64_t i) {
    return fth_fail(FTH_BAD_INPUT,
                    "%s: damaged data set: side %d, sentence %lld has the offsets %llu and %llu of "
                    "%lld tokens",
                    d->path, side, (long long)i, (unsigned long long)d->offsets[side][i],
                    (unsigned long long)d->offsets[side][i + 1], (long long)d->side[side].tokens);
}

static fth_err bad_id(const fth_dataset *d, int side, int64_t i, int32_t id) {
    return fth_fail(FTH_BAD_INPUT,
                    "%s: damaged data set: side %d, sentence %lld: token id %d is not in [0, %d)",
                    d->path, side, (long long)i, id, d->side[side].vocab);
}

fth_err fth_dataset_copy(const fth_dataset *d, int side, int64_t i, int64_t from, int64_t n,
                         int32_t *out) {
    int64_t length = fth_dataset_length(d, side, i);
    if (length < 0 || from < 0 || n < 0 || from > length - n)
        return fth_dataset_damaged(d, side, i);
    uint64_t at = d->offsets[side][i] + (uint64_t)from;
    uint32_t vocab = (uint32_t)d->side[side].vocab;
    for (int64_t k = 0; k < n; k++) {
        int32_t id = d->id_bytes == 2 ? ((const uint16_t *)d->ids[side])[at + (uint64_t)k]
                                      : ((const int32_t *)d->ids[side])[at + (uint64_t)k];
        if ((uint32_t)id >= vocab) return bad_id(d, side, i, id);
        out[k] = id;
    }
    return FTH_OK;
}

static fth_err check_sum(const fth_dataset *d, int side, const char *part, const void *data,
                         size_t size, uint32_t expected) {
    uint32_t crc = fth_crc32(0, data, size);
    if (crc == expected) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: damaged data set: the check sum of side %d's %s is %08x and must be %08x",
                    d->path, side, part, crc, expected);
}

static fth_err check_side(const fth_dataset *d, int side) {
    int32_t ids[256];
    for (int64_t i = 0; i < d->sentences; i++) {
        int64_t length = fth_dataset_length(d, side, i);
        if (length < 0) return fth_dataset_damaged(d, side, i);
        for (int64_t from = 0; from < length; from += 256) {
            int64_t n = length - from < 256 ? length - from : 256;
            FTH_TRY(fth_dataset_copy(d, side, i, from, n, ids));
        }
    }
    return FTH_OK;
}

/* Bytes read between two looks at *stop. */
enum { READ_BYTES = 1 << 20 };

static bool block_is_sound(const char *data, uint64_t size, uint32_t expected,
                           const atomic_bool *stop) {
    uint32_t crc = 0;
    for (uint64_t at = 0; at < size; at += READ_BYTES) {
        if (stop && atomic_load(stop)) return true;
        const uint64_t left = size - at;
        crc = fth_crc32(crc, data + at, left < READ_BYTES ? (size_t)left : READ_BYTES);
    }
    return crc == expected;
}

/* The parts have a check sum in every file, the blocks in files that say so. */
static fth_err verify_parts(const fth_dataset *d) {
    for (int s = 0; s < d->n_sides; s++) {
        FTH_TRY(check_sum(d, s, "offsets", d->offsets[s], 8 * ((size_t)d->sentences + 1),
                          d->offsets_crc[s]));
        FTH_TRY(check_sum(d, s, "ids", d->ids[s], (size_t)d->id_bytes * (size_t)d->side[s].tokens,
                          d->ids_crc[s]));
    }
    return FTH_OK;
}

fth_err fth_dataset_verify(const fth_dataset *d, const atomic_bool *stop) {
    fth_fds_header h;
    if (d->images) return fth_vectors_verify(d->images, stop);
    if (d->frames) FTH_TRY(fth_vectors_verify(d->frames, stop));
    memcpy(&h, d->map, sizeof h);
    if (!h.n_blocks) return verify_parts(d);
    const uint64_t block = fth_fds_block(&h);
    for (uint32_t i = 0; i < h.n_blocks; i++) {
        const uint64_t from = FTH_FDS_HEADER + i * block;
        if (from >= h.file_size) break;
        const uint64_t left = h.file_size - from, size = left < block ? left : block;
        if (!block_is_sound((const char *)d->map + from, size, h.block_crc[i], stop))
            return fth_fail(FTH_BAD_INPUT,
                            "%s: damaged data set: bytes %llu to %llu are not what was written "
                            "(wrong check sum)",
                            d->path, (unsigned long long)from,
                            (unsigned long long)(from + size - 1));
    }
    return FTH_OK;
}

fth_err fth_dataset_check(const fth_dataset *d) {
    FTH_TRY(fth_dataset_verify(d, NULL));
    for (int s = 0; s < d->n_sides && !d->images; s++) FTH_TRY(check_side(d, s));
    return FTH_OK;
}
