/* A split of a data set: opened, checked, every sentence copied. */
#include "data/dataset.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int32_t ids[1 << 16];
    fth_dataset *d = NULL;
    if (fth_dataset_open(fuzz_file(data, size), &d) != FTH_OK) return 0;
    fth_dataset_check(d);
    for (int side = 0; side < d->n_sides; side++)
        for (int64_t i = 0; i < d->sentences && i < 1000; i++) {
            const int64_t n = fth_dataset_length(d, side, i);
            if (n < 0 || n > 1 << 16) continue;
            fth_dataset_copy(d, side, i, 0, n, ids);
        }
    fth_dataset_free(d);
    return 0;
}
