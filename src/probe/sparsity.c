/* sparsity.c: percentage of entries after the ReLU that are not 0, per layer
 * (doc/analyses.md#sparsity). The smaller, the sparser. */
#include <stdlib.h>

#include "probe/probe.h"

typedef struct count {
    double nonzero, all;
} count;

static fth_err add_count(void *context, int32_t id, const double *x, int64_t rows, int64_t width) {
    count *c = (count *)context + id;
    int64_t nonzero = 0;
    for (int64_t i = 0; i < rows * width; i++) nonzero += x[i] != 0;
    c->nonzero += (double)nonzero;
    c->all += (double)(rows * width);
    return FTH_OK;
}

static fth_err measure(fth_subject *s, fth_look *l, count *counts, fth_table *out) {
    for (int32_t i = 0; i < l->taps.n_sub; i++) FTH_TRY(fth_look_at(l, l->taps.sub[i].act, i));
    FTH_TRY(fth_look_run(l, fth_subject_update(s, s->model.config.step), add_count, counts));
    for (int32_t i = 0; i < l->taps.n_sub; i++) {
        const fth_tap *tap = &l->taps.sub[i];
        if (!tap->act) continue;
        FTH_TRY(fth_table_add(
            out, (fth_probe_row){.stack = tap->stack,
                                 .index = tap->layer + 1,
                                 .step = s->model.config.step,
                                 .number = {100 * counts[i].nonzero / counts[i].all}}));
    }
    return FTH_OK;
}

fth_err fth_probe_sparsity(fth_subject *s, fth_table *out) {
    if (s->model.config.activation != FTH_RELU)
        return fth_fail(FTH_USAGE,
                        "sparsity: the activation is gelu, whose output is never exactly 0; it is "
                        "counted behind relu only");
    fth_look look;
    FTH_TRY(fth_look_open(&look, s, (fth_graph_spec){0}, 0));
    count *counts = calloc((size_t)look.taps.n_sub, sizeof *counts);
    fth_err err = counts ? measure(s, &look, counts, out)
                         : fth_fail(FTH_NO_MEMORY, "no memory for %d counts", look.taps.n_sub);
    free(counts);
    fth_look_close(&look);
    return err;
}
