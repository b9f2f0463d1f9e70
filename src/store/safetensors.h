/* safetensors.h: reads and writes files of named tensors (doc/formats.md#safetensors).
 *
 * A file is mapped, not read: opening a model of many gigabytes costs its header. Everything in the
 * header is checked before the first tensor is handed out, so a view never leaves the file. Numbers
 * are little-endian and need not be aligned in memory: use fth_st_to_f32/_i32, or memcpy. */
#ifndef FTH_STORE_SAFETENSORS_H
#define FTH_STORE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define FTH_ST_DTYPES(X)                                                                           \
    X(F64, 8)                                                                                      \
    X(F32, 4)                                                                                      \
    X(F16, 2)                                                                                      \
    X(BF16, 2)                                                                                     \
    X(I64, 8)                                                                                      \
    X(I32, 4)                                                                                      \
    X(I16, 2)                                                                                      \
    X(I8, 1)                                                                                       \
    X(U64, 8)                                                                                      \
    X(U32, 4)                                                                                      \
    X(U16, 2)                                                                                      \
    X(U8, 1)                                                                                       \
    X(BOOL, 1)

#define FTH_ST_ENUM(name, size) FTH_ST_##name,
typedef enum fth_st_dtype { FTH_ST_DTYPES(FTH_ST_ENUM) FTH_ST_N_DTYPES } fth_st_dtype;
#undef FTH_ST_ENUM

enum { FTH_ST_MAX_RANK = 8 };

/* A tensor in memory or in a mapped file; owns nothing. */
typedef struct fth_st_tensor {
    const char *name;
    fth_st_dtype dtype;
    int rank;                       /* 0: one number */
    int64_t shape[FTH_ST_MAX_RANK]; /* [rank] */
    const void *data;               /* [product of shape], row major */
} fth_st_tensor;

typedef struct fth_st_file {
    char *path;
    size_t n;
    fth_st_tensor *tensors; /* [n], in the order of their names */
    void *map;              /* [map_size] the file */
    size_t map_size;
} fth_st_file;

/* Opens and checks a file. FTH_BAD_INPUT names the file, the tensor, the value and the rule. */
fth_err fth_st_open(const char *path, fth_st_file **out);
void fth_st_close(fth_st_file *f);

/* The tensor of that name, NULL when there is none. */
const fth_st_tensor *fth_st_find(const fth_st_file *f, const char *name);

/* The same, where a missing tensor is an error. */
fth_err fth_st_get(const fth_st_file *f, const char *name, const fth_st_tensor **out);

/* Fails unless the file holds exactly the n expected tensors: names, shapes, and a dtype of the
 * same class (F64, F32, F16 and BF16 stand for each other, other dtypes for themselves). The data
 * pointers of expected are not looked at. */
fth_err fth_st_expect(const fth_st_file *f, const fth_st_tensor *expected, size_t n);

/* Copies a tensor of f into out [fth_st_count(t)]: from F64, F32, F16 or BF16; from I32 or I64
 * (every value must fit). */
fth_err fth_st_to_f32(const fth_st_file *f, const fth_st_tensor *t, float *out);
fth_err fth_st_to_i32(const fth_st_file *f, const fth_st_tensor *t, int32_t *out);

/* Gives elements first .. first + count - 1 of t, in the dtype of t, to the writer. */
typedef fth_err fth_st_fill(void *context, const fth_st_tensor *t, size_t first, size_t count,
                            void *out);

/* Size and check sum (fth_crc32) of a file. */
typedef struct fth_st_sum {
    uint64_t bytes;
    uint32_t crc32;
} fth_st_sum;

/* Writes the n tensors, in the order of their names, under a temporary name, and renames. Without
 * fill the data pointers are written as they are; fill may convert or fetch pieces instead (a
 * model needs no second copy). sum may be NULL. */
fth_err fth_st_write(const char *path, const fth_st_tensor *tensors, size_t n, fth_st_fill *fill,
                     void *context, fth_st_sum *sum);

/* A fill for tensors whose data are floats, stored as F64, F32 or BF16. */
fth_err fth_st_fill_from_f32(void *context, const fth_st_tensor *t, size_t first, size_t count,
                             void *out);

/* The number of elements; the sizes of a tensor of a file never overflow. */
size_t fth_st_count(const fth_st_tensor *t);
size_t fth_st_dtype_size(fth_st_dtype dtype);
const char *fth_st_dtype_name(fth_st_dtype dtype);

#endif
