/* signals.h: SIGINT and SIGTERM end a run after a checkpoint. */
#ifndef FTH_TRAIN_SIGNALS_H
#define FTH_TRAIN_SIGNALS_H

/* Catches both; a second one of the same kind ends the process at once. */
void fth_signals_catch(void);
void fth_signals_release(void);

/* The signal that came, 0: none. */
int fth_signals_pending(void);

#endif
