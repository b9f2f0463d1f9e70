/* signals.h: SIGINT and SIGTERM end a run after a checkpoint. */
#ifndef FTH_RUN_SIGNALS_H
#define FTH_RUN_SIGNALS_H

#include <signal.h>

/* What the two did before. */
typedef struct fth_signals {
    struct sigaction interrupt, terminate;
} fth_signals;

/* Catches both; a second one of the same kind ends the process at once. */
void fth_signals_catch(fth_signals *before);
void fth_signals_release(const fth_signals *before);

/* The signal that came, 0: none. */
int fth_signals_pending(void);

#endif
