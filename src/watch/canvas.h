/* canvas.h: a drawing of dots in a terminal: 2 x 4 of them in a letter with braille, one
 * without. */
#ifndef FTH_WATCH_CANVAS_H
#define FTH_WATCH_CANVAS_H

#include <stdbool.h>

#include "base/str.h"

typedef struct fth_canvas {
    int columns, rows; /* letters */
    int width, height; /* dots */
    bool unicode, colour;
    unsigned char *dots;  /* [rows, columns] eight bits, one for each dot of a letter */
    unsigned char *paint; /* [rows, columns] colour of the letter: index of the run */
    char *letter;         /* [rows, columns] drawn over the dots; 0: none */
} fth_canvas;

fth_err fth_canvas_init(fth_canvas *c, int columns, int rows, bool unicode, bool colour);
void fth_canvas_fini(fth_canvas *c);

/* Dots count from the top left; those outside are left out. */
void fth_canvas_line(fth_canvas *c, double x0, double y0, double x1, double y1, int paint);
void fth_canvas_letter(fth_canvas *c, double x, double y, char letter, int paint);

/* Appends one row of letters, without an end of line. */
fth_err fth_canvas_row(const fth_canvas *c, int row, fth_str *out);

/* The escape code of a run's colour. */
const char *fth_canvas_colour(int paint);

#endif
