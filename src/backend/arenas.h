/* arenas.h: the flat arenas of a set of parameters on a device (fth_arenas of backend.h). */
#ifndef FTH_BACKEND_ARENAS_H
#define FTH_BACKEND_ARENAS_H

#include "backend/backend.h"

/* Zeroed arenas of n parameters, with gradients of so many of them, and moments of so many (0:
 * none; a training has them). */
fth_err fth_arenas_new(fth_device *dev, int64_t n, int64_t grads, int64_t moments, fth_arenas *out);
void fth_arenas_free(fth_device *dev, fth_arenas *a);

/* Bytes that fth_arenas_new takes. */
int64_t fth_arenas_bytes(const fth_device *dev, int64_t n, int64_t grads, int64_t moments);

/* Parameters from floats [n]; the copy for products follows. */
fth_err fth_arenas_load(fth_device *dev, const fth_arenas *a, const float *flat);

/* One arena of class full (master, grad, m, v) to and from floats [n]. */
fth_err fth_arena_get(fth_device *dev, const void *arena, int64_t n, float *out);
fth_err fth_arena_put(fth_device *dev, void *arena, int64_t n, const float *from);

/* One arena of class full as floats: the arena itself where it can be read as such, else a copy. */
typedef struct fth_mirror {
    float *flat; /* [n] */
    bool copied;
} fth_mirror;

/* A mirror to write; fth_mirror_store brings it to the arena. */
fth_err fth_mirror_blank(fth_device *dev, void *arena, int64_t n, fth_mirror *out);
/* A mirror to read. */
fth_err fth_mirror_fetch(fth_device *dev, void *arena, int64_t n, fth_mirror *out);
fth_err fth_mirror_store(fth_device *dev, void *arena, int64_t n, const fth_mirror *m);
void fth_mirror_fini(fth_mirror *m);

#endif
