/* tiles.h: the product of some rows and one panel on tiles of 16 rows of 64 bytes. Included by pairs.c
 * (bf16, two to a group) and int8.c (8 bits, four to a group), each once for the matrix unit and once for
 * what it means in plain C, with these names defined: NAME(x) the function's name, ON its attribute,
 * TILES what has to be declared in a function that uses tiles; begin_tiles(), end_tiles(), zero_tile(t),
 * load_tile(t, p, stride), store_tile(t, p, stride) and dot_tiles(sum, a, b). Strides are in bytes; a
 * number of C has 4, as a group of A or of a column of the panel has. */

enum { NAME(PANEL_STRIDE) = 64 * 4 }; /* 64 columns */

/* Up to 32 rows and 32 columns of C: tiles 0 to 3; 4 and 5 are of A, 6 and 7 of B. */
ON static inline __attribute__((always_inline)) void
NAME(block)(const bool two, TILES_ARGUMENT const char *a, int64_t a_stride, const char *panel,
            int64_t groups, char *c, int64_t c_stride, bool add) {
    if (add) {
        load_tile(0, c, c_stride);
        load_tile(1, c + 64, c_stride);
        if (two) load_tile(2, c + 16 * c_stride, c_stride);
        if (two) load_tile(3, c + 16 * c_stride + 64, c_stride);
    } else {
        zero_tile(0);
        zero_tile(1);
        zero_tile(2);
        zero_tile(3);
    }
    for (int64_t g = 0; g < groups; g += 16, panel += 16 * NAME(PANEL_STRIDE)) {
        load_tile(6, panel, NAME(PANEL_STRIDE));
        load_tile(7, panel + 64, NAME(PANEL_STRIDE));
        load_tile(4, a + 4 * g, a_stride);
        dot_tiles(0, 4, 6);
        dot_tiles(1, 4, 7);
        if (two) load_tile(5, a + 16 * a_stride + 4 * g, a_stride);
        if (two) dot_tiles(2, 5, 6);
        if (two) dot_tiles(3, 5, 7);
    }
    store_tile(0, c, c_stride);
    store_tile(1, c + 64, c_stride);
    if (two) store_tile(2, c + 16 * c_stride, c_stride);
    if (two) store_tile(3, c + 16 * c_stride + 64, c_stride);
}

/* C = A B, or C + A B. m and groups are multiples of 16. */
ON static void NAME(tiles)(int64_t m, const void *a, int64_t a_stride, const void *panel,
                           int64_t groups, void *c, int64_t c_stride, bool add) {
    TILES;
    begin_tiles();
    for (int64_t i = 0; i < m; i += 32)
        for (int64_t j = 0; j < NAME(PANEL_STRIDE); j += 128) { /* 32 columns */
            const char *from = (const char *)a + i * a_stride, *b = (const char *)panel + j;
            char *to = (char *)c + i * c_stride + j;
            if (m - i > 16)
                NAME(block)(true, TILES_PASSED from, a_stride, b, groups, to, c_stride, add);
            else
                NAME(block)(false, TILES_PASSED from, a_stride, b, groups, to, c_stride, add);
        }
    end_tiles();
}
