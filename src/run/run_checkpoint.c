/* run_checkpoint.c: the checkpoints of a run: what is saved, which are kept, and that the folder is
 * still its own. */
#include "run/running.h"

#include <math.h>

#include "run/trainer_files.h"

fth_err fth_running_check_folder(const fth_running *r) {
    if (fth_run_log_is_ours(&r->lines)) return FTH_OK;
    return fth_fail(
        FTH_FAILED,
        "%s: was removed or moved while training wrote there; what was not saved before "
        "is lost",
        r->spec->save_dir);
}

/* Without a validation set the newest counts as the best. */
static fth_err settle(const fth_running *r) {
    const bool known = r->state.validated > 0 || !isnan(r->state.best_score);
    const fth_settled s = {.last = r->state.update,
                           .best = !r->evaluates ? r->state.update
                                   : known       ? r->state.best_update
                                                 : -1,
                           .keep = r->spec->keep_last,
                           .stop = r->state.stopped_at};
    return fth_checkpoint_settle(r->checkpoints, &s);
}

/* The state that is saved knows all that a process needs to go on as this one would: a checkpoint
 * is one step, what follows from it is made again at the next start. */
fth_err fth_running_save(fth_running *r) {
    r->state.epoch = r->position.epoch;
    r->state.window = r->position.window;
    r->state.batch = r->position.batch;
    r->state.position = r->position.index;
    r->state.wall = fth_running_wall(r);
    FTH_TRY(fth_verify_wait(r->verify)); /* nothing is kept of what damaged data has trained */
    FTH_TRY(fth_running_check_folder(r));
    FTH_TRY(fth_run_log_sync(&r->lines));
    fth_ranks_doing(r->spec->ranks, r->state.update, "saving a checkpoint");
    fth_err err =
        fth_save_checkpoint(r->checkpoints, &r->trainer, &r->state, r->spec->yaml, r->spec->data);
    if (err != FTH_OK) FTH_TRY(fth_running_check_folder(r)); /* the reason, where it has gone */
    FTH_TRY(err);
    if (!fth_running_writes(r)) return FTH_OK;
    FTH_TRY(fth_running_log_checkpoint(r));
    return settle(r);
}

/* What a killed process has not come to after its checkpoint. */
fth_err fth_running_catch_up(fth_running *r) {
    bool logged;
    FTH_TRY(fth_run_log_has(&r->lines, "checkpoint", r->state.update, &logged));
    if (!logged) FTH_TRY(fth_running_log_checkpoint(r));
    return settle(r);
}
