/* self_start.c: builds the command line of mpirun around the own one, and becomes it. */
#include "cli/self_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What Open MPI has to be told by the environment, unless the user has: ranks may share cores and
 * have several; a checkpoint takes longer than a second to save; that it is root the user knows.
 * MPICH needs none of it. */
static const char *const settings[][2] = {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                          {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                          {"OMPI_MCA_odls_base_sigkill_timeout", "120"},
                                          {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};

fth_err fth_self_start(const char *verb, int64_t ranks, int64_t threads, int argc, char **argv) {
    char program[4096], count[24], per_rank[24];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return fth_fail(FTH_IO, "/proc/self/exe: cannot read: %s", strerror(errno));
    program[length] = '\0';
    snprintf(count, sizeof count, "%lld", (long long)ranks);
    snprintf(per_rank, sizeof per_rank, "%lld", (long long)threads);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
    const char *mpirun = getenv("FATHOM_MPIRUN");
    if (!mpirun) mpirun = "mpirun";
    const char **args = calloc((size_t)argc + 8, sizeof *args);
    if (!args) return fth_fail(FTH_NO_MEMORY, "no memory for arguments");
    int n = 0;
    args[n++] = mpirun;
    args[n++] = "-np";
    args[n++] = count;
    args[n++] = program;
    args[n++] = verb;
    for (int i = 0; i < argc; i++) args[n++] = argv[i];
    if (threads > 0) args[n++] = "--threads", args[n++] = per_rank;
    execvp(mpirun, (char *const *)args);
    const int reason = errno;
    free(args);
    return fth_fail(FTH_USAGE,
                    "--ranks %lld: cannot start %s: %s; install Open MPI or MPICH (on Debian "
                    "openmpi-bin), see doc/clusters.md",
                    (long long)ranks, mpirun, strerror(reason));
}
