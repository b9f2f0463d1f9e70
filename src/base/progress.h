/* progress.h: how far long work has come.
 *
 * On a terminal a bar with percentage, rate and time left, drawn at most ten times a second:
 *
 *     train [===========>              ]  45%  4500/10000 updates  3.21 updates/s  28:33 left
 *
 * In a file or pipe a plain line every few seconds, less often the longer the work takes:
 *
 *     train: 4500/10000 updates (45%), 3.21 updates/s, 28:33 left, loss 3.4
 */
#ifndef FTH_BASE_PROGRESS_H
#define FTH_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/* Where the time comes from; tests bring their own. */
typedef struct fth_clock {
    double (*now)(void *context); /* seconds from any start */
    void *context;
} fth_clock;

/* The clock of the machine that never goes backwards. */
fth_clock fth_real_clock(void);

typedef struct fth_progress {
    fth_log *log;
    const char *title, *unit;
    int64_t first, total; /* where the work began; where it ends, 0 when unknown */
    int64_t done;
    fth_clock clock;
    double started, shown; /* when the work began, when it was last shown */
    int width;             /* columns of the terminal */
    char extra[80];        /* the newest extra text */
} fth_progress;

/* unit is a plural ("updates"); first is what was done before (a resumed run) and does not count
 * for the rate; total 0 means that the end is unknown. */
void fth_progress_init(fth_progress *p, fth_log *log, fth_clock clock, const char *title,
                       const char *unit, int64_t first, int64_t total);

/* done of total is done; extra (or NULL) is shown at the end of the line. Cheap: may be called for
 * every piece of work. */
void fth_progress_update(fth_progress *p, int64_t done, const char *extra);

/* Shows the last state and the time it took, and ends the line. */
void fth_progress_end(fth_progress *p);

#endif
