/* png.c: PNG by libpng: any bit depth and palette, as 8-bit grey or colour without transparency. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "image/image.h"

/* What libpng's callbacks know. */
typedef struct reader {
    const uint8_t *data;
    size_t size, at;
    char message[128];
    uint8_t *lines; /* [height, width, channels] */
    bool numbers;
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

/* Numbers stay as they are stored, of fewer bits too. */
static fth_err ask_for_numbers(png_structp png, png_infop info, const char *path) {
    const int type = png_get_color_type(png, info);
    if ((type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_PALETTE) ||
        png_get_bit_depth(png, info) > 8)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: has colours or 16 bits; a label map has grey values or a palette, "
                        "of 8 bits at most",
                        path);
    png_set_packing(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return FTH_OK;
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
    if (r->numbers)
        FTH_TRY(ask_for_numbers(png, info, path));
    else
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

fth_err fth_image_read_png(const char *path, const uint8_t *data, size_t size, bool numbers,
                           fth_image *out) {
    reader r = {.data = data, .size = size, .numbers = numbers};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, fail, ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    fth_err err = info ? read_all(png, info, &r, path, out)
                       : fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
    png_destroy_read_struct(&png, &info, NULL);
    free(r.lines);
    return err;
}

/* ---- writing ---- */

/* What is written is kept in memory, and comes into the file whole. */
typedef struct sheet {
    fth_str text;
    fth_err err;
    char message[128];
} sheet;

static void keep(png_structp png, png_bytep data, size_t n) {
    sheet *s = png_get_io_ptr(png);
    s->err = fth_str_add(&s->text, (const char *)data, n);
    if (s->err) png_error(png, "no memory");
}

static void flush(png_structp png) {
    (void)png;
}

static void fail_writing(png_structp png, png_const_charp message) {
    sheet *s = png_get_error_ptr(png);
    snprintf(s->message, sizeof s->message, "%s", message);
    png_longjmp(png, 1);
}

/* Colours that differ, by the bits of the number: 0 is black, 1 red, 2 green, 3 yellow, 4 blue. */
static void make_palette(png_color palette[256]) {
    for (int i = 0; i < 256; i++) {
        int rgb[3] = {0, 0, 0};
        for (int bit = 0; bit < 8; bit++)
            if (i >> bit & 1) rgb[bit % 3] |= 0x80 >> (bit / 3);
        palette[i] = (png_color){(png_byte)rgb[0], (png_byte)rgb[1], (png_byte)rgb[2]};
    }
}

/* Below a setjmp, as read_all. line [width, channels]. */
static fth_err write_all(png_structp png, png_infop info, sheet *s, const fth_image *image,
                         uint8_t *line) {
    png_color palette[256];
    const size_t width = (size_t)image->width, plane = width * (size_t)image->height;
    const size_t channels = (size_t)image->channels;
    if (setjmp(png_jmpbuf(png)))
        return s->err ? s->err : fth_fail(FTH_FAILED, "a PNG file: %s", s->message);
    png_set_write_fn(png, s, keep, flush);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 channels == 1 ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    make_palette(palette);
    if (channels == 1) png_set_PLTE(png, info, palette, 256);
    png_write_info(png, info);
    for (size_t y = 0; y < (size_t)image->height; y++) {
        for (size_t x = 0; x < width; x++)
            for (size_t c = 0; c < channels; c++)
                line[x * channels + c] = image->pixels[c * plane + y * width + x];
        png_write_row(png, line);
    }
    png_write_end(png, NULL);
    return FTH_OK;
}

fth_err fth_image_write(const char *path, const fth_image *image) {
    sheet s = {.err = FTH_OK};
    uint8_t *line = malloc((size_t)image->width * (size_t)image->channels);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &s, fail_writing, ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    fth_err err = info && line ? write_all(png, info, &s, image, line)
                               : fth_fail(FTH_NO_MEMORY, "no memory for a picture");
    if (err == FTH_OK) err = fth_file_write(path, s.text.text, s.text.length);
    png_destroy_write_struct(&png, &info);
    fth_str_fini(&s.text);
    free(line);
    return err;
}
