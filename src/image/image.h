/* image.h: pictures as bytes, read from PNG, JPEG and the binary files of CIFAR. */
#ifndef FTH_IMAGE_IMAGE_H
#define FTH_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A larger picture is refused before memory is taken for it. */
enum { FTH_IMAGE_MOST_PIXELS = 1 << 26 };

/* Zeroed: no picture, may be freed. */
typedef struct fth_image {
    int32_t channels, height, width; /* 1: grey; 3: red, green, blue */
    uint8_t *pixels;                 /* [channels, height, width] */
} fth_image;

/* Reads a PNG or JPEG file, told apart by its first bytes. Transparency is left out, palettes and
 * 16 bits become 8-bit colours. FTH_BAD_INPUT, with the file: another format, a damaged or cut
 * file, too many pixels. */
fth_err fth_image_read(const char *path, fth_image *out);
void fth_image_fini(fth_image *image);

/* Reads a PNG file whose pixels are numbers, as label maps have them: grey values as they are
 * stored, or places of a palette. FTH_BAD_INPUT: colours, or what fth_image_read refuses. */
fth_err fth_image_read_numbers(const char *path, fth_image *out);

/* Writes a PNG file. Numbers (1 channel) get a palette in which each has a colour of its own. */
fth_err fth_image_write(const char *path, const fth_image *image);

/* A picture of height x width, each pixel the mean of what it covers. */
fth_err fth_image_resize(const fth_image *from, int32_t height, int32_t width, fth_image *out);

/* image.c: memory for a picture; says which file is too large. */
fth_err fth_image_init(fth_image *image, const char *path, int64_t channels, int64_t height,
                       int64_t width);

/* png.c, jpeg.c: the formats, from memory. numbers: pixels as fth_image_read_numbers wants them. */
fth_err fth_image_read_png(const char *path, const uint8_t *data, size_t size, bool numbers,
                           fth_image *out);
fth_err fth_image_read_jpeg(const char *path, const uint8_t *data, size_t size, fth_image *out);

/* cifar.c: records of a label byte and 3 x 32 x 32 bytes, without a header. */
enum { FTH_CIFAR_SIZE = 32, FTH_CIFAR_PIXELS = 3 * FTH_CIFAR_SIZE * FTH_CIFAR_SIZE };
typedef struct fth_cifar {
    char *data;
    int64_t records;
} fth_cifar;
fth_err fth_cifar_open(const char *path, fth_cifar *out);
void fth_cifar_fini(fth_cifar *c);
/* The pixels of record i, [3, 32, 32]; *label is its class. */
const uint8_t *fth_cifar_at(const fth_cifar *c, int64_t i, int32_t *label);

#endif
