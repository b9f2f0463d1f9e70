/* The header of a safetensors file, and its numbers. */
#include "fuzz.h"
#include "store/safetensors.h"

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_st_file *f = NULL;
    if (fth_st_open(fuzz_file(data, size), &f) != FTH_OK) return 0;
    for (size_t i = 0; i < f->n; i++) {
        const size_t n = fth_st_count(&f->tensors[i]);
        if (n > MOST) continue;
        if (fth_st_find(f, f->tensors[i].name) != &f->tensors[i]) abort();
        void *numbers = malloc(4 * n + 1);
        if (fth_st_to_f32(f, &f->tensors[i], numbers) != FTH_OK)
            fth_st_to_i32(f, &f->tensors[i], numbers);
        free(numbers);
    }
    fth_st_close(f);
    return 0;
}
