/* gradnorm.c: gradient norm per layer (METHODS E.1): gp of all parameters of the layer, ga of its
 * output, that is, the total over everything that reads it. */
#include <math.h>
#include <stdlib.h>

#include "probe/probe.h"

/* Sum of squares of the gradients of all parameters of a layer. */
static fth_err layer_squares(const fth_subject *s, fth_stack stack, int32_t layer, double *out) {
    fth_device *dev = s->spec->device;
    size_t size = fth_dtype_size(dev->full);
    *out = 0;
    for (int32_t i = 0; i < s->model.params.n; i++) {
        const fth_param *p = &s->model.params.param[i];
        double squares;
        if (p->stack != stack || p->layer != layer) continue;
        const char *grad = (const char *)s->arenas.grad + (size_t)p->offset * size;
        FTH_TRY(dev->backend->sum_squares(dev, grad, fth_param_size(p), &squares));
        *out += squares;
    }
    return FTH_OK;
}

static fth_err measure(fth_subject *s, fth_look *l, double *squares, fth_table *out) {
    for (int32_t i = 0; i < l->taps.n_sub; i++)
        if (l->taps.sub[i].sub == FTH_FFN) FTH_TRY(fth_look_at(l, l->taps.sub[i].dy, i));
    FTH_TRY(fth_look_run(l, fth_subject_update(s, s->model.config.step), fth_see_squares, squares));
    for (int32_t i = 0; i < l->taps.n_sub; i++) {
        const fth_tap *tap = &l->taps.sub[i];
        double params;
        if (tap->sub != FTH_FFN) continue;
        FTH_TRY(layer_squares(s, tap->stack, tap->layer, &params));
        FTH_TRY(fth_table_add(out, (fth_probe_row){.stack = tap->stack,
                                                   .index = tap->layer + 1,
                                                   .step = s->model.config.step,
                                                   .number = {sqrt(params), sqrt(squares[i])}}));
    }
    return FTH_OK;
}

fth_err fth_probe_gradnorm(fth_subject *s, fth_table *out) {
    fth_look look;
    FTH_TRY(fth_look_open(&look, s, (fth_graph_spec){.backward = true}, FTH_TAP_DY));
    double *squares = calloc((size_t)look.taps.n_sub, sizeof *squares);
    fth_err err = squares ? measure(s, &look, squares, out)
                          : fth_fail(FTH_NO_MEMORY, "no memory for %d sums", look.taps.n_sub);
    free(squares);
    fth_look_close(&look);
    return err;
}
