/* int8_rows.h: the product of int8.h on vectors. Included by int8.c, once for each instruction set
 * that multiplies bytes, with these names defined: NAME(x) the function's name, ON its attribute,
 * vq a vector of WIDTH columns' sums or groups; HIGH and WIDE, the rows and vectors of a tile, as
 * many as there are registers for; zero_sums(), load_groups(p), store_sums(p, v), same_group(four)
 * and dot(sums, p, q). */

ON static inline __attribute__((always_inline)) void NAME(tile)(const int rows, const uint8_t *x,
                                                                int64_t ldx, const int8_t *panel,
                                                                int64_t groups, int32_t *sums) {
    vq acc[HIGH][WIDE];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; j++) acc[i][j] = zero_sums();
    for (int64_t g = 0; g < groups; g++, panel += GROUP, x += FTH_INT8_DEPTH) {
        vq q[WIDE];
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; j++) q[j] = load_groups(panel + WIDTH * FTH_INT8_DEPTH * j);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const vq p = same_group(four(x + i * ldx));
#pragma GCC unroll 4
            for (int j = 0; j < WIDE; j++) acc[i][j] = dot(acc[i][j], p, q[j]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < WIDE; j++)
            store_sums(sums + i * FTH_INT8_COLUMNS + WIDTH * j, acc[i][j]);
}

ON static void NAME(product)(int64_t m, const uint8_t *x, int64_t ldx, const int8_t *panel,
                             int64_t groups, int32_t *sums) {
    const int64_t tiles = (m + HIGH - 1) / HIGH;
    for (int64_t t = 0; t < tiles; t++) { /* of nearly the same height */
        const int64_t i = m * t / tiles, high = m * (t + 1) / tiles - i;
        const uint8_t *from = x + i * ldx;
        for (int j = 0; j < FTH_INT8_COLUMNS; j += WIDTH * WIDE) {
            const int8_t *columns = panel + j * FTH_INT8_DEPTH;
            int32_t *to = sums + i * FTH_INT8_COLUMNS + j;
            switch (high < HIGH ? high : HIGH) {
            case 1: NAME(tile)(1, from, ldx, columns, groups, to); break;
            case 2: NAME(tile)(2 <= HIGH ? 2 : HIGH, from, ldx, columns, groups, to); break;
            case 3: NAME(tile)(3 <= HIGH ? 3 : HIGH, from, ldx, columns, groups, to); break;
            case 4: NAME(tile)(4 <= HIGH ? 4 : HIGH, from, ldx, columns, groups, to); break;
            case 5: NAME(tile)(5 <= HIGH ? 5 : HIGH, from, ldx, columns, groups, to); break;
            default: NAME(tile)(HIGH, from, ldx, columns, groups, to); break;
            }
        }
    }
}
