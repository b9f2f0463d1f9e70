/* encode.h: turns the records of a split into a data set file, on many threads.
 *
 * One thread reads blocks of records, the others cut them into tokens, and the first one writes
 * them in their old order. Only a few blocks are in memory at any time. */
#ifndef FTH_DATA_ENCODE_H
#define FTH_DATA_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/progress.h"
#include "data/dataset.h"
#include "data/label_set.h"
#include "data/records.h"
#include "text/tokenizer.h"
#include "data/vectors.h"

typedef struct fth_encode_options {
    const fth_tokenizer *tokenizer[2]; /* by side; both may be the same */
    int threads;                       /* that cut text, >= 1 */
    int64_t max_positions;   /* longer pairs, end symbol included, are left out; 0: no bound */
    int64_t max_tokens[2];   /* longer sides are cut to so many, end symbol included; 0: never */
    int strict;              /* a pair that is too long is an error */
    int32_t segmentations;   /* times that a record is written, each time cut anew; 0: once */
    double bpe_dropout;      /* of the cuts; 0: the tokenizer's own one */
    int drop_empty;          /* pairs with an empty side are left out */
    const char *text_prefix; /* "DIR/valid": also write DIR/valid.src.txt, valid.tgt.txt, and
                                valid.ref1.txt ... with further references; NULL: no */
    const fth_ids
        *separator; /* of tables: the two texts of a record become one side with these ids between
                                 them; NULL: a side for each text */
    const fth_label_set *labels; /* of tables; NULL: none */
    fth_vectors_writer
        *label_out; /* gets a label for each sentence: int32_t classes or float numbers; of
                               words one for each token, -1 where it is not the first of one */
    const fth_ids
        *tags; /* [directions] of many languages: what comes before each source; NULL: no */
    const uint8_t *is_tag;  /* [vocab] of many languages: the ids that are tags */
    int64_t *written_of;    /* [directions] gets how many records of each were written */
    fth_progress *progress; /* in kB of input; NULL: none */
} fth_encode_options;

typedef struct fth_encode_counts {
    int64_t read, written;   /* records */
    int64_t too_long, empty; /* records left out */
    int64_t tagged;          /* and because there is a tag in their text; */
    char first_tagged[160];  /* the first: FILE:LINE */
    int64_t cut;             /* records of which a side was cut */
    int64_t unknown[2];      /* unk tokens written, by side */
    int32_t references;      /* files of further references */
} fth_encode_counts;

/* unigram [vocab of the last side], NULL: not wanted; gets the number of times that each token of
 * the last side is to be predicted, end symbols included. */
fth_err fth_encode_split(const fth_text_spec *text, const fth_encode_options *options,
                         fth_dataset_writer *out, int64_t *unigram, fth_encode_counts *counts);

#endif
