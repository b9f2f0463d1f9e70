/* tile_product.h: the product of amx.h's fth_tiles_block. Included by pairs.c (bf16, two to a
 * group of 4 bytes) and int8.c (8 bits, four to a group), each once for the matrix unit and
 * once for what it means in plain C, with these names defined: NAME(x) the function's name, ON
 * its attribute, zero_tile(t), load_tile(t, p, stride), stream_tile(t, p, stride),
 * store_tile(t, p, stride) and dot_tiles(sum, a, b). Strides are in bytes.
 *
 * B is loaded past the first-level cache: it comes from the second one anyway, and would drive
 * out the rows of A, which all strips of B meet. On a Sapphire Rapids 78 % of the peak instead
 * of 54. Both tiles of A go through one register: a core that another hardware thread shares
 * has few places for tiles that are being written, so with 8 in use a product of tiles takes 70
 * clocks there, with 7 it takes 50 (19 on a core of its own, with either). Where that is known,
 * 16 columns come after the other 16: with 4 in use, and B in the second-level cache, 47 clocks
 * instead of 65 (and 20 on a core of its own), in parts 39 instead of 55; the sums are the
 * same, to the bit. What comes next is loaded before the work for the rest of the core, so that
 * the unit need not wait for it behind that. */

/* What the compiler should know of a block: two tiles of rows or one; all columns, or the 16 of one
 * half; parts of a number. Tiles 0 to 3 are of C, 4 of A, 6 and 7 of B; a half has 0, 2, 4 and
 * 6. */
typedef struct NAME(kind) {
    bool two, whole;
    int half, parts;
} NAME(kind);

/* Where the factors of a step are. */
typedef struct NAME(at) {
    const char *a, *b;
} NAME(at);

ON static inline __attribute__((always_inline)) void
NAME(begin_sums)(const NAME(kind) is, const fth_tiles_block *x, char *c) {
    const int64_t stride = x->c_stride;
    char *below = c + 16 * stride;
    if (x->add) {
        load_tile(0, c, stride);
        if (is.whole) load_tile(1, c + 64, stride);
        if (is.two) load_tile(2, below, stride);
        if (is.two && is.whole) load_tile(3, below + 64, stride);
    } else {
        zero_tile(0);
        if (is.whole) zero_tile(1);
        if (is.two) zero_tile(2);
        if (is.two && is.whole) zero_tile(3);
    }
}

ON static inline __attribute__((always_inline)) void
NAME(end_sums)(const NAME(kind) is, const fth_tiles_block *x, char *c) {
    const int64_t stride = x->c_stride;
    char *below = c + 16 * stride;
    store_tile(0, c, stride);
    if (is.whole) store_tile(1, c + 64, stride);
    if (is.two) store_tile(2, below, stride);
    if (is.two && is.whole) store_tile(3, below + 64, stride);
}

/* Step s along k, whose first tiles are loaded already; more: another one follows. Part r of A
 * meets part q of B. The two halves of a block take turns at calling meanwhile: together as often
 * as the whole. */
ON static inline __attribute__((always_inline)) void NAME(step)(const NAME(kind) is,
                                                                const bool more,
                                                                const fth_tiles_block *x, int64_t s,
                                                                NAME(at) * at) {
    const int64_t a_stride = x->a.stride, b_stride = x->b.stride;
#pragma GCC unroll 3
    for (int q = 0; q < is.parts; q++)
#pragma GCC unroll 3
        for (int r = 0; r < is.parts - q; r++) {
            const int next_r = r + 1 < is.parts - q ? r + 1 : 0;
            const bool other_b = next_r == 0, ends = other_b && q + 1 == is.parts;
            const int next_q = ends ? 0 : q + other_b;
            const bool follows = more || !ends;
            dot_tiles(0, 4, 6);
            if (is.whole) dot_tiles(1, 4, 7);
            if (is.two) load_tile(4, at->a + r * x->a.part + x->a.other, a_stride);
            if (ends) *at = (NAME(at)){at->a + x->a.next, at->b + x->b.next};
            const char *a = at->a + next_r * x->a.part, *b = at->b + next_q * x->b.part;
            if (is.two) dot_tiles(2, 4, 6);
            if (other_b && follows) stream_tile(6, b, b_stride);
            if (is.two && is.whole) dot_tiles(3, 4, 7);
            if (other_b && follows && is.whole) stream_tile(7, b + x->b.other, b_stride);
            if (follows) load_tile(4, a, a_stride);
            const bool turn = is.whole || (is.parts * s + q) % 2 != is.half;
            if (other_b && turn && x->meanwhile[0]) x->meanwhile[0](x->context);
            if (other_b && turn && x->meanwhile[1]) x->meanwhile[1](x->context);
        }
}

ON static inline __attribute__((always_inline)) void NAME(block)(const NAME(kind) is,
                                                                 const fth_tiles_block *x) {
    NAME(at) at = {x->a.first, (const char *)x->b.first + is.half * x->b.other};
    char *c = (char *)x->c + 64 * is.half;
    NAME(begin_sums)(is, x, c);
    stream_tile(6, at.b, x->b.stride);
    if (is.whole) stream_tile(7, at.b + x->b.other, x->b.stride);
    load_tile(4, at.a, x->a.stride);
    for (int64_t s = 1; s < x->steps; s++) NAME(step)(is, true, x, s - 1, &at);
    NAME(step)(is, false, x, x->steps - 1, &at);
    NAME(end_sums)(is, x, c);
}

/* All columns, by halves where few tiles should be in use, or the first half alone. */
ON static inline __attribute__((always_inline)) void NAME(columns)(const bool two, const int parts,
                                                                   const fth_tiles_block *x) {
    if ((two && x->narrow) || x->half) {
        NAME(block)((NAME(kind)){two, false, 0, parts}, x);
        if (!x->half) NAME(block)((NAME(kind)){two, false, 1, parts}, x);
    } else {
        NAME(block)((NAME(kind)){two, true, 0, parts}, x);
    }
}

ON static void NAME(tiles)(const fth_tiles_block *x) {
    if (x->parts && x->two)
        NAME(columns)(true, 3, x);
    else if (x->parts)
        NAME(columns)(false, 3, x);
    else if (x->two)
        NAME(columns)(true, 1, x);
    else
        NAME(columns)(false, 1, x);
}
