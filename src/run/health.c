/* health.c: the rules themselves: not finite, learned nothing, fell back, collapsed, source not
 * used. */
#include "run/health.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/pipeline.h"

void fth_nonfinite_text(const fth_nonfinite *n, char *where, size_t size) {
    static const char *const subs[] = {"self-attention", "cross-attention", "feed-forward",
                                       "layer"};
    const char *way = n->backward ? "backward" : "forward";
    if (n->op < 0)
        snprintf(where, size, "a later micro-batch, or the sum of the gradients");
    else if (n->layer >= 0)
        snprintf(where, size, "%s of %s layer %d (%s, %s)", subs[n->sub],
                 n->stack == FTH_ENCODER ? "encoder" : "decoder", n->layer + 1,
                 fth_kind_name(n->kind), way);
    else
        snprintf(where, size, "%s (%s)", fth_kind_name(n->kind), way);
}

fth_err fth_health_first_nonfinite(fth_trainer *t, int64_t update, const fth_batch *batch,
                                   fth_nonfinite *out) {
    fth_step step = {.seed = t->recipe.seed, .update = (uint32_t)update};
    int64_t tokens = fth_batch_targets(batch, t->outputs.rows);
    step.loss_scale = tokens ? 1.0 / (double)tokens : 0;
    fth_method_step(&t->model->method, update, step.slots);
    int32_t at;
    /* Gradients add up: what the failed update left must not be found again. */
    FTH_TRY(t->device->backend->zero(t->device, t->arenas.grad,
                                     t->arenas.grads * (int64_t)fth_dtype_size(t->device->full)));
    fth_program *whole = t->program;
    *out = (fth_nonfinite){.op = -1};
    if (t->pipeline && fth_rank(t->exchange->ranks) != 0) return FTH_OK;
    if (t->pipeline) FTH_TRY(fth_pipeline_whole(t, &whole));
    fth_err err = fth_program_find_nonfinite(whole, batch, &step, &at);
    if (err == FTH_OK && at >= 0) {
        const fth_op *op = &fth_program_graph(whole)->op[at];
        *out = (fth_nonfinite){at, op->kind, op->stack, op->sub, op->layer, op->backward};
    }
    if (whole != t->program) fth_program_free(whole);
    return err;
}

bool fth_health_judge_cosine(double cosine, fth_judgement *out) {
    out->encoder_cosine = cosine;
    if (!(cosine > FTH_COLLAPSED)) return false;
    out->kind = FTH_FAULT_COLLAPSED;
    snprintf(out->reason, sizeof out->reason,
             "the encoder collapsed: the mean cosine between its positions is %.4f, above %g",
             cosine, FTH_COLLAPSED);
    return true;
}

/* E.12 d: does the encoder tell its positions apart, and does the decoder read it? */
static fth_err judge_source(fth_evaluator *e, const fth_dataset *valid, int64_t update, double nll,
                            fth_judgement *out) {
    fth_eval eval;
    fth_eval_spec spec = {.update = update, .most = 1};
    FTH_TRY(fth_evaluate(e, valid, &spec, &eval));
    if (fth_health_judge_cosine(eval.encoder_cosine, out)) return FTH_OK;
    spec = (fth_eval_spec){.update = update, .wrong_sources = true};
    FTH_TRY(fth_evaluate(e, valid, &spec, &eval));
    const double wrong = eval.nll;
    spec = (fth_eval_spec){.update = update, .of_several = true};
    /* of the same sentences, and not a mean over directions */
    if (eval.alone > 0 || valid->n_directions) {
        FTH_TRY(fth_evaluate(e, valid, &spec, &eval));
        nll = eval.nll;
    }
    if (!(wrong - nll < 0.1)) return FTH_OK;
    out->kind = FTH_FAULT_DEAF;
    snprintf(out->reason, sizeof out->reason,
             "the source is ignored: with the sources of other sentences the valid nll is %.4f, "
             "with the right ones %.4f, less than 0.1 apart",
             wrong, nll);
    return FTH_OK;
}

void fth_health_judge_short(double first, double final, fth_judgement *out) {
    *out = (fth_judgement){.kind = FTH_NO_FAULT, .encoder_cosine = NAN};
    if (!isfinite(final)) {
        out->kind = FTH_FAULT_NONFINITE;
        snprintf(out->reason, sizeof out->reason, "the final nll is not finite");
    } else if (final > 2 * first) {
        out->kind = FTH_FAULT_WORSENED;
        snprintf(out->reason, sizeof out->reason,
                 "the final nll %.4g is more than twice that of the first update, %.4g", final,
                 first);
    }
}

fth_err fth_health_judge(fth_evaluator *e, const fth_dataset *valid, int64_t update, int32_t block,
                         double best, double final, double unigram, fth_judgement *out) {
    *out = (fth_judgement){.kind = FTH_NO_FAULT, .encoder_cosine = NAN};
    fth_eval eval;
    fth_eval_spec spec = {.update = update, .block = block};
    if (isnan(final)) {
        FTH_TRY(fth_evaluate(e, valid, &spec, &eval));
        final = eval.nll;
    }
    if (!isfinite(final)) {
        out->kind = FTH_FAULT_NONFINITE;
        snprintf(out->reason, sizeof out->reason, "the valid nll is not finite");
    } else if (best > unigram - 0.1) {
        out->kind = FTH_FAULT_UNLEARNED;
        snprintf(out->reason, sizeof out->reason,
                 "the best valid nll %.4f never came 0.1 below that of the unigram distribution, "
                 "%.4f",
                 best, unigram);
    } else if (final > best + 1) {
        out->kind = FTH_FAULT_WORSENED;
        snprintf(out->reason, sizeof out->reason,
                 "the final valid nll %.4f is more than 1 above the best, %.4f", final, best);
    } else if (e->model->config.arch == FTH_ENCDEC) {
        return judge_source(e, valid, update, final, out);
    }
    return FTH_OK;
}
