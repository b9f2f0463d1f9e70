/* canvas.c: sets dots in letters of braille (U+2800), or in plain letters where the terminal has no
 * UTF-8. */
#include "watch/canvas.h"

#include <math.h>
#include <stdlib.h>

const char *fth_canvas_colour(int paint) {
    /* the same order as on the page, of colours that the colour-blind tell apart */
    static const char *const codes[] = {"\033[38;5;32m",  "\033[38;5;208m", "\033[38;5;36m",
                                        "\033[38;5;175m", "\033[38;5;178m", "\033[38;5;117m"};
    return codes[paint % 6];
}

fth_err fth_canvas_init(fth_canvas *c, int columns, int rows, bool unicode, bool colour) {
    size_t n = (size_t)columns * (size_t)rows;
    *c = (fth_canvas){.columns = columns,
                      .rows = rows,
                      .width = unicode ? 2 * columns : columns,
                      .height = unicode ? 4 * rows : rows,
                      .unicode = unicode,
                      .colour = colour};
    c->dots = calloc(n, 1);
    c->paint = calloc(n, 1);
    c->letter = calloc(n, 1);
    if (c->dots && c->paint && c->letter) return FTH_OK;
    fth_canvas_fini(c);
    return fth_fail(FTH_NO_MEMORY, "no memory for a drawing");
}

void fth_canvas_fini(fth_canvas *c) {
    free(c->dots);
    free(c->paint);
    free(c->letter);
    *c = (fth_canvas){0};
}

/* The letter that a dot is in, or -1. */
static int place(const fth_canvas *c, int x, int y) {
    if (x < 0 || y < 0 || x >= c->width || y >= c->height) return -1;
    return c->unicode ? y / 4 * c->columns + x / 2 : y * c->columns + x;
}

static void dot(fth_canvas *c, int x, int y, int paint) {
    static const unsigned char bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    int at = place(c, x, y);
    if (at < 0) return;
    c->dots[at] |= c->unicode ? bits[y % 4][x % 2] : 1;
    c->paint[at] = (unsigned char)paint;
}

void fth_canvas_line(fth_canvas *c, double x0, double y0, double x1, double y1, int paint) {
    if (!isfinite(x0) || !isfinite(y0) || !isfinite(x1) || !isfinite(y1)) return;
    double length = fmax(fabs(x1 - x0), fabs(y1 - y0));
    int steps = (int)fmin(ceil(length), 4096);
    for (int i = 0; i <= steps; i++) {
        double t = steps ? (double)i / steps : 0;
        dot(c, (int)lrint(x0 + (x1 - x0) * t), (int)lrint(y0 + (y1 - y0) * t), paint);
    }
}

void fth_canvas_letter(fth_canvas *c, double x, double y, char letter, int paint) {
    int at = isfinite(x) && isfinite(y) ? place(c, (int)lrint(x), (int)lrint(y)) : -1;
    if (at < 0) return;
    c->letter[at] = letter;
    c->paint[at] = (unsigned char)paint;
}

fth_err fth_canvas_row(const fth_canvas *c, int row, fth_str *out) {
    int now = -1;
    for (int x = 0; x < c->columns; x++) {
        int at = row * c->columns + x;
        bool used = c->dots[at] || c->letter[at];
        if (used && c->colour && now != c->paint[at]) {
            now = c->paint[at];
            FTH_TRY(fth_str_addf(out, "%s", fth_canvas_colour(now)));
        }
        if (c->letter[at])
            FTH_TRY(fth_str_add(out, &c->letter[at], 1));
        else if (!c->dots[at])
            FTH_TRY(fth_str_add(out, " ", 1));
        else if (c->unicode) /* U+2800 and the dots */
            FTH_TRY(fth_str_addf(out, "\xe2%c%c", 0xA0 + (c->dots[at] >> 6),
                                 0x80 + (c->dots[at] & 63)));
        else
            FTH_TRY(fth_str_add(out, "*", 1));
    }
    return now >= 0 ? fth_str_addf(out, "\033[0m") : FTH_OK;
}
