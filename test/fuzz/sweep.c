/* The file that describes a sweep, and its grid. */
#include "fuzz.h"
#include "sweep/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const set[] = {"lr=0.1,0.2"};
    fth_sweep_spec s = {0};
    fth_sweep_grid grid = {0};
    if (fth_sweep_spec_read(&s, fuzz_file(data, size), set, 1) == FTH_OK &&
        fth_sweep_grid_make(&s, "postln", 200, &grid) == FTH_OK &&
        (double)grid.n != fth_sweep_size(&s, "postln"))
        abort();
    fth_sweep_grid_fini(&grid);
    fth_sweep_spec_fini(&s);
    return 0;
}
