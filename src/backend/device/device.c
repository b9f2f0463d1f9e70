/* device.c: turns "auto", "cpu", "cuda" or "ref" and a precision into an open device. */
#include "backend/device/device.h"

#include <string.h>

#include "backend/stream.h"
#include "base/cores.h"

#ifndef FATHOM_HAS_CUDA
const fth_backend *fth_backend_cuda(void) {
    return NULL;
}

void *fth_gpu_stream(const fth_device *dev) {
    (void)dev;
    return NULL;
}
#endif

static fth_err open_with(const fth_backend *b, fth_precision precision, int threads,
                         fth_device **out) {
    return b->open(b, precision, threads > 0 ? threads : fth_cores_usable().cores, out);
}

fth_err fth_device_open(const char *name, const char *precision, int threads, fth_device **out) {
    *out = NULL;
    fth_precision p = strcmp(precision, "bf16") == 0 ? FTH_PRECISION_BF16 : FTH_PRECISION_FP32;
    if (p == FTH_PRECISION_FP32 && strcmp(precision, "fp32") != 0)
        return fth_fail(FTH_USAGE, "--precision %s: must be fp32 or bf16", precision);
    const fth_backend *cuda = fth_backend_cuda();
    if (strcmp(name, "auto") == 0) {
        if (cuda && open_with(cuda, p, threads, out) == FTH_OK) return FTH_OK;
        return open_with(fth_backend_cpu(), p, threads, out);
    }
    if (strcmp(name, "cpu") == 0) return open_with(fth_backend_cpu(), p, threads, out);
    if (strcmp(name, "ref") == 0) return open_with(fth_backend_ref(), p, threads, out);
    if (strcmp(name, "cuda") != 0)
        return fth_fail(FTH_USAGE, "--device %s: must be auto, cpu, cuda or ref", name);
    if (!cuda)
        return fth_fail(FTH_USAGE, "--device cuda: this fathom was built without CUDA; install the "
                                   "CUDA toolkit and build again, or use --device cpu");
    return open_with(cuda, p, threads, out);
}

fth_err fth_device_quantize(fth_device *dev, const char *how) {
    if (strcmp(how, "none") == 0) return FTH_OK;
    if (strcmp(how, "int8") != 0)
        return fth_fail(FTH_USAGE, "--quantize %s: must be none or int8", how);
    if (!dev->backend->quantize)
        return fth_fail(FTH_USAGE, "--quantize int8: device %s cannot, only cpu can",
                        dev->backend->name);
    return dev->backend->quantize(dev);
}

void fth_device_close(fth_device *dev) {
    if (dev) dev->backend->close(dev);
}
