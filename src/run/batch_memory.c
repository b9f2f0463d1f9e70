/* batch_memory.c: bytes of the packed batches of an update, against what the machine has free. */
#include "run/batch_memory.h"

#include "base/machine_memory.h"
#include "graph/batch_store.h"

int64_t fth_batch_memory(const fth_run_spec *spec, int64_t n) {
    const int32_t rows = (int32_t)spec->max_tokens;
    const int32_t src_rows = spec->config.arch != FTH_DEC ? rows : 0;
    return n * ((int64_t)sizeof(fth_batch_store) + fth_batch_store_bytes(src_rows, rows, rows));
}

fth_err fth_batch_memory_check(const fth_run_spec *spec, int64_t n) {
    const int64_t needed = fth_batch_memory(spec, n);
    int64_t available, total;
    FTH_TRY(fth_machine_memory_under("", &available, &total));
    if (needed <= available) return FTH_OK;
    return fth_fail(FTH_NO_MEMORY,
                    "--update-freq %lld: its batches of --max-tokens %lld take %.1f MiB of the "
                    "machine's memory, and %.1f MiB are free; a smaller --update-freq needs less",
                    (long long)spec->update_freq, (long long)spec->max_tokens,
                    (double)needed / 1048576.0, (double)available / 1048576.0);
}
