/* vectors_writer.c: offsets and vectors grow together, but stand one after the other in the
 * file. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/writer.h"
#include "data/vectors.h"
#include "data/vectors_format.h"

struct fth_vectors_writer {
    char *path;
    fth_spill offsets, data;
    fth_vectors_header header;
};

fth_err fth_vectors_writer_new(const char *path, fth_vector_type type, int32_t width, int single,
                               fth_vectors_writer **out) {
    const uint64_t zero = 0;
    fth_vectors_writer *w = calloc(1, sizeof *w);
    if (!w || !(w->path = strdup(path))) {
        fth_vectors_writer_free(w);
        return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", path);
    }
    w->header = (fth_vectors_header){.magic = FTH_VECTORS_MAGIC,
                                     .version = FTH_VECTORS_VERSION,
                                     .order = FTH_VECTORS_ORDER,
                                     .type = type,
                                     .width = (uint32_t)width,
                                     .single = single != 0};
    fth_err err = fth_spill_open(&w->data, w->path);
    if (!err && !single) err = fth_spill_open(&w->offsets, w->path);
    if (!err && !single) err = fth_spill_put(&w->offsets, &zero, sizeof zero);
    if (err)
        fth_vectors_writer_free(w);
    else
        *out = w;
    return err;
}

void fth_vectors_writer_free(fth_vectors_writer *w) {
    if (!w) return;
    fth_spill_fini(&w->offsets);
    fth_spill_fini(&w->data);
    free(w->path);
    free(w);
}

fth_err fth_vectors_writer_add(fth_vectors_writer *w, const void *vectors, int64_t n) {
    fth_vectors_header *h = &w->header;
    const size_t bytes = h->width * fth_vector_type_size((fth_vector_type)h->type);
    if (n < 0 || (h->single && n != 1))
        return fth_fail(FTH_FAILED, "%s: a record of %lld vectors", w->path, (long long)n);
    FTH_TRY(fth_spill_put(&w->data, vectors, bytes * (size_t)n));
    h->records++;
    h->vectors += (uint64_t)n;
    if ((uint64_t)n > h->longest) h->longest = (uint64_t)n;
    return h->single ? FTH_OK : fth_spill_put(&w->offsets, &h->vectors, sizeof h->vectors);
}

static uint64_t aligned(uint64_t size) {
    return (size + FTH_SPILL_ALIGN - 1) / FTH_SPILL_ALIGN * FTH_SPILL_ALIGN;
}

static fth_err write_bytes(void *state, const void *data, size_t size) {
    return fth_writer_put(state, data, size);
}

fth_err fth_vectors_writer_finish(fth_vectors_writer *w) {
    fth_vectors_header *h = &w->header;
    fth_writer out = {0};
    h->offsets_crc = w->offsets.crc;
    h->data_crc = w->data.crc;
    h->file_size = FTH_VECTORS_HEADER + aligned(w->offsets.size) + aligned(w->data.size);
    h->crc = fth_crc32(0, h, offsetof(fth_vectors_header, crc));
    fth_err err = fth_writer_open(&out, w->path);
    if (!err) err = fth_writer_put(&out, h, sizeof *h);
    if (!err && !h->single) err = fth_spill_give(&w->offsets, write_bytes, &out);
    if (!err) err = fth_spill_give(&w->data, write_bytes, &out);
    if (!err) err = fth_writer_commit(&out);
    fth_writer_fini(&out);
    return err;
}
