/* dataset.h: one split of a data set (train.fds, ...): token ids in a file that is mapped, not
 * read.
 *
 * Opening looks at the header alone, so it takes the same time for any number of sentences. What a
 * damaged file could do is checked where it is used: a reader never leaves the file and never gives
 * an id that is not in the vocabulary. fth_dataset_check looks at every byte, as data/verify.h does
 * while others read. doc/data.md has the format. */
#ifndef FTH_DATA_DATASET_H
#define FTH_DATA_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/codebook.h"
#include "data/image_facts.h"
#include "data/vectors.h"
#include "text/tokenizer.h"

enum { FTH_SOURCE = 0, FTH_TARGET = 1 };

/* One side of all sentences. */
typedef struct fth_data_side {
    int64_t tokens;  /* ids in the file; the ends of sentences are not stored */
    int64_t words;   /* words between white space in the text that the ids stand for */
    int64_t bytes;   /* of that text, without line ends */
    int32_t vocab;   /* ids are in [0, vocab) */
    int32_t longest; /* tokens of the longest sentence */
    fth_special_ids special;
} fth_data_side;

/* Everything is for reading only. */
typedef struct fth_dataset {
    char *path;
    int n_sides; /* 2: source and target; 1: one text, pictures, or the texts of recordings */
    int64_t sentences;
    fth_data_side side[2]; /* [n_sides]; with one side it is side[0] */
    /* the mapped file */
    void *map;
    size_t map_size;
    const uint64_t *offsets[2]; /* [sentences + 1] first id of each sentence */
    const void *ids[2];         /* [tokens] uint16_t or int32_t */
    int id_bytes;               /* 2 or 4 */
    uint32_t offsets_crc[2], ids_crc[2];
    uint64_t hash; /* of the header, which has the check sums of all content */
    /* What a split has beside its ids, or in their place; NULL, zero: nothing. */
    fth_vectors
        *labels;     /* [sentences] classes (int32) or numbers (float); of places maps (bytes), or
                            a class of each token, -1 where it is not the first of a word */
    int32_t classes; /* how many there are; 0: labels are numbers */
    bool places;     /* labels are classes of pixels or words */
    fth_vectors *images; /* [sentences] bytes: side[0] counts patches then, and there are no ids */
    fth_image_facts image;    /* of them */
    fth_vectors *frames;      /* [sentences] of sound: what side[0] says */
    fth_codebook codebook;    /* of them; k 0: there is none */
    int64_t *direction_first; /* [n_directions + 1] of many languages: the directions lie one after
                                 the other (data/languages.h) */
    int32_t n_directions;     /* 0: no such data */
    double temperature;       /* that they are drawn with where nothing else is asked for */
} fth_dataset;

/* FTH_BAD_INPUT, with the file: not a data set, another version, cut short, a damaged header. */
fth_err fth_dataset_open(const char *path, fth_dataset **out);
void fth_dataset_free(fth_dataset *d);

/* Tokens of a sentence; -1 when the file is damaged there (fth_dataset_damaged says so). i must be
 * in [0, sentences). */
static inline int64_t fth_dataset_length(const fth_dataset *d, int side, int64_t i) {
    uint64_t begin = d->offsets[side][i], end = d->offsets[side][i + 1];
    if (begin > end || end > (uint64_t)d->side[side].tokens) return -1;
    return end - begin <= (uint64_t)d->side[side].longest ? (int64_t)(end - begin) : -1;
}

/* A part of a split as a split of its own: n sentences from `first` on. It borrows from d and is
 * not to be freed; its counts of tokens, words and bytes are those of d. */
fth_dataset fth_dataset_part(const fth_dataset *d, int64_t first, int64_t n);

/* The error for a sentence whose offsets are wrong. */
fth_err fth_dataset_damaged(const fth_dataset *d, int side, int64_t i);

/* Copies n tokens of a sentence, from its token number `from` on, into out. */
fth_err fth_dataset_copy(const fth_dataset *d, int side, int64_t i, int64_t from, int64_t n,
                         int32_t *out);

/* Check sums, offsets and the range of every id. */
fth_err fth_dataset_check(const fth_dataset *d);

/* The check sums alone, block by block, until *stop. */
fth_err fth_dataset_verify(const fth_dataset *d, const atomic_bool *stop);

/* Writes a split, sentence by sentence, in bounded memory. */
typedef struct fth_dataset_writer fth_dataset_writer;

/* The file appears under its name when it is finished. Of sides, vocab and special are used. */
fth_err fth_dataset_writer_new(const char *path, int n_sides, const fth_data_side *sides,
                               fth_dataset_writer **out);

/* Adds a sentence: for each side its ids [n[side]], and the words and bytes of its text. */
fth_err fth_dataset_writer_add(fth_dataset_writer *w, const int32_t *const ids[2],
                               const size_t n[2], const size_t words[2], const size_t bytes[2]);
fth_err fth_dataset_writer_finish(fth_dataset_writer *w);

/* Without finish nothing is left behind. */
void fth_dataset_writer_free(fth_dataset_writer *w);

#endif
