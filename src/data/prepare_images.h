/* prepare_images.h: pictures to a data set: reads every one, checks its size, measures mean and
 * deviation of the training set, and writes bytes and labels where training can map them. */
#ifndef FTH_DATA_PREPARE_IMAGES_H
#define FTH_DATA_PREPARE_IMAGES_H

#include "base/log.h"
#include "data/folder.h"

/* Everything is borrowed. */
typedef struct fth_prepare_images {
    const char *list[FTH_N_SPLITS]; /* image_list.h; NULL: this split is not there */
    const char *out;
    int force;
    int32_t height, width; /* 0: those of the first picture */
    int32_t patch;
    int resize;            /* pictures of another size are brought to it; else refused */
    int32_t visual_tokens; /* of a codebook of patches; 0: none */
    fth_label_set
        labels;    /* CLASS, PLACES without names: those of the training list; NONE: not kept */
    json_t *about; /* goes into dataset.json as "options" */
    fth_log *log;
} fth_prepare_images;

fth_err fth_prepare_images_run(const fth_prepare_images *p);

#endif
