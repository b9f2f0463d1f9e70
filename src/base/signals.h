/* signals.h: SIGINT and SIGTERM as a question that a loop asks, so that it ends in good order: a run
 * after a checkpoint, a sweep after its children, a page after its answers. */
#ifndef FTH_BASE_SIGNALS_H
#define FTH_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* What the two did before. */
typedef struct fth_signals {
    struct sigaction interrupt, terminate;
} fth_signals;

/* Catches both. once: a second one of the same kind ends the process at once. Calls of the system
 * that wait are interrupted. */
void fth_signals_catch(fth_signals *before, bool once);
void fth_signals_release(const fth_signals *before);

/* The signal that came, 0: none. */
int fth_signals_pending(void);

/* The same; it has not come any more. */
int fth_signals_take(void);

#endif
