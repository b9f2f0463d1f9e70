/* png.c: PNG by libpng: any bit depth and palette, as 8-bit grey or colour without transparency. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"

/* What libpng's callbacks know. */
typedef struct reader {
    const uint8_t *data;
    size_t size, at;
    char message[128];
    uint8_t *lines; /* [height, width, channels] */
} reader;

static void give(png_structp png, png_bytep to, size_t n) {
    reader *r = png_get_io_ptr(png);
    if (n > r->size - r->at) png_error(png, "the file ends too early");
    memcpy(to, r->data + r->at, n);
    r->at += n;
}

static void fail(png_structp png, png_const_charp message) {
    reader *r = png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", message);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

/* Every kind becomes 8-bit grey or colour. */
static void ask_for_bytes(png_structp png, png_infop info) {
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_packing(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
}

/* Lines of an interlaced picture come in several passes: all of it is kept as it comes, then
 * turned. */
static void turn(const uint8_t *lines, fth_image *out) {
    const size_t n = (size_t)out->height * (size_t)out->width;
    for (size_t i = 0; i < n; i++)
        for (int32_t c = 0; c < out->channels; c++)
            out->pixels[(size_t)c * n + i] = lines[i * (size_t)out->channels + (size_t)c];
}

/* Below a setjmp: libpng comes back here with an error. */
static fth_err read_all(png_structp png, png_infop info, reader *r, const char *path,
                        fth_image *out) {
    if (setjmp(png_jmpbuf(png)))
        return fth_fail(FTH_BAD_INPUT, "%s: damaged PNG: %s", path, r->message);
    png_set_read_fn(png, r, give);
    png_set_user_limits(png, FTH_IMAGE_MOST_PIXELS, FTH_IMAGE_MOST_PIXELS);
    png_read_info(png, info);
    const int64_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    if (height > FTH_IMAGE_MOST_PIXELS / width)
        return fth_image_init(out, path, 1, height, width); /* which refuses it */
    ask_for_bytes(png, info);
    const int channels = png_get_channels(png, info);
    FTH_TRY(fth_image_init(out, path, channels, height, width));
    r->lines = malloc((size_t)(channels * height * width));
    if (!r->lines) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
        for (int64_t y = 0; y < height; y++)
            png_read_row(png, r->lines + y * width * channels, NULL);
    png_read_end(png, NULL);
    turn(r->lines, out);
    return FTH_OK;
}

fth_err fth_image_read_png(const char *path, const uint8_t *data, size_t size, fth_image *out) {
    reader r = {.data = data, .size = size};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, fail, ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    fth_err err = info ? read_all(png, info, &r, path, out)
                       : fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
    png_destroy_read_struct(&png, &info, NULL);
    free(r.lines);
    return err;
}
