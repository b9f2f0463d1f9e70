/* plane.h: the loss on a grid of points theta + a A + b B of parameter space. */
#ifndef FTH_PROBE_PLANE_H
#define FTH_PROBE_PLANE_H

#include "probe/probe.h"

typedef struct fth_plane {
    const float *centre, *axis[2]; /* [params.size] */
    double from[2], to[2];         /* of a and b */
    int32_t points;                /* along each axis */
    int64_t step;                  /* of the rows, and of the method's numbers */
    const char *word;              /* of the rows */
} fth_plane;

/* Adds a row a, b, loss for every point, numbered from 1, a running fastest. The subject has its
 * own parameters again afterwards. */
fth_err fth_plane_measure(const fth_plane *p, fth_subject *s, fth_table *out);

#endif
