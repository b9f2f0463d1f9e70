/* taps.c: writes values down as the builder makes them, and puts the total gradients in their
 * places when the backward has been made. */
#include "model/taps.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

/* The norms that any method may have; further ones are the method's own. */
static const fth_norm_kind usual[] = {{"self_attn_layer_norm", "self_attn", false},
                                      {"encoder_attn_layer_norm", "encoder_attn", false},
                                      {"final_layer_norm", "ffn", false},
                                      {"layer_norm", "final", false},
                                      {0}};

void fth_taps_fini(fth_taps *t) {
    free(t->sub);
    free(t->norm);
    fth_grad_requests_fini(&t->requests);
    *t = (fth_taps){0};
}

void fth_taps_keep(fth_graph *graph, fth_val v) {
    if (v) graph->value[v].keep = true;
}

const fth_tap *fth_taps_by_output(const fth_taps *t, fth_val v) {
    for (int32_t i = 0; i < t->n_sub; i++)
        if (t->sub[i].y == v) return &t->sub[i];
    return NULL;
}

fth_err fth_taps_begin(fth_taps *t, const fth_config *c, fth_builder *b) {
    size_t most = 2 * (size_t)c->encoder_layers + 3 * (size_t)c->decoder_layers;
    t->sub = calloc(most, sizeof *t->sub);
    if (!t->sub) return fth_fail(FTH_NO_MEMORY, "no memory to look at %zu sub-layers", most);
    t->requests.made = t->made;
    t->requests.context = t->context;
    b->requests = &t->requests;
    return FTH_OK;
}

fth_tap *fth_taps_here(fth_taps *t) {
    return &t->sub[t->n_sub - 1];
}

void fth_taps_attention(fth_taps *t, const fth_builder *b, fth_val o, fth_val scores) {
    if (b->graph->err != FTH_OK) return;
    const fth_op *op = &b->graph->op[b->graph->value[o].producer];
    fth_tap *tap = fth_taps_here(t);
    tap->q = op->in[ATT_Q];
    tap->k = op->in[ATT_K];
    tap->v = op->in[ATT_V];
    tap->lse = op->out[ATT_LSE];
    tap->scores = scores;
    tap->divisor = (double)op->u.attention.divisor;
}

void fth_taps_open(fth_taps *t, const fth_site *s, fth_val x) {
    if (!t) return;
    t->sub[t->n_sub++] =
        (fth_tap){.stack = s->stack, .layer = s->layer, .sub = s->sub, .x = x, .divisor = 1};
}

/* What enters the layer norm that `op` is or ends with. */
static fth_val norm_input(const fth_op *op) {
    return op->kind == FTH_KIND_join_norm ? op->out[JOIN_Z] : op->in[JOIN_X];
}

void fth_taps_close(fth_taps *t, fth_builder *b, const fth_site *s, fth_val f, fth_val y) {
    if (!t || b->graph->err != FTH_OK) return;
    fth_tap *tap = fth_taps_here(t);
    tap->f = f;
    tap->y = y;
    tap->place = s->place;
    if (s->place == FTH_NORM_PRE) tap->z = tap->x;
    if (s->place == FTH_NORM_POST) tap->z = norm_input(&b->graph->op[b->graph->value[y].producer]);
    if (b->backward && (t->gradients & FTH_TAP_DY)) fth_want_gradient(b, tap->y);
    if (b->backward && (t->gradients & FTH_TAP_DZ)) fth_want_gradient(b, tap->z);
    if (t->built) t->built(t->context, b, tap);
}

/* ---- layer norms ---- */

static const fth_param *param_at(const fth_params *params, int64_t offset) {
    for (int32_t lo = 0, hi = params->n; lo < hi;) {
        int32_t mid = lo + (hi - lo) / 2;
        if (params->param[mid].offset == offset) return &params->param[mid];
        if (params->param[mid].offset < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The name of a parameter without "encoder." or "encoder.layers.7.". */
static const char *local_name(const fth_param *p) {
    const char *at = strchr(p->name, '.') + 1;
    for (int k = 0; p->layer >= 0 && k < 2; k++) at = strchr(at, '.') + 1;
    return at;
}

/* Is it one of these kinds? Then what it is called and where it stands. */
static bool described(const fth_param *gain, const fth_config *c, const fth_norm_kind *kind,
                      fth_norm_tap *out) {
    const char *name = local_name(gain);
    for (; kind && kind->prefix; kind++) {
        const size_t length = strlen(kind->prefix);
        if (strncmp(name, kind->prefix, length) != 0 || name[length] != '.') continue;
        const char *number = name + length + 1; /* history.layer_norms.3.weight */
        out->stack = gain->stack;
        out->ln = kind->name;
        if (gain->layer >= 0)
            out->index = gain->layer + 1;
        else if (*number >= '0' && *number <= '9')
            out->index = (int32_t)strtol(number, NULL, 10) + 1;
        else
            out->index = kind->below ? 0 : fth_stack_layers(c, gain->stack) + 1;
        return true;
    }
    return false;
}

fth_err fth_taps_norms(fth_taps *t, const fth_graph *graph, const fth_config *config,
                       const fth_method *method, const fth_params *params) {
    if (!t || graph->err != FTH_OK) return graph->err;
    size_t most = 0;
    for (int32_t i = 0; i < graph->n_ops; i++)
        most += graph->op[i].kind == FTH_KIND_norm || graph->op[i].kind == FTH_KIND_join_norm;
    t->norm = calloc(most + 1, sizeof *t->norm);
    if (!t->norm) return fth_fail(FTH_NO_MEMORY, "no memory to look at %zu layer norms", most);
    for (int32_t i = 0; i < graph->n_ops; i++) {
        const fth_op *op = &graph->op[i];
        if (op->kind != FTH_KIND_norm && op->kind != FTH_KIND_join_norm) continue;
        const fth_param *gain = param_at(params, graph->value[op->in[JOIN_GAIN]].offset);
        fth_norm_tap tap = {.z = norm_input(op), .y = op->out[JOIN_Y]};
        if (!gain ||
            !(described(gain, config, usual, &tap) || described(gain, config, method->norms, &tap)))
            return fth_fail(FTH_FAILED, "layer norm \"%s\" is of no known kind",
                            gain ? gain->name : "?");
        t->norm[t->n_norm++] = tap;
    }
    return FTH_OK;
}

/* ---- gradients ---- */

fth_err fth_taps_gradients(fth_taps *t, const fth_graph *graph) {
    fth_val *grad = calloc((size_t)graph->n_values, sizeof *grad);
    if (!grad) return fth_fail(FTH_NO_MEMORY, "no memory to look at %d gradients", t->requests.n);
    for (int32_t k = 0; k < t->requests.n; k++)
        grad[t->requests.item[k].value] = t->requests.item[k].grad;
    for (int32_t i = 0; i < t->n_sub; i++) {
        if (t->gradients & FTH_TAP_DY) t->sub[i].dy = grad[t->sub[i].y];
        if (t->gradients & FTH_TAP_DZ) t->sub[i].dz = grad[t->sub[i].z];
    }
    free(grad);
    return FTH_OK;
}
