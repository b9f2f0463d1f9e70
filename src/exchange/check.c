/* check.c: runs two models on the same made-up sentences and compares their logits. */
#include <math.h>
#include <stdlib.h>

#include "backend/arenas.h"
#include "backend/device/device.h"
#include "backend/program.h"
#include "base/philox.h"
#include "exchange/format.h"
#include "graph/batch_store.h"

enum { SENTENCES = 8, LONGEST = 17 };

/* Sentences of 2 to 17 words, packed. */
typedef struct sample {
    int32_t offsets[SENTENCES + 1];
    int32_t ids[SENTENCES * LONGEST];
    int32_t targets[SENTENCES * LONGEST];
    int32_t labels[SENTENCES];
    float values[SENTENCES];
} sample;

static void draw(sample *s, const fth_config *c, int32_t vocab, int side) {
    fth_rng rng;
    fth_rng_init(&rng, 31, (uint64_t)side);
    const int32_t most = c->max_positions < LONGEST ? c->max_positions : LONGEST;
    s->offsets[0] = 0;
    for (int i = 0; i < SENTENCES; i++) {
        const int32_t n = most < 2 ? 1 : 2 + (int32_t)fth_rng_below(&rng, (uint64_t)(most - 1));
        s->offsets[i + 1] = s->offsets[i] + n;
        s->labels[i] = 0;
        s->values[i] = 0;
    }
    for (int32_t i = 0; i < s->offsets[SENTENCES]; i++) {
        do s->ids[i] = (int32_t)fth_rng_below(&rng, (uint64_t)vocab);
        while (s->ids[i] == c->pad);
        s->targets[i] = 0;
    }
}

static fth_err fill(fth_batch_store *store, const fth_config *c, const fth_config *words) {
    sample s;
    if (c->arch != FTH_DEC) {
        draw(&s, words, words->src_vocab, FTH_SRC);
        FTH_TRY(fth_batch_store_rows(store, FTH_SRC, SENTENCES, s.offsets, s.ids, c->src_vocab,
                                     c->arch == FTH_ENC ? s.targets : NULL,
                                     fth_config_output_vocab(c)));
    }
    if (c->arch != FTH_ENC) {
        draw(&s, words, words->tgt_vocab, FTH_TGT);
        FTH_TRY(fth_batch_store_fill(store, FTH_TGT, SENTENCES, s.offsets, s.ids, s.targets,
                                     c->tgt_vocab));
    }
    fth_batch_store_labels(store, c->head == FTH_HEAD_CLASS ? s.labels : NULL,
                           c->head == FTH_HEAD_REGRESSION ? s.values : NULL);
    return FTH_OK;
}

/* What a run needs; zeroed parts may be freed. */
typedef struct machine {
    fth_device *device;
    fth_arenas arenas;
    fth_program *program;
    fth_batch_store store;
} machine;

static void machine_fini(machine *m) {
    fth_program_free(m->program);
    fth_batch_store_fini(&m->store);
    if (m->device) fth_arenas_free(m->device, &m->arenas);
    fth_device_close(m->device);
}

static fth_err make_program(machine *m, const fth_model *model, fth_outputs *out) {
    fth_graph graph;
    fth_graph_spec what = {.logits = true};
    const int64_t rows = SENTENCES * LONGEST, pairs = SENTENCES * LONGEST * LONGEST;
    fth_program_spec how = {.arenas = &m->arenas};
    for (int i = 0; i < FTH_N_EXTENTS; i++) how.capacity[i] = rows;
    how.capacity[FTH_ROWS_SRC_PAIRS] = how.capacity[FTH_ROWS_TGT_PAIRS] = pairs;
    how.capacity[FTH_ROWS_CROSS_PAIRS] = pairs;
    fth_err err = fth_model_graph(model, &what, &graph, out);
    if (err == FTH_OK) return fth_program_new(m->device, &graph, &how, &m->program);
    fth_graph_fini(&graph);
    return err;
}

/* The logits of all rows; malloc'd. */
static fth_err logits_of(machine *m, const fth_weighted *w, const fth_config *words,
                         double **logits, int64_t *rows) {
    const fth_model *model = &w->model;
    const int32_t room = SENTENCES * LONGEST;
    fth_outputs out;
    FTH_TRY(fth_device_open("cpu", "fp32", 0, &m->device));
    FTH_TRY(fth_arenas_new(m->device, model->params.size, 0, 0, &m->arenas));
    FTH_TRY(fth_arenas_load(m->device, &m->arenas, w->flat));
    FTH_TRY(make_program(m, model, &out));
    FTH_TRY(fth_batch_store_init(&m->store, room, room, SENTENCES));
    FTH_TRY(fill(&m->store, &model->config, words));
    fth_step step = {.update = 1};
    fth_method_step(&model->method, model->config.step, step.slots);
    FTH_TRY(fth_program_run(m->program, &m->store.batch, &step));
    *rows = fth_program_rows(m->program, out.logits);
    const size_t n = (size_t)(*rows * fth_config_output_vocab(&model->config));
    *logits = malloc(sizeof **logits * (n + 1));
    if (!*logits) return fth_fail(FTH_NO_MEMORY, "no memory for the logits of a check");
    return fth_program_read(m->program, out.logits, *logits);
}

static fth_err run(const fth_weighted *w, const fth_config *words, double **logits, int64_t *rows) {
    machine m = {0};
    *logits = NULL;
    fth_err err = logits_of(&m, w, words, logits, rows);
    machine_fini(&m);
    return err;
}

fth_err fth_check(const fth_weighted *a, const fth_weighted *b, fth_check_result *result) {
    double *x = NULL, *y = NULL;
    int64_t rows = 0, same = 0;
    const fth_config *ca = &a->model.config, *cb = &b->model.config;
    const int32_t n = fth_config_output_vocab(ca), m = fth_config_output_vocab(cb);
    fth_err err = run(a, ca, &x, &rows);
    if (err == FTH_OK) err = run(b, ca, &y, &same);
    if (err == FTH_OK && (rows != same || m < n))
        err =
            fth_fail(FTH_FAILED, "the check has %lld rows of %d numbers, and read back %lld of %d",
                     (long long)rows, n, (long long)same, m);
    *result = (fth_check_result){.made = true};
    for (int64_t r = 0; err == FTH_OK && r < rows; r++)
        for (int32_t i = 0; i < n; i++) {
            const double p = x[r * n + i], q = y[r * m + i], far = fabs(p - q);
            if (!(far <= result->difference)) result->difference = far; /* a NaN too */
            if (!(fabs(p) <= result->largest)) result->largest = fabs(p);
        }
    free(x);
    free(y);
    return err;
}
