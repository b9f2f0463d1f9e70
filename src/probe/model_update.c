/* update.c: model update (doc/analyses.md#update): how far the output of the top layer (after a
 * final LN) and the logits have moved from those of theta_0; mean over positions of the L2 norm. */
#include <math.h>
#include <stdlib.h>

#include "probe/series.h"

/* Output and logits of one piece under one set of parameters. */
typedef struct outputs {
    float *hidden, *logits; /* [rows, d], [rows, V] */
} outputs;

typedef struct work {
    fth_subject subject;
    fth_look look;
    fth_val hidden;
    int64_t rows, d, vocab; /* most rows of a piece */
    outputs start, now;
    float *flat;  /* [params.size] */
    double *sums; /* [n, 2] */
} work;

static void work_fini(work *w) {
    fth_look_close(&w->look);
    fth_subject_close(&w->subject);
    free(w->start.hidden);
    free(w->start.logits);
    free(w->now.hidden);
    free(w->now.logits);
    free(w->flat);
    free(w->sums);
}

static fth_err allocate(outputs *o, const work *w) {
    o->hidden = malloc(sizeof *o->hidden * (size_t)(w->rows * w->d));
    o->logits = malloc(sizeof *o->logits * (size_t)(w->rows * w->vocab));
    if (o->hidden && o->logits) return FTH_OK;
    return fth_fail(FTH_NO_MEMORY,
                    "no memory for logits of %lld positions; a smaller "
                    "--max-tokens helps",
                    (long long)w->rows);
}

static fth_err work_init(work *w, const fth_series *s, const fth_probe_spec *spec) {
    FTH_TRY(fth_subject_open(&w->subject, spec, s->folder[s->n - 1]));
    const fth_model *m = &w->subject.model;
    fth_graph_spec what = {.hidden = true, .logits = true};
    FTH_TRY(fth_look_open(&w->look, &w->subject, what, 0));
    fth_side side = w->look.outputs.side;
    w->hidden = w->look.outputs.hidden[side == FTH_SRC ? FTH_ENCODER : FTH_DECODER];
    w->rows = w->subject.set.part.max_rows[side];
    w->d = m->config.d_model;
    w->vocab = fth_config_output_vocab(&m->config);
    w->flat = malloc(sizeof *w->flat * (size_t)m->params.size);
    w->sums = calloc(2 * (size_t)s->n, sizeof *w->sums);
    if (!w->flat || !w->sums) return fth_fail(FTH_NO_MEMORY, "no memory for the parameters");
    FTH_TRY(allocate(&w->start, w));
    return allocate(&w->now, w);
}

/* F of the piece that stands in the set, by checkpoint i. A theta_0 that is given has the numbers
 * of the first update, as one that is drawn. */
static fth_err run_piece(work *w, const fth_series *s, int32_t i, outputs *out) {
    const int64_t step = i == 0 && s->given ? 0 : s->step[i];
    FTH_TRY(fth_series_weights(s, i, &w->subject.model, w->flat));
    FTH_TRY(fth_subject_load(&w->subject, w->flat));
    FTH_TRY(fth_look_piece(&w->look, fth_subject_update(&w->subject, step), NULL, NULL));
    FTH_TRY(fth_program_read_f32(w->look.program, w->hidden, out->hidden));
    return fth_program_read_f32(w->look.program, w->look.outputs.logits, out->logits);
}

static double distances(const float *x, const float *y, int64_t rows, int64_t width) {
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t c = 0; c < width; c++) {
            double d = (double)x[r * width + c] - (double)y[r * width + c];
            squares += d * d;
        }
        sum += sqrt(squares);
    }
    return sum;
}

static fth_err measure(work *w, const fth_series *s, int64_t *positions) {
    fth_probe_set *set = &w->subject.set;
    *positions = 0;
    fth_probe_set_rewind(set);
    for (bool more = true;;) {
        FTH_TRY(fth_probe_set_next(set, &more));
        if (!more) return FTH_OK;
        int64_t rows = set->part.batch.side[w->look.outputs.side].rows;
        *positions += rows;
        FTH_TRY(run_piece(w, s, 0, &w->start));
        const int64_t scored = fth_program_rows(w->look.program, w->look.outputs.logits);
        for (int32_t i = 1; i < s->n; i++) {
            FTH_TRY(run_piece(w, s, i, &w->now));
            w->sums[2 * i] += distances(w->now.hidden, w->start.hidden, rows, w->d);
            w->sums[2 * i + 1] += distances(w->now.logits, w->start.logits, scored, w->vocab);
        }
    }
}

fth_err fth_probe_update(const fth_series *s, const fth_probe_spec *spec, fth_table *out) {
    work w = {.subject = {0}};
    int64_t positions;
    fth_err err = FTH_OK;
    if (s->n < 2)
        err = fth_fail(FTH_USAGE,
                       "update: %s is a single model; the update needs theta_0 and at least one "
                       "later checkpoint",
                       s->label);
    if (err == FTH_OK) err = work_init(&w, s, spec);
    if (err == FTH_OK) err = fth_table_subject(out, s->label, &w.subject.model.config);
    if (err == FTH_OK) err = measure(&w, s, &positions);
    for (int32_t i = 0; i < s->n && err == FTH_OK; i++) {
        const fth_config *c = &w.subject.model.config;
        fth_stack top = c->arch == FTH_ENC ? FTH_ENCODER : FTH_DECODER;
        err =
            fth_table_add(out, (fth_probe_row){.stack = top,
                                               .index = fth_stack_layers(c, top),
                                               .step = s->step[i],
                                               .number = {w.sums[2 * i] / (double)positions,
                                                          w.sums[2 * i + 1] / (double)positions}});
    }
    work_fini(&w);
    return err;
}
