#include "train/health.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void name_of(const fth_op *op, char *where, size_t size) {
    static const char *const subs[] = {"self-attention", "cross-attention", "feed-forward",
                                       "layer"};
    const char *way = op->backward ? "backward" : "forward";
    if (op->layer >= 0)
        snprintf(where, size, "%s of %s layer %d (%s, %s)", subs[op->sub],
                 op->stack == FTH_ENCODER ? "encoder" : "decoder", op->layer + 1,
                 fth_kind_name(op->kind), way);
    else
        snprintf(where, size, "%s (%s)", fth_kind_name(op->kind), way);
}

fth_err fth_health_first_fault(fth_trainer *t, int64_t update, const fth_batch *batch, char *where,
                               size_t size) {
    fth_step step = {.seed = t->recipe.seed, .update = (uint32_t)update};
    int64_t tokens = fth_batch_targets(batch, t->outputs.side);
    step.loss_scale = tokens ? 1.0 / (double)tokens : 0;
    fth_method_step(&t->model->method, update, step.slots);
    int32_t at;
    /* Gradients add up: what the failed update left must not be found again. */
    FTH_TRY(t->device->backend->zero(t->device, t->arenas.grad,
                                     t->arenas.n * (int64_t)fth_dtype_size(t->device->full)));
    FTH_TRY(fth_program_find_nonfinite(t->program, batch, &step, &at));
    if (at >= 0)
        name_of(&fth_program_graph(t->program)->op[at], where, size);
    else
        snprintf(where, size, "a later micro-batch, or the sum of the gradients");
    return FTH_OK;
}

/* E.12 d: does the encoder tell its positions apart, and does the decoder read it? */
static fth_err judge_source(fth_evaluator *e, const fth_dataset *valid, int64_t update, double nll,
                            char *reason, size_t size) {
    fth_eval eval;
    fth_eval_spec spec = {.update = update, .most = 1};
    FTH_TRY(fth_evaluate(e, valid, &spec, &eval));
    if (eval.encoder_cosine > 0.99) {
        snprintf(
            reason, size,
            "the encoder collapsed: the mean cosine between its positions is %.4f, above 0.99; "
            "a longer warm-up, a smaller --lr or --method-option branch_lr=alpha usually helps",
            eval.encoder_cosine);
        return FTH_OK;
    }
    spec = (fth_eval_spec){.update = update, .wrong_sources = true};
    FTH_TRY(fth_evaluate(e, valid, &spec, &eval));
    if (eval.nll - nll < 0.1)
        snprintf(
            reason, size,
            "the source is ignored: with the sources of other sentences the valid nll is %.4f, "
            "with the right ones %.4f, less than 0.1 apart",
            eval.nll, nll);
    return FTH_OK;
}

fth_err fth_health_judge(fth_evaluator *e, const fth_dataset *valid, int64_t update, int32_t block,
                         double best, double final, double unigram, char *reason, size_t size) {
    reason[0] = '\0';
    fth_eval eval;
    fth_eval_spec spec = {.update = update, .block = block};
    if (isnan(final)) {
        FTH_TRY(fth_evaluate(e, valid, &spec, &eval));
        final = eval.nll;
    }
    if (!isfinite(final))
        snprintf(reason, size, "the valid nll is not finite");
    else if (best > unigram - 0.1)
        snprintf(reason, size,
                 "the best valid nll %.4f never came 0.1 below that of the unigram distribution, "
                 "%.4f",
                 best, unigram);
    else if (final > best + 1)
        snprintf(reason, size, "the final valid nll %.4f is more than 1 above the best, %.4f",
                 final, best);
    else if (e->model->config.arch == FTH_ENCDEC)
        return judge_source(e, valid, update, final, reason, size);
    return FTH_OK;
}
