/* version.c: fathom version [--verbose]. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/cores.h"
#include "cli/help.h"

static const char *yes_or_no(bool yes) {
    return yes ? "yes" : "no";
}

/* The sets of instructions that this machine has kernels for. */
static void print_units(void) {
    static const char *const names[] = {"plain", "avx2", "avx512", "avx512-bf16", "amx"};
    fth_cpu_choice choice;
    printf("CPU kernels:");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fth_cpu_choose(names[i], FTH_PRECISION_BF16, &choice) == FTH_OK)
            printf(" %s", names[i]);
    printf("; %d cores\n", fth_cores_usable().cores);
}

static void print_build(void) {
#ifdef FATHOM_HAS_MPI
    const bool mpi = true;
#else
    const bool mpi = false;
#endif
    printf("build: %s, %s %s\n", FATHOM_BUILD,
#ifdef __clang__
           "clang", __clang_version__
#else
           "gcc", __VERSION__
#endif
    );
    const fth_backend *cuda = fth_backend_cuda();
    printf("CUDA: %s\nMPI: %s\n", yes_or_no(cuda != NULL), yes_or_no(mpi));
    printf("libraries: %s\n", FATHOM_LIBRARIES);
}

fth_err fth_version(int argc, char **argv) {
    if (argc > 1 || (argc == 1 && strcmp(argv[0], "--verbose") != 0))
        return fth_fail(FTH_USAGE, "version %.40s: takes --verbose alone", argv[argc > 1 ? 1 : 0]);
    puts("fathom " FATHOM_VERSION);
    if (argc == 0) return FTH_OK;
    print_build();
    print_units();
    return FTH_OK;
}
