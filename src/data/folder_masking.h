/* folder_masking.h: what masking needs to know of a data set of text. */
#ifndef FTH_DATA_FOLDER_MASKING_H
#define FTH_DATA_FOLDER_MASKING_H

#include "data/folder.h"
#include "data/masking.h"

/* Sets the mask's id, the vocabulary and where words begin (*word_start is the caller's to free);
 * shares, unit and seed stay as they are. FTH_USAGE: the tokenizer has no mask. */
fth_err fth_folder_masking(const fth_folder *f, const fth_dataset *d, fth_masking *m,
                           uint8_t **word_start);

#endif
