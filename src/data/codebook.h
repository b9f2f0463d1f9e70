/* codebook.h: visual tokens: every patch of a picture gets the number of the pattern that is
 * nearest to it. The patterns are the means of k-means over the patches of the training set. */
#ifndef FTH_DATA_CODEBOOK_H
#define FTH_DATA_CODEBOOK_H

#include "base/log.h"
#include "data/image_facts.h"
#include "data/vectors.h"

/* Writes facts->visual_tokens patterns of normalised patches to path. The same pictures give the
 * same bytes. */
fth_err fth_codebook_make(const fth_image_facts *facts, const fth_vectors *pictures,
                          const char *path, fth_log *log);

typedef struct fth_codebook {
    int32_t k, width;
    float *number; /* [width, k] side by side: one loop compares a patch with all patterns */
    float *far;    /* [k] room for distances */
} fth_codebook;

/* A zeroed one may be freed. */
fth_err fth_codebook_open(const char *path, const fth_image_facts *facts, fth_codebook *out);
void fth_codebook_fini(fth_codebook *b);

/* The nearest pattern of each patch [n, width]: tokens [n]. */
void fth_codebook_tokens(const fth_codebook *b, const float *patches, int64_t n, int32_t *tokens);

#endif
