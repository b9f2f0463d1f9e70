/* evaluate_directions.c: a direction is a part of its split, evaluated like a split of its own. */
#include "train/evaluate_directions.h"

#include <math.h>

/* The mean of what is a number. */
typedef struct mean_of {
    double sum;
    int64_t n;
} mean_of;

static void add(mean_of *m, double x) {
    if (isnan(x)) return;
    m->sum += x;
    m->n++;
}

static double value(const mean_of *m) {
    return m->n ? m->sum / (double)m->n : NAN;
}

fth_err fth_evaluate_directions(fth_evaluator *e, const fth_dataset *data,
                                const fth_eval_spec *spec, fth_eval *of, fth_eval *mean) {
    mean_of nll = {0}, cosine = {0};
    *mean = (fth_eval){0};
    for (int32_t k = 0; k < data->n_directions; k++) {
        const int64_t first = data->direction_first[k], n = data->direction_first[k + 1] - first;
        of[k] = (fth_eval){.nll = NAN, .encoder_cosine = NAN};
        if (n == 0) continue;
        const fth_dataset part = fth_dataset_part(data, first, n);
        FTH_TRY(fth_evaluate(e, &part, spec, &of[k]));
        /* a loss that is not finite is one of the mean too */
        if (of[k].tokens && isnan(of[k].nll)) nll.sum = NAN;
        add(&nll, of[k].nll);
        add(&cosine, of[k].encoder_cosine);
        mean->tokens += of[k].tokens;
        mean->left_out += of[k].left_out;
        mean->alone += of[k].alone;
    }
    mean->nll = value(&nll);
    mean->encoder_cosine = value(&cosine);
    return FTH_OK;
}
