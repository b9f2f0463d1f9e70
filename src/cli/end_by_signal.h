/* end_by_signal.h: what ends the program from outside leaves nothing half-written behind: a signal,
 * or a library that aborts. */
#ifndef FTH_CLI_END_BY_SIGNAL_H
#define FTH_CLI_END_BY_SIGNAL_H

/* From here on SIGINT, SIGTERM and SIGHUP remove what base/unfinished.h holds, and then end the
 * process as they always do. Signals that are ignored stay ignored. After abort the process ends
 * with a message and status 1. */
void fth_end_by_signal(void);

#endif
