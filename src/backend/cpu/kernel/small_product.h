/* small_product.h: products of the small matrices inside of attention, by one thread, operands as
 * they lie: C[m, n] (+)= A(i, l) B[l, :], A with any strides, n whole vectors. */
#ifndef FTH_BACKEND_CPU_KERNEL_SMALL_PRODUCT_H
#define FTH_BACKEND_CPU_KERNEL_SMALL_PRODUCT_H

#include <stdbool.h>

#include "backend/cpu/kernel/vec.h"

/* A matrix of floats with a stride for each index. */
typedef struct strided {
    const float *data;
    int64_t row, column;
} strided;

#if defined(__AVX512F__)
enum { SMALL_ROWS = 8 };
#else
enum { SMALL_ROWS = 4 };
#endif

inline_ void small_tile(const int rows_, const int vectors, int64_t k, strided a, const float *b,
                        int64_t ldb, float *c, int64_t ldc, bool add) {
    vf acc[SMALL_ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) acc[i][j] = add ? v_load(c + i * ldc + j * VW) : v_zero();
    for (int64_t l = 0; l < k; l++) {
        vf x[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) x[j] = v_load(b + l * ldb + j * VW);
#pragma GCC unroll 8
        for (int i = 0; i < rows_; i++) {
            const vf y = v_set(a.data[i * a.row + l * a.column]);
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++) acc[i][j] = v_fma(y, x[j], acc[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows_; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) v_store(c + i * ldc + j * VW, acc[i][j]);
}

inline_ void small_rows(const int rows_, int64_t n, int64_t k, strided a, const float *b,
                        int64_t ldb, float *c, int64_t ldc, bool add) {
    int64_t j = 0;
    for (; j + 2 * VW <= n; j += 2 * VW) small_tile(rows_, 2, k, a, b + j, ldb, c + j, ldc, add);
    if (j < n) small_tile(rows_, 1, k, a, b + j, ldb, c + j, ldc, add);
}

static inline void small_product(int64_t m, int64_t n, int64_t k, strided a, const float *b,
                                 int64_t ldb, float *c, int64_t ldc, bool add) {
    int64_t i = 0;
    for (; i + SMALL_ROWS <= m;
         i += SMALL_ROWS, a.data += SMALL_ROWS * a.row, c += SMALL_ROWS * ldc)
        small_rows(SMALL_ROWS, n, k, a, b, ldb, c, ldc, add);
    for (; i < m; i++, a.data += a.row, c += ldc) small_rows(1, n, k, a, b, ldb, c, ldc, add);
}

#endif
