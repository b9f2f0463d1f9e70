/* run_validate.c: measures a run on its validation data: nll, score, and whether it is the best
 * yet. */
#include "run/running.h"
#include "run/validate_directions.h"

#include <math.h>
#include <stdio.h>

/* The best checkpoint has the least: of the nll, of an error rate, or of a score's negative. */
static double sign(const fth_running *r) {
    return r->spec->best_by_score && !fth_score_is_error(r->spec->score.kind) ? -1 : 1;
}

/* The best score as people know it. */
double fth_running_best(const fth_running *r) {
    return sign(r) * r->state.best_score;
}

fth_err fth_running_validate(fth_running *r) {
    fth_eval eval;
    fth_eval_spec spec = {.update = r->state.update,
                          .block = fth_run_block(r->spec, &r->items.valid),
                          .item = &r->items.valid};
    fth_ranks_doing(r->spec->ranks, r->state.update, "validating");
    if (fth_running_writes(r))
        FTH_TRY(fth_validate_directions(&r->evaluator, r->valid, &spec, &r->folder.languages,
                                        &r->lines, &eval));
    FTH_TRY(fth_ranks_broadcast(r->spec->ranks, &eval, sizeof eval));
    double score = NAN;
    if (r->scorer && fth_running_writes(r))
        FTH_TRY(fth_scorer_run(r->scorer, &r->model, r->device, &r->trainer.arenas, &score));
    FTH_TRY(fth_ranks_broadcast(r->spec->ranks, &score, sizeof score));
    const double measure = r->spec->best_by_score ? sign(r) * score : eval.nll;
    r->state.valid_nll = eval.nll;
    r->best_nll = fmin(r->best_nll, eval.nll);
    const bool improved = !(measure >= r->state.best_score);
    r->state.validated = r->state.update;
    if (improved) {
        r->state.best_score = measure;
        r->state.best_update = r->state.update;
        r->state.patience = 0;
    } else {
        r->state.patience++;
    }
    char scored[40] = "";
    const char *name = fth_score_name(r->spec->score.kind);
    if (r->scorer) snprintf(scored, sizeof scored, ", %s %.2f", name, score);
    fth_log_info(r->log, "update %lld: valid nll %.4f, ppl %.2f%s%s", (long long)r->state.update,
                 eval.nll, exp(eval.nll), scored, improved ? ", best" : "");
    json_t *line = fth_run_log_line("valid", r->state.update);
    fth_run_log_text(line, "split", "valid");
    fth_run_log_number(line, "nll_loss", eval.nll);
    fth_run_log_number(line, "ppl", exp(eval.nll));
    if (r->scorer) fth_run_log_number(line, name, score);
    fth_run_log_number(line, "best", fth_running_best(r));
    if (!isnan(eval.encoder_cosine))
        fth_run_log_number(line, "encoder_cosine", eval.encoder_cosine);
    return fth_run_log_write(&r->lines, line);
}
