/* tiles.h: the product of amx.h's fth_tiles_block. Included by pairs.c (bf16, two to a group of 4 bytes)
 * and int8.c (8 bits, four to a group), each once for the matrix unit and once for what it means in plain
 * C, with these names defined: NAME(x) the function's name, ON its attribute, TILES what has to be
 * declared in a function that uses tiles; zero_tile(t), load_tile(t, p, stride), stream_tile(t, p, stride),
 * store_tile(t, p, stride) and dot_tiles(sum, a, b). Strides are in bytes.
 *
 * B is loaded past the first-level cache: it comes from the second one anyway, and would drive out the
 * rows of A, which all strips of B meet. On a Sapphire Rapids 78 % of the peak instead of 54. Both tiles of
 * A go through one register: a core that another hardware thread shares has few places for tiles that are
 * being written, so with 8 in use a product of tiles takes 70 clocks there, with 7 it takes 50 (19 on a
 * core of its own, with either). Where that is known, 16 columns come after the other 16: with 4 in use, and
 * B in the second-level cache, 47 clocks instead of 65 (and 20 on a core of its own); the sums are the same,
 * to the bit. The tiles of the next step are loaded before the work for the rest of the core, so that the
 * unit need not wait for them behind it. */

/* All columns, or the 16 of one half. Tiles 0 to 3 are of C, 4 of A, 6 and 7 of B; a half has 0, 2, 4 and 6.
 * Each half calls meanwhile after every second step: as often as the whole block does. */
ON static inline __attribute__((always_inline)) void
NAME(block)(const bool two, const bool whole, const int half, const fth_tiles_block *x) {
    TILES;
    const char *a = x->a.first, *b = (const char *)x->b.first + half * x->b.other;
    const int64_t a_stride = x->a.stride, b_stride = x->b.stride, c_stride = x->c_stride;
    char *c = (char *)x->c + 64 * half, *below = c + 16 * c_stride;
    if (x->add) {
        load_tile(0, c, c_stride);
        if (whole) load_tile(1, c + 64, c_stride);
        if (two) load_tile(2, below, c_stride);
        if (two && whole) load_tile(3, below + 64, c_stride);
    } else {
        zero_tile(0);
        if (whole) zero_tile(1);
        if (two) zero_tile(2);
        if (two && whole) zero_tile(3);
    }
    stream_tile(6, b, b_stride);
    if (whole) stream_tile(7, b + x->b.other, b_stride);
    load_tile(4, a, a_stride);
    for (int64_t s = 1; s < x->steps; s++) {
        dot_tiles(0, 4, 6);
        if (whole) dot_tiles(1, 4, 7);
        if (two) load_tile(4, a + x->a.other, a_stride);
        a += x->a.next;
        b += x->b.next;
        if (two) dot_tiles(2, 4, 6);
        stream_tile(6, b, b_stride);
        if (two && whole) dot_tiles(3, 4, 7);
        if (whole) stream_tile(7, b + x->b.other, b_stride);
        load_tile(4, a, a_stride);
        if (x->meanwhile && (whole || s % 2 == half)) x->meanwhile(x->context);
    }
    dot_tiles(0, 4, 6);
    if (whole) dot_tiles(1, 4, 7);
    if (two) load_tile(4, a + x->a.other, a_stride);
    if (two) dot_tiles(2, 4, 6);
    if (two && whole) dot_tiles(3, 4, 7);
    if (x->meanwhile && (whole || x->steps % 2 == half)) x->meanwhile(x->context);
    store_tile(0, c, c_stride);
    if (whole) store_tile(1, c + 64, c_stride);
    if (two) store_tile(2, below, c_stride);
    if (two && whole) store_tile(3, below + 64, c_stride);
}

ON static void NAME(tiles)(const fth_tiles_block *x) {
    if (x->two && (x->narrow || x->half)) {
        NAME(block)(true, false, 0, x);
        if (!x->half) NAME(block)(true, false, 1, x);
    } else if (x->half) {
        NAME(block)(false, false, 0, x);
    } else if (x->two) {
        NAME(block)(true, true, 0, x);
    } else {
        NAME(block)(false, true, 0, x);
    }
}
