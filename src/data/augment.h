/* augment.h: a picture changed as photographs of one thing differ: shifted, mirrored, with a part
 * hidden. Nothing is drawn: the change follows from seed, epoch and picture. */
#ifndef FTH_DATA_AUGMENT_H
#define FTH_DATA_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fth_augment {
    int32_t crop; /* the picture is cut out of itself with so many zeros around; 0: not */
    bool flip;    /* left and right are swapped, every second time */
    double
        erase; /* how often a rectangle of 2 to 33 % is hidden (random erasing, arXiv 1708.04896) */
    uint64_t seed;
} fth_augment;

/* from, to [channels, height, width], two different places. The hidden part is 0, the mean of
 * normalised pictures. */
void fth_augment_apply(const fth_augment *a, int64_t epoch, int64_t item, int32_t channels,
                       int32_t height, int32_t width, const float *from, float *to);

/* The same change of a map of classes, [height, width]; `none` where the picture has zeros around
 * it. What is hidden keeps its class. */
void fth_augment_map(const fth_augment *a, int64_t epoch, int64_t item, int32_t height,
                     int32_t width, uint8_t none, const uint8_t *from, uint8_t *to);

/* [channels, height, width] to patches of p x p in reading order, [patches, channels p p]: each
 * channel by channel, then rows and columns. */
void fth_cut_patches(const float *picture, int32_t channels, int32_t height, int32_t width,
                     int32_t p, float *patches);

#endif
