/* kernel.h: what every kernel file begins with. The files of this folder are compiled once per
 * instruction set (FTH_ISA) and type of activations (FTH_REAL: f32 or bf16); public names carry
 * both, so that all of them live in one program: fth_cpu_avx512_f32_linear. */
#ifndef FTH_BACKEND_CPU_KERNEL_KERNEL_H
#define FTH_BACKEND_CPU_KERNEL_KERNEL_H

#include <math.h>
#include <string.h>

#include "base/bf16.h"
#include "backend/cpu/cpu.h"

#define FTH_NAME3(isa, real, name) fth_cpu_##isa##_##real##_##name
#define FTH_NAME2(isa, real, name) FTH_NAME3(isa, real, name)
#define FTH_NAME(name)             FTH_NAME2(FTH_ISA, FTH_REAL, name)

/* The part of a kind that one thread does, and the scratch of a kind. */
#define FTH_PART(name) void FTH_NAME(name)(fth_exec * ex, const fth_op *op, const fth_team *team)
#define FTH_SCRATCH(name)                                                                          \
    int64_t FTH_NAME(name##_scratch)(const fth_device *dev, const fth_graph *g, const fth_op *op,  \
                                     const int64_t capacity[FTH_N_EXTENTS])

/* The unit of this device that multiplies pairs of bf16; NULL: there is none. */
static inline const fth_cpu_pairs_path *pairs_of(const fth_exec *ex) {
    return ((const fth_cpu *)ex->device)->pairs;
}

/* The unit for a gradient dW of m x n, a sum over k rows, both factors packed for it. Floats go to
 * tiles, in parts, where there is enough to do for what has been packed. */
static inline const fth_cpu_pairs_path *unit_for_sums(const fth_exec *ex, int64_t m, int64_t n,
                                                      int64_t k) {
    enum { LEAST = 128 };
    const bool enough = m >= LEAST && n >= LEAST && k >= LEAST;
    const fth_cpu *cpu = (const fth_cpu *)ex->device;
    return enough && cpu->parts ? cpu->parts : cpu->pairs;
}

/* The same for a product of m x k and k x n numbers, whose sums must not be too long. */
static inline const fth_cpu_pairs_path *unit_for(const fth_exec *ex, int64_t m, int64_t n,
                                                 int64_t k) {
    enum { DEEPEST = 2048 };
    return k <= DEEPEST ? unit_for_sums(ex, m, n, k) : pairs_of(ex);
}

#define KIND(name, text) FTH_PART(name);
#include "graph/kinds.def"
#undef KIND
FTH_SCRATCH(embed);
FTH_SCRATCH(embed_bwd);
FTH_SCRATCH(linear); /* linear_dx, linear_dw too */
FTH_SCRATCH(attention);
FTH_SCRATCH(attention_bwd);
FTH_SCRATCH(attention_cached);
FTH_SCRATCH(join);
FTH_SCRATCH(join_bwd);
FTH_SCRATCH(dropout);
FTH_SCRATCH(reduction); /* scale_shift_bwd, head_scale_bwd, mix_bwd */
FTH_SCRATCH(xent);
FTH_SCRATCH(mean);
FTH_SCRATCH(patches);
FTH_SCRATCH(patches_bwd);
FTH_SCRATCH(update);
FTH_SCRATCH(top);
FTH_SCRATCH(gauge_positions);
void FTH_NAME(adam)(const fth_arenas *a, const fth_adam *args, const fth_team *team);
void FTH_NAME(sum_squares)(const float *x, int64_t n, double *sums, const fth_team *team);
void FTH_NAME(square_sums)(const float *x, int64_t n, int64_t piece, double *sums,
                           const fth_team *team);
void FTH_NAME(add_up)(float *to, const fth_addends *from, int64_t n, const fth_team *team);
void FTH_NAME(refresh)(const fth_arenas *a, const fth_team *team);
void FTH_NAME(range_sums)(const fth_arenas *a, const fth_adam *args, double *out,
                          const fth_team *team);

#define restrict_ __restrict__

/* ---- activations in memory ---- */

#ifdef FTH_REAL_IS_bf16
typedef uint16_t real;
#define REAL_DTYPE FTH_BF16
static inline float from_real(real x) {
    return fth_float_of_bf16(x);
}
static inline real to_real(float x) {
    return fth_bf16_of_float(x);
}
#else
typedef float real;
#define REAL_DTYPE FTH_F32
static inline float from_real(real x) {
    return x;
}
static inline real to_real(float x) {
    return x;
}
#endif

/* ---- operands ---- */

/* A tensor as rows of one type. data is NULL when the operand is absent, or when nobody reads it
 * and it got no place. */
typedef struct rows {
    real *data;
    int64_t ld;
} rows;
typedef struct full_rows {
    float *data;
    int64_t ld;
} full_rows;

static inline rows rows_of(const fth_exec *ex, fth_val v) {
    const fth_tensor *t = fth_arg(ex, v);
    return t ? (rows){t->data, t->ld} : (rows){0};
}

static inline full_rows full_of(const fth_exec *ex, fth_val v) {
    const fth_tensor *t = fth_arg(ex, v);
    return t ? (full_rows){t->data, t->ld} : (full_rows){0};
}

/* A vector of parameters or of their gradients; NULL when absent. */
static inline float *vector_of(const fth_exec *ex, fth_val v) {
    return full_of(ex, v).data;
}

/* An element of a tensor of any type, for the rare places where the type is not known. */
static inline float element(const fth_tensor *t, int64_t row, int64_t column) {
    const int64_t i = row * t->ld + column;
    return t->dtype == FTH_BF16 ? fth_float_of_bf16(((const uint16_t *)t->data)[i])
                                : ((const float *)t->data)[i];
}

static inline void set_element(const fth_tensor *t, int64_t row, int64_t column, float x) {
    const int64_t i = row * t->ld + column;
    if (t->dtype == FTH_BF16)
        ((uint16_t *)t->data)[i] = fth_bf16_of_float(x);
    else
        ((float *)t->data)[i] = x;
}

/* A learned scalar; absent: neutral. */
static inline float scalar_of(const fth_exec *ex, fth_val v, float neutral) {
    const fth_tensor *t = fth_arg(ex, v);
    return t ? element(t, 0, 0) : neutral;
}

/* ---- scratch ---- */

/* Sizes are in floats, rounded up to whole cache lines so that no two threads write one line. */
static inline int64_t whole_lines(int64_t floats) {
    return (floats + 15) / 16 * 16;
}

/* Thread number t's piece of scratch when every thread has `floats` of them. */
static inline float *thread_scratch(const fth_exec *ex, int thread, int64_t floats) {
    return (float *)ex->scratch + thread * whole_lines(floats);
}

static inline int64_t threads_scratch_bytes(const fth_device *dev, int64_t floats) {
    return dev->threads * whole_lines(floats) * (int64_t)sizeof(float);
}

/* ---- dropout (dropout_mask.c) ---- */

/* What dropout multiplies elements e, ..., e + n - 1 of a place with: 0 or the factor of the
 * survivors. */
void FTH_NAME(drop_factors)(const fth_exec *ex, const fth_drop *drop, uint64_t e, int64_t n,
                            float *restrict_ factor);

/* Factors [n, d] as rows [first, first + n) of bits, eight to a byte, the first lowest, and
 * back. */
void FTH_NAME(drop_to_bits)(const float *factor, int64_t width, const fth_tensor *bits,
                            int64_t first, int64_t n);
void FTH_NAME(drop_from_bits)(const fth_drop *drop, const fth_tensor *bits, int64_t first,
                              int64_t n, int64_t width, float *factor);

/* The first element of a row of a value, by dropout.h's count. */
static inline uint64_t drop_element(const fth_exec *ex, const fth_tensor *t, int64_t row) {
    const int64_t base = fth_row_base(&ex->step, t->extent);
    return (uint64_t)(base + row) * (uint64_t)t->width;
}

/* Rows whose dropout is drawn at once, so that thin rows still fill the vectors: fours of them. */
static inline int64_t drop_rows_at_once(int32_t width) {
    const int64_t enough = (511 + width) / width;
    return (enough + 3) / 4 * 4;
}

#endif
