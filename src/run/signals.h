/* signals.h: SIGINT, SIGTERM and SIGHUP (a terminal that was closed) end a run with a checkpoint. */
#ifndef FTH_RUN_SIGNALS_H
#define FTH_RUN_SIGNALS_H

#include <signal.h>

/* What they did before. */
typedef struct fth_signals {
    struct sigaction interrupt, terminate, hang_up;
} fth_signals;

/* Catches them; a second one of the same kind ends the process at once. SIGHUP stays ignored where it was (nohup). */
void fth_signals_catch(fth_signals *before);
void fth_signals_release(const fth_signals *before);

/* The signal that came, 0: none. */
int fth_signals_pending(void);
const volatile sig_atomic_t *fth_signals_flag(void);

#endif
