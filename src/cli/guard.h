/* guard.h: a signal that ends the program leaves nothing half-written behind. */
#ifndef FTH_CLI_GUARD_H
#define FTH_CLI_GUARD_H

/* From here on SIGINT, SIGTERM and SIGHUP remove what base/unfinished.h holds, and then end the
 * process as they always do. Signals that are ignored stay ignored. */
void fth_guard(void);

#endif
