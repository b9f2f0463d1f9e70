/* run_view.h: what a run folder tells about its run (doc/formats.md#the-run-folder), in bounded
 * memory.
 *
 * A run may still be written to, may be cut off, broken or missing: nothing of that is an error
 * here. What could not be read is counted, and `problem` says in words why nothing is known of a
 * run. */
#ifndef FTH_INSPECT_RUN_VIEW_H
#define FTH_INSPECT_RUN_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "inspect/curve.h"
#include "inspect/heat.h"
#include "inspect/tail.h"

typedef enum fth_run_view_state {
    FTH_VIEW_MISSING, /* no log can be read: see problem */
    FTH_VIEW_OPEN,    /* running, or stopped on its way */
    FTH_VIEW_ENDED,   /* came to its end */
    FTH_VIEW_FAILED   /* doc/analyses.md#when-a-run-has-failed */
} fth_run_view_state;

enum { FTH_VIEW_CURVES = 64, FTH_VIEW_HEATS = 64, FTH_VIEW_WARNINGS = 100 };

typedef struct fth_run_view {
    char *folder;
    const char *name; /* the last part of folder */
    fth_tail tail;
    fth_run_view_state state;
    char problem[400];
    int64_t update;   /* the newest that the log names */
    json_t *start;    /* the newest line of that type, or NULL */
    json_t *end;      /* `end` or `diverged`, when one is the newest of its kind; or NULL */
    json_t *settings; /* object: option -> text; empty when there is no configuration */
    fth_curve *curve; /* [n_curves] "train.loss", "valid.nll_loss", ... */
    fth_heat *heat;   /* [n_heats] */
    int32_t n_curves, n_heats;
    json_t *warnings; /* array of {update, text}, the newest FTH_VIEW_WARNINGS */
    int64_t n_warnings;
    int64_t broken, broken_line; /* lines that are no JSON or lack what their type needs */
    char broken_reason[200];     /* of the first of them */
    float *values;               /* [n_values] of the layers line at hand */
    size_t n_values;
} fth_run_view;

fth_err fth_run_view_init(fth_run_view *v, const char *folder);
void fth_run_view_fini(fth_run_view *v);

/* Reads what is new; *changed says whether there was anything. Fails only for want of memory. */
fth_err fth_run_view_poll(fth_run_view *v, bool *changed);

/* The curve of that name, or NULL. */
const fth_curve *fth_run_view_curve(const fth_run_view *v, const char *name);

/* An option of the run as text; "" when it is not known. */
const char *fth_run_view_setting(const fth_run_view *v, const char *key);

/* Best and newest valid nll; NAN: never validated. */
double fth_run_view_best(const fth_run_view *v, int64_t *update);
double fth_run_view_final(const fth_run_view *v);

/* The newest nll that is known of the run, whether valid or of training; NAN: none. */
double fth_run_view_last(const fth_run_view *v);

/* "missing", "unfinished", "ended", "failed". */
const char *fth_run_view_state_name(fth_run_view_state state);

/* A JSON string of text, bytes that are no UTF-8 replaced by a question mark; NULL: no memory. */
json_t *fth_run_view_text(const char *text, size_t length);

#endif
