/* similarity.c: cosine between the outputs of every two layers of a stack, mean over positions
 * (doc/analyses.md#similarity). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/probe.h"

/* The layers of one stack. */
typedef struct stack_sums {
    int32_t n;     /* outputs that are compared; the first is that of layer `first` */
    int32_t first; /* 1, or 0 with the embeddings */
    double *unit;  /* [n, rows, d] outputs of the piece at hand, every row of length 1 */
    double *sum;   /* [n, n] cosines over all rows so far */
    int64_t rows, d, total;
} stack_sums;

enum { STRIDE = 1 << 24 }; /* ids: stack * STRIDE + place in the stack */

static fth_err keep_unit(void *context, int32_t id, const double *x, int64_t rows, int64_t width) {
    stack_sums *s = (stack_sums *)context + id / STRIDE;
    double *out = s->unit + id % STRIDE * s->d * s->rows;
    if (rows > s->rows) return fth_fail(FTH_FAILED, "a piece has too many rows");
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t c = 0; c < width; c++) squares += x[r * width + c] * x[r * width + c];
        double scale = 1 / sqrt(squares);
        for (int64_t c = 0; c < width; c++) out[r * width + c] = x[r * width + c] * scale;
    }
    return FTH_OK;
}

static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* All pairs of the piece; `rows` of its rows are used. */
static void add_cosines(stack_sums *s, int64_t rows) {
#pragma omp parallel for schedule(dynamic)
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j <= i; j++) {
            const double *x = s->unit + i * s->rows * s->d, *y = s->unit + j * s->rows * s->d;
            double sum = dot(x, y, rows * s->d);
            s->sum[(int64_t)i * s->n + j] += sum;
            if (i != j) s->sum[(int64_t)j * s->n + i] += sum;
        }
    s->total += rows;
}

static fth_err prepare(fth_look *l, stack_sums sums[2]) {
    fth_subject *s = l->subject;
    for (int stack = 0; stack < 2; stack++) {
        stack_sums *t = &sums[stack];
        int32_t layers = fth_stack_layers(&s->model.config, (fth_stack)stack);
        if (layers == 0) continue;
        t->first = s->spec->embedding ? 0 : 1;
        t->n = layers + 1 - t->first;
        t->d = s->model.config.d_model;
        t->rows = s->set.part.max_rows[stack == FTH_ENCODER ? FTH_SRC : FTH_TGT];
        t->unit = malloc(sizeof *t->unit * (size_t)(t->n * t->rows * t->d));
        t->sum = calloc((size_t)t->n * (size_t)t->n, sizeof *t->sum);
        if (!t->unit || !t->sum)
            return fth_fail(FTH_NO_MEMORY,
                            "no memory for the outputs of %d layers; a smaller --max-tokens helps",
                            t->n);
        if (t->first == 0) FTH_TRY(fth_look_at(l, l->taps.embed[stack], stack * STRIDE));
    }
    for (int32_t i = 0; i < l->taps.n_sub; i++) {
        const fth_tap *tap = &l->taps.sub[i];
        int32_t place = tap->layer + 1 - sums[tap->stack].first;
        if (tap->sub == FTH_FFN)
            FTH_TRY(fth_look_at(l, tap->y, (int32_t)tap->stack * STRIDE + place));
    }
    return FTH_OK;
}

static fth_err measure(fth_look *l, stack_sums sums[2]) {
    fth_subject *s = l->subject;
    int64_t update = fth_subject_update(s, s->model.config.step);
    fth_probe_set_rewind(&s->set);
    for (bool more = true;;) {
        FTH_TRY(fth_probe_set_next(&s->set, &more));
        if (!more) return FTH_OK;
        FTH_TRY(fth_look_piece(l, update, keep_unit, sums));
        for (int stack = 0; stack < 2; stack++)
            if (sums[stack].n) add_cosines(&sums[stack], s->set.part.batch.side[stack].rows);
    }
}

static fth_err report(const fth_subject *s, const stack_sums sums[2], fth_table *out) {
    for (int stack = 0; stack < 2; stack++) {
        const stack_sums *t = &sums[stack];
        for (int32_t i = 0; i < t->n; i++)
            for (int32_t j = 0; j < t->n; j++)
                FTH_TRY(fth_table_add(
                    out, (fth_probe_row){.stack = (fth_stack)stack,
                                         .index = t->first + i,
                                         .step = s->model.config.step,
                                         .number = {t->first + j, t->sum[(int64_t)i * t->n + j] /
                                                                      (double)t->total}}));
    }
    return FTH_OK;
}

fth_err fth_probe_similarity(fth_subject *s, fth_table *out) {
    fth_look look;
    stack_sums sums[2] = {{0}};
    FTH_TRY(fth_look_open(&look, s, (fth_graph_spec){0}, 0));
    fth_err err = prepare(&look, sums);
    if (err == FTH_OK) err = measure(&look, sums);
    if (err == FTH_OK) err = report(s, sums, out);
    for (int stack = 0; stack < 2; stack++) {
        free(sums[stack].unit);
        free(sums[stack].sum);
    }
    fth_look_close(&look);
    return err;
}
