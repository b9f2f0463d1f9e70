/* validate_directions.c: evaluates, and writes what each direction has. */
#include "run/validate_directions.h"

#include <math.h>
#include <stdlib.h>

#include "train/evaluate_directions.h"

static fth_err log_direction(fth_run_log *log, int64_t update, const char *name,
                             const fth_eval *e) {
    json_t *line = fth_run_log_line("valid", update);
    fth_run_log_text(line, "split", "valid");
    fth_run_log_text(line, "direction", name);
    fth_run_log_number(line, "nll_loss", e->nll);
    fth_run_log_number(line, "ppl", exp(e->nll));
    return fth_run_log_write(log, line);
}

fth_err fth_validate_directions(fth_evaluator *e, const fth_dataset *data,
                                const fth_eval_spec *spec, const fth_languages *languages,
                                fth_run_log *log, fth_eval *mean) {
    if (!data->n_directions) return fth_evaluate(e, data, spec, mean);
    fth_eval *of = calloc((size_t)data->n_directions, sizeof *of);
    if (!of)
        return fth_fail(FTH_NO_MEMORY, "no memory to validate %d directions", data->n_directions);
    fth_err err = fth_evaluate_directions(e, data, spec, of, mean);
    for (int32_t k = 0; err == FTH_OK && k < data->n_directions; k++)
        if (of[k].tokens)
            err = log_direction(log, spec->update, fth_languages_name(languages, k).text, &of[k]);
    free(of);
    return err;
}
