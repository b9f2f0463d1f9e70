/* image.c: which format a picture has; pictures in memory and of another size. */
#include "image/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

fth_err fth_image_init(fth_image *image, const char *path, int64_t channels, int64_t height,
                       int64_t width) {
    if (height < 1 || width < 1 || height > FTH_IMAGE_MOST_PIXELS / width)
        return fth_fail(FTH_BAD_INPUT, "%s: %lld x %lld pixels; a picture has 1 to %d", path,
                        (long long)width, (long long)height, FTH_IMAGE_MOST_PIXELS);
    *image = (fth_image){(int32_t)channels, (int32_t)height, (int32_t)width, NULL};
    image->pixels = malloc((size_t)(channels * height * width));
    return image->pixels ? FTH_OK
                         : fth_fail(FTH_NO_MEMORY, "%s: no memory for %lld x %lld pixels", path,
                                    (long long)width, (long long)height);
}

void fth_image_fini(fth_image *image) {
    free(image->pixels);
    *image = (fth_image){0};
}

static fth_err read_file(const char *path, bool numbers, fth_image *out) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
    char *data = NULL;
    size_t size = 0;
    *out = (fth_image){0};
    FTH_TRY(fth_file_read(path, &data, &size));
    const uint8_t *bytes = (const uint8_t *)data;
    fth_err err;
    if (size >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        err = fth_image_read_png(path, bytes, size, numbers, out);
    else if (numbers)
        err = fth_fail(FTH_BAD_INPUT, "%s: a label map must be PNG", path);
    else if (size >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        err = fth_image_read_jpeg(path, bytes, size, out);
    else
        err = fth_fail(FTH_BAD_INPUT, "%s: neither PNG nor JPEG", path);
    free(data);
    if (err) fth_image_fini(out);
    return err;
}

fth_err fth_image_read(const char *path, fth_image *out) {
    return read_file(path, false, out);
}

fth_err fth_image_read_numbers(const char *path, fth_image *out) {
    return read_file(path, true, out);
}

/* How much of pixel i lies between two places. */
static double overlap(int32_t i, double begin, double end) {
    const double from = begin > i ? begin : i, to = end < i + 1 ? end : i + 1;
    return to > from ? to - from : 0;
}

/* The mean of a plane over [top, bottom) x [left, right). */
static double mean_of(const uint8_t *plane, int32_t width, double top, double bottom, double left,
                      double right) {
    double sum = 0;
    for (int32_t y = (int32_t)top; y < bottom; y++)
        for (int32_t x = (int32_t)left; x < right; x++)
            sum += overlap(y, top, bottom) * overlap(x, left, right) * plane[y * width + x];
    return sum / ((bottom - top) * (right - left));
}

fth_err fth_image_resize(const fth_image *from, int32_t height, int32_t width, fth_image *out) {
    FTH_TRY(fth_image_init(out, "a resized picture", from->channels, height, width));
    const double down = (double)from->height / height, across = (double)from->width / width;
    uint8_t *to = out->pixels;
    for (int32_t c = 0; c < from->channels; c++) {
        const uint8_t *plane =
            from->pixels + (size_t)c * (size_t)from->height * (size_t)from->width;
        for (int32_t y = 0; y < height; y++)
            for (int32_t x = 0; x < width; x++) {
                const double bottom = fmin((y + 1) * down, from->height);
                const double right = fmin((x + 1) * across, from->width);
                *to++ = (uint8_t)lrint(
                    mean_of(plane, from->width, y * down, bottom, x * across, right));
            }
    }
    return FTH_OK;
}
