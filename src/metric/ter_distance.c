/* ter_distance.c: edit distance with a beam around the diagonal, and the operations of its path, in
 * the order in which tercom prefers them. */
#include "metric/ter_distance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEAM = 25, FAR = 1 << 30 };

void fth_ter_distance_fini(fth_ter_distance *d) {
    free(d->low);
    free(d->high);
    free(d->cost);
    free(d->op);
    free(d->now);
    free(d->next);
    free(d->bits);
    *d = (fth_ter_distance){0};
}

static fth_err make_rows(fth_ter_distance *d) {
    if (d->n + 1 <= d->n_rows) return FTH_OK;
    size_t rows = 2 * (d->n + 1);
    free(d->low);
    free(d->high);
    free(d->bits);
    d->n_rows = 0;
    d->low = malloc(rows * sizeof *d->low);
    d->high = malloc(rows * sizeof *d->high);
    d->bits = malloc(rows * sizeof *d->bits);
    if (!d->low || !d->high || !d->bits)
        return fth_fail(FTH_NO_MEMORY, "no memory for a line of %zu words", d->n);
    d->n_rows = rows;
    return FTH_OK;
}

static fth_err make_cells(fth_ter_distance *d) {
    size_t cells = (d->n + 1) * d->width;
    if (cells > d->n_cells) {
        free(d->cost);
        free(d->op);
        d->n_cells = 0;
        d->cost = malloc(cells * sizeof *d->cost);
        d->op = malloc(cells);
        if (!d->cost || !d->op)
            return fth_fail(FTH_NO_MEMORY, "no memory for an edit table of %zu cells", cells);
        d->n_cells = cells;
    }
    if (d->m + 2 > d->n_row) {
        free(d->now);
        free(d->next);
        d->n_row = 0;
        d->now = malloc((d->m + 2) * sizeof *d->now);
        d->next = malloc((d->m + 2) * sizeof *d->next);
        if (!d->now || !d->next)
            return fth_fail(FTH_NO_MEMORY, "no memory for a line of %zu words", d->m);
        d->n_row = d->m + 2;
    }
    return FTH_OK;
}

/* The cells of each row: up to BEAM to both sides of the diagonal, more where the lines differ so
 * much in length that the beams of two rows would not touch. */
static void find_beam(fth_ter_distance *d) {
    double ratio = (double)d->m / (double)d->n;
    size_t beam = BEAM < ratio / 2 ? (size_t)ceil(ratio / 2 + BEAM) : BEAM;
    d->width = 0;
    d->whole = 1;
    d->low[0] = 0;
    d->high[0] = d->m + 1;
    for (size_t i = 1; i <= d->n; i++) {
        size_t diagonal = (size_t)floor((double)i * ratio);
        d->low[i] = diagonal > beam ? diagonal - beam : 0;
        d->high[i] = diagonal + beam < d->m + 1 && i < d->n ? diagonal + beam : d->m + 1;
        if (d->high[i] - d->low[i] > d->width) d->width = d->high[i] - d->low[i];
        d->whole &= d->low[i] == 0 && d->high[i] == d->m + 1;
    }
}

static void find_masks(fth_ter_distance *d) {
    for (size_t i = 0; i < d->n; i++) {
        uint64_t mask = 0;
        for (size_t j = 0; j < d->m; j++) mask |= (uint64_t)(d->hyp[i] == d->ref[j]) << j;
        d->bits[i].mask = mask;
    }
}

fth_err fth_ter_distance_start(fth_ter_distance *d, const fth_word_ids *hyp,
                               const fth_word_ids *ref) {
    d->hyp = hyp->id;
    d->ref = ref->id;
    d->n = hyp->n;
    d->m = ref->n;
    FTH_TRY(make_rows(d));
    find_beam(d);
    FTH_TRY(make_cells(d));
    if (d->m <= 64) find_masks(d);
    return FTH_OK;
}

/* Row i from row i - 1: now[] to next[]. Of equally cheap operations keeping or replacing comes
 * first, then dropping, then inserting. op may be NULL. */
static void fill_row(const fth_ter_distance *d, size_t i, uint32_t word, uint8_t *op /* by j */) {
    uint32_t *now = d->now, *next = d->next;
    size_t low = d->low[i], high = d->high[i];
    for (size_t j = d->high[i - 1]; j < high; j++) now[j + 1] = FAR;
    next[low] = FAR; /* the cell to the left of the beam */
    for (size_t j = low; j < high; j++) {
        uint32_t best = FAR + 1, drop = now[j + 1] + 1, insert = next[j] + 1;
        fth_ter_op how = FTH_TER_REPLACE;
        if (j > 0) {
            how = word == d->ref[j - 1] ? FTH_TER_KEEP : FTH_TER_REPLACE;
            best = now[j] + (how == FTH_TER_REPLACE);
        }
        if (drop < best) best = drop, how = FTH_TER_DROP;
        if (insert < best) best = insert, how = FTH_TER_INSERT;
        next[j + 1] = best;
        if (op) op[j - low] = (uint8_t)how;
    }
}

static void swap_rows(fth_ter_distance *d) {
    uint32_t *row = d->now;
    d->now = d->next;
    d->next = row;
}

static void load_first_row(fth_ter_distance *d) {
    d->now[0] = FAR;
    for (size_t j = 0; j <= d->m; j++) d->now[j + 1] = (uint32_t)j;
}

/* One more word of the hypothesis in the bit-vector form. */
static inline fth_ter_bits bits_step(const fth_ter_distance *d, fth_ter_bits b, uint64_t equal) {
    uint64_t diagonal = (((equal & b.plus) + b.plus) ^ b.plus) | equal | b.minus;
    uint64_t ups = b.minus | ~(diagonal | b.plus), downs = diagonal & b.plus;
    b.cost += (ups >> (d->m - 1) & 1) - (downs >> (d->m - 1) & 1);
    ups = ups << 1 | 1;
    downs <<= 1;
    b.plus = downs | ~(diagonal | ups);
    b.minus = ups & diagonal;
    return b;
}

static void keep_bits(fth_ter_distance *d, size_t i, fth_ter_bits b) {
    d->bits[i].plus = b.plus;
    d->bits[i].minus = b.minus;
    d->bits[i].cost = b.cost;
}

size_t fth_ter_distance_table(fth_ter_distance *d, const uint32_t *order) {
    load_first_row(d);
    for (size_t i = 1; i <= d->n; i++) {
        size_t low = d->low[i];
        fill_row(d, i, d->hyp[order[i - 1]], d->op + i * d->width);
        swap_rows(d);
        memcpy(d->cost + i * d->width, d->now + low + 1, (d->high[i] - low) * sizeof *d->cost);
    }
    if (d->m <= 64) {
        fth_ter_bits b = {.plus = UINT64_MAX, .cost = d->m};
        keep_bits(d, 0, b);
        for (size_t i = 1; i <= d->n; i++) {
            b = bits_step(d, b, d->bits[order[i - 1]].mask);
            keep_bits(d, i, b);
        }
    }
    return d->now[d->m + 1];
}

fth_ter_op fth_ter_distance_op(const fth_ter_distance *d, size_t i, size_t j) {
    if (i == 0) return FTH_TER_INSERT;
    return (fth_ter_op)d->op[i * d->width + j - d->low[i]];
}

static size_t beam_distance(fth_ter_distance *d, const uint32_t *order, size_t same) {
    if (same == 0) {
        load_first_row(d);
    } else {
        size_t low = d->low[same], cells = d->high[same] - low;
        d->now[low] = FAR;
        memcpy(d->now + low + 1, d->cost + same * d->width, cells * sizeof *d->now);
    }
    for (size_t i = same + 1; i <= d->n; i++) {
        fill_row(d, i, d->hyp[order[i - 1]], NULL);
        swap_rows(d);
    }
    return d->now[d->m + 1];
}

size_t fth_ter_distance_of(fth_ter_distance *d, const uint32_t *order, size_t same) {
    if (d->m > 64) return beam_distance(d, order, same);
    fth_ter_bits b = d->bits[same];
    for (size_t i = same; i < d->n; i++) b = bits_step(d, b, d->bits[order[i]].mask);
    /* A way of this cost strays from the diagonal by at most its cost and the difference of the
     * lengths; where that is inside the beam, the beam finds the same cost. */
    size_t unequal = d->n > d->m ? d->n - d->m : d->m - d->n;
    if (d->whole || b.cost + unequal + 2 <= BEAM) return b.cost;
    return beam_distance(d, order, same);
}
