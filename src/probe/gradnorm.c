/* gradnorm.c: gradient norm per layer (doc/analyses.md#gradnorm): gp of all parameters of the
 * layer, ga of its output, that is, the total over everything that reads it. */
#include <math.h>
#include <stdlib.h>

#include "probe/probe.h"

/* Sum of squares of the gradients of all parameters of a layer. */
static double layer_squares(const fth_params *params, const float *grad, const fth_tap *at) {
    double sum = 0;
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        if (p->stack != at->stack || p->layer != at->layer) continue;
        const float *g = grad + p->offset;
        for (int64_t e = 0; e < fth_param_size(p); e++) sum += (double)g[e] * (double)g[e];
    }
    return sum;
}

/* squares: [n_sub] of the gradients of the outputs. */
static fth_err report(fth_subject *s, const fth_taps *taps, const double *squares, fth_table *out) {
    fth_mirror grad;
    fth_err err = fth_mirror_fetch(s->spec->device, s->arenas.grad, s->arenas.n, &grad);
    for (int32_t i = 0; i < taps->n_sub && err == FTH_OK; i++) {
        const fth_tap *tap = &taps->sub[i];
        if (tap->sub != FTH_FFN) continue;
        double params = layer_squares(&s->model.params, grad.flat, tap);
        err = fth_table_add(out, (fth_probe_row){.stack = tap->stack,
                                                 .index = tap->layer + 1,
                                                 .step = s->model.config.step,
                                                 .number = {sqrt(params), sqrt(squares[i])}});
    }
    fth_mirror_fini(&grad);
    return err;
}

static fth_err measure(fth_subject *s, fth_look *l, double *squares, fth_table *out) {
    for (int32_t i = 0; i < l->taps.n_sub; i++)
        if (l->taps.sub[i].sub == FTH_FFN) FTH_TRY(fth_look_at(l, l->taps.sub[i].dy, i));
    FTH_TRY(fth_look_run(l, fth_subject_update(s, s->model.config.step), fth_see_squares, squares));
    return report(s, &l->taps, squares, out);
}

fth_err fth_probe_gradnorm(fth_subject *s, fth_table *out) {
    fth_look look;
    FTH_TRY(fth_subject_has_loss(s));
    FTH_TRY(fth_look_open(&look, s, (fth_graph_spec){.backward = true}, FTH_TAP_DY));
    double *squares = calloc((size_t)look.taps.n_sub, sizeof *squares);
    fth_err err = squares ? measure(s, &look, squares, out)
                          : fth_fail(FTH_NO_MEMORY, "no memory for %d sums", look.taps.n_sub);
    free(squares);
    fth_look_close(&look);
    return err;
}
