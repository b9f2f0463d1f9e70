/* ref.c: ref's table and the memory of the host. */
#include "backend/ref/ref.h"

#include <stdlib.h>

#include "base/machine_memory.h"

static fth_err ref_open(const fth_backend *self, fth_precision precision, int threads,
                        fth_device **out) {
    (void)threads;
    if (precision != FTH_PRECISION_FP32)
        return fth_fail(FTH_USAGE, "precision bf16 does not exist on device ref: it computes in "
                                   "double and takes fp32 only");
    fth_device *dev = calloc(1, sizeof *dev);
    if (!dev) return fth_fail(FTH_NO_MEMORY, "no memory for device ref");
    *dev = (fth_device){self, precision, 1, FTH_F64, FTH_F64, NULL};
    *out = dev;
    return FTH_OK;
}

static void ref_close(fth_device *dev) {
    free(dev);
}

fth_err fth_ref_alloc(fth_device *dev, int64_t bytes, void **out) {
    (void)dev;
    size_t size = bytes > 0 ? ((size_t)bytes + 63) / 64 * 64 : 64;
    void *data = aligned_alloc(64, size);
    if (!data) return fth_fail(FTH_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
    memset(data, 0, size);
    *out = data;
    return FTH_OK;
}

void fth_ref_release(fth_device *dev, void *data) {
    (void)dev;
    free(data);
}

fth_err fth_ref_copy(fth_device *dev, void *to, const void *from, int64_t bytes) {
    (void)dev;
    if (bytes > 0) memcpy(to, from, (size_t)bytes);
    return FTH_OK;
}

fth_err fth_ref_zero(fth_device *dev, void *data, int64_t bytes) {
    (void)dev;
    if (bytes > 0) memset(data, 0, (size_t)bytes);
    return FTH_OK;
}

fth_err fth_ref_memory(fth_device *dev, int64_t *free_bytes, int64_t *total_bytes) {
    (void)dev;
    return fth_machine_memory_under("", free_bytes, total_bytes);
}

static const fth_backend ref_backend = {
    .name = "ref",
    .on_host = true,
    .open = ref_open,
    .close = ref_close,
    .alloc = fth_ref_alloc,
    .release = fth_ref_release,
    .upload = fth_ref_copy,
    .download = fth_ref_copy,
    .zero = fth_ref_zero,
    .memory = fth_ref_memory,
    .keep_bits = true,
    .sum_squares = fth_ref_sum_squares,
    .square_sums = fth_ref_square_sums,
    .add_up = fth_ref_add_up,
    .adam = fth_ref_adam,
    .refresh_weights = fth_ref_refresh_weights,
    .range_sums = fth_ref_range_sums,
    .kernel =
        {
#define KIND(name, text) [FTH_KIND_##name] = fth_ref_##name,
#include "graph/kinds.def"
#undef KIND
        },
    .scratch =
        {
            [FTH_KIND_attention] = fth_ref_attention_scratch,
            [FTH_KIND_attention_bwd] = fth_ref_attention_bwd_scratch,
            [FTH_KIND_attention_cached] = fth_ref_attention_cached_scratch,
            [FTH_KIND_join_bwd] = fth_ref_join_bwd_scratch,
            [FTH_KIND_norm_bwd] = fth_ref_norm_bwd_scratch,
            [FTH_KIND_join_norm_bwd] = fth_ref_norm_bwd_scratch,
            [FTH_KIND_xent] = fth_ref_xent_scratch,
        },
};

const fth_backend *fth_backend_ref(void) {
    return &ref_backend;
}
