/* model.c: builds the graph once to see which parameters there are, and draws their initial values
 * by role. */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/machine_memory.h"
#include "base/philox.h"
#include "front/front.h"
#include "head/head.h"
#include "model/build.h"
#include "model/least_size.h"

static fth_build new_build(const fth_model *m, fth_graph *graph) {
    /* Parameters are only looked up once the table is frozen. */
    return (fth_build){.b = {.graph = graph,
                             .params = (fth_params *)&m->params,
                             .config = &m->config,
                             .stack = FTH_NO_STACK,
                             .sub = FTH_NO_SUB,
                             .layer = -1},
                       .config = &m->config,
                       .state = &m->method,
                       .method = m->method.method};
}

static fth_err declare_parameters(fth_model *m) {
    fth_graph graph;
    fth_graph_spec spec = {0};
    fth_outputs out;
    fth_err err = fth_model_graph(m, &spec, &graph, &out);
    fth_graph_fini(&graph);
    if (err != FTH_OK) return err;
    m->params.frozen = true;
    const fth_method *method = m->method.method;
    for (int32_t i = 0; method->init && i < m->params.n; i++) {
        fth_param *p = &m->params.param[i];
        p->init = method->init(&m->method, p, p->init);
    }
    return FTH_OK;
}

/* The parameters lie in the host's memory at least once, whatever the device. */
static fth_err check_size(const fth_config *c) {
    int64_t available, total;
    if (fth_machine_memory_under("", &available, &total) != FTH_OK)
        return FTH_OK; /* unknown: it will be tried */
    return fth_least_size_check(c, (int64_t)sizeof(float), 0, available, "in this machine");
}

fth_err fth_model_init(fth_model *m, const fth_config *config) {
    memset(m, 0, sizeof *m);
    fth_params_init(&m->params);
    m->config = *config;
    fth_err err = fth_config_validate(&m->config);
    if (err == FTH_OK) err = check_size(&m->config);
    if (err == FTH_OK) err = fth_method_resolve(&m->config, &m->method);
    if (err == FTH_OK) err = declare_parameters(m);
    if (err != FTH_OK) fth_model_fini(m);
    return err;
}

void fth_model_fini(fth_model *m) {
    fth_params_fini(&m->params);
    memset(m, 0, sizeof *m);
}

/* ---- initial values ---- */

static double xavier_std(const fth_param *p) {
    return p->init.gain * sqrt(2.0 / (double)(p->shape[0] + p->shape[1]));
}

double fth_init_std(const fth_param *p) {
    switch (p->init.rule) {
    case FTH_INIT_XAVIER_UNIFORM:
    case FTH_INIT_XAVIER_NORMAL: return xavier_std(p);
    case FTH_INIT_NORMAL:
    case FTH_INIT_CONST:
    case FTH_INIT_MEAN_OF_ROW: return p->init.value;
    }
    return 0;
}

/* The draw of a parameter depends on the seed and its name alone, so methods that differ by a
 * scale share their draws and extra parameters move no others. */
static void draw(const fth_param *p, uint64_t seed, float *out) {
    const uint64_t stream = fth_hash64(p->name, strlen(p->name));
    const int64_t n = fth_param_size(p);
    const double std = fth_init_std(p);
    fth_rng rng;
    switch (p->init.rule) {
    case FTH_INIT_CONST:
        for (int64_t i = 0; i < n; i++) out[i] = (float)p->init.value;
        break;
    case FTH_INIT_XAVIER_UNIFORM:
        fth_rng_init(&rng, seed, stream);
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)((2 * fth_rng_uniform(&rng) - 1) * std * sqrt(3.0));
        break;
    case FTH_INIT_XAVIER_NORMAL:
    case FTH_INIT_NORMAL:
        fth_normals(seed, stream, n, out);
        for (int64_t i = 0; i < n; i++) out[i] = (float)(out[i] * std);
        break;
    case FTH_INIT_MEAN_OF_ROW:
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = i / p->shape[1], column = i % p->shape[1];
            out[i] = column <= row ? (float)(1.0 / (double)(row + 1)) : 0.0f;
        }
        break;
    }
}

void fth_model_scale_init(fth_model *m, double scale) {
    for (int32_t i = 0; i < m->params.n; i++) {
        fth_param *p = &m->params.param[i];
        if (p->layer >= 0 && fth_role_is_matrix(p->role)) p->init = fth_init_scaled(p->init, scale);
    }
}

void fth_model_draw(const fth_model *m, uint64_t seed, float *flat) {
    const fth_params *all = &m->params;
    /* billions of draws; each parameter has its own stream, and who draws it touches its memory
     * first */
#pragma omp parallel for schedule(dynamic)
    for (int32_t i = 0; i < all->n; i++) {
        const fth_param *p = &all->param[i];
        const int64_t end = p->offset + fth_param_size(p);
        const int64_t next = i + 1 < all->n ? all->param[i + 1].offset : all->size;
        float *out = flat + p->offset;
        draw(p, seed, out);
        memset(flat + end, 0, sizeof *flat * (size_t)(next - end)); /* the gap behind it */
        if (p->role == FTH_ROLE_EMBED || p->role == FTH_ROLE_OUTPUT)
            memset(out + m->config.pad * p->shape[1], 0, sizeof *out * (size_t)p->shape[1]);
    }
}

/* ---- graphs ---- */

fth_err fth_model_graph(const fth_model *m, const fth_graph_spec *spec, fth_graph *graph,
                        fth_outputs *out) {
    fth_graph_init(graph);
    fth_build w = new_build(m, graph);
    fth_builder *b = &w.b;
    b->backward = spec->backward;
    b->dropout = spec->dropout;
    b->keep_bits = spec->keep_bits;
    w.taps = spec->taps;
    if (w.taps) FTH_TRY(fth_taps_begin(w.taps, &m->config, b));
    *out = (fth_outputs){.side = m->config.arch == FTH_ENC ? FTH_SRC : FTH_TGT,
                         .rows = fth_head_rows(&m->config)};
    fth_val x = 0;
    if (m->config.arch != FTH_DEC)
        x = out->hidden[FTH_ENCODER] = fth_build_stack(&w, FTH_ENCODER, 0);
    if (m->config.arch != FTH_ENC)
        x = out->hidden[FTH_DECODER] = fth_build_stack(&w, FTH_DECODER, x);
    for (int s = 0; s < 2 && spec->hidden; s++)
        if (out->hidden[s]) fth_keep(b, out->hidden[s]);
    b->stack = FTH_NO_STACK;
    const fth_head_spec wanted = {spec->logits, spec->token_nll, spec->smoothing};
    fth_head_outputs made = {0};
    fth_head_of(&m->config)->build(b, &wanted, x, &made);
    out->logits = made.logits;
    out->loss = made.loss.sums;
    out->token_nll = made.loss.token_nll;
    if (w.taps && graph->err == FTH_OK)
        graph->err = fth_taps_norms(w.taps, graph, &m->config, w.method, &m->params);
    fth_err err = spec->backward ? fth_backward(b) : graph->err;
    return err == FTH_OK && w.taps ? fth_taps_gradients(w.taps, graph) : err;
}

fth_err fth_model_encode_graph(const fth_model *m, fth_encode_graph *out) {
    fth_graph_init(&out->graph);
    fth_build w = new_build(m, &out->graph);
    size_t layers = (size_t)m->config.decoder_layers;
    out->memory = fth_arena_alloc(&out->graph.arena, sizeof *out->memory * layers);
    if (!out->memory) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    fth_val x = fth_build_stack(&w, FTH_ENCODER, 0);
    for (int32_t l = 0; l < m->config.decoder_layers; l++)
        out->memory[l] = fth_build_memory(&w, l, x);
    return out->graph.err;
}

fth_err fth_model_step_graph(const fth_model *m, int64_t slots, int64_t src_capacity,
                             fth_step_graph *out) {
    fth_graph_init(&out->graph);
    fth_build w = new_build(m, &out->graph);
    w.step = true;
    w.slots = slots;
    w.src_capacity = src_capacity;
    size_t layers = (size_t)m->config.decoder_layers;
    w.memory = out->memory = fth_arena_alloc(&out->graph.arena, sizeof *out->memory * layers);
    if (!out->memory) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    fth_val x = fth_build_stack(&w, FTH_DECODER, 0);
    w.b.stack = FTH_NO_STACK;
    out->logits = fth_front_logits(&w.b, x);
    return out->graph.err;
}
