/* device.h: opens a device by the name that users give. */
#ifndef FTH_BACKEND_DEVICE_DEVICE_H
#define FTH_BACKEND_DEVICE_DEVICE_H

#include "backend/backend.h"

/* name: "auto" (a GPU when there is one, else the CPU), "cpu", "cuda" or "ref". precision: "fp32"
 * or "bf16". threads 0: one for every core that this process may use (base/cores.h). */
fth_err fth_device_open(const char *name, const char *precision, int threads, fth_device **out);
/* how: "none", or "int8": programs made from now on hold the weights of their linear maps in 8
 * bits. For devices that only run models. */
fth_err fth_device_quantize(fth_device *dev, const char *how);
void fth_device_close(fth_device *dev);

#endif
