/* preflight.h: a look at a training before hours are spent on it: memory, time, gradients at the
 * start, how far the first updates move the model, and a verdict (doc/preflight.md). */
#ifndef FTH_RUN_PREFLIGHT_H
#define FTH_RUN_PREFLIGHT_H

#include "base/json.h"
#include "run/run.h"

typedef enum fth_verdict { FTH_FINE, FTH_AT_RISK, FTH_WILL_FAIL } fth_verdict;
const char *fth_verdict_name(fth_verdict v);

enum { FTH_PREFLIGHT_UPDATES = 10 };

/* How much is looked at. */
typedef struct fth_preflight_how {
    int32_t vocab; /* of made-up sentences, where the spec names no data */
    bool quick;   /* in a minute: smaller batches, and fewer updates of models that are slow all the
                     same */
    fth_log *log; /* the progress; NULL: silent */
    int ranks;    /* of this machine that would train together; 0, 1: one */
} fth_preflight_how;

/* Updates from a fresh model: by the run's schedule, or at its peak rate from the first on. */
typedef struct fth_dash {
    int32_t updates;              /* made; fewer than asked for: not finite */
    double first_loss, last_loss; /* nll of the first and the last batch */
    double first_gnorm, last_gnorm, largest_gnorm;
    double update_ratio; /* largest of a sub-layer */
    /* At the last: smallest over largest gradient norm of the layers of a stack, the smaller of the
     * two stacks; and the same of the gradients of the sub-layers' outputs. */
    double carried, outputs_carried;
    double dead;                         /* share of the feed-forwards with hardly an activation */
    double moved[FTH_PREFLIGHT_UPDATES]; /* after each: the top layer's output, from the start's */
    double logits_moved[FTH_PREFLIGHT_UPDATES]; /* the same on the logits */
    double size;                                /* mean norm of that output at the start */
    double encoder_cosine;                      /* at the last; NAN: no encoder */
} fth_dash;

/* A training on several ranks, in so many stages. */
enum { FTH_RANK_PLANS = 16 };
typedef struct fth_rank_plan {
    int stages, batches; /* of an update */
    int64_t bytes;       /* of the rank that needs the most */
    double sent;         /* bytes of a rank in an update */
    double waiting;      /* share of the time in which ranks do not compute */
    double seconds;      /* of an update */
    double target_tokens_per_s;
    bool fits;
} fth_rank_plan;

typedef struct fth_preflight {
    int64_t parameters;
    int64_t fixed_bytes, activation_bytes, planned_bytes; /* planned: all of the run */
    int64_t available_bytes, budget;
    int64_t batch_bytes; /* of the machine's memory, for the batches that are there at a time */
    int32_t recomputed;  /* layers */
    bool fits;
    double seconds_per_update, updates_per_epoch; /* NAN: made-up sentences have no epoch */
    bool estimated;       /* the time of an update follows from that of smaller ones */
    double updates;       /* of the run: by --max-update, or --max-epoch where that ends it first */
    double target_tokens; /* per update */
    int32_t planned;      /* updates of a dash */
    int32_t layers[2];
    double *grad_norm[2];  /* [layers] Gp of doc/analyses.md at the start */
    double carried[2];     /* smallest over largest of them; NAN: no such stack */
    double encoder_cosine; /* at the start; NAN: no encoder */
    double uniform_loss;   /* ln V */
    double peak_lr;
    int64_t warmup;
    fth_ramp ramp;      /* of the method */
    const char *advice; /* of the method, as train gives it; NULL: none */
    fth_dash scheduled, peak;
    fth_rank_plan plan[FTH_RANK_PLANS];
    int n_plans, best_plan; /* the fastest of those that fit, -1: none does */
    fth_verdict verdict;
    char reason[400]; /* set before the verdict: batches that do not fit */
} fth_preflight;

/* Errors are about the input; a run that would fail is a verdict. spec->data NULL: on made-up
 * sentences. */
fth_err fth_preflight_run(const fth_run_spec *spec, const fth_preflight_how *how,
                          fth_device *device, fth_preflight *out);
void fth_preflight_fini(fth_preflight *p);

/* Sets verdict and reason from the numbers. */
void fth_preflight_judge(fth_preflight *p);

/* NULL: no memory. */
json_t *fth_preflight_json(const fth_preflight *p);

#endif
