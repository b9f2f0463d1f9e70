/* image_facts.h: what is known of the pictures of a data set. */
#ifndef FTH_DATA_IMAGE_FACTS_H
#define FTH_DATA_IMAGE_FACTS_H

#include <stdint.h>

#include "base/error.h"

enum { FTH_IMAGE_CHANNELS = 3 };

/* Zeroed: there are no pictures. */
typedef struct fth_image_facts {
    int32_t height, width, channels;
    int32_t patch;         /* side of the square patches; divides height and width */
    int32_t visual_tokens; /* patterns of the codebook; 0: there is none */
    double mean[FTH_IMAGE_CHANNELS],
        deviation[FTH_IMAGE_CHANNELS]; /* of the training set, in 0..255 */
} fth_image_facts;

static inline int32_t fth_image_patches(const fth_image_facts *f) {
    return f->patch ? f->height / f->patch * (f->width / f->patch) : 0;
}

/* Numbers of a patch, and of a picture. */
static inline int32_t fth_image_patch_width(const fth_image_facts *f) {
    return f->channels * f->patch * f->patch;
}
static inline int32_t fth_image_numbers(const fth_image_facts *f) {
    return f->channels * f->height * f->width;
}

/* FOLDER/image.json. A data set of pictures has it, and a model that was trained on it. Without the
 * file there are no pictures. FTH_BAD_INPUT with the file and the rule. */
fth_err fth_image_facts_write(const fth_image_facts *f, const char *folder);
fth_err fth_image_facts_load(fth_image_facts *f, const char *folder);

/* The bytes of a picture as normalised numbers: (byte - mean) / deviation of its channel. */
void fth_image_normalise(const fth_image_facts *f, const uint8_t *from, float *to);

#endif
