/* pairs_dots.h: the product of pairs.h on vectors of 16 floats. Included by pairs.c, once for the
 * instruction and once for what it means in plain C, with these names defined:
 * NAME(x) the function's name, ON its attribute, vf a vector of sums, vp one of pairs; zero_sums(),
 * load_sums(p), store_sums(p, x), load_pairs(p), same_pair(p), dot(sum, x, y). */

enum { NAME(HIGH) = 6, NAME(WIDE) = 4 }; /* rows and vectors of a tile: 24 of 32 registers */

ON static inline __attribute__((always_inline)) void NAME(tile)(const int high, const uint16_t *a,
                                                                int64_t lda, const uint16_t *panel,
                                                                int64_t pairs, float *c,
                                                                int64_t ldc, bool add) {
    vf sum[NAME(HIGH)][NAME(WIDE)];
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NAME(WIDE); j++)
            sum[i][j] = add ? load_sums(c + i * ldc + 16 * j) : zero_sums();
    for (int64_t p = 0; p < pairs; p++, panel += 2 * FTH_PAIRS_COLUMNS) {
        vp y[NAME(WIDE)];
#pragma GCC unroll 4
        for (int j = 0; j < NAME(WIDE); j++) y[j] = load_pairs(panel + 32 * j);
#pragma GCC unroll 6
        for (int i = 0; i < high; i++) {
            const vp x = same_pair(a + i * lda + 2 * p);
#pragma GCC unroll 4
            for (int j = 0; j < NAME(WIDE); j++) sum[i][j] = dot(sum[i][j], x, y[j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NAME(WIDE); j++) store_sums(c + i * ldc + 16 * j, sum[i][j]);
}

ON static void NAME(product)(int64_t m, const uint16_t *a, int64_t lda, const uint16_t *panel,
                             int64_t pairs, float *c, int64_t ldc, bool add) {
    const int64_t tiles = (m + NAME(HIGH) - 1) / NAME(HIGH);
    for (int64_t t = 0; t < tiles; t++) { /* of nearly the same height */
        const int64_t i = m * t / tiles;
        const uint16_t *from = a + i * lda;
        float *to = c + i * ldc;
        switch (m * (t + 1) / tiles - i) {
        case 1: NAME(tile)(1, from, lda, panel, pairs, to, ldc, add); break;
        case 2: NAME(tile)(2, from, lda, panel, pairs, to, ldc, add); break;
        case 3: NAME(tile)(3, from, lda, panel, pairs, to, ldc, add); break;
        case 4: NAME(tile)(4, from, lda, panel, pairs, to, ldc, add); break;
        case 5: NAME(tile)(5, from, lda, panel, pairs, to, ldc, add); break;
        default: NAME(tile)(6, from, lda, panel, pairs, to, ldc, add); break;
        }
    }
}
