/* terminal.h: runs drawn with letters: where they are, the loss as curves, a quantity of every
 * layer as a heat map. */
#ifndef FTH_WATCH_TERMINAL_H
#define FTH_WATCH_TERMINAL_H

#include "base/str.h"
#include "inspect/run_views.h"

typedef struct fth_terminal {
    int columns, rows;    /* of the screen */
    bool colour;          /* escape codes may be used */
    bool unicode;         /* braille and blocks may be used; otherwise ASCII */
    const char *quantity; /* of the heat map: a name of `layers` lines; "" takes the first */
} fth_terminal;

/* Appends the drawing. A quantity that no run has is said in its place. */
fth_err fth_terminal_draw(const fth_terminal *t, const fth_run_views *views, fth_str *out);

#endif
