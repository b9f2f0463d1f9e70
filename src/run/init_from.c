/* init_from.c: parameters of two models find each other by name and shape. */
#include "run/init_from.h"

#include <stdlib.h>
#include <string.h>

#include "train/weights.h"

/* Two models whose parameters are compared. */
typedef struct pair {
    const fth_params *ours, *theirs;
    bool same_words;
} pair;

/* Does it have a row for each word? */
static bool is_of_words(const fth_param *p) {
    return p->role == FTH_ROLE_EMBED || p->role == FTH_ROLE_OUTPUT ||
           strcmp(p->name, "head.bias") == 0;
}

/* The parameter among `params` that stands for another model's. */
static const fth_param *find(const pair *two, const fth_params *params, const fth_param *wanted) {
    if (!two->same_words && is_of_words(wanted)) return NULL;
    const int32_t i = fth_params_find(params, wanted->name);
    const fth_param *p = i < 0 ? NULL : &params->param[i];
    return p && p->rank == wanted->rank && p->shape[0] == wanted->shape[0] &&
                   p->shape[1] == wanted->shape[1]
               ? p
               : NULL;
}

/* The names of params that others lack, after a word; nothing where there are none. */
static fth_err list_missing(const char *word, const pair *two, const fth_params *params,
                            const fth_params *others, fth_str *said) {
    const char *before = word;
    for (int32_t i = 0; i < params->n; i++) {
        if (find(two, others, &params->param[i])) continue;
        FTH_TRY(fth_str_addf(said, "%s%s", before, params->param[i].name));
        before = ", ";
    }
    return FTH_OK;
}

static fth_err take(const char *folder, const pair *two, const float *from, float *flat,
                    fth_str *said) {
    int32_t taken = 0;
    for (int32_t i = 0; i < two->ours->n; i++) {
        const fth_param *p = &two->ours->param[i], *o = find(two, two->theirs, p);
        if (!o) continue;
        memcpy(flat + p->offset, from + o->offset, sizeof *flat * (size_t)fth_param_size(p));
        taken++;
    }
    if (taken == 0)
        return fth_fail(FTH_BAD_CONFIG, "--init-from %s: none of its %d parameters fits this model",
                        folder, two->theirs->n);
    FTH_TRY(fth_str_addf(said, "%s: %d of %d parameters taken over", folder, taken, two->ours->n));
    FTH_TRY(list_missing("; fresh: ", two, two->ours, two->theirs, said));
    return list_missing("; not used: ", two, two->theirs, two->ours, said);
}

/* Names and shapes may agree where the arithmetic does not. */
static fth_err compare_methods(const char *folder, const fth_config *ours, const fth_config *theirs,
                               fth_str *doubt) {
    if (strcmp(ours->method, theirs->method) == 0) return FTH_OK;
    return fth_str_addf(doubt,
                        "--init-from %s: was trained with --method %s and goes on with %s: its "
                        "weights were made for other sums and norms",
                        folder, theirs->method, ours->method);
}

fth_err fth_init_from(const char *folder, const fth_model *model, uint64_t seed, bool same_words,
                      float *flat, fth_str *said, fth_str *doubt) {
    fth_model other;
    float *from = NULL;
    FTH_TRY(fth_weights_read(folder, &other, &from));
    const pair two = {&model->params, &other.params, same_words};
    fth_model_draw(model, seed, flat);
    fth_err err = take(folder, &two, from, flat, said);
    if (err == FTH_OK) err = compare_methods(folder, &model->config, &other.config, doubt);
    free(from);
    fth_model_fini(&other);
    return err;
}
