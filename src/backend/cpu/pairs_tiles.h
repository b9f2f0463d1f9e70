/* pairs_tiles.h: the product of pairs.h on tiles of 16 rows of 64 bytes. Included by pairs.c, once for
 * the matrix unit and once for what it means in plain C, with these names defined: NAME(x) the
 * function's name, ON its attribute, TILES what has to be declared in a function that uses tiles;
 * begin_tiles(), end_tiles(), zero_tile(t), load_tile(t, p, stride), store_tile(t, p, stride) and
 * dot_tiles(sum, a, b) with strides in bytes. */

/* Up to 32 rows and 32 columns of C: tiles 0 to 3; 4 and 5 are of A, 6 and 7 of B. */
ON static inline __attribute__((always_inline)) void
NAME(block)(const bool two, TILES_ARGUMENT const uint16_t *a, int64_t lda, const uint16_t *panel,
            int64_t pairs, float *c, int64_t ldc, bool add) {
    const int64_t a_stride = 2 * lda, c_stride = 4 * ldc, b_stride = 4 * FTH_PAIRS_COLUMNS;
    if (add) {
        load_tile(0, c, c_stride);
        load_tile(1, c + 16, c_stride);
        if (two) load_tile(2, c + 16 * ldc, c_stride);
        if (two) load_tile(3, c + 16 * ldc + 16, c_stride);
    } else {
        zero_tile(0);
        zero_tile(1);
        zero_tile(2);
        zero_tile(3);
    }
    for (int64_t p = 0; p < pairs; p += 16, panel += 16 * 2 * FTH_PAIRS_COLUMNS) {
        load_tile(6, panel, b_stride);
        load_tile(7, panel + 32, b_stride);
        load_tile(4, a + 2 * p, a_stride);
        dot_tiles(0, 4, 6);
        dot_tiles(1, 4, 7);
        if (two) load_tile(5, a + 16 * lda + 2 * p, a_stride);
        if (two) dot_tiles(2, 5, 6);
        if (two) dot_tiles(3, 5, 7);
    }
    store_tile(0, c, c_stride);
    store_tile(1, c + 16, c_stride);
    if (two) store_tile(2, c + 16 * ldc, c_stride);
    if (two) store_tile(3, c + 16 * ldc + 16, c_stride);
}

ON static void NAME(product)(int64_t m, const uint16_t *a, int64_t lda, const uint16_t *panel,
                             int64_t pairs, float *c, int64_t ldc, bool add) {
    TILES;
    begin_tiles();
    for (int64_t i = 0; i < m; i += 32)
        for (int64_t j = 0; j < FTH_PAIRS_COLUMNS; j += 32) {
            const uint16_t *from = a + i * lda;
            float *to = c + i * ldc + j;
            if (m - i > 16)
                NAME(block)(true, TILES_PASSED from, lda, panel + 2 * j, pairs, to, ldc, add);
            else
                NAME(block)(false, TILES_PASSED from, lda, panel + 2 * j, pairs, to, ldc, add);
        }
    end_tiles();
}
