/* heat.h: one quantity of every sub-layer of a stack against the update, in bounded memory.
 *
 * A line of the log has a value for every sub-layer, bottom to top: kind after kind within a layer.
 * Here the kinds are kept apart, since they differ more from one another than layers do. Of a deep
 * stack several neighbouring layers share a cell (the mean of those that have a value); of a long
 * run every stride-th line is kept. A value that is not finite makes its cell not finite: faults
 * show. */
#ifndef FTH_INSPECT_HEAT_H
#define FTH_INSPECT_HEAT_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { FTH_HEAT_ROWS = 320, FTH_HEAT_BINS = 200, FTH_HEAT_NAME = 48 };

/* A cell without a value: the quantity does not exist for that sub-layer. */
#define FTH_HEAT_NONE (-FLT_MAX)

typedef struct fth_heat {
    char stack[16], name[FTH_HEAT_NAME];
    int32_t values;        /* of a line */
    int32_t layers, kinds; /* values = layers * kinds; kinds 1 when the shape is not known */
    int32_t bins, per_bin; /* cells of a row and kind, layers of a cell */
    int32_t rows;          /* kept */
    int64_t seen, stride;  /* lines, and every which of them is kept */
    int64_t *update;       /* [FTH_HEAT_ROWS] */
    float *cell;           /* [FTH_HEAT_ROWS, kinds, bins] */
    float *newest;         /* [kinds, bins] of the newest line, kept or not */
    int64_t newest_update;
} fth_heat;

/* layers: of the stack, 0 when that is not known. */
fth_err fth_heat_init(fth_heat *h, const char *stack, const char *name, int32_t values,
                      int32_t layers);
void fth_heat_fini(fth_heat *h);

/* Adds a line; value[values]. */
void fth_heat_add(fth_heat *h, int64_t update, const float *value);

/* A run went on from this update: what it had logged beyond is void. */
void fth_heat_rewind(fth_heat *h, int64_t update);

#endif
