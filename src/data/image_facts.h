/* image_facts.h: what dataset.json says about the pictures of a data set. */
#ifndef FTH_DATA_IMAGE_FACTS_H
#define FTH_DATA_IMAGE_FACTS_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

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

/* NULL when out of memory. */
json_t *fth_image_facts_json(const fth_image_facts *f);
/* FTH_BAD_INPUT with the rule; path: for messages. NULL: no pictures. */
fth_err fth_image_facts_read(fth_image_facts *f, const json_t *json, const char *path);

/* The bytes of a picture as normalised numbers: (byte - mean) / deviation of its channel. */
void fth_image_normalise(const fth_image_facts *f, const uint8_t *from, float *to);

#endif
