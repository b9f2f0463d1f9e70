/* lninput.c: mean norm of what enters each layer norm (doc/analyses.md#lninput), not centred,
 * everything that is added included. */
#include <math.h>
#include <stdlib.h>

#include "probe/probe.h"

typedef struct norm_sum {
    double norms;
    int64_t rows;
} norm_sum;

static fth_err add_norms(void *context, int32_t id, const double *x, int64_t rows, int64_t width) {
    norm_sum *sum = (norm_sum *)context + id;
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t c = 0; c < width; c++) squares += x[r * width + c] * x[r * width + c];
        sum->norms += sqrt(squares);
    }
    sum->rows += rows;
    return FTH_OK;
}

static fth_err measure(fth_subject *s, fth_look *l, norm_sum *sums, fth_table *out) {
    for (int32_t i = 0; i < l->taps.n_norm; i++) FTH_TRY(fth_look_at(l, l->taps.norm[i].z, i));
    FTH_TRY(fth_look_run(l, fth_subject_update(s, s->model.config.step), add_norms, sums));
    for (int32_t i = 0; i < l->taps.n_norm; i++) {
        const fth_norm_tap *tap = &l->taps.norm[i];
        FTH_TRY(
            fth_table_add(out, (fth_probe_row){.stack = tap->stack,
                                               .index = tap->index,
                                               .step = s->model.config.step,
                                               .word = tap->ln,
                                               .number = {sums[i].norms / (double)sums[i].rows}}));
    }
    return FTH_OK;
}

fth_err fth_probe_lninput(fth_subject *s, fth_table *out) {
    fth_look look;
    FTH_TRY(fth_look_open(&look, s, (fth_graph_spec){0}, 0));
    norm_sum *sums = calloc((size_t)look.taps.n_norm + 1, sizeof *sums);
    fth_err err = FTH_OK;
    if (!sums)
        err = fth_fail(FTH_NO_MEMORY, "no memory for %d sums", look.taps.n_norm);
    else if (look.taps.n_norm == 0)
        err = fth_fail(FTH_USAGE, "lninput: method %s has no layer norm", s->model.config.method);
    else
        err = measure(s, &look, sums, out);
    free(sums);
    fth_look_close(&look);
    return err;
}
