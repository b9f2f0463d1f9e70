/* pairs_dots.h: the product of pairs.h on vectors of 16 floats. Included by pairs.c, once for the
 * instruction and once for what it means in plain C, with these names defined: NAME(x) the
 * function's name, ON its attribute, vf a vector of sums, vp one of pairs; zero_sums(),
 * load_sums(p), store_sums(p, x), add_sums(x, y), relu_sums(x), load_pairs(p), same_pair(p),
 * dot(sum, x, y); widened(p) 16 numbers of bf16 as floats, gated(x, p) x where they are positive,
 * else 0, and store_rounded(p, x, y) 32 floats as bf16. */

enum { NAME(HIGH) = 6, NAME(WIDE) = 4 }; /* rows and vectors of a tile: 24 of 32 registers */

#define INLINE ON static inline __attribute__((always_inline))

/* Asks for what the end of a tile reads and writes. */
INLINE void NAME(ask)(const int high, const fth_cpu_pairs_end *e, int64_t row) {
#pragma GCC unroll 6
    for (int i = 0; i < high; i++) {
        if (e->addend) __builtin_prefetch(e->addend + (row + i) * e->ld_addend);
        if (e->addend) __builtin_prefetch(e->addend + (row + i) * e->ld_addend + 32);
        if (e->gate) __builtin_prefetch(e->gate + (row + i) * e->ld_gate);
        if (e->gate) __builtin_prefetch(e->gate + (row + i) * e->ld_gate + 32);
        for (int j = 0; j < NAME(WIDE) && e->floats; j++)
            __builtin_prefetch(e->floats + (row + i) * e->ld_floats + 16 * j);
    }
}

/* A tile's rows from `row` on. */
INLINE void NAME(end)(const int high, vf sum[NAME(HIGH)][NAME(WIDE)], const fth_cpu_pairs_end *e,
                      int64_t row) {
#pragma GCC unroll 6
    for (int i = 0; i < high; i++) {
        const int64_t r = row + i;
#pragma GCC unroll 4
        for (int j = 0; j < NAME(WIDE); j++) {
            vf x = sum[i][j];
            if (e->floats) x = add_sums(x, load_sums(e->floats + r * e->ld_floats + 16 * j));
            if (e->addend) x = add_sums(x, widened(e->addend + r * e->ld_addend + 16 * j));
            if (e->gate) x = gated(x, e->gate + r * e->ld_gate + 16 * j);
            if (e->relu) x = relu_sums(x);
            if (e->full) store_sums(e->full + r * e->ld + 16 * j, x);
            sum[i][j] = x;
        }
        if (e->full) continue;
        store_rounded(e->rounded + r * e->ld, sum[i][0], sum[i][1]);
        store_rounded(e->rounded + r * e->ld + 32, sum[i][2], sum[i][3]);
    }
}

INLINE void NAME(tile)(const int high, const bool turned, fth_cpu_pairs_a a, const uint16_t *panel,
                       int64_t pairs, const fth_cpu_pairs_end *e, int64_t row) {
    vf sum[NAME(HIGH)][NAME(WIDE)];
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < NAME(WIDE); j++) sum[i][j] = zero_sums();
    NAME(ask)(high, e, row);
    const uint16_t *from = a.first + row * (turned ? 2 : a.ld);
    const int64_t next_row = turned ? 2 : a.ld, next_pair = turned ? a.ld : 2;
    for (int64_t p = 0; p < pairs; p++, panel += 2 * FTH_PAIRS_COLUMNS, from += next_pair) {
        vp y[NAME(WIDE)];
#pragma GCC unroll 4
        for (int j = 0; j < NAME(WIDE); j++) y[j] = load_pairs(panel + 32 * j);
#pragma GCC unroll 6
        for (int i = 0; i < high; i++) {
            const vp x = same_pair(from + i * next_row);
#pragma GCC unroll 4
            for (int j = 0; j < NAME(WIDE); j++) sum[i][j] = dot(sum[i][j], x, y[j]);
        }
    }
    NAME(end)(high, sum, e, row);
}

#define TILE(n)                                                                                    \
    case n:                                                                                        \
        if (a.turned)                                                                              \
            NAME(tile)(n, true, a, panel, pairs, e, i);                                            \
        else                                                                                       \
            NAME(tile)(n, false, a, panel, pairs, e, i);                                           \
        break;

ON static void NAME(product)(int64_t m, fth_cpu_pairs_a a, const uint16_t *panel, int64_t pairs,
                             const fth_cpu_pairs_end *e) {
    const int64_t tiles = (m + NAME(HIGH) - 1) / NAME(HIGH);
    for (int64_t t = 0; t < tiles; t++) { /* of nearly the same height */
        const int64_t i = m * t / tiles;
        switch (m * (t + 1) / tiles - i) {
            TILE(1)
            TILE(2)
            TILE(3)
            TILE(4)
            TILE(5)
            TILE(6)
        }
    }
}

#undef TILE
#undef INLINE
