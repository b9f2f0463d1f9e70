/* launcher.h: what mpirun, srun and the like say to a process that they start, by its
 * environment. */
#ifndef FTH_BASE_LAUNCHER_H
#define FTH_BASE_LAUNCHER_H

#include <stdbool.h>

/* Whether this process was started as one of several. */
bool fth_launched(void);
/* Its number among those on this host, 0 when nobody says. */
int fth_launched_here(void);

#endif
