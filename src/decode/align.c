/* align.c: keeps queries and keys of the last cross-attention, and makes its weights from them
 * on the host. */
#include "decode/align.h"

#include <math.h>
#include <stdlib.h>

#include "graph/batch_store.h"

struct fth_aligner {
    const fth_model *model;
    fth_program *program;
    fth_op attention; /* of the last layer: its operands and numbers */
    fth_batch_store store;
    fth_step step;
    int32_t most;   /* tokens of either side */
    int32_t *ids;   /* [most] what the decoder reads */
    double *q, *k;  /* [most, d] */
    double *prev;   /* [most * most, heads] carried scores; NULL: none */
    double *scores; /* [most] of one head and token */
    float *weights; /* [most, most] */
};

/* The last attention of targets to sources; what it reads stays readable. */
static fth_err keep_attention(fth_graph *g, fth_op *found) {
    const fth_op *last = NULL;
    for (int32_t i = 0; i < g->n_ops; i++)
        if (g->op[i].kind == FTH_KIND_attention && g->op[i].u.attention.q_side == FTH_TGT &&
            g->op[i].u.attention.k_side == FTH_SRC)
            last = &g->op[i];
    if (!last) return fth_fail(FTH_USAGE, "the model has no attention to a source");
    *found = *last;
    g->value[last->in[ATT_Q]].keep = g->value[last->in[ATT_K]].keep = true;
    if (last->in[ATT_PREV]) g->value[last->in[ATT_PREV]].keep = true;
    return FTH_OK;
}

static fth_err make_program(fth_aligner *a, fth_device *dev, const fth_arenas *arenas) {
    fth_graph graph;
    fth_outputs outputs;
    const fth_graph_spec what = {0};
    fth_program_spec how = {.arenas = arenas};
    const int64_t most = a->most;
    how.capacity[FTH_ROWS_SRC] = how.capacity[FTH_ROWS_TGT] = most;
    how.capacity[FTH_ROWS_SRC_PAIRS] = how.capacity[FTH_ROWS_TGT_PAIRS] = most * most;
    how.capacity[FTH_ROWS_CROSS_PAIRS] = most * most;
    fth_err err = fth_model_graph(a->model, &what, &graph, &outputs);
    if (err == FTH_OK) err = keep_attention(&graph, &a->attention);
    if (err == FTH_OK) return fth_program_new(dev, &graph, &how, &a->program);
    fth_graph_fini(&graph);
    return err;
}

static fth_err make_arrays(fth_aligner *a) {
    const size_t most = (size_t)a->most, width = (size_t)a->model->config.d_model;
    const size_t heads = (size_t)a->model->config.heads;
    a->ids = malloc(sizeof *a->ids * most);
    a->q = malloc(sizeof *a->q * most * width);
    a->k = malloc(sizeof *a->k * most * width);
    a->scores = malloc(sizeof *a->scores * most);
    a->weights = malloc(sizeof *a->weights * most * most);
    if (a->attention.in[ATT_PREV]) a->prev = malloc(sizeof *a->prev * most * most * heads);
    if (!a->ids || !a->q || !a->k || !a->scores || !a->weights ||
        (a->attention.in[ATT_PREV] && !a->prev))
        return fth_no_memory("alignments");
    return fth_batch_store_init(&a->store, a->most, a->most, 1);
}

fth_err fth_aligner_new(const fth_model *model, fth_device *dev, const fth_arenas *arenas,
                        fth_aligner **out) {
    if (model->config.arch != FTH_ENCDEC)
        return fth_fail(FTH_USAGE, "alignments need a model with a source (arch encdec)");
    fth_aligner *a = calloc(1, sizeof *a);
    if (!a) return fth_no_memory("alignments");
    a->model = model;
    a->most = model->config.max_positions;
    a->step.update = (uint32_t)model->config.step;
    fth_method_step(&model->method, model->config.step, a->step.slots);
    fth_err err = make_program(a, dev, arenas);
    if (err == FTH_OK) err = make_arrays(a);
    if (err == FTH_OK)
        *out = a;
    else
        fth_aligner_free(a);
    return err;
}

void fth_aligner_free(fth_aligner *a) {
    if (!a) return;
    fth_program_free(a->program);
    fth_batch_store_fini(&a->store);
    free(a->ids);
    free(a->q);
    free(a->k);
    free(a->prev);
    free(a->scores);
    free(a->weights);
    free(a);
}

/* Adds one head's softmax over the source to a row. */
static void add_head(const fth_aligner *a, int32_t t, int32_t n_source, int32_t head, float *row) {
    const int32_t width = a->model->config.d_model, heads = a->attention.u.attention.heads;
    const int32_t each = width / heads;
    const double *q = a->q + (size_t)t * (size_t)width + head * each;
    double most = -INFINITY, sum = 0;
    for (int32_t s = 0; s < n_source; s++) {
        const double *k = a->k + (size_t)s * (size_t)width + head * each;
        double dot = 0;
        for (int32_t i = 0; i < each; i++) dot += q[i] * k[i];
        dot *= (double)a->attention.u.attention.scale;
        if (a->prev)
            dot +=
                a->prev[((size_t)t * (size_t)n_source + (size_t)s) * (size_t)heads + (size_t)head];
        a->scores[s] = dot / (double)a->attention.u.attention.divisor;
        most = fmax(most, a->scores[s]);
    }
    for (int32_t s = 0; s < n_source; s++) sum += exp(a->scores[s] - most);
    for (int32_t s = 0; s < n_source; s++)
        row[s] += (float)(exp(a->scores[s] - most) / sum / heads);
}

static fth_err run(fth_aligner *a, const int32_t *source, int32_t n_source, const int32_t *tokens,
                   int32_t n_tokens) {
    const fth_config *c = &a->model->config;
    const int32_t src[] = {0, n_source}, tgt[] = {0, n_tokens};
    FTH_TRY(fth_batch_store_fill(&a->store, FTH_SRC, 1, src, source, NULL, c->src_vocab));
    FTH_TRY(fth_batch_store_fill(&a->store, FTH_TGT, 1, tgt, a->ids, tokens, c->tgt_vocab));
    FTH_TRY(fth_program_run(a->program, &a->store.batch, &a->step));
    FTH_TRY(fth_program_read(a->program, a->attention.in[ATT_Q], a->q));
    FTH_TRY(fth_program_read(a->program, a->attention.in[ATT_K], a->k));
    return a->prev ? fth_program_read(a->program, a->attention.in[ATT_PREV], a->prev) : FTH_OK;
}

fth_err fth_aligner_run(fth_aligner *a, const int32_t *source, int32_t n_source, int32_t first,
                        const int32_t *tokens, int32_t n_tokens, const float **weights) {
    if (n_source > a->most || n_tokens > a->most)
        return fth_fail(FTH_FAILED, "%d and %d tokens to align, the model takes %d", n_source,
                        n_tokens, a->most);
    for (int32_t t = 0; t < n_tokens; t++) a->ids[t] = t ? tokens[t - 1] : first;
    FTH_TRY(run(a, source, n_source, tokens, n_tokens));
    for (int32_t t = 0; t < n_tokens; t++) {
        float *row = a->weights + (size_t)t * (size_t)n_source;
        for (int32_t s = 0; s < n_source; s++) row[s] = 0;
        for (int32_t h = 0; h < a->attention.u.attention.heads; h++)
            add_head(a, t, n_source, h, row);
    }
    *weights = a->weights;
    return FTH_OK;
}
