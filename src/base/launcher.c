/* launcher.c: looks for the variables of Open MPI, of MPICH and its kin, and of whatever speaks
 * PMIx. */
#include "base/launcher.h"

#include <stddef.h>
#include <stdlib.h>

/* Open MPI, MPICH and its kin, and whatever speaks PMIx. */
static const struct launcher {
    const char *rank, *count;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};

bool fth_launched(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *count = getenv(launchers[i].count);
        if (getenv(launchers[i].rank)) return !count || atoi(count) > 1;
    }
    return false;
}

int fth_launched_here(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return atoi(getenv(names[i]));
    return 0;
}
