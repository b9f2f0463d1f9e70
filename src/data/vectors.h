/* vectors.h: what a split has beside token ids, in a file that is mapped: labels, pictures, frames
 * of sound.
 *
 * Each record has a number of vectors of one width and type: a label is one vector of one number, a
 * picture one vector of bytes, an utterance one vector of features for each frame. Opening looks at
 * the header alone; fth_vectors_check looks at every byte. Record i of train.labels belongs to
 * sentence i of train.fds. */
#ifndef FTH_DATA_VECTORS_H
#define FTH_DATA_VECTORS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The type of a vector's numbers; F16: base/half.h. */
typedef enum fth_vector_type {
    FTH_VECTOR_U8,
    FTH_VECTOR_I32,
    FTH_VECTOR_F32,
    FTH_VECTOR_F16
} fth_vector_type;

size_t fth_vector_type_size(fth_vector_type type);

/* Everything is for reading only. */
typedef struct fth_vectors {
    char *path;
    fth_vector_type type;
    int32_t width; /* numbers of a vector */
    int64_t records;
    int64_t vectors; /* of all records */
    int64_t longest; /* vectors of the longest record */
    void *map;
    size_t map_size;
    const uint64_t *offsets; /* [records + 1] first vector of each record; NULL: one vector each */
    const void *data;        /* [vectors, width] */
    uint32_t offsets_crc, data_crc;
    uint64_t hash; /* of the header, which has the check sums */
} fth_vectors;

/* FTH_BAD_INPUT, with the file: not such a file, another version, cut short, a damaged header. */
fth_err fth_vectors_open(const char *path, fth_vectors **out);
void fth_vectors_free(fth_vectors *v);

/* Vectors of a record; -1 when the file is damaged there (fth_vectors_damaged says so). */
static inline int64_t fth_vectors_length(const fth_vectors *v, int64_t i) {
    if (!v->offsets) return 1;
    const uint64_t begin = v->offsets[i], end = v->offsets[i + 1];
    if (begin > end || end > (uint64_t)v->vectors) return -1;
    return end - begin <= (uint64_t)v->longest ? (int64_t)(end - begin) : -1;
}

/* The error for a record whose offsets are wrong. */
fth_err fth_vectors_damaged(const fth_vectors *v, int64_t i);

/* The first vector of a record whose length is known to be right. */
static inline const void *fth_vectors_at(const fth_vectors *v, int64_t i) {
    const uint64_t first = v->offsets ? v->offsets[i] : (uint64_t)i;
    return (const char *)v->data + first * (uint64_t)v->width * fth_vector_type_size(v->type);
}

/* Check sums and offsets. */
fth_err fth_vectors_check(const fth_vectors *v);

/* The same, until *stop. */
fth_err fth_vectors_verify(const fth_vectors *v, const atomic_bool *stop);

/* Writes such a file, record by record, in bounded memory. */
typedef struct fth_vectors_writer fth_vectors_writer;

/* single: every record has one vector, and no offsets are stored. The file appears under its name
 * when it is finished. */
fth_err fth_vectors_writer_new(const char *path, fth_vector_type type, int32_t width, int single,
                               fth_vectors_writer **out);
fth_err fth_vectors_writer_add(fth_vectors_writer *w, const void *vectors, int64_t n);
fth_err fth_vectors_writer_finish(fth_vectors_writer *w);

/* Without finish nothing is left behind. */
void fth_vectors_writer_free(fth_vectors_writer *w);

#endif
