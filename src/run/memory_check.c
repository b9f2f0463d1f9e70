/* memory_check.c: the least that a model takes, and the packed batches that are there at a time,
 * against what the device and the machine have free. */
#include "run/memory_check.h"

#include <stdio.h>

#include "base/machine_memory.h"
#include "graph/batch_store.h"
#include "model/least_size.h"

int64_t fth_batches_held(const fth_run_spec *spec) {
    return spec->pipeline > 1 ? spec->update_freq : 1;
}

int64_t fth_batch_memory(const fth_run_spec *spec) {
    const int64_t n = fth_batches_held(spec) + FTH_BATCHES_AHEAD;
    const int32_t rows = (int32_t)spec->max_tokens;
    const int32_t src_rows = spec->config.arch != FTH_DEC ? rows : 0;
    return n * ((int64_t)sizeof(fth_batch_store) + fth_batch_store_bytes(src_rows, rows, rows));
}

fth_err fth_batch_memory_check(const fth_run_spec *spec) {
    const int64_t needed = fth_batch_memory(spec);
    int64_t available, total;
    FTH_TRY(fth_machine_memory_under("", &available, &total));
    if (needed <= available) return FTH_OK;
    return fth_fail(FTH_NO_MEMORY,
                    "--max-tokens %lld: its batches take %.1f MiB of the machine's memory, and "
                    "%.1f MiB are free; a smaller --max-tokens needs less",
                    (long long)spec->max_tokens, (double)needed / 1048576.0,
                    (double)available / 1048576.0);
}

fth_err fth_run_size_check(const fth_run_spec *spec, fth_device *device, const fth_config *config) {
    const int64_t each = 3 * (int64_t)fth_dtype_size(device->full); /* a parameter, two moments */
    const double described = (double)fth_least_description(config);
    char where[64];
    int64_t available, total;
    double kept = 0;
    FTH_TRY(fth_config_validate(config));
    FTH_TRY(device->backend->memory(device, &available, &total));
    if (spec->memory_budget == 0)
        kept = (double)fth_least_kept(config) * (double)spec->max_tokens *
               (double)fth_dtype_size(device->real);
    snprintf(where, sizeof where, "on %s", device->backend->name);
    if (device->backend->on_host)
        return fth_least_size_check(config, each, kept + described, available, where);
    FTH_TRY(fth_least_size_check(config, each, kept, available, where));
    FTH_TRY(fth_machine_memory_under("", &available, &total));
    return fth_least_size_check(config, (int64_t)sizeof(float), described, available,
                                "in this machine");
}
