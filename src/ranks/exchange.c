/* exchange.c: chooses NCCL where all ranks have it, else the way through the host. */
#include "ranks/exchange.h"

#include <string.h>

#include "backend/stream.h"

/* NCCL where all ranks have it and a device with a stream; else through the host. */
fth_err fth_exchange_new(fth_ranks *ranks, fth_device *dev, int64_t n, fth_exchange **out) {
    char why[FTH_EXCHANGE_NOTE] = "";
    if (fth_gpu_stream(dev)) {
        FTH_TRY(fth_exchange_nccl(ranks, dev, n, why, out));
        if (*out) return FTH_OK;
    }
    FTH_TRY(fth_exchange_mpi(ranks, dev, n, out));
    memcpy((*out)->note, why, sizeof why);
    return FTH_OK;
}

void fth_exchange_free(fth_exchange *x) {
    if (x) x->free(x);
}
