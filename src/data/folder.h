/* folder.h: a data set as it lies on the disk.
 *
 *     DATASET/dataset.json          what it is: sides, splits, counts, options
 *     DATASET/train.fds ...         the ids of the splits (data/dataset.h)
 *     DATASET/labels.json           what labels may be; image.json: what is known of the pictures
 *     DATASET/languages.json        of many languages: their directions (data/languages.h)
 *     DATASET/train.labels ...      of tables and pictures: a label for each (data/vectors.h)
 *     DATASET/train.images ...      of pictures: their bytes, in the place of ids
 *     DATASET/codebook              of pictures: patterns of patches (data/codebook.h)
 *     DATASET/tokenizer.model       or tokenizer.src.model and tokenizer.tgt.model; .json
 *                                   where it is a byte-level BPE
 *     DATASET/valid.src.txt ...     the text of valid and test pairs (data/split_text.h) */
#ifndef FTH_DATA_FOLDER_H
#define FTH_DATA_FOLDER_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "data/dataset.h"
#include "data/image_facts.h"
#include "data/label_set.h"
#include "data/languages.h"
#include "data/speech_facts.h"
#include "data/vectors.h"
#include "text/tokenizer.h"

enum { FTH_TRAIN = 0, FTH_VALID = 1, FTH_TEST = 2, FTH_N_SPLITS = 3 };

/* train, valid, test */
const char *fth_split_name(int split);

/* Zeroed: not open, may be freed. */
typedef struct fth_folder {
    char *path;
    int n_sides;  /* 2: source and target; 1: text, with labels or without; 0: pictures */
    int separate; /* source and target have a tokenizer each */
    int has_split[FTH_N_SPLITS];
    double target_unigram_nll; /* H_uni of doc/analyses.md#when-a-run-has-failed: nats per target
                                  token, end symbols included, under the frequencies of the training
                                  data; NAN when there is no train split */
    fth_image_facts image;     /* of pictures; zero: it is text */
    fth_speech_facts speech;   /* of recordings, n_sides being 1; zero: there are none */
    fth_label_set labels;      /* what they may be; NONE: there are none */
    fth_languages languages;   /* the directions; n 0: there is one, without tags */
    json_t *json;              /* all of dataset.json */
} fth_folder;

/* Reads dataset.json. FTH_NOT_FOUND, FTH_BAD_INPUT with the file and the key. */
fth_err fth_folder_open(fth_folder *f, const char *path);
void fth_folder_fini(fth_folder *f);

/* FTH_NOT_FOUND when the data set has no such split; the message says which it has. FTH_BAD_INPUT
 * when the file is another than dataset.json's. */
fth_err fth_folder_split(const fth_folder *f, int split, fth_dataset **out);

/* The labels of a split, as many as it has sentences; FTH_USAGE when the data set has none. */
fth_err fth_folder_labels(const fth_folder *f, int split, fth_vectors **out);

/* The pictures of a split; FTH_NOT_FOUND when there is no such split, FTH_USAGE when the data set
 * is text. */
fth_err fth_folder_images(const fth_folder *f, int split, fth_vectors **out);

/* The frames of a split of recordings. */
fth_err fth_folder_frames(const fth_folder *f, int split, fth_vectors **out);

/* Writes into a split's entry of dataset.json what belongs to its labels; nothing where the set is
 * NONE. */
fth_err fth_folder_describe_labels(const char *folder, int split, const fth_label_set *labels,
                                   json_t *entry);

/* The tokenizer of a side; side 0 of a one-sided data set. */
fth_err fth_folder_tokenizer(const fth_folder *f, int side, fth_tokenizer **out);

/* Its path, malloc'd; NULL when out of memory. */
char *fth_folder_tokenizer_path(const fth_folder *f, int side);

/* The tokenizer files are those that the data set was made with, byte for byte. */
fth_err fth_folder_check_tokenizers(const fth_folder *f);

/* A model folder has the tokenizers that the data set was made with, or none at all. */
fth_err fth_folder_check_model(const fth_folder *f, const char *model);

/* Every split (data/dataset.h), the tokenizers, and that they belong together. */
fth_err fth_folder_check(const fth_folder *f);

/* Tells data sets apart: of the tokenizers, of what was counted in the splits and of their content,
 * wherever it lies and whatever it was made of. */
uint64_t fth_folder_hash(const fth_folder *f);

#endif
