/* safetensors_write.c: writes tensors one after the other, in the order of their names. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/writer.h"
#include "store/safetensors.h"

enum { ALIGNMENT = 64, CHUNK_BYTES = 1 << 20 };

static int by_name(const void *a, const void *b) {
    const fth_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* What the tensor takes in the file. */
static fth_err measure(const fth_st_tensor *t, int has_fill, int64_t *bytes) {
    if (t->rank < 0 || t->rank > FTH_ST_MAX_RANK)
        return fth_fail(FTH_FAILED, "tensor \"%s\" has rank %d, but must have 0 to %d", t->name,
                        t->rank, FTH_ST_MAX_RANK);
    *bytes = (int64_t)fth_st_dtype_size(t->dtype);
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0 || __builtin_mul_overflow(*bytes, t->shape[i], bytes))
            return fth_fail(FTH_FAILED, "tensor \"%s\": shape[%d] is %lld: no size", t->name, i,
                            (long long)t->shape[i]);
    }
    if (!t->data && !has_fill && *bytes)
        return fth_fail(FTH_FAILED, "tensor \"%s\" has no data", t->name);
    return FTH_OK;
}

/* The entry of one tensor; NULL when out of memory. */
static json_t *entry_of(const fth_st_tensor *t, int64_t begin, int64_t end) {
    json_t *shape = json_array();
    for (int i = 0; i < t->rank && shape; i++) {
        if (json_array_append_new(shape, json_integer(t->shape[i])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", fth_st_dtype_name(t->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static fth_err make_header(const fth_st_tensor *const *sorted, size_t n, int has_fill,
                           json_t *header) {
    int64_t begin = 0, bytes = 0;
    if (json_object_set_new(header, "__metadata__", json_pack("{s:s}", "format", "pt")) != 0)
        return fth_fail(FTH_NO_MEMORY, "no memory for the header");
    for (size_t i = 0; i < n; i++) {
        const fth_st_tensor *t = sorted[i];
        if (!strcmp(t->name, "__metadata__") || (i && !strcmp(t->name, sorted[i - 1]->name)))
            return fth_fail(FTH_FAILED, "tensor \"%s\": the name is taken", t->name);
        FTH_TRY(measure(t, has_fill, &bytes));
        if (json_object_set_new(header, t->name, entry_of(t, begin, begin + bytes)) != 0)
            return fth_fail(FTH_FAILED, "tensor \"%s\": no memory, or its name is not UTF-8",
                            t->name);
        begin += bytes;
    }
    return FTH_OK;
}

static fth_err put_header(fth_writer *w, json_t *header) {
    static const char spaces[] = "                                                                ";
    char *text = fth_json_dump(header, JSON_COMPACT);
    if (!text) return fth_fail(FTH_NO_MEMORY, "no memory for the header");
    size_t length = strlen(text);
    size_t padding = (ALIGNMENT - (8 + length) % ALIGNMENT) % ALIGNMENT;
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)((uint64_t)(length + padding) >> 8 * i);
    fth_err err = fth_writer_put(w, prefix, sizeof prefix);
    if (!err) err = fth_writer_put(w, text, length);
    if (!err) err = fth_writer_put(w, spaces, padding);
    free(text);
    return err;
}

/* chunk [CHUNK_BYTES] is where fill puts its elements. */
static fth_err put_tensor(fth_writer *w, const fth_st_tensor *t, fth_st_fill *fill, void *context,
                          void *chunk) {
    size_t n = fth_st_count(t), width = fth_st_dtype_size(t->dtype), most = CHUNK_BYTES / width;
    if (!fill) return fth_writer_put(w, t->data, n * width);
    for (size_t first = 0; first < n; first += most) {
        size_t count = n - first < most ? n - first : most;
        FTH_TRY(fill(context, t, first, count, chunk));
        FTH_TRY(fth_writer_put(w, chunk, count * width));
    }
    return FTH_OK;
}

fth_err fth_st_write(const char *path, const fth_st_tensor *tensors, size_t n, fth_st_fill *fill,
                     void *context, fth_st_sum *sum) {
    fth_writer w = {0};
    const fth_st_tensor **sorted = calloc(n + 1, sizeof *sorted); /* [n] */
    void *chunk = fill ? malloc(CHUNK_BYTES) : NULL;
    json_t *header = json_object();
    fth_err err;
    if (!sorted || !header || (fill && !chunk)) {
        err = fth_fail(FTH_NO_MEMORY, "%s: no memory to write %zu tensors", path, n);
        goto done;
    }
    for (size_t i = 0; i < n; i++) sorted[i] = &tensors[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    err = make_header(sorted, n, fill != NULL, header);
    if (err) {
        err = fth_fail_in(err, "%s", path);
        goto done;
    }
    FTH_TRY_OR(err, fth_writer_open(&w, path), done);
    FTH_TRY_OR(err, put_header(&w, header), done);
    for (size_t i = 0; i < n; i++)
        FTH_TRY_OR(err, put_tensor(&w, sorted[i], fill, context, chunk), done);
    FTH_TRY_OR(err, fth_writer_commit(&w), done);
    if (sum) *sum = (fth_st_sum){.bytes = w.size, .crc32 = w.crc};
done:
    fth_writer_fini(&w);
    json_decref(header);
    free(chunk);
    free(sorted);
    return err;
}
