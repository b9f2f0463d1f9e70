/* links: image base */
/* Pictures: every kind of PNG and JPEG comes out as the same bytes; cut and damaged files are
 * refused. */
#include "test_files.h"

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "image/image.h"

enum { H = 9, W = 7 };

static uint8_t pixel(int y, int x, int c) {
    return (uint8_t)(y * 23 + x * 31 + c * 57);
}

/* lines [H, W, channels] */
static void fill(uint8_t *lines, int channels) {
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < channels; c++) *lines++ = pixel(y, x, c % 3);
}

static void write_png(const char *path, png_uint_32 format, int channels) {
    uint8_t lines[H * W * 4];
    png_image image = {.version = PNG_IMAGE_VERSION, .width = W, .height = H, .format = format};
    fill(lines, channels);
    if (format & PNG_FORMAT_FLAG_ALPHA)
        for (int i = 0; i < H * W; i++) lines[i * channels + channels - 1] = 255;
    assert_true(png_image_write_to_file(&image, path, 0, lines, 0, NULL));
}

static void write_jpeg(const char *path, int channels) {
    struct jpeg_compress_struct jpeg = {0};
    struct jpeg_error_mgr errors;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = W;
    jpeg.image_height = H;
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < H; y++) {
        uint8_t line[W * 3], *lines[1] = {line};
        for (int i = 0; i < W * channels; i++)
            line[i] = (uint8_t)(100 + 5 * y); /* nothing to lose */
        jpeg_write_scanlines(&jpeg, lines, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    assert_int_equal(fclose(file), 0);
}

static void png_is_read(void **state) {
    static const struct {
        png_uint_32 format;
        int channels, read;
    } cases[] = {{PNG_FORMAT_GRAY, 1, 1}, {PNG_FORMAT_RGB, 3, 3}, {PNG_FORMAT_RGBA, 4, 3}};
    char path[512];
    PATH(path, *state, "a.png");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fth_image image;
        write_png(path, cases[k].format, cases[k].channels);
        assert_ok(fth_image_read(path, &image));
        assert_int_equal(image.channels, cases[k].read);
        assert_int_equal(image.height, H);
        assert_int_equal(image.width, W);
        for (int c = 0; c < cases[k].read; c++)
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++)
                    assert_int_equal(image.pixels[(c * H + y) * W + x], pixel(y, x, c));
        fth_image_fini(&image);
    }
}

static void jpeg_is_read(void **state) {
    char path[512];
    PATH(path, *state, "a.jpg");
    for (int channels = 1; channels <= 3; channels += 2) {
        fth_image image;
        write_jpeg(path, channels);
        assert_ok(fth_image_read(path, &image));
        assert_int_equal(image.channels, channels);
        for (int c = 0; c < channels; c++)
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++) {
                    const int got = image.pixels[(c * H + y) * W + x];
                    assert_true(abs(got - (100 + 5 * y)) <= 2);
                }
        fth_image_fini(&image);
    }
}

/* Numbers of 8 bits and of 2, as they are stored; colours and 16 bits are not numbers. */
static void numbers_are_not_changed(void **state) {
    char path[512];
    fth_image image;
    PATH(path, *state, "numbers.png");
    write_png(path, PNG_FORMAT_GRAY, 1);
    assert_ok(fth_image_read_numbers(path, &image));
    for (int i = 0; i < H * W; i++) assert_int_equal(image.pixels[i], pixel(i / W, i % W, 0));
    fth_image_fini(&image);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, 4, 1, 2, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    png_byte line[] = {0x1b}; /* 0 1 2 3 */
    png_write_row(png, line);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
    assert_ok(fth_image_read_numbers(path, &image));
    assert_memory_equal(image.pixels, ((const uint8_t[]){0, 1, 2, 3}), 4);
    fth_image_fini(&image);
    write_png(path, PNG_FORMAT_RGB, 3);
    assert_failed(fth_image_read_numbers(path, &image), FTH_BAD_INPUT,
                  (const char *[]){path, "a label map has grey values or a palette", NULL});
    assert_null(image.pixels);
    PATH(path, *state, "numbers.jpg");
    write_jpeg(path, 1);
    assert_failed(fth_image_read_numbers(path, &image), FTH_BAD_INPUT,
                  (const char *[]){path, "must be PNG", NULL});
}

/* Colours come back as they were; numbers as numbers, each with a colour of its own. */
static void what_is_written_is_read_again(void **state) {
    char path[512];
    uint8_t pixels[3 * 256], colours[256][3];
    PATH(path, *state, "written.png");
    for (int i = 0; i < 3 * 256; i++) pixels[i] = (uint8_t)(i * 7 + i / 256);
    const fth_image colour = {3, 8, 32, pixels}, numbers = {1, 8, 32, pixels};
    fth_image read;
    assert_ok(fth_image_write(path, &colour));
    assert_ok(fth_image_read(path, &read));
    assert_int_equal(read.channels, 3);
    assert_memory_equal(read.pixels, pixels, sizeof pixels);
    fth_image_fini(&read);
    for (int i = 0; i < 256; i++) pixels[i] = (uint8_t)i;
    assert_ok(fth_image_write(path, &numbers));
    assert_ok(fth_image_read_numbers(path, &read));
    assert_memory_equal(read.pixels, pixels, 256);
    fth_image_fini(&read);
    assert_ok(fth_image_read(path, &read));
    assert_int_equal(read.channels, 3);
    for (int i = 0; i < 256; i++)
        for (int c = 0; c < 3; c++) colours[i][c] = read.pixels[c * 256 + i];
    for (int i = 0; i < 256; i++)
        for (int k = 0; k < i; k++) assert_memory_not_equal(colours[i], colours[k], 3);
    fth_image_fini(&read);
    assert_failed(fth_image_write("/none/a.png", &numbers), FTH_NOT_FOUND,
                  (const char *[]){"/none/a.png", NULL});
}

/* A file cut anywhere is refused; with a byte changed it is refused or read, and nothing worse. */
static void damage(const char *path) {
    char *data = NULL;
    size_t size = 0;
    assert_ok(fth_file_read(path, &data, &size));
    for (size_t n = 0; n + 1 < size; n++) {
        fth_image image;
        put_bytes(path, data, n);
        assert_failed(fth_image_read(path, &image), FTH_BAD_INPUT, (const char *[]){path, NULL});
        assert_null(image.pixels);
    }
    for (size_t i = 0; i < size; i++) {
        fth_image image;
        data[i] = (char)(data[i] ^ 0x55);
        put_bytes(path, data, size);
        data[i] = (char)(data[i] ^ 0x55);
        const fth_err err = fth_image_read(path, &image);
        assert_true(err == FTH_OK || err == FTH_BAD_INPUT || err == FTH_NO_MEMORY);
        fth_image_fini(&image);
    }
    free(data);
}

static void damaged_files_are_refused(void **state) {
    char path[512];
    PATH(path, *state, "a");
    write_png(path, PNG_FORMAT_RGB, 3);
    damage(path);
    write_jpeg(path, 3);
    damage(path);
}

/* 40,000 x 40,000 pixels in a header of a few bytes take no memory. */
static void bombs_are_refused(void **state) {
    static const uint8_t head[] = {0x89, 'P', 'N',  'G',  '\r', '\n', 0x1a, '\n', 0,    0,
                                   0,    13,  'I',  'H',  'D',  'R',  0,    0,    0x9c, 0x40,
                                   0,    0,   0x9c, 0x40, 8,    0,    0,    0,    0};
    uint8_t bytes[sizeof head + 16];
    char path[512];
    fth_image image;
    PATH(path, *state, "bomb.png");
    memcpy(bytes, head, sizeof head);
    const uint32_t crc = (uint32_t)crc32(0, head + 12, 17);
    for (int i = 0; i < 4; i++) bytes[sizeof head + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    memcpy(bytes + sizeof head + 4, "\0\0\0\1IDAT\0\0\0\0", 12);
    put_bytes(path, bytes, sizeof bytes);
    assert_failed(fth_image_read(path, &image), FTH_BAD_INPUT,
                  (const char *[]){"40000 x 40000", NULL});
    put_bytes(path, "GIF89a", 6);
    assert_failed(fth_image_read(path, &image), FTH_BAD_INPUT,
                  (const char *[]){"neither PNG nor JPEG", NULL});
}

static void resizing_takes_means(void **state) {
    (void)state;
    uint8_t pixels[16] = {0, 2, 4, 6, 8, 10, 12, 14, 20, 22, 24, 26, 28, 30, 32, 34};
    const fth_image from = {1, 4, 4, pixels};
    fth_image to;
    assert_ok(fth_image_resize(&from, 2, 2, &to));
    const uint8_t wanted[4] = {5, 9, 25, 29};
    assert_memory_equal(to.pixels, wanted, 4);
    fth_image_fini(&to);
    assert_ok(fth_image_resize(&from, 4, 4, &to));
    assert_memory_equal(to.pixels, pixels, 16);
    fth_image_fini(&to);
    assert_ok(fth_image_resize(&from, 8, 8, &to)); /* a pixel becomes four */
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            assert_int_equal(to.pixels[y * 8 + x], pixels[y / 2 * 4 + x / 2]);
    fth_image_fini(&to);
}

static void cifar_has_records(void **state) {
    char path[512];
    uint8_t *bytes = calloc(2, 1 + FTH_CIFAR_PIXELS);
    fth_cifar c;
    int32_t label;
    PATH(path, *state, "c.bin");
    assert_non_null(bytes);
    bytes[0] = 7;
    bytes[1 + FTH_CIFAR_PIXELS] = 3;
    bytes[2 + FTH_CIFAR_PIXELS] = 99;
    put_bytes(path, bytes, 2 * (1 + FTH_CIFAR_PIXELS));
    assert_ok(fth_cifar_open(path, &c));
    assert_int_equal(c.records, 2);
    fth_cifar_at(&c, 0, &label);
    assert_int_equal(label, 7);
    assert_int_equal(fth_cifar_at(&c, 1, &label)[0], 99);
    assert_int_equal(label, 3);
    fth_cifar_fini(&c);
    put_bytes(path, bytes, 1 + 2 * FTH_CIFAR_PIXELS);
    assert_failed(fth_cifar_open(path, &c), FTH_BAD_INPUT,
                  (const char *[]){"records of 3073", NULL});
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_not_changed),
        TEST(what_is_written_is_read_again),
        TEST(png_is_read),
        TEST(jpeg_is_read),
        TEST(damaged_files_are_refused),
        TEST(bombs_are_refused),
        TEST(resizing_takes_means),
        TEST(cifar_has_records),
    };
    return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}
