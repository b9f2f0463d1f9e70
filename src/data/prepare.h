/* prepare.h: text to data set: makes the tokenizer, cuts every split, writes the folder.
 *
 * The folder is made under a temporary name beside its place and renamed when all of it is on the
 * disk. Memory is bounded: the sample that the tokenizer is made of, and a few blocks of text. */
#ifndef FTH_DATA_PREPARE_H
#define FTH_DATA_PREPARE_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "data/folder.h"
#include "data/label_set.h"
#include "data/pairs.h"
#include "data/prepare_audio.h"
#include "data/records.h"
#include "text/tokenizer.h"

/* Everything is borrowed. */
typedef struct fth_prepare {
    fth_text_spec text[FTH_N_SPLITS]; /* all with the same number of sides; a path "-" is standard
                                         input; train may be missing when a tokenizer is given */
    const fth_pairs *pairs;           /* of many languages, whose texts these are; NULL: none */
    const char *out;                  /* the folder to make */
    int force;                        /* replace a data set that is there */
    fth_tokenizer_spec tokenizer;
    int separate;                  /* a tokenizer for each side */
    const char *tokenizer_path[2]; /* use these instead of training; with one, the second is NULL */
    uint64_t sample_bytes;         /* of text that a tokenizer is made of at most */
    const fth_prepare_audio *audio; /* the texts are those of recordings; NULL: text is given */
    fth_label_set labels; /* of tables: kind CLASS without names: those of the training text */
    const char *pair_separator; /* of tables: the text between two texts, "" for two end symbols */
    int64_t max_positions;      /* see encode.h */
    int64_t max_tokens[2];
    int strict;
    int32_t segmentations; /* of the training split, see encode.h */
    double bpe_dropout;
    int threads;   /* 0: one for each core */
    json_t *about; /* goes into dataset.json as "options"; NULL: nothing */
    fth_log *log;  /* progress and warnings; NULL: silent */
} fth_prepare;

fth_err fth_prepare_run(const fth_prepare *p);

#endif
