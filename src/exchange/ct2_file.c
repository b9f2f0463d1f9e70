/* ct2_file.c: writes and reads model.bin. Numbers are little-endian; a name has its length with its
 * NUL before it. */
#include "exchange/ct2_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "base/file.h"
#include "base/str.h"
#include "base/writer.h"

enum { VERSION = 6, REVISION = 7, CHUNK = 4096 };
static const char spec[] = "TransformerSpec";

/* The dtypes by CTranslate2's numbers. */
static const fth_st_dtype dtypes[] = {FTH_ST_F32, FTH_ST_I8,  FTH_ST_I16,
                                      FTH_ST_I32, FTH_ST_F16, FTH_ST_BF16};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static int by_name(const void *a, const void *b) {
    const fth_st_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* ---- writing ---- */

static fth_err put_u32(fth_writer *w, uint32_t n) {
    return fth_writer_put(w, &n, sizeof n);
}

static fth_err put_text(fth_writer *w, const char *text) {
    const uint16_t n = (uint16_t)(strlen(text) + 1);
    FTH_TRY(fth_writer_put(w, &n, sizeof n));
    return fth_writer_put(w, text, n);
}

static fth_err put_bf16(fth_writer *w, const float *x, size_t n) {
    uint16_t chunk[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t count = n - first < CHUNK ? n - first : CHUNK;
        for (size_t i = 0; i < count; i++) chunk[i] = fth_bf16_of_float(x[first + i]);
        FTH_TRY(fth_writer_put(w, chunk, sizeof *chunk * count));
    }
    return FTH_OK;
}

static fth_err put_variable(fth_writer *w, const fth_st_tensor *t) {
    const size_t bytes = fth_st_count(t) * fth_st_dtype_size(t->dtype);
    const uint8_t rank = (uint8_t)t->rank;
    uint8_t type = 0;
    while (type < N_DTYPES && dtypes[type] != t->dtype) type++;
    if (bytes > UINT32_MAX)
        return fth_fail(FTH_BAD_INPUT, "%s has %zu bytes: CTranslate2 holds 4 GiB at most", t->name,
                        bytes);
    FTH_TRY(put_text(w, t->name));
    FTH_TRY(fth_writer_put(w, &rank, sizeof rank));
    for (int i = 0; i < t->rank; i++) FTH_TRY(put_u32(w, (uint32_t)t->shape[i]));
    FTH_TRY(fth_writer_put(w, &type, sizeof type));
    FTH_TRY(put_u32(w, (uint32_t)bytes));
    return t->dtype == FTH_ST_BF16 ? put_bf16(w, t->data, fth_st_count(t))
                                   : fth_writer_put(w, t->data, bytes);
}

static fth_err put_all(fth_writer *w, const fth_tensors *t, const char *const *alias, int n_aliases,
                       const char *shared) {
    FTH_TRY(put_u32(w, VERSION));
    FTH_TRY(put_text(w, spec));
    FTH_TRY(put_u32(w, REVISION));
    FTH_TRY(put_u32(w, (uint32_t)t->n));
    for (size_t i = 0; i < t->n; i++) FTH_TRY(put_variable(w, &t->tensors[i]));
    FTH_TRY(put_u32(w, (uint32_t)n_aliases));
    for (int i = 0; i < n_aliases; i++) {
        FTH_TRY(put_text(w, alias[i]));
        FTH_TRY(put_text(w, shared));
    }
    return FTH_OK;
}

fth_err fth_ct2_write(const char *folder, fth_tensors *t, const char *const *alias, int n_aliases,
                      const char *shared) {
    fth_writer w = {0};
    char *path = fth_strdup_printf("%s/model.bin", folder);
    qsort(t->tensors, t->n, sizeof *t->tensors, by_name);
    fth_err err = path ? fth_writer_open(&w, path) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK) err = put_all(&w, t, alias, n_aliases, shared);
    if (err == FTH_OK) err = fth_writer_commit(&w);
    fth_writer_fini(&w);
    free(path);
    return err;
}

/* ---- reading ---- */

typedef struct cursor {
    const char *at;
    size_t left;
} cursor;

static fth_err take(cursor *c, void *out, size_t n) {
    if (n > c->left) return fth_fail(FTH_BAD_INPUT, "the file is cut short");
    memcpy(out, c->at, n);
    c->at += n;
    c->left -= n;
    return FTH_OK;
}

static fth_err take_text(cursor *c, const char **out) {
    uint16_t n = 0;
    FTH_TRY(take(c, &n, sizeof n));
    if (n == 0 || n > c->left || c->at[n - 1] != 0)
        return fth_fail(FTH_BAD_INPUT, "a name of %u bytes is none", n);
    *out = c->at;
    c->at += n;
    c->left -= n;
    return FTH_OK;
}

static fth_err take_variable(cursor *c, fth_tensors *to) {
    const char *name = NULL;
    uint8_t rank = 0, type = 0;
    uint32_t size = 0, bytes = 0;
    int64_t shape[FTH_ST_MAX_RANK], count = 1;
    FTH_TRY(take_text(c, &name));
    FTH_TRY(take(c, &rank, sizeof rank));
    if (rank > FTH_ST_MAX_RANK) return fth_fail(FTH_BAD_INPUT, "%s has rank %u", name, rank);
    for (int i = 0; i < rank; i++) {
        FTH_TRY(take(c, &size, sizeof size));
        shape[i] = size;
        if (__builtin_mul_overflow(count, shape[i], &count))
            return fth_fail(FTH_BAD_INPUT, "%s: its size overflows 64 bits", name);
    }
    FTH_TRY(take(c, &type, sizeof type));
    FTH_TRY(take(c, &bytes, sizeof bytes));
    if (type >= N_DTYPES) return fth_fail(FTH_BAD_INPUT, "%s has type %u", name, type);
    if (bytes > c->left || (uint64_t)count != bytes / fth_st_dtype_size(dtypes[type]))
        return fth_fail(FTH_BAD_INPUT, "%s has %u bytes, which are not those of its shape", name,
                        bytes);
    FTH_TRY(fth_tensors_add(to, name, dtypes[type], rank, shape, c->at, NULL));
    c->at += bytes;
    c->left -= bytes;
    return FTH_OK;
}

/* Weights in 8 bits become floats; their scales are no tensors of the model any more. */
static fth_err widen(fth_ct2_file *f) {
    size_t kept = 0;
    for (size_t i = 0; i < f->tensors.n; i++) {
        fth_st_tensor *t = &f->tensors.tensors[i];
        const size_t n = strlen(t->name);
        if (n > 6 && strcmp(t->name + n - 6, "_scale") == 0) continue;
        if (t->dtype == FTH_ST_I8 && t->rank == 2) {
            char name[300];
            snprintf(name, sizeof name, "%s_scale", t->name);
            const fth_st_tensor key = {.name = name};
            const fth_st_tensor *s =
                bsearch(&key, f->tensors.tensors + i, f->tensors.n - i, sizeof key, by_name);
            float *x = fth_arena_alloc(&f->tensors.arena, sizeof *x * (fth_st_count(t) + 1));
            if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for %s", t->name);
            if (!s || s->dtype != FTH_ST_F32 || s->rank != 1 || s->shape[0] != t->shape[0])
                return fth_fail(FTH_BAD_INPUT, "%s has no scales", t->name);
            for (size_t k = 0; k < fth_st_count(t); k++) {
                float scale;
                memcpy(&scale, (const char *)s->data + k / (size_t)t->shape[1] * sizeof scale,
                       sizeof scale);
                x[k] = (float)((const int8_t *)t->data)[k] / scale;
            }
            t->dtype = FTH_ST_F32;
            t->data = x;
        }
        f->tensors.tensors[kept++] = *t;
    }
    f->tensors.n = kept;
    return FTH_OK;
}

static fth_err read_all(cursor c, fth_ct2_file *f) {
    uint32_t version = 0, revision = 0, n = 0;
    const char *text = NULL;
    FTH_TRY(take(&c, &version, sizeof version));
    FTH_TRY(take_text(&c, &text));
    FTH_TRY(take(&c, &revision, sizeof revision));
    if (version != VERSION || revision != REVISION || strcmp(text, spec) != 0)
        return fth_fail(FTH_BAD_INPUT, "version %u of a %s is not read", version, text);
    FTH_TRY(take(&c, &n, sizeof n));
    for (uint32_t i = 0; i < n; i++) FTH_TRY(take_variable(&c, &f->tensors));
    FTH_TRY(take(&c, &n, sizeof n));
    f->aliases = (int)(n < 2 ? n : 2);
    if (f->tensors.n) qsort(f->tensors.tensors, f->tensors.n, sizeof *f->tensors.tensors, by_name);
    return widen(f);
}

fth_err fth_ct2_open(const char *folder, fth_ct2_file *f) {
    size_t size = 0;
    *f = (fth_ct2_file){0};
    f->file.path = fth_strdup_printf("%s/model.bin", folder);
    if (!f->file.path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    FTH_TRY(fth_file_read(f->file.path, &f->data, &size));
    fth_err err = read_all((cursor){f->data, size}, f);
    if (err != FTH_OK) return fth_fail_in(err, "%s", f->file.path);
    f->file.n = f->tensors.n;
    f->file.tensors = f->tensors.tensors;
    return FTH_OK;
}

void fth_ct2_close(fth_ct2_file *f) {
    free(f->file.path);
    free(f->data);
    fth_tensors_fini(&f->tensors);
    *f = (fth_ct2_file){0};
}
