/* linear_digits.c: linear maps with floats in fixed point. Reads 3 n k bytes of weights once; 18 m
 * n k integer operations. Few rows: bound by the memory; many: by the matrix unit.
 *
 * A set of strips of weights, 16 columns each, is in the second-level cache while tiles of 16 rows
 * meet it, of whose digits those of STEPS steps stay in the first-level cache. Between the unit's
 * instructions the next set is asked for, by all rows in equal parts, in the end the first one of
 * the next map, and the sums of the last strip become results. A thread begins with digits that it
 * has made itself. */
#include "backend/cpu/product/linear_digits.h"
#include "backend/cpu/kernel/vec.h"

enum {
    SIDE = FTH_DIGITS_SIDE,
    STEPS = 8, /* 32 KB of x */
    X_STEP = FTH_DIGITS_X * FTH_DIGITS_TILE,
    W_STEP = FTH_DIGITS_W * FTH_DIGITS_TILE,
    SET_BYTES = 256 << 10, /* of weights */
    FEW_TILES = 2,
    FEW_BYTES = 96 << 10,
    MOST_STRIPS = 32,                           /* of a set */
    SUMS = (MOST_STRIPS + 1) * FTH_DIGITS_SUMS, /* of a thread; one strip's become results */
    MOST_ROWS = 192,                            /* that have their digits at a time */
    LINE = 64
};

/* A tile of rows and a strip, whose sums are complete. */
typedef struct result {
    int64_t tile, column, n_rows;
    const int32_t *sums; /* [FTH_DIGITS_SUMS] */
    int64_t next;        /* row to become results */
    int64_t at_once;     /* rows */
} result;

/* What a thread works with. */
typedef struct work {
    const gemm *g;
    const fth_int8 *w;
    const fth_digits_path *path;
    const fth_team *team;
    int32_t *sums; /* [SUMS] of this thread */
    int8_t *x;     /* [tiles of rows][steps][FTH_DIGITS_X][FTH_DIGITS_TILE] */
    float *scale;  /* [tiles of rows][SIDE] */
    int64_t steps;
    int64_t strips;                        /* that tiles have met so far */
    fth_cpu_share rows;                    /* that have their digits */
    bool bare;                             /* nothing follows but a bias and ReLU */
    result done;                           /* becomes results meanwhile */
    const int8_t *prefetch, *prefetch_end; /* weights to be asked for meanwhile, up to there, */
    int64_t prefetch_bytes;                /* so many at a time */
} work;

static int64_t up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Tiles of rows with room for their digits; a single row has one for every thread. */
static int64_t tiles_of(int64_t m, int64_t threads) {
    const int64_t tiles = up(least(m, MOST_ROWS), SIDE);
    return tiles > threads ? tiles : threads;
}

int64_t FTH_NAME(linear_digits_bytes)(const fth_device *dev, int64_t rows_, int64_t k) {
    return dev->threads * SUMS * (int64_t)sizeof(int32_t) +
           tiles_of(rows_, dev->threads) *
               (up(k, FTH_DIGITS_DEPTH) * X_STEP + SIDE * (int64_t)sizeof(float));
}

/* ---- digits of x ---- */

static float float_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The bits of the largest size: floats without a sign are ordered like their bits, NaN above
 * all. */
static uint32_t largest_bits(const real *restrict_ x, int64_t k) {
    uint32_t top = 0;
#pragma omp simd reduction(max : top)
    for (int64_t l = 0; l < k; l++) {
        const float number = from_real(x[l]);
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        bits &= 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    return top;
}

/* At most 64 numbers, times a power of two less than 2^30. */
static void digits_of(const real *restrict_ x, int64_t n, float power, int8_t *restrict_ to) {
    enum { CARRY = 0x808080 }; /* added, it leaves digits and 128 in the bytes below the first */
    int32_t carried[FTH_DIGITS_DEPTH] = {0};
#pragma omp simd
    for (int64_t l = 0; l < n; l++)
        carried[l] = ((int32_t)rintf(from_real(x[l]) * power) + CARRY) ^ CARRY;
    for (int d = 0; d < FTH_DIGITS_X; d++, to += FTH_DIGITS_TILE)
#pragma omp simd
        for (int l = 0; l < FTH_DIGITS_DEPTH; l++) to[l] = (int8_t)(carried[l] >> (24 - 8 * d));
}

/* A row of x; returns the scale of its first digit. One that is not finite gives a scale that is
 * not either. to: the row's place in its tiles. */
static float digits_of_row(const real *x, int64_t k, int8_t *to) {
    enum { EXPONENT = 23, NONE = 255, MOST = 253 };
    const uint32_t top = largest_bits(x, k), exponent = top >> EXPONENT;
    const bool usable = exponent < NONE;
    /* numbers below 2^(exponent - 126) become such below 2^30; the tiniest ones smaller ones */
    const uint32_t power = 283 - exponent < MOST ? 283 - exponent : MOST;
    for (int64_t l = 0; l < k; l += FTH_DIGITS_DEPTH, to += X_STEP)
        if (usable)
            digits_of(x + l, least(FTH_DIGITS_DEPTH, k - l), float_of_bits(power << EXPONENT), to);
        else
            for (int d = 0; d < FTH_DIGITS_X; d++)
                memset(to + d * FTH_DIGITS_TILE, 0, FTH_DIGITS_DEPTH);
    return usable ? float_of_bits((254 + 24 - power) << EXPONENT) : NAN;
}

/* A thread's part of the rows. */
static void digits_of_rows(const work *w) {
    const gemm *g = w->g;
    const fth_cpu_share mine = fth_team_share(w->team, w->rows.end - w->rows.begin, 1);
    for (int64_t i = mine.begin; i < mine.end; i++)
        w->scale[i] =
            digits_of_row(g->a.data + (w->rows.begin + i) * g->a.ld, g->k,
                          w->x + i / SIDE * w->steps * X_STEP + i % SIDE * FTH_DIGITS_DEPTH);
}

/* ---- between the unit's instructions ---- */

/* VW sums of a row, all orders of them, from a column on. */
inline_ vf sums_at(const int32_t *sums) {
    enum { ONE = SIDE * SIDE };
    vf sum = v_zero();
#pragma GCC unroll 4
    for (int order = 3; order >= 0; order--) {
        vi whole;
        memcpy(&whole, sums + order * ONE, sizeof whole);
        sum = v_fma(sum, v_set(1.0f / 256), __builtin_convertvector(whole, vf));
    }
    return sum;
}

/* Rows [i, end) of a whole strip that nothing follows but a bias and ReLU. */
static void finish_bare(const work *w, const result *r, int64_t i, int64_t end) {
    const gemm *g = w->g;
    const int64_t j = r->column, row = w->rows.begin + r->tile * SIDE;
    const float *by_row = w->scale + r->tile * SIDE;
    for (int c = 0; c < SIDE; c += VW) {
        const vf by_column = v_load(w->w->scale + j + c);
        const vf bias = g->bias ? v_load(g->bias + j + c) : v_zero();
        for (int64_t at = i; at < end; at++) {
            const vf scale = v_mul(v_set(by_row[at]), by_column);
            const vf y = v_fma(sums_at(r->sums + at * SIDE + c), scale, bias);
            v_store_real(g->c.data + (row + at) * g->c.ld + j + c,
                         g->act == FTH_ACT_RELU ? v_relu(y) : y);
        }
    }
}

static void finish_any(const work *w, const result *r, int64_t i) {
    const gemm *g = w->g;
    const int64_t j = r->column, row = r->tile * SIDE + i;
    float acc[SIDE];
    for (int c = 0; c < SIDE; c += VW) {
        const vf scale = v_mul(v_set(w->scale[row]), v_load(w->w->scale + j + c));
        v_store(acc + c, v_mul(sums_at(r->sums + i * SIDE + c), scale));
    }
    FTH_NAME(gemm_finish_row)(g, w->rows.begin + row, j, least(SIDE, g->n - j), 0, acc);
}

/* The next n rows that wait for it. */
static void finish_rows(work *w, int64_t n) {
    result *r = &w->done;
    const int64_t end = least(r->next + n, r->n_rows);
    if (w->bare && w->g->n - r->column >= SIDE)
        finish_bare(w, r, r->next, end);
    else
        for (int64_t i = r->next; i < end; i++) finish_any(w, r, i);
    r->next = end;
}

static void meanwhile(void *context) {
    work *w = context;
    finish_rows(w, w->done.at_once);
    const int64_t left = w->prefetch_end - w->prefetch;
    const int8_t *end =
        left < w->prefetch_bytes ? w->prefetch_end : w->prefetch + w->prefetch_bytes;
    for (; w->prefetch < end; w->prefetch += LINE) __builtin_prefetch(w->prefetch, 0, 2);
}

/* ---- products ---- */

static int64_t tiles_now(const work *w) {
    return up(w->rows.end - w->rows.begin, SIDE);
}

static int64_t strip_bytes(const fth_int8 *map) {
    return map->groups * FTH_INT8_DEPTH * SIDE * FTH_DIGITS_W;
}

/* A set of a map's strips that are this thread's, from one on. Many rows should not change often,
 * weights for few should not lie long. */
static fth_cpu_share set_at(const work *w, const fth_int8 *map, int64_t strip) {
    const fth_cpu_share mine = fth_team_share(w->team, up(map->n, SIDE), 1);
    const int64_t bytes = tiles_now(w) > FEW_TILES ? SET_BYTES : FEW_BYTES;
    const int64_t fit = least(MOST_STRIPS, up(bytes, strip_bytes(map)));
    if (strip < mine.begin) strip = mine.begin;
    return (fth_cpu_share){strip, least(strip + fit, mine.end)};
}

/* The set that is multiplied after this one, of this map or the next, is asked for in so many
 * steps. */
static void wish_for_next(work *w, fth_cpu_share set, int64_t steps) {
    const fth_int8 *map = w->w;
    fth_cpu_share next = set_at(w, map, set.end);
    if (next.begin >= next.end) {
        map = map->after;
        next = set_at(w, map, 0);
    }
    const int64_t bytes = (next.end - next.begin) * strip_bytes(map);
    w->prefetch = map->packed + next.begin * strip_bytes(map);
    w->prefetch_end = w->prefetch + bytes;
    w->prefetch_bytes = up(bytes, steps * LINE) * LINE;
}

/* A tile of rows with a set. */
static void multiply_tile(work *w, fth_digits_product *product, fth_cpu_share set, int64_t tile) {
    const int64_t n_rows = w->rows.end - w->rows.begin;
    const int64_t ring = w->steps > STEPS ? MOST_STRIPS + 1 : 2; /* strips whose sums are kept */
    for (int64_t step = 0; step < w->steps; step += STEPS)
        for (int64_t strip = set.begin; strip < set.end; strip++) {
            const int64_t steps = least(STEPS, w->steps - step);
            const int64_t number = w->strips + strip - set.begin;
            int32_t *sums = w->sums + number % ring * FTH_DIGITS_SUMS;
            product(&(fth_digits_block){.x = w->x + (tile * w->steps + step) * X_STEP,
                                        .w = w->w->packed + (strip * w->steps + step) * W_STEP,
                                        .steps = steps,
                                        .add = step > 0,
                                        .sums = sums,
                                        .meanwhile = meanwhile,
                                        .context = w});
            if (step + steps < w->steps) continue;
            finish_rows(w, SIDE);
            w->done = (result){tile, strip * SIDE,   least(SIDE, n_rows - tile * SIDE), sums,
                               0,    up(SIDE, steps)};
        }
    w->strips += set.end - set.begin;
}

/* The rows that have their digits with this thread's strips. */
static void multiply_strips(work *w) {
    const int64_t tiles = tiles_now(w), first = w->team->thread * tiles / w->team->n_threads;
    fth_cpu_share set = set_at(w, w->w, 0);
    if (set.begin >= set.end) return;
    const bool crowded = w->path->crowded(tiles * SIDE * w->g->n / w->team->n_threads * w->g->k);
    w->path->begin();
    for (; set.begin < set.end; set = set_at(w, w->w, set.end)) {
        wish_for_next(w, set, tiles * (set.end - set.begin) * w->steps);
        for (int64_t t = 0; t < tiles; t++)
            multiply_tile(w, crowded ? w->path->narrow : w->path->product, set,
                          (first + t) % tiles);
    }
    w->path->end();
    finish_rows(w, SIDE);
}

/* All threads make the digits of many rows together; those of one are sooner made by each than
 * waited for. */
static void multiply_rows(work *w) {
    if (w->g->m == 1) {
        w->x += w->team->thread * w->steps * X_STEP;
        w->scale += w->team->thread * SIDE;
        w->scale[0] = digits_of_row(w->g->a.data, w->g->k, w->x);
    } else {
        if (w->rows.begin > 0) fth_team_wait(w->team); /* for those who read the rows before */
        digits_of_rows(w);
        fth_team_wait(w->team);
    }
    multiply_strips(w);
}

void FTH_NAME(linear_digits)(const fth_exec *ex, const gemm *g, const fth_int8 *map,
                             const fth_team *team) {
    int32_t *sums = ex->scratch;
    work w = {.g = g,
              .w = map,
              .path = fth_cpu_packed_digits(ex),
              .team = team,
              .sums = sums + (int64_t)team->thread * SUMS,
              .x = (int8_t *)(sums + (int64_t)team->n_threads * SUMS),
              .steps = up(g->k, FTH_DIGITS_DEPTH),
              .bare = !g->addend.data && !g->pre.data && !g->saved.data && g->act != FTH_ACT_GELU};
    w.scale = (float *)(void *)(w.x + tiles_of(g->m, team->n_threads) * w.steps * X_STEP);
    for (int64_t i = 0; i < g->m; i += MOST_ROWS) {
        w.rows = (fth_cpu_share){i, least(i + MOST_ROWS, g->m)};
        multiply_rows(&w);
    }
}
