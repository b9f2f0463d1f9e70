/* vectors.c: opens and checks a file of vectors: labels, pictures, frames. */
#include "data/vectors.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "data/map.h"
#include "data/vectors_format.h"

size_t fth_vector_type_size(fth_vector_type type) {
    return type == FTH_VECTOR_U8 ? 1 : type == FTH_VECTOR_F16 ? 2 : 4;
}

static fth_err damaged(const char *path, const char *what) {
    return fth_fail(FTH_BAD_INPUT, "%s: damaged: %s", path, what);
}

static uint64_t aligned(uint64_t size) {
    return (size + FTH_SPILL_ALIGN - 1) / FTH_SPILL_ALIGN * FTH_SPILL_ALIGN;
}

/* Bytes of both parts, their gaps included; 0 when the numbers of the header are too large to be
 * true. */
static int layout(const fth_vectors_header *h, uint64_t *offsets, uint64_t *data) {
    const uint64_t limit = UINT64_C(1) << 48;
    *offsets = *data = 0;
    if (h->type > FTH_VECTOR_F16 || h->width < 1 || h->width > (1u << 28) || h->single > 1)
        return 0;
    if (h->records >= limit || h->vectors >= limit / h->width || h->longest > h->vectors) return 0;
    if (h->single && (h->vectors != h->records || h->longest > 1)) return 0;
    if (!h->single) *offsets = aligned(8 * (h->records + 1));
    *data = aligned(h->vectors * h->width * fth_vector_type_size((fth_vector_type)h->type));
    return h->file_size == FTH_VECTORS_HEADER + *offsets + *data;
}

static fth_err check_header(const fth_vectors *v, const fth_vectors_header *h, uint64_t *offsets) {
    uint64_t data;
    if (memcmp(h->magic, FTH_VECTORS_MAGIC, sizeof h->magic) != 0)
        return fth_fail(FTH_BAD_INPUT, "%s: not a file of labels, pictures or frames of fathom",
                        v->path);
    if (h->order != FTH_VECTORS_ORDER)
        return fth_fail(FTH_BAD_INPUT, "%s: has another byte order", v->path);
    if (h->version != FTH_VECTORS_VERSION)
        return fth_fail(FTH_BAD_INPUT, "%s: version %u; this fathom reads version %d", v->path,
                        h->version, FTH_VECTORS_VERSION);
    if (fth_crc32(0, h, offsetof(fth_vectors_header, crc)) != h->crc)
        return damaged(v->path, "wrong check sum of its header");
    if (!layout(h, offsets, &data)) return damaged(v->path, "an impossible header");
    if (h->file_size != v->map_size)
        return fth_fail(FTH_BAD_INPUT, "%s: has %zu bytes and must have %llu", v->path, v->map_size,
                        (unsigned long long)h->file_size);
    return FTH_OK;
}

static fth_err take_file(fth_vectors *v) {
    fth_vectors_header h;
    uint64_t offsets = 0;
    FTH_TRY(fth_map_file(v->path, FTH_VECTORS_HEADER, &v->map, &v->map_size));
    memcpy(&h, v->map, sizeof h);
    FTH_TRY(check_header(v, &h, &offsets));
    v->type = (fth_vector_type)h.type;
    v->width = (int32_t)h.width;
    v->records = (int64_t)h.records;
    v->vectors = (int64_t)h.vectors;
    v->longest = (int64_t)h.longest;
    v->offsets_crc = h.offsets_crc;
    v->data_crc = h.data_crc;
    v->hash = fth_hash64(&h, sizeof h);
    const char *base = (const char *)v->map + FTH_VECTORS_HEADER;
    v->offsets = h.single ? NULL : (const uint64_t *)base;
    v->data = base + offsets;
    if (v->offsets && (v->offsets[0] != 0 || v->offsets[v->records] != h.vectors))
        return damaged(v->path, "its offsets do not span its vectors");
    return FTH_OK;
}

fth_err fth_vectors_open(const char *path, fth_vectors **out) {
    fth_vectors *v = calloc(1, sizeof *v);
    if (!v || !(v->path = strdup(path))) {
        fth_vectors_free(v);
        return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", path);
    }
    fth_err err = take_file(v);
    if (err)
        fth_vectors_free(v);
    else
        *out = v;
    return err;
}

void fth_vectors_free(fth_vectors *v) {
    if (!v) return;
    fth_unmap_file(v->map, v->map_size);
    free(v->path);
    free(v);
}

fth_err fth_vectors_damaged(const fth_vectors *v, int64_t i) {
    return fth_fail(FTH_BAD_INPUT,
                    "%s: damaged: record %lld has the offsets %llu and %llu of %lld vectors",
                    v->path, (long long)i, (unsigned long long)v->offsets[i],
                    (unsigned long long)v->offsets[i + 1], (long long)v->vectors);
}

/* Bytes read between two looks at *stop. */
enum { READ_BYTES = 1 << 20 };

fth_err fth_vectors_verify(const fth_vectors *v, const atomic_bool *stop) {
    const size_t bytes = (size_t)v->vectors * (size_t)v->width * fth_vector_type_size(v->type);
    uint32_t crc = 0;
    if (v->offsets && fth_crc32(0, v->offsets, 8 * ((size_t)v->records + 1)) != v->offsets_crc)
        return damaged(v->path, "wrong check sum of its offsets");
    for (size_t at = 0; at < bytes; at += READ_BYTES) {
        if (stop && atomic_load(stop)) return FTH_OK;
        const size_t left = bytes - at;
        crc = fth_crc32(crc, (const char *)v->data + at, left < READ_BYTES ? left : READ_BYTES);
    }
    if (crc != v->data_crc) return damaged(v->path, "wrong check sum of its numbers");
    for (int64_t i = 0; i < v->records; i++)
        if (fth_vectors_length(v, i) < 0) return fth_vectors_damaged(v, i);
    return FTH_OK;
}

fth_err fth_vectors_check(const fth_vectors *v) {
    return fth_vectors_verify(v, NULL);
}
