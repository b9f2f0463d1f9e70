/* self_start.h: a training that starts itself under mpirun, for those who have one machine and no
 * launcher. */
#ifndef FTH_CLI_SELF_START_H
#define FTH_CLI_SELF_START_H

#include <stdint.h>

#include "base/error.h"

/* Becomes mpirun, which starts so many processes of `fathom VERB argv`; threads: of each, 0: they
 * say so themselves. Returns only when that fails. */
fth_err fth_self_start(const char *verb, int64_t ranks, int64_t threads, int argc, char **argv);

#endif
