/* signals.h: SIGINT, SIGTERM and SIGHUP (a terminal that was closed) as a question that a loop
 * asks, so that it ends in good order: a run after a checkpoint, a sweep after its children, a page
 * after its answers. */
#ifndef FTH_BASE_SIGNALS_H
#define FTH_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* What they did before. */
typedef struct fth_signals {
    struct sigaction interrupt, terminate, hang_up;
    bool has_hang_up;
} fth_signals;

/* A run: catches all three; a second one of the same kind ends the process at once. SIGHUP stays
 * ignored where it was (nohup). */
void fth_signals_catch(fth_signals *before);
/* What can be asked to stop as often as one likes: SIGINT and SIGTERM alone. Calls of the system
 * that wait are interrupted. */
void fth_signals_catch_all(fth_signals *before);
void fth_signals_release(const fth_signals *before);

/* The signal that came, 0: none. */
int fth_signals_pending(void);
const volatile sig_atomic_t *fth_signals_flag(void);

/* The same; from now on none has come. */
int fth_signals_take(void);

#endif
