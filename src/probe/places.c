/* places.c: gradient norm at five places inside a layer whose LNs follow the additions
 * (doc/analyses.md#places): input and output of the LNs in forward order. A layer without
 * cross-attention has the places 1, 2 and 5. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "probe/probe.h"

/* Place of the input of a sub-layer's LN; its output is the next one. */
static const int input_place[] = {[FTH_SELF] = 1, [FTH_CROSS] = 3, [FTH_FFN] = 5};

static bool any_place(const fth_taps *taps) {
    for (int32_t i = 0; i < taps->n_sub; i++)
        if (taps->sub[i].place == FTH_NORM_POST) return true;
    return false;
}

static fth_err measure(fth_subject *s, fth_look *l, double *squares, fth_table *out) {
    for (int32_t i = 0; i < l->taps.n_sub; i++) {
        if (l->taps.sub[i].place != FTH_NORM_POST) continue;
        FTH_TRY(fth_look_at(l, l->taps.sub[i].dz, 2 * i));
        FTH_TRY(fth_look_at(l, l->taps.sub[i].dy, 2 * i + 1));
    }
    FTH_TRY(fth_look_run(l, fth_subject_update(s, s->model.config.step), fth_see_squares, squares));
    for (int32_t i = 0; i < l->taps.n_sub; i++) {
        const fth_tap *tap = &l->taps.sub[i];
        if (tap->place != FTH_NORM_POST) continue;
        for (int k = 0; k < (tap->sub == FTH_FFN ? 1 : 2); k++)
            FTH_TRY(fth_table_add(out, (fth_probe_row){.stack = tap->stack,
                                                       .index = tap->layer + 1,
                                                       .step = s->model.config.step,
                                                       .number = {input_place[tap->sub] + k,
                                                                  sqrt(squares[2 * i + k])}}));
    }
    return FTH_OK;
}

fth_err fth_probe_places(fth_subject *s, fth_table *out) {
    fth_look look;
    FTH_TRY(fth_subject_has_loss(s));
    FTH_TRY(fth_look_open(&look, s, (fth_graph_spec){.backward = true}, FTH_TAP_DY | FTH_TAP_DZ));
    double *squares = calloc(2 * (size_t)look.taps.n_sub, sizeof *squares);
    fth_err err;
    if (!squares)
        err = fth_fail(FTH_NO_MEMORY, "no memory for %d sums", look.taps.n_sub);
    else if (!any_place(&look.taps))
        err = fth_fail(FTH_USAGE,
                       "places: method %s has no LN after the addition; they are places around "
                       "such LNs",
                       s->model.config.method);
    else
        err = measure(s, &look, squares, out);
    free(squares);
    fth_look_close(&look);
    return err;
}
