/* init_from.c: parameters of two models find each other by name and shape. */
#include "run/init_from.h"

#include <stdlib.h>
#include <string.h>

#include "train/weights.h"

static const fth_param *find(const fth_params *params, const fth_param *wanted) {
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        if (strcmp(p->name, wanted->name) == 0 && p->rank == wanted->rank &&
            p->shape[0] == wanted->shape[0] && p->shape[1] == wanted->shape[1])
            return p;
    }
    return NULL;
}

/* The names of params that others lack, after a word; nothing where there are none. */
static fth_err list_missing(const char *word, const fth_params *params, const fth_params *others,
                            fth_str *said) {
    const char *before = word;
    for (int32_t i = 0; i < params->n; i++) {
        if (find(others, &params->param[i])) continue;
        FTH_TRY(fth_str_addf(said, "%s%s", before, params->param[i].name));
        before = ", ";
    }
    return FTH_OK;
}

static fth_err take(const char *folder, const fth_model *model, const fth_model *other,
                    const float *from, float *flat, fth_str *said) {
    int32_t taken = 0;
    for (int32_t i = 0; i < model->params.n; i++) {
        const fth_param *p = &model->params.param[i], *o = find(&other->params, p);
        if (!o) continue;
        memcpy(flat + p->offset, from + o->offset, sizeof *flat * (size_t)fth_param_size(p));
        taken++;
    }
    if (taken == 0)
        return fth_fail(FTH_BAD_CONFIG, "--init-from %s: none of its %d parameters fits this model",
                        folder, other->params.n);
    FTH_TRY(
        fth_str_addf(said, "%s: %d of %d parameters taken over", folder, taken, model->params.n));
    FTH_TRY(list_missing("; fresh: ", &model->params, &other->params, said));
    return list_missing("; not used: ", &other->params, &model->params, said);
}

fth_err fth_init_from(const char *folder, const fth_model *model, uint64_t seed, float *flat,
                      fth_str *said) {
    fth_model other;
    float *from = NULL;
    FTH_TRY(fth_weights_read(folder, &other, &from));
    fth_model_draw(model, seed, flat);
    fth_err err = take(folder, model, &other, from, flat, said);
    free(from);
    fth_model_fini(&other);
    return err;
}
