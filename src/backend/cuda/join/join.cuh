/* join.cuh: what join, norm, join_norm and their backwards share. */
#ifndef FTH_BACKEND_CUDA_JOIN_JOIN_CUH
#define FTH_BACKEND_CUDA_JOIN_JOIN_CUH

#include "backend/cuda/random.cuh"

/* A coefficient of a join as kernels read it. */
struct join_coef {
    int kind, slot;
    float value;
    const float *param; /* SCALAR [1], VECTOR [width] */
};

static inline join_coef coef_of(const fth_coef *c, const fth_tensor *param) {
    return {(int)c->kind, c->slot, (float)c->value, param ? (const float *)param->data : nullptr};
}

/* Its part that is not learned. */
static __device__ __forceinline__ float coef_number(const fth_cuda_step *step, join_coef c) {
    return c.kind == FTH_COEF_STEP ? c.value * step->slots[c.slot] : c.value;
}

/* What all columns are multiplied with; a learned vector comes on top. */
static __device__ __forceinline__ float coef_scalar(const fth_cuda_step *step, join_coef c) {
    const float number = coef_number(step, c);
    return c.kind == FTH_COEF_SCALAR ? number * *c.param : number;
}

/* v *= the coefficient at the eight columns from `column` on; scalar: its coef_scalar. */
static __device__ __forceinline__ void scale8(join_coef c, float scalar, int column, bool wide,
                                              int n, float v[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= scalar;
    if (c.kind != FTH_COEF_VECTOR) return;
    float k[8];
    load8(c.param + column, wide, n, k);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= k[i];
}

/* An element of a norm; the same bits wherever it is made from the same numbers. */
static __device__ __forceinline__ float normed(float z, float mean, float rstd, float gain,
                                               float bias) {
    return fmaf(gain, (z - mean) * rstd, bias);
}

/* ---- operands ---- */

template <class T> struct join_args {
    const T *x, *f, *e; /* f and e may be absent */
    int64_t ld_x, ld_f, ld_e;
    T *z, *y; /* norm has no z, join no y */
    int64_t ld_z, ld_y;
    float *stats; /* opt */
    int64_t ld_stats;
    const float *given; /* as stats, opt: taken instead */
    int64_t ld_given;
    const float *gain, *bias;
    join_coef r, a, c;
    drop_place drop;
    uint8_t *kept; /* [rows, chunks] what it keeps of every piece, opt */
    float eps;
    int width, chunks;
    bool wide;
    row_count rows;
    const fth_cuda_step *step;
};

template <class T> static inline const T *data_of(const fth_tensor *t) {
    return t ? (const T *)t->data : nullptr;
}

/* The operands of join, norm and join_norm. */
template <class T> static inline join_args<T> join_arguments(const fth_cuda_call *c) {
    const fth_tensor *x = in_of(c, JOIN_X), *f = in_of(c, JOIN_F), *e = in_of(c, JOIN_E);
    const fth_tensor *z = out_of(c, JOIN_Z), *y = out_of(c, JOIN_Y);
    const fth_tensor *stats = out_of(c, JOIN_STATS), *kept = out_of(c, JOIN_KEPT);
    const fth_tensor *given = in_of(c, JOIN_GIVEN);
    const fth_tensor *vectors[] = {in_of(c, JOIN_R), in_of(c, JOIN_A), in_of(c, JOIN_C),
                                   in_of(c, JOIN_GAIN), in_of(c, JOIN_BIAS)};
    join_args<T> a = {};
    a.x = data_of<T>(x), a.f = data_of<T>(f), a.e = data_of<T>(e);
    a.ld_x = x->ld, a.ld_f = f ? f->ld : 0, a.ld_e = e ? e->ld : 0;
    a.z = (T *)data_of<T>(z), a.y = (T *)data_of<T>(y);
    a.ld_z = z ? z->ld : 0, a.ld_y = y ? y->ld : 0;
    a.stats = stats ? (float *)stats->data : nullptr, a.ld_stats = stats ? stats->ld : 0;
    a.given = data_of<float>(given), a.ld_given = given ? given->ld : 0;
    a.r = coef_of(&c->op->u.join.r, vectors[0]);
    a.a = coef_of(&c->op->u.join.a, vectors[1]);
    a.c = coef_of(&c->op->u.join.c, vectors[2]);
    a.gain = data_of<float>(vectors[3]), a.bias = data_of<float>(vectors[4]);
    if (f) a.drop = drop_at(&c->op->u.join.drop, f);
    a.kept = kept ? (uint8_t *)kept->data : nullptr;
    a.eps = (float)c->op->u.join.eps;
    a.width = x->width, a.chunks = ceil_div(x->width, 8);
    a.wide = is_wide(x) && is_wide(f) && is_wide(e) && is_wide(z) && is_wide(y);
    for (const fth_tensor *v : vectors) a.wide = a.wide && (!v || v->width == 1 || is_wide(v));
    a.rows = rows_of(x);
    a.step = c->step;
    return a;
}

#endif
