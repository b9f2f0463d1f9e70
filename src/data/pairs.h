/* pairs.h: pairs.yaml: which files hold which directions.
 *
 *     - source: en                        # one direction
 *       target: de
 *       train: [train.en, train.de]       # source, target
 *       test: [test.en, test.de]
 *     - both: [en, fr]                    # en-fr and fr-en, from the same files
 *       train: train.*                    # a * stands for the code: train.en and train.fr
 *       valid: valid.*
 *     - all: [de, es, fr]                 # every direction among these
 *       test: test.*                      # a test alone: zero-shot
 *
 * Files that do not begin with / lie beside pairs.yaml. They may be compressed. */
#ifndef FTH_DATA_PAIRS_H
#define FTH_DATA_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "data/languages.h"

enum { FTH_PAIR_SPLITS = 3 }; /* train, valid, test, as in data/folder.h */

/* The files of a direction. */
typedef struct fth_pair {
    const char *file[FTH_PAIR_SPLITS][2]; /* source and target; NULL: there are none */
    size_t line;                          /* of pairs.yaml */
} fth_pair;

/* Zeroed: empty, may be freed. */
typedef struct fth_pairs {
    fth_languages languages; /* the directions; tags and temperature are the caller's to set */
    fth_pair *of;            /* [languages.n] */
    fth_arena arena;         /* of the names */
} fth_pairs;

/* FTH_BAD_INPUT, with the line: what is no such list. FTH_NOT_FOUND for a file that is missing. */
fth_err fth_pairs_read(const char *path, fth_pairs *out);

/* The same from memory, without a look at the files; name is that of the file. */
fth_err fth_pairs_parse(const char *name, const char *text, size_t size, fth_pairs *out);
void fth_pairs_fini(fth_pairs *p);

#endif
