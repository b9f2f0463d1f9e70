/* plane.c: sets the parameters to each point of the grid and evaluates the loss of the probe set
 * there. */
#include "probe/plane.h"

#include <stdlib.h>

#include "base/progress.h"

/* Point i of n from `from` to `to`; the middle of an odd number of symmetric ones is exactly 0. */
static double coordinate(const fth_plane *p, int axis, int32_t i) {
    double steps = p->points - 1;
    return (p->from[axis] * (steps - i) + p->to[axis] * i) / steps;
}

static fth_err one_point(const fth_plane *p, fth_subject *s, fth_look *l, double a, double b,
                         float *flat) {
    int64_t n = s->model.params.size;
    for (int64_t i = 0; i < n;
         i++) /* alone: threads that wait here would be in the program's way */
        flat[i] =
            (float)((double)p->centre[i] + a * (double)p->axis[0][i] + b * (double)p->axis[1][i]);
    FTH_TRY(fth_subject_load(s, flat));
    return fth_look_run(l, fth_subject_update(s, p->step), NULL, NULL);
}

static fth_err all_points(const fth_plane *p, fth_subject *s, fth_look *l, float *flat,
                          fth_table *out) {
    fth_stack top = s->model.config.arch == FTH_ENC ? FTH_ENCODER : FTH_DECODER;
    int32_t n = p->points * p->points;
    fth_progress progress;
    fth_progress_init(&progress, s->spec->log, fth_real_clock(), "surface", "points", 0, n);
    for (int32_t i = 0; i < n; i++) {
        double a = coordinate(p, 0, i % p->points), b = coordinate(p, 1, i / p->points);
        FTH_TRY(one_point(p, s, l, a, b, flat));
        FTH_TRY(fth_table_add(out, (fth_probe_row){.stack = top,
                                                   .index = i + 1,
                                                   .step = p->step,
                                                   .word = p->word,
                                                   .number = {a, b, l->loss}}));
        fth_progress_update(&progress, i + 1, NULL);
    }
    fth_progress_end(&progress);
    return FTH_OK;
}

fth_err fth_plane_measure(const fth_plane *p, fth_subject *s, fth_table *out) {
    fth_look look;
    FTH_TRY(fth_subject_has_loss(s));
    FTH_TRY(fth_look_open(&look, s, (fth_graph_spec){0}, 0));
    float *flat = malloc(sizeof *flat * (size_t)s->model.params.size);
    fth_err err = flat ? all_points(p, s, &look, flat, out)
                       : fth_fail(FTH_NO_MEMORY, "no memory for the parameters");
    free(flat);
    fth_look_close(&look);
    return err != FTH_OK ? err : fth_subject_load(s, s->flat);
}
