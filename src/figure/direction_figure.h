/* direction_figure.h: a score of every direction as a map, sources from top to bottom and targets
 * from left to right. */
#ifndef FTH_FIGURE_DIRECTION_FIGURE_H
#define FTH_FIGURE_DIRECTION_FIGURE_H

#include <stdint.h>

#include "base/error.h"

typedef struct fth_direction_map {
    const char *title;      /* "BLEU of MODEL" */
    char *const *languages; /* [n] */
    const double *score;    /* [n][n] source, target; NAN: no such direction */
    int32_t n;
} fth_direction_map;

/* Draws it as an SVG. FTH_NOT_FOUND when gnuplot is not installed. */
fth_err fth_direction_figure(const fth_direction_map *map, const char *path);

#endif
