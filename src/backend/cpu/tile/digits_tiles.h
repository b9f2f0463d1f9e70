/* digits_tiles.h: the products of digits.h's fth_digits_block. Included by digits.c, once for
 * the matrix unit and once for what it means in plain C, with the names of tile_product.h
 * defined.
 *
 * Tiles 0 to 3 are sums of the products of digits r of x and q of w with r + q = 0 to 3; 4 is
 * of x and 6 of w. The order is such that a sum is added to again after two others at the
 * least, which is as long as the unit takes for it, and that a digit stays for two products
 * where it can: eleven loads for nine products. On a crowded core few tiles should be in use
 * (tile_product.h): two of the sums come after the other two, in as many loads, with four
 * tiles; on a Sapphire Rapids 9 to 16 % faster there. */

#define take_x(r) load_tile(4, x + (r)*FTH_DIGITS_TILE, FTH_DIGITS_DEPTH)
#define take_w(q) stream_tile(6, w + (q)*FTH_DIGITS_TILE, FTH_DIGITS_DEPTH)

#define sums_of(order)        (b->sums + (order)*FTH_DIGITS_SIDE * FTH_DIGITS_SIDE)
#define end_sums(tile, order) store_tile(tile, sums_of(order), FTH_DIGITS_DEPTH)
#define begin_sums(tile, order)                                                                    \
    do {                                                                                           \
        if (b->add)                                                                                \
            load_tile(tile, sums_of(order), FTH_DIGITS_DEPTH);                                     \
        else                                                                                       \
            zero_tile(tile);                                                                       \
    } while (0)

ON static inline void NAME(step)(const fth_digits_block *b, int64_t s) {
    const int8_t *x = b->x + s * FTH_DIGITS_X * FTH_DIGITS_TILE;
    const int8_t *w = b->w + s * FTH_DIGITS_W * FTH_DIGITS_TILE;
    take_w(2);
    take_x(0);
    dot_tiles(2, 4, 6);
    take_x(1);
    dot_tiles(3, 4, 6);
    take_w(0);
    dot_tiles(1, 4, 6);
    take_x(2);
    dot_tiles(2, 4, 6);
    take_x(3);
    dot_tiles(3, 4, 6);
    take_x(0);
    dot_tiles(0, 4, 6);
    take_w(1);
    take_x(1);
    dot_tiles(2, 4, 6);
    take_x(2);
    dot_tiles(3, 4, 6);
    take_x(0);
    dot_tiles(1, 4, 6);
    b->meanwhile(b->context);
}

ON static void NAME(product)(const fth_digits_block *b) {
    begin_sums(0, 0);
    begin_sums(1, 1);
    begin_sums(2, 2);
    begin_sums(3, 3);
    for (int64_t s = 0; s < b->steps; s++) NAME(step)(b, s);
    end_sums(0, 0);
    end_sums(1, 1);
    end_sums(2, 2);
    end_sums(3, 3);
}

ON static inline void NAME(lower_step)(const fth_digits_block *b, int64_t s) {
    const int8_t *x = b->x + s * FTH_DIGITS_X * FTH_DIGITS_TILE;
    const int8_t *w = b->w + s * FTH_DIGITS_W * FTH_DIGITS_TILE;
    take_w(2);
    take_x(0);
    dot_tiles(2, 4, 6);
    take_x(1);
    dot_tiles(3, 4, 6);
    take_w(1);
    dot_tiles(2, 4, 6);
    take_x(2);
    dot_tiles(3, 4, 6);
    take_w(0);
    dot_tiles(2, 4, 6);
    take_x(3);
    dot_tiles(3, 4, 6);
    b->meanwhile(b->context);
}

ON static inline void NAME(upper_step)(const fth_digits_block *b, int64_t s) {
    const int8_t *x = b->x + s * FTH_DIGITS_X * FTH_DIGITS_TILE;
    const int8_t *w = b->w + s * FTH_DIGITS_W * FTH_DIGITS_TILE;
    take_w(1);
    take_x(0);
    dot_tiles(3, 4, 6);
    take_w(0);
    dot_tiles(2, 4, 6);
    take_x(1);
    dot_tiles(3, 4, 6);
}

ON static void NAME(narrow)(const fth_digits_block *b) {
    begin_sums(2, 2);
    begin_sums(3, 3);
    for (int64_t s = 0; s < b->steps; s++) NAME(lower_step)(b, s);
    end_sums(2, 2);
    end_sums(3, 3);
    begin_sums(2, 0);
    begin_sums(3, 1);
    for (int64_t s = 0; s < b->steps; s++) NAME(upper_step)(b, s);
    end_sums(2, 0);
    end_sums(3, 1);
}

#undef take_x
#undef take_w
#undef begin_sums
#undef end_sums
#undef sums_of
