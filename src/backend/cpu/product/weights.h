/* weights.h: the matrix of a product in the type of activations. A training in bf16 keeps no copy
 * of the parameters in that type: a product that cannot round them when it packs them makes one in
 * scratch, 4n bytes read and 2n written to a cache, where the copy would cost 2n written by every
 * update and 2n read by every product. */
#ifndef FTH_BACKEND_CPU_PRODUCT_WEIGHTS_H
#define FTH_BACKEND_CPU_PRODUCT_WEIGHTS_H

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/kernel/vec.h"

/* Every thread makes a small matrix for itself, so that nobody has to wait. */
enum { OWN_WEIGHTS = 1 << 16 };

static inline int64_t weights_copy_bytes(int64_t n) {
    return (n * (int64_t)sizeof(real) + 63) / 64 * 64;
}

/* Bytes of scratch for the matrix v. */
static inline int64_t weights_bytes(const fth_device *dev, const fth_graph *g, fth_val v) {
    const fth_value *w = &g->value[v];
    const int64_t n = w->rows * w->width;
    if (REAL_DTYPE == FTH_F32 || w->storage != FTH_IN_PARAM) return 0;
    return (n <= OWN_WEIGHTS ? dev->threads : 1) * weights_copy_bytes(n);
}

/* The whole team calls this; place: weights_bytes. */
static inline rows weights_in(const fth_exec *ex, fth_val v, void *place, const fth_team *team) {
    const fth_tensor *t = fth_arg(ex, v);
    if (t->dtype == REAL_DTYPE) return rows_of(ex, v);
    const int64_t n = t->rows * t->width; /* parameters lie without gaps */
    const bool own = n <= OWN_WEIGHTS;
    const fth_cpu_share mine = own ? (fth_cpu_share){0, n} : fth_team_share(team, n, 1024);
    const float *from = t->data;
    real *to = (real *)(void *)((char *)place + (own ? team->thread * weights_copy_bytes(n) : 0));
    int64_t i = mine.begin;
    for (; i + VW <= mine.end; i += VW) v_store_real(to + i, v_load(from + i));
    for (; i < mine.end; i++) to[i] = to_real(from[i]);
    if (!own) fth_team_wait(team);
    return (rows){to, t->width};
}

/* The matrix of a product, as gemm takes it. */
typedef struct matrix {
    rows b;
    full_rows full; /* in place of b: floats that a unit for pairs rounds when it packs them */
} matrix;

/* The whole team calls this; unit: what multiplies it, NULL: nothing that rounds; place:
 * weights_bytes, which such a unit does not need. */
static inline matrix matrix_in(const fth_exec *ex, fth_val v, const fth_cpu_pairs_path *unit,
                               void *place, const fth_team *team) {
    if (unit && fth_arg(ex, v)->dtype != REAL_DTYPE) return (matrix){.full = full_of(ex, v)};
    return (matrix){.b = weights_in(ex, v, place, team)};
}

#endif
