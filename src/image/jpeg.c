/* jpeg.c: JPEG by libjpeg: grey or colour; a cut or damaged file is refused, not filled with
 * grey. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "image/image.h"

/* libjpeg's errors come back here. */
typedef struct catcher {
    struct jpeg_error_mgr manager; /* first: libjpeg knows this part alone */
    jmp_buf back;
    char message[JMSG_LENGTH_MAX];
} catcher;

static void fail(j_common_ptr codec) {
    catcher *c = (catcher *)codec->err;
    codec->err->format_message(codec, c->message);
    longjmp(c->back, 1);
}

/* libjpeg goes on after what it calls warnings, among them a file that ends too early. */
static void refuse_warning(j_common_ptr codec, int level) {
    if (level < 0) fail(codec);
}

static void turn_line(const uint8_t *line, int64_t y, fth_image *out) {
    const size_t plane = (size_t)out->height * (size_t)out->width;
    for (int32_t x = 0; x < out->width; x++)
        for (int32_t c = 0; c < out->channels; c++)
            out->pixels[(size_t)c * plane + (size_t)(y * out->width + x)] =
                line[x * out->channels + c];
}

/* Below a setjmp; *line is the caller's to free. */
static fth_err read_all(struct jpeg_decompress_struct *jpeg, catcher *c, const char *path,
                        uint8_t **line, fth_image *out) {
    if (setjmp(c->back)) return fth_fail(FTH_BAD_INPUT, "%s: damaged JPEG: %s", path, c->message);
    jpeg_read_header(jpeg, TRUE);
    const int64_t channels = jpeg->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    FTH_TRY(fth_image_init(out, path, channels, jpeg->image_height, jpeg->image_width));
    jpeg->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(jpeg);
    *line = malloc((size_t)(out->width * out->channels));
    if (!*line) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
    while (jpeg->output_scanline < jpeg->output_height) {
        const int64_t y = jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, line, 1);
        turn_line(*line, y, out);
    }
    jpeg_finish_decompress(jpeg);
    return FTH_OK;
}

fth_err fth_image_read_jpeg(const char *path, const uint8_t *data, size_t size, fth_image *out) {
    struct jpeg_decompress_struct jpeg = {0};
    catcher c;
    uint8_t *line = NULL;
    jpeg.err = jpeg_std_error(&c.manager);
    c.manager.error_exit = fail;
    c.manager.emit_message = refuse_warning;
    if (setjmp(c.back)) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, data, size);
    fth_err err = read_all(&jpeg, &c, path, &line, out);
    jpeg_destroy_decompress(&jpeg);
    free(line);
    return err;
}
