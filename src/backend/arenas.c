/* arenas.c: memory for parameters, their gradients and moments on a device, and the copies of
 * single ones to and from the host. */
#include "backend/arenas.h"

#include <stdlib.h>

static int64_t full_bytes(const fth_device *dev, int64_t n) {
    return n * (int64_t)fth_dtype_size(dev->full);
}

/* Bytes of the copy that products read; 0: there is none. */
static int64_t weights_bytes(const fth_device *dev, int64_t n, int64_t moments) {
    if (dev->real == dev->full || (moments > 0 && dev->backend->rounds_weights)) return 0;
    return n * (int64_t)fth_dtype_size(dev->real);
}

int64_t fth_arenas_bytes(const fth_device *dev, int64_t n, int64_t grads, int64_t moments) {
    return full_bytes(dev, n + grads + 2 * moments) + weights_bytes(dev, n, moments);
}

fth_err fth_arenas_new(fth_device *dev, int64_t n, int64_t grads, int64_t moments,
                       fth_arenas *out) {
    const fth_backend *backend = dev->backend;
    *out = (fth_arenas){.n = n, .grads = grads};
    fth_err err = backend->alloc(dev, full_bytes(dev, n), &out->master);
    out->weights = out->master;
    const int64_t copy = weights_bytes(dev, n, moments);
    if (err == FTH_OK && copy > 0) err = backend->alloc(dev, copy, &out->weights);
    if (err == FTH_OK && grads > 0) err = backend->alloc(dev, full_bytes(dev, grads), &out->grad);
    if (err == FTH_OK && moments > 0) err = backend->alloc(dev, full_bytes(dev, moments), &out->m);
    if (err == FTH_OK && moments > 0) err = backend->alloc(dev, full_bytes(dev, moments), &out->v);
    if (err != FTH_OK) fth_arenas_free(dev, out);
    return err;
}

void fth_arenas_free(fth_device *dev, fth_arenas *a) {
    void *all[] = {a->master, a->weights == a->master ? NULL : a->weights, a->grad, a->m, a->v};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) dev->backend->release(dev, all[i]);
    *a = (fth_arenas){0};
}

fth_err fth_arena_put(fth_device *dev, void *arena, int64_t n, const float *from) {
    if (dev->full == FTH_F32) return dev->backend->upload(dev, arena, from, n * 4);
    double *wide = malloc(sizeof *wide * (size_t)n);
    if (!wide) return fth_fail(FTH_NO_MEMORY, "no memory for %lld parameters", (long long)n);
    for (int64_t i = 0; i < n; i++) wide[i] = from[i];
    fth_err err = dev->backend->upload(dev, arena, wide, n * 8);
    free(wide);
    return err;
}

fth_err fth_arena_get(fth_device *dev, const void *arena, int64_t n, float *out) {
    if (dev->full == FTH_F32) return dev->backend->download(dev, out, arena, n * 4);
    double *wide = malloc(sizeof *wide * (size_t)n);
    if (!wide) return fth_fail(FTH_NO_MEMORY, "no memory for %lld parameters", (long long)n);
    fth_err err = dev->backend->download(dev, wide, arena, n * 8);
    for (int64_t i = 0; i < n && err == FTH_OK; i++) out[i] = (float)wide[i];
    free(wide);
    return err;
}

fth_err fth_arenas_load(fth_device *dev, const fth_arenas *a, const float *flat) {
    FTH_TRY(fth_arena_put(dev, a->master, a->n, flat));
    return dev->backend->refresh_weights(dev, a);
}

fth_err fth_mirror_blank(fth_device *dev, void *arena, int64_t n, fth_mirror *out) {
    const bool readable = dev->backend->on_host && dev->full == FTH_F32;
    *out = (fth_mirror){.flat = arena, .copied = !readable};
    if (readable) return FTH_OK;
    out->flat = malloc(sizeof *out->flat * (size_t)n);
    if (!out->flat) return fth_fail(FTH_NO_MEMORY, "no memory for %lld parameters", (long long)n);
    return FTH_OK;
}

fth_err fth_mirror_fetch(fth_device *dev, void *arena, int64_t n, fth_mirror *out) {
    FTH_TRY(fth_mirror_blank(dev, arena, n, out));
    return out->copied ? fth_arena_get(dev, arena, n, out->flat) : FTH_OK;
}

fth_err fth_mirror_store(fth_device *dev, void *arena, int64_t n, const fth_mirror *m) {
    return m->copied ? fth_arena_put(dev, arena, n, m->flat) : FTH_OK;
}

void fth_mirror_fini(fth_mirror *m) {
    if (m->copied) free(m->flat);
    *m = (fth_mirror){0};
}
