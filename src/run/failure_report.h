/* failure_report.h: the report of a run that failed (doc/analyses.md#when-a-run-has-failed):
 * RUN/diverged.json has the kind of fault, the first sub-layer and update in which something went
 * wrong, the last measured rows, and what usually helps. */
#ifndef FTH_RUN_FAILURE_REPORT_H
#define FTH_RUN_FAILURE_REPORT_H

#include "base/log.h"
#include "run/advice.h"
#include "run/health.h"
#include "run/telemetry.h"

/* What a row of telemetry can show to be wrong with a sub-layer. */
typedef enum fth_symptom {
    FTH_SYMPTOM_NONFINITE, /* a measured number is not finite */
    FTH_SYMPTOM_UPDATE,    /* an update moves the parameters by more than half of their size */
    FTH_SYMPTOM_JUMP,      /* the gradient is 30 times its median so far, and more than 1e-3 */
    FTH_SYMPTOM_GROWTH,    /* the branch is 30 times its median against the residual */
    FTH_SYMPTOM_DEAD,      /* fewer than 1 in 100 activations is not 0 */
    FTH_SYMPTOM_SHARP,     /* attention had an entropy above 0.2 and has one below 0.02 */
    FTH_NO_SYMPTOM
} fth_symptom;
const char *fth_symptom_text(fth_symptom s);

/* A sub-layer of a model. */
typedef struct fth_place {
    fth_stack stack;
    fth_sub sub;
    int32_t layer; /* from 0 */
} fth_place;

/* "cross-attention of decoder layer 3" */
void fth_place_text(const fth_place *p, char *text, size_t size);
fth_place fth_sublayer_place(const fth_config *c, int32_t sublayer);

/* The first sub-layer that shows a symptom: first in time; in one row numbers that are not finite
 * come first, in the order of the update, then symptoms from the bottom up. */
typedef struct fth_first_fault {
    fth_symptom symptom;
    fth_quantity quantity;
    int32_t sublayer; /* counted as in a row */
    int64_t update;
    double value, usual; /* the number, and its median before (NAN: there is none) */
} fth_first_fault;
fth_first_fault fth_find_first_fault(const fth_telemetry *w);

/* What the run knows of its end. */
typedef struct fth_failure {
    fth_fault_kind kind;
    const char *reason;
    int64_t update, max_update;
    double loss, gnorm;             /* NAN: not known */
    double encoder_cosine;          /* NAN: not known */
    const fth_nonfinite *nonfinite; /* the first operation that gave a bad value; NULL: none */
} fth_failure;

/* Writes path, and its advice into the log; w NULL: without rows. */
fth_err fth_diverge_write(const char *path, const fth_trainer *t, const fth_telemetry *w,
                          const fth_failure *f, fth_log *log);

#endif
