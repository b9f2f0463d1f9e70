/* rate.h: how fast the products of a linear map are, path by path (fathom bench gemm). */
#ifndef FTH_BACKEND_CPU_RATE_H
#define FTH_BACKEND_CPU_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct fth_product_shape {
    int64_t rows, k, n; /* y[rows, n] = x[rows, k] W[n, k]^T */
} fth_product_shape;

enum { FTH_FORWARD, FTH_TO_X, FTH_TO_W, FTH_N_PRODUCTS };

/* Operations per second of each product, the best of several tries. isa: as fth_cpu_choose takes
 * it; numbers: "fp32", "bf16" or "int8", which has the forward product alone (the others: 0). */
fth_err fth_product_rates(const char *isa, const char *numbers, int threads,
                          const fth_product_shape *s, double rates[FTH_N_PRODUCTS]);

/* Whether the forward product of floats is in fixed point where there are tiles (digits.h). */
bool fth_product_has_digits(const fth_product_shape *s);

/* Whether this machine has an instruction set. */
bool fth_product_path_present(const char *isa);

/* Whether bf16 is this machine's fastest precision: the best instruction set, or FATHOM_CPU_ISA's,
 * has a unit that multiplies pairs of it. */
bool fth_bf16_is_fastest(void);

#endif
