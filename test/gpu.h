/* gpu.h: whether there is a GPU to test. Where there is none, a line says why; with FATHOM_NEED_GPU
 * in the environment, as make test-cuda has it, the program then fails. */
#ifndef FTH_TEST_GPU_H
#define FTH_TEST_GPU_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/device/device.h"

static inline bool gpu_is_there(void) {
    fth_device *gpu = NULL;
    const fth_err err = fth_device_open("cuda", "fp32", 1, &gpu);
    if (err == FTH_OK) {
        fth_device_close(gpu);
        return true;
    }
    fprintf(stderr, "%s\n", fth_error_message());
    if (err != FTH_USAGE || getenv("FATHOM_NEED_GPU")) exit(1); /* USAGE: no device of that name */
    return false;
}

#endif
