/* ref.h: the oracle. Every kind of operation in the plainest C there is: one thread, double
 * accumulation, storage double on its own device. Elements are reached through functions that know
 * the dtype, so another host backend can put these kernels into its table until it has its own. */
#ifndef FTH_BACKEND_REF_REF_H
#define FTH_BACKEND_REF_REF_H

#include <string.h>

#include "backend/backend.h"
#include "base/bf16.h"
#include "graph/dropout.h"

#define KIND(name, text) fth_err fth_ref_##name(fth_exec *ex, const fth_op *op);
#include "graph/kinds.def"
#undef KIND

/* What the kernels that need scratch need (fth_scratch). */
typedef int64_t fth_ref_scratch_fn(const fth_device *dev, const fth_graph *g, const fth_op *op,
                                   const int64_t capacity[FTH_N_EXTENTS]);
fth_ref_scratch_fn fth_ref_attention_scratch, fth_ref_attention_bwd_scratch,
    fth_ref_attention_cached_scratch, fth_ref_join_bwd_scratch, fth_ref_norm_bwd_scratch,
    fth_ref_xent_scratch;

/* Memory of the host, and the work on flat arenas: see backend.h. */
fth_err fth_ref_alloc(fth_device *dev, int64_t bytes, void **out);
void fth_ref_release(fth_device *dev, void *data);
fth_err fth_ref_copy(fth_device *dev, void *to, const void *from, int64_t bytes);
fth_err fth_ref_zero(fth_device *dev, void *data, int64_t bytes);
fth_err fth_ref_memory(fth_device *dev, int64_t *free_bytes, int64_t *total_bytes);
fth_err fth_ref_sum_squares(fth_device *dev, const void *full, int64_t n, double *out);
fth_err fth_ref_square_sums(fth_device *dev, const void *full, int64_t n, int64_t piece,
                            double *out);
fth_err fth_ref_add_up(fth_device *dev, void *to, const fth_addends *from, int64_t n);
fth_err fth_ref_adam(fth_device *dev, const fth_arenas *a, const fth_adam *args);
fth_err fth_ref_refresh_weights(fth_device *dev, const fth_arenas *a);
fth_err fth_ref_range_sums(fth_device *dev, const fth_arenas *a, const fth_adam *args, double *out);

static inline double fth_ref_load(fth_dtype type, const void *data, int64_t i) {
    if (type == FTH_F64) return ((const double *)data)[i];
    if (type == FTH_F32) return ((const float *)data)[i];
    if (type == FTH_U8) return ((const uint8_t *)data)[i];
    return fth_float_of_bf16(((const uint16_t *)data)[i]);
}

static inline void fth_ref_store(fth_dtype type, void *data, int64_t i, double x) {
    if (type == FTH_F64)
        ((double *)data)[i] = x;
    else if (type == FTH_F32)
        ((float *)data)[i] = (float)x;
    else if (type == FTH_U8)
        ((uint8_t *)data)[i] = (uint8_t)(int)x;
    else
        ((uint16_t *)data)[i] = fth_bf16_of_float((float)x);
}

static inline double fth_ref_get(const fth_tensor *t, int64_t row, int64_t column) {
    return fth_ref_load(t->dtype, t->data, row * t->ld + column);
}

static inline void fth_ref_put(const fth_tensor *t, int64_t row, int64_t column, double x) {
    fth_ref_store(t->dtype, t->data, row * t->ld + column, x);
}

static inline void fth_ref_add_to(const fth_tensor *t, int64_t row, int64_t column, double x) {
    fth_ref_put(t, row, column, fth_ref_get(t, row, column) + x);
}

/* Rows of this update in earlier micro-batches, for a value that has a row per token. */
static inline uint64_t fth_ref_row_base(const fth_exec *ex, const fth_tensor *t) {
    return (uint64_t)fth_row_base(&ex->step, t->extent);
}

/* What dropout multiplies element e of a place with: 0, or the factor of the survivors. */
static inline double fth_ref_drop(const fth_exec *ex, const fth_drop *drop, uint64_t e) {
    if (!(drop->p > 0)) return 1;
    int keeps = fth_drop_keeps(ex->step.seed, ex->step.update, drop->site, drop->p, e);
    return keeps ? (double)fth_drop_scale(drop->p) : 0;
}

/* The same for an element of a value with a row per token. */
static inline double fth_ref_drop_at(const fth_exec *ex, const fth_drop *drop, const fth_tensor *t,
                                     int64_t row, int64_t column) {
    uint64_t base = fth_ref_row_base(ex, t);
    return fth_ref_drop(ex, drop, (base + (uint64_t)row) * (uint64_t)t->width + (uint64_t)column);
}

/* A learned scalar [1, 1]; without one its neutral value. */
static inline double fth_ref_scalar(const fth_tensor *t, double neutral) {
    return t ? fth_ref_get(t, 0, 0) : neutral;
}

/* Activations (activation.c). slope takes what the forward saved: GELU's input, the others'
 * output. */
double fth_ref_act(fth_act act, double x);
double fth_ref_act_slope(fth_act act, double saved);

/* A coefficient of a join at column c; param is its learned part, [1, 1] or [1, d] (join.c). */
double fth_ref_coefficient(const fth_exec *ex, const fth_coef *coef, const fth_tensor *param,
                           int32_t c);

/* One row of a join and of a layer normalisation, each way (join.c, norm.c); join_norm is one after
 * the other. dz [d] is the gradient of the sum z. */
void fth_ref_join_row(fth_exec *ex, const fth_op *op, int64_t row);
void fth_ref_join_row_bwd(fth_exec *ex, const fth_op *op, int64_t row, const double *dz);
void fth_ref_norm_row(fth_exec *ex, const fth_op *op, const fth_tensor *x, int64_t row);
void fth_ref_norm_row_bwd(fth_exec *ex, const fth_op *op, int64_t row, double *dz);

#endif
