/* fits.h: whether a model and a data set belong together. */
#ifndef FTH_TRAIN_FITS_H
#define FTH_TRAIN_FITS_H

#include "base/config.h"
#include "data/folder.h"

/* Sides, vocabularies and, where the model's folder has them, tokenizers. data: a split of the
 * folder. */
fth_err fth_fits(const fth_config *c, const char *model, const fth_folder *folder,
                 const fth_dataset *data);

#endif
