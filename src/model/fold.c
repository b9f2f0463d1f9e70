/* fold.c: makes the plain config, copies what has the same name, and lets the method's hook
 * write the rest. */
#include "model/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "method/fold_hooks.h"

static void copy_same_names(const fth_fold *f) {
    for (int32_t i = 0; i < f->to->n; i++) {
        const fth_param *p = &f->to->param[i];
        int32_t at = fth_params_find(f->from, p->name);
        if (at >= 0)
            memcpy(f->to_flat + p->offset, f->from_flat + f->from->param[at].offset,
                   sizeof *f->to_flat * (size_t)fth_param_size(p));
    }
}

fth_err fth_model_fold(const fth_model *from, const float *from_flat, fth_model *to,
                       float **to_flat) {
    const fth_method *m = from->method.method;
    *to_flat = NULL;
    memset(to, 0, sizeof *to);
    if (!m->fold)
        return fth_fail(FTH_BAD_CONFIG, "a %s model does not fold: it %s", m->id, m->export_to);
    fth_config config = from->config;
    config.n_options = 0;
    snprintf(config.method, sizeof config.method, "%s", fth_method_plain(m->norm)->id);
    fth_fold f = {
        .state = &from->method, .from = &from->params, .from_flat = from_flat, .config = &config};
    if (m->fold_config) FTH_TRY(m->fold_config(&f));
    FTH_TRY(fth_model_init(to, &config));
    f.to = &to->params;
    f.to_flat = *to_flat = calloc((size_t)to->params.size, sizeof **to_flat);
    fth_err err = FTH_OK;
    if (!*to_flat) {
        err = fth_fail(FTH_NO_MEMORY, "no memory for the folded model");
    } else {
        copy_same_names(&f);
        err = m->fold(&f);
    }
    if (err == FTH_OK) return FTH_OK;
    free(*to_flat);
    *to_flat = NULL;
    fth_model_fini(to);
    return err;
}
