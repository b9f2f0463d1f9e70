#include "train/layers.h"

#include <math.h>
#include <stdlib.h>

int32_t fth_sublayers(const fth_config *c, fth_stack stack) {
    bool crossed = stack == FTH_DECODER && c->arch == FTH_ENCDEC;
    return fth_stack_layers(c, stack) * (crossed ? 3 : 2);
}

/* Number of a parameter's sub-layer in its stack, -1: it belongs to none. */
static int32_t sublayer_of(const fth_config *c, const fth_param *p) {
    if (p->layer < 0 || p->sub == FTH_NO_SUB) return -1;
    bool crossed = p->stack == FTH_DECODER && c->arch == FTH_ENCDEC;
    int32_t within = p->sub == FTH_FFN ? (crossed ? 2 : 1) : (int32_t)p->sub;
    return p->layer * (crossed ? 3 : 2) + within;
}

fth_err fth_layer_grad_norms(const fth_trainer *t, fth_stack stack, double *out) {
    const fth_params *params = &t->model->params;
    const fth_config *c = &t->model->config;
    size_t size = fth_dtype_size(t->device->full);
    for (int32_t i = 0; i < fth_sublayers(c, stack); i++) out[i] = 0;
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        int32_t at = p->stack == stack ? sublayer_of(c, p) : -1;
        if (at < 0) continue;
        double squares;
        const char *grad = (const char *)t->arenas.grad + (size_t)p->offset * size;
        FTH_TRY(t->device->backend->sum_squares(t->device, grad, fth_param_size(p), &squares));
        out[at] += squares;
    }
    for (int32_t i = 0; i < fth_sublayers(c, stack); i++) out[i] = sqrt(out[i]);
    return FTH_OK;
}

fth_err fth_log_grad_norms(const fth_trainer *t, int64_t update, fth_run_log *log) {
    static const char *const names[] = {"encoder", "decoder"};
    for (int stack = 0; stack < 2; stack++) {
        int32_t n = fth_sublayers(&t->model->config, (fth_stack)stack);
        if (n == 0) continue;
        double *norms = malloc(sizeof *norms * (size_t)n);
        if (!norms) return fth_fail(FTH_NO_MEMORY, "no memory for %d sub-layers", n);
        fth_err err = fth_layer_grad_norms(t, (fth_stack)stack, norms);
        json_t *line = fth_run_log_line("layers", update), *values = json_array();
        fth_run_log_text(line, "stack", names[stack]);
        fth_run_log_text(line, "name", "grad_norm");
        for (int32_t i = 0; i < n; i++) json_array_append_new(values, fth_json_number(norms[i]));
        if (line) json_object_set_new(line, "values", values);
        free(norms);
        fth_err written = fth_run_log_write(log, line);
        if (err != FTH_OK || written != FTH_OK) return err != FTH_OK ? err : written;
    }
    return FTH_OK;
}
