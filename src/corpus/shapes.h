/* shapes.h: made-up pictures with a map of what is where: circles, squares and triangles before a
 * background. Same seed, same bytes. */
#ifndef FTH_CORPUS_SHAPES_H
#define FTH_CORPUS_SHAPES_H

#include "base/log.h"
#include "corpus/corpus.h"
#include "image/image.h"

enum { FTH_SHAPES_SIZE = 32, FTH_SHAPES_CLASSES = 4 }; /* background, circle, square, triangle */

/* Picture number i of a split: colours [3, SIZE, SIZE] and classes [1, SIZE, SIZE], both to be
 * freed by fth_image_fini. */
fth_err fth_shapes_draw(uint64_t seed, fth_corpus_split split, int64_t i, fth_image *picture,
                        fth_image *map);

/* Writes count[split] pictures to FOLDER/train/000000.png and so on, their maps beside them as
 * 000000.map.png, and the lists FOLDER/train.tsv, valid.tsv and test.tsv that fathom prepare reads:
 * the whole folder or nothing. One that is there is replaced only with force, and only when it has
 * such lists. log, if not NULL, is told of the progress. */
fth_err fth_shapes_write(uint64_t seed, const char *folder, const int64_t count[FTH_CORPUS_SPLITS],
                         bool force, fth_log *log);

#endif
