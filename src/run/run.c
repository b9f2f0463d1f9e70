/* run.c: a training run from its options to its result; the files run_*.c are its parts. */
#include "run/run.h"

#include <math.h>
#include <signal.h>

#include "base/clock.h"
#include "base/signals.h"
#include "run/run_ranks.h"
#include "run/running.h"

bool fth_running_writes(const fth_running *r) {
    return fth_rank(r->spec->ranks) == 0;
}

double fth_running_wall(const fth_running *r) {
    return r->wall_before + fth_now() - r->started;
}

fth_err fth_run(const fth_run_spec *spec, fth_device *device, fth_log *log,
                fth_run_result *result) {
    int signal = 0;
    fth_signals before;
    fth_running r = {
        .spec = spec, .device = device, .log = log, .best_nll = NAN, .lines = {.fd = -1}};
    *result = (fth_run_result){.best_nll = NAN, .final_nll = NAN, .best_score = NAN};
    fth_err err = fth_ranks_agree(spec->ranks, fth_running_open(&r));
    if (err != FTH_OK) goto done;
    FTH_TRY_OR(err, fth_ranks_same_run(spec, fth_folder_hash(&r.folder)), done);
    FTH_TRY_OR(err, fth_running_start(&r), done);
    FTH_TRY_OR(err, fth_running_log_start(&r), done);
    fth_signals_catch(&before);
    /* alone: where others wait for a part of the update, it is made to its end */
    device->stop = fth_rank_count(spec->ranks) == 1 ? fth_signals_flag() : NULL;
    err = fth_running_loop(&r, &signal);
    device->stop = NULL;
    fth_signals_release(&before);
    if (err != FTH_OK) goto done;
    *result =
        (fth_run_result){.updates = r.state.update,
                         .best_nll = r.spec->best_by_score ? (double)NAN : r.state.best_score,
                         .best_score = r.spec->best_by_score ? fth_running_best(&r) : (double)NAN,
                         .final_nll = r.state.valid_nll,
                         .seconds = fth_running_wall(&r)};
    if (signal)
        err = fth_fail(signal == SIGINT ? FTH_STOPPED : FTH_TERMINATED,
                       "stopped by a signal at update %lld; the same command goes on from here",
                       (long long)r.state.update);
    else
        err = fth_running_end(&r, result);
done:
    fth_running_close(&r);
    return err;
}
