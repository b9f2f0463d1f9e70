/* predict.c: batches of samples through a forward program, every dropout off. */
#include "train/predict.h"

#include <stdlib.h>
#include <string.h>

#include "front/front.h"
#include "head/head.h"
#include "train/trainer.h"

int32_t fth_predictor_outputs(const fth_predictor *p) {
    const fth_config *c = &p->model->config;
    return c->head == FTH_HEAD_REGRESSION ? 1 : c->classes;
}

static bool says_places(const fth_config *c) {
    return c->arch == FTH_ENC && c->head == FTH_HEAD_TOKEN_CLASS;
}

bool fth_predictor_of_places(const fth_predictor *p) {
    return says_places(&p->model->config);
}

static bool answers(const fth_config *c) {
    return says_places(c) || (c->arch == FTH_ENC && fth_head_rows(c) == FTH_ROWS_SENTENCES);
}

static fth_err make_room(fth_predictor *p, int32_t width) {
    const size_t rows = (size_t)p->max_rows;
    p->ids = malloc(sizeof *p->ids * rows);
    p->offsets = calloc(rows + 1, sizeof *p->offsets);
    if (width) p->numbers = malloc(sizeof *p->numbers * rows * (size_t)width);
    if (!p->ids || !p->offsets || (width && !p->numbers))
        return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %d rows", p->max_rows);
    return fth_batch_store_init(&p->store, p->max_rows, 0, p->max_rows);
}

fth_err fth_predictor_init(fth_predictor *p, const fth_model *model, fth_device *dev,
                           const fth_arenas *arenas, int32_t max_rows) {
    const fth_config *c = &model->config;
    *p = (fth_predictor){.model = model, .max_rows = max_rows};
    if (!answers(c))
        return fth_fail(FTH_USAGE,
                        "an %s model with head %s: predict is for encoders with head class, "
                        "regression or token-class",
                        fth_arch_name(c->arch), fth_head_name(c->head));
    fth_graph graph;
    const fth_graph_spec what = {.logits = true};
    const fth_trainer_spec size = {.src_tokens = max_rows, .max_len = c->max_positions};
    fth_program_spec how = {.arenas = arenas, .frozen = true};
    fth_capacities(&size, how.capacity);
    fth_err err = fth_model_graph(model, &what, &graph, &p->outputs);
    if (err != FTH_OK) {
        fth_graph_fini(&graph);
        return err;
    }
    err = fth_program_new(dev, &graph, &how, &p->program);
    if (err == FTH_OK) err = make_room(p, fth_front_width(c));
    if (err != FTH_OK) fth_predictor_fini(p);
    return err;
}

void fth_predictor_fini(fth_predictor *p) {
    fth_program_free(p->program);
    fth_batch_store_fini(&p->store);
    free(p->ids);
    free(p->offsets);
    free(p->numbers);
    *p = (fth_predictor){0};
}

/* Ends a sample of so many rows. */
static void end_sample(fth_predictor *p, int32_t rows) {
    p->rows += rows;
    p->offsets[++p->n] = p->rows;
}

fth_err fth_predictor_add_text(fth_predictor *p, const int32_t *ids, int64_t n, bool *full) {
    const fth_config *c = &p->model->config;
    int64_t rows = n + 2;
    if (rows > c->max_positions) rows = c->max_positions;
    if (rows > p->max_rows) rows = p->max_rows;
    *full = p->rows + rows > p->max_rows;
    if (*full) return FTH_OK;
    int32_t *to = p->ids + p->rows;
    to[0] = c->bos;
    memcpy(to + 1, ids, sizeof *ids * (size_t)(rows - 2));
    to[rows - 1] = c->eos;
    end_sample(p, (int32_t)rows);
    return FTH_OK;
}

fth_err fth_predictor_add_patches(fth_predictor *p, const float *patches, bool *full) {
    const fth_config *c = &p->model->config;
    const int32_t n = fth_config_patches(c), rows = n + fth_config_has_cls(c);
    const size_t numbers = (size_t)n * (size_t)fth_front_width(c);
    if (rows > p->max_rows)
        return fth_fail(FTH_USAGE, "--max-tokens %d: a picture has %d rows", p->max_rows, rows);
    *full = p->rows + rows > p->max_rows;
    if (*full) return FTH_OK;
    memcpy(p->numbers + (size_t)p->n * numbers, patches, sizeof *patches * numbers);
    end_sample(p, rows);
    return FTH_OK;
}

fth_err fth_predictor_run(fth_predictor *p, double *out) {
    const fth_config *c = &p->model->config;
    fth_step step = {.update = (uint32_t)c->step};
    fth_method_step(&p->model->method, c->step, step.slots);
    if (p->n == 0) return FTH_OK;
    int32_t *none = calloc((size_t)p->rows, sizeof *none); /* targets, for a loss nobody reads */
    float *nothing = calloc((size_t)p->n, sizeof *nothing);
    fth_err err = none && nothing ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for labels");
    if (err == FTH_OK)
        err = fth_batch_store_rows(&p->store, FTH_SRC, p->n, p->offsets, p->numbers ? NULL : p->ids,
                                   c->src_vocab, says_places(c) ? none : NULL,
                                   fth_config_output_vocab(c));
    if (err == FTH_OK && p->numbers)
        err = fth_batch_store_pictures(&p->store, p->n, fth_config_patches(c), fth_front_width(c),
                                       p->numbers, NULL);
    const bool values = fth_head_targets(c) == FTH_TARGET_VALUE;
    if (err == FTH_OK && !says_places(c))
        fth_batch_store_labels(&p->store, values ? NULL : none, values ? nothing : NULL);
    if (err == FTH_OK) err = fth_program_run(p->program, &p->store.batch, &step);
    if (err == FTH_OK) err = fth_program_read(p->program, p->outputs.logits, out);
    free(none);
    free(nothing);
    p->n = p->rows = 0;
    return err;
}
