/* stream.h: where a GPU queues its work, for libraries that queue theirs there
 * (ranks/exchange_nccl.c). */
#ifndef FTH_BACKEND_STREAM_H
#define FTH_BACKEND_STREAM_H

#include "backend/backend.h"

/* NULL for a device that is no GPU, and in builds without CUDA. */
void *fth_gpu_stream(const fth_device *dev);

#endif
