/* evaluate.c: runs the forward over batches of a data set and adds up the loss in double; shifted
 * sources show whether they are used. */
#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fth_err fth_evaluator_init(fth_evaluator *e, const fth_model *model, fth_device *dev,
                           const fth_arenas *arenas, fth_program *lender, int32_t max_tokens,
                           int64_t max_len) {
    *e = (fth_evaluator){.model = model, .max_tokens = max_tokens};
    fth_graph graph;
    fth_graph_spec what = {.hidden = true};
    fth_trainer_spec size = {.src_tokens = model->config.arch == FTH_DEC ? 0 : max_tokens,
                             .tgt_tokens = model->config.arch == FTH_ENC ? 0 : max_tokens,
                             .max_len = max_len};
    fth_program_spec how = {.arenas = arenas, .lender = lender};
    fth_capacities(&size, how.capacity);
    fth_err err = fth_model_graph(model, &what, &graph, &e->outputs);
    if (err != FTH_OK) {
        fth_graph_fini(&graph);
        return err;
    }
    FTH_TRY_OR(err, fth_program_new(dev, &graph, &how, &e->program), fail);
    FTH_TRY_OR(err, fth_batch_store_init(&e->store, max_tokens, max_tokens, max_tokens), fail);
    FTH_TRY_OR(err, fth_packed_init(&e->packed, max_tokens), fail);
    return FTH_OK;
fail:
    fth_evaluator_fini(e);
    return err;
}

void fth_evaluator_fini(fth_evaluator *e) {
    fth_program_free(e->program);
    fth_batch_store_fini(&e->store);
    fth_packed_fini(&e->packed);
    *e = (fth_evaluator){0};
}

/* Sources moved on by `shift` sentences, into arrays of the store's size. */
static fth_err store_shifted(fth_batch_store *store, const fth_packed *p, int32_t vocab,
                             int32_t shift) {
    size_t rows = (size_t)p->src_rows;
    int32_t *ids = malloc(sizeof *ids * (rows + 1));
    int32_t *offsets = calloc((size_t)p->n_sent + 1, sizeof *offsets);
    fth_err err = FTH_OK;
    if (!ids || !offsets) {
        err = fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu tokens", rows);
    } else {
        for (int32_t i = 0; i < p->n_sent; i++) {
            int32_t from = (i + shift) % p->n_sent;
            int32_t n = p->src_offsets[from + 1] - p->src_offsets[from];
            memcpy(ids + offsets[i], p->src + p->src_offsets[from], sizeof *ids * (size_t)n);
            offsets[i + 1] = offsets[i] + n;
        }
        err = fth_batch_store_fill(store, FTH_SRC, p->n_sent, offsets, ids, NULL, vocab);
    }
    free(ids);
    free(offsets);
    return err;
}

/* The same of recordings: their rows of frames move. */
static fth_err store_frames(fth_batch_store *store, const fth_packed *p, int32_t shift) {
    const size_t rows = (size_t)p->src_rows, width = (size_t)p->number_width;
    float *numbers = shift ? malloc(sizeof *numbers * (rows * width + 1)) : p->numbers;
    int32_t *masked = shift ? malloc(sizeof *masked * (rows + 1)) : p->masked;
    int32_t *offsets = malloc(sizeof *offsets * ((size_t)p->n_sent + 1));
    fth_err err = numbers && masked && offsets
                      ? FTH_OK
                      : fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu rows", rows);
    if (err == FTH_OK) offsets[0] = 0;
    for (int32_t i = 0; i < p->n_sent && err == FTH_OK; i++) {
        const int32_t from = p->src_offsets[(i + shift) % p->n_sent];
        const int32_t n = p->src_offsets[(i + shift) % p->n_sent + 1] - from;
        offsets[i + 1] = offsets[i] + n;
        if (!shift) continue;
        memcpy(numbers + (size_t)offsets[i] * width, p->numbers + (size_t)from * width,
               sizeof *numbers * (size_t)n * width);
        memcpy(masked + offsets[i], p->masked + from, sizeof *masked * (size_t)n);
    }
    if (err == FTH_OK)
        err = fth_batch_store_rows(store, FTH_SRC, p->n_sent, offsets, NULL, 0, NULL, 0);
    if (err == FTH_OK)
        err = fth_batch_store_numbers(store, p->n_sent, offsets, p->number_width, numbers, masked);
    if (shift) free(numbers);
    if (shift) free(masked);
    free(offsets);
    return err;
}

/* An encoder's batch: rows of words or of numbers, and what is to be said of rows or of
 * sentences. */
static fth_err store_encoder(fth_batch_store *store, const fth_packed *p, const fth_config *c) {
    FTH_TRY(fth_batch_store_rows(store, FTH_SRC, p->n_sent, p->src_offsets,
                                 p->number_width ? NULL : p->src, c->src_vocab,
                                 p->has_src_out ? p->src_out : NULL, fth_config_output_vocab(c)));
    if (p->number_width)
        FTH_TRY(fth_batch_store_pictures(store, p->n_sent, p->number_rows, p->number_width,
                                         p->numbers, p->has_masked ? p->masked : NULL));
    fth_batch_store_labels(store, p->has_labels ? p->labels : NULL,
                           p->has_values ? p->values : NULL);
    return FTH_OK;
}

fth_err fth_store_packed(fth_batch_store *store, const fth_packed *p, const fth_config *c,
                         int32_t shift) {
    if (c->arch == FTH_ENC) return store_encoder(store, p, c);
    if (c->arch == FTH_ENCDEC) {
        if (p->number_width)
            FTH_TRY(store_frames(store, p, shift));
        else if (shift > 0)
            FTH_TRY(store_shifted(store, p, c->src_vocab, shift));
        else
            FTH_TRY(fth_batch_store_fill(store, FTH_SRC, p->n_sent, p->src_offsets, p->src, NULL,
                                         c->src_vocab));
    }
    return fth_batch_store_fill(store, FTH_TGT, p->n_sent, p->tgt_offsets, p->tgt_in, p->tgt_out,
                                c->tgt_vocab);
}

static int64_t count_targets(const int32_t *targets, int32_t n) {
    int64_t sum = 0;
    for (int32_t i = 0; i < n; i++) sum += targets[i] >= 0;
    return sum;
}

int64_t fth_packed_targets(const fth_packed *p, const fth_config *c, fth_extent rows) {
    if (c->arch != FTH_ENC) return count_targets(p->tgt_out, p->tgt_rows);
    if (rows != FTH_ROWS_SENTENCES)
        return p->has_src_out ? count_targets(p->src_out, p->src_rows) : 0;
    if (p->has_values) return p->n_sent;
    return p->has_labels ? count_targets(p->labels, p->n_sent) : 0;
}

/* Adds the cosines of all pairs of positions of each sentence: (|sum u|^2 - n) / (n (n - 1)) with
 * u the rows scaled to length 1. */
static fth_err add_cosines(fth_evaluator *e, double *sum, int64_t *sentences) {
    int64_t d = e->model->config.d_model;
    const fth_packed_side *src = &e->store.batch.side[FTH_SRC];
    double *x = malloc(sizeof *x * (size_t)(src->rows * d + d));
    if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for the encoder's output");
    fth_err err = fth_program_read(e->program, e->outputs.hidden[FTH_ENCODER], x);
    double *total = x + (size_t)src->rows * (size_t)d;
    for (int32_t s = 0; s < e->store.batch.n_sent && err == FTH_OK; s++) {
        int32_t first = src->offsets[s], n = src->offsets[s + 1] - first;
        if (n < 2) continue;
        for (int64_t c = 0; c < d; c++) total[c] = 0;
        for (int32_t r = first; r < first + n; r++) {
            double norm = 0;
            for (int64_t c = 0; c < d; c++) norm += x[r * d + c] * x[r * d + c];
            for (int64_t c = 0; c < d; c++) total[c] += x[r * d + c] / sqrt(norm + 1e-30);
        }
        double square = 0;
        for (int64_t c = 0; c < d; c++) square += total[c] * total[c];
        *sum += (square - n) / ((double)n * (n - 1));
        ++*sentences;
    }
    free(x);
    return err;
}

fth_err fth_evaluate(fth_evaluator *e, const fth_dataset *data, const fth_eval_spec *spec,
                     fth_eval *out) {
    *out = (fth_eval){.encoder_cosine = NAN};
    fth_batcher *batcher = NULL;
    fth_batch_options options = {.max_tokens = e->max_tokens,
                                 .max_length = e->model->config.max_positions,
                                 .in_order = 1,
                                 .strict = spec->strict,
                                 .block = spec->block,
                                 .context_window = spec->context_window};
    if (spec->item) options.item = *spec->item;
    FTH_TRY(fth_batcher_new(data, &options, &batcher));
    fth_step step = {.update = (uint32_t)spec->update};
    fth_method_step(&e->model->method, spec->update, step.slots);
    bool encoder = e->outputs.hidden[FTH_ENCODER] && !spec->wrong_sources;
    double nll = 0, cosines = 0, sums[2];
    int64_t batches = 0, sentences = 0;
    fth_err err = FTH_OK;
    while (spec->most == 0 || batches < spec->most) {
        FTH_TRY_OR(err, fth_batcher_next(batcher, &e->packed), done);
        if (e->packed.n_sent == 0) break;
        out->alone += e->packed.n_sent == 1;
        if (e->packed.n_sent == 1 && (spec->of_several || spec->wrong_sources)) continue;
        FTH_TRY_OR(
            err,
            fth_store_packed(&e->store, &e->packed, &e->model->config, spec->wrong_sources ? 1 : 0),
            done);
        FTH_TRY_OR(err, fth_program_run(e->program, &e->store.batch, &step), done);
        FTH_TRY_OR(err, fth_program_read(e->program, e->outputs.loss, sums), done);
        if (encoder && batches == 0) FTH_TRY_OR(err, add_cosines(e, &cosines, &sentences), done);
        nll += sums[1];
        out->tokens += fth_batch_targets(&e->store.batch, e->outputs.rows);
        batches++;
    }
    out->left_out = fth_batcher_stats(batcher).left_out;
    out->nll = out->tokens ? nll / (double)out->tokens : NAN;
    if (sentences) out->encoder_cosine = cosines / (double)sentences;
done:
    fth_batcher_free(batcher);
    return err;
}
