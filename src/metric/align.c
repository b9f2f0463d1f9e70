/* align.c: bit-parallel edit distance (Myers, 1999; Hyyro, 2003) and common subsequence; long texts
 * are halved (Hirschberg) to keep the table small. */
#include "metric/align.h"

#include <stdlib.h>
#include <string.h>

void fth_align_fini(fth_align *w) {
    free(w->mask);
    free(w->key);
    free(w->row);
    free(w->plus);
    free(w->minus);
    *w = (fth_align){0};
}

static size_t slot_of(const fth_align *w, uint32_t symbol) {
    size_t at = (symbol * UINT32_C(0x9e3779b1) >> 7) & (w->n_slots - 1);
    while (w->row[at] && w->key[at] != symbol) at = (at + 1) & (w->n_slots - 1);
    return at;
}

static fth_err make_slots(fth_align *w, size_t n) {
    w->n_slots = 64;
    while (w->n_slots < 2 * n + 2) w->n_slots *= 2;
    if (w->n_slots > w->slot_room) {
        free(w->key);
        free(w->row);
        w->slot_room = 0;
        w->key = malloc(w->n_slots * sizeof *w->key);
        w->row = malloc(w->n_slots * sizeof *w->row);
        if (!w->key || !w->row)
            return fth_fail(FTH_NO_MEMORY, "no memory for a line of %zu symbols", n);
        w->slot_room = w->n_slots;
    }
    memset(w->row, 0, w->n_slots * sizeof *w->row);
    return FTH_OK;
}

/* The symbols of the pattern get rows 1, 2, ... with a bit per position. */
static fth_err make_masks(fth_align *w, const uint32_t *pattern, size_t n) {
    uint32_t rows = 1;
    w->n_words = (n + 63) / 64;
    FTH_TRY(make_slots(w, n));
    for (size_t i = 0; i < n; i++) {
        size_t at = slot_of(w, pattern[i]);
        if (w->row[at]) continue;
        w->key[at] = pattern[i];
        w->row[at] = rows++;
    }
    size_t size = rows * w->n_words;
    if (size > w->mask_room) {
        free(w->mask);
        w->mask_room = 0;
        w->mask = malloc(size * sizeof *w->mask);
        if (!w->mask) return fth_fail(FTH_NO_MEMORY, "no memory for a line of %zu symbols", n);
        w->mask_room = size;
    }
    memset(w->mask, 0, size * sizeof *w->mask);
    for (size_t i = 0; i < n; i++)
        w->mask[w->row[slot_of(w, pattern[i])] * w->n_words + i / 64] |= UINT64_C(1) << i % 64;
    return FTH_OK;
}

static const uint64_t *mask_of(const fth_align *w, uint32_t symbol) {
    return w->mask + w->row[slot_of(w, symbol)] * w->n_words;
}

static fth_err make_table(fth_align *w, size_t rows) {
    size_t size = rows * w->n_words;
    if (size <= w->table_room) return FTH_OK;
    free(w->plus);
    free(w->minus);
    w->table_room = 0;
    w->plus = malloc(size * sizeof *w->plus);
    w->minus = malloc(size * sizeof *w->minus);
    if (!w->plus || !w->minus)
        return fth_fail(FTH_NO_MEMORY, "no memory for an alignment of %zu words", 2 * size);
    w->table_room = size;
    return FTH_OK;
}

static int bit(const uint64_t *row, size_t i) {
    return row[i / 64] >> i % 64 & 1;
}

/* One more hypothesis symbol: from one row of the edit distance table to the next. */
static void edit_step(size_t n_words, const uint64_t *mask, const uint64_t *plus,
                      const uint64_t *minus, uint64_t *next_plus, uint64_t *next_minus) {
    uint64_t up = 1, down = 0; /* what the distance does from row to row, at the last symbol */
    for (size_t k = 0; k < n_words; k++) {
        uint64_t equal = mask[k] | down, p = plus[k], m = minus[k];
        uint64_t diagonal = (((equal & p) + p) ^ p) | equal | m; /* same value as up and left */
        uint64_t ups = m | ~(diagonal | p), downs = diagonal & p;
        uint64_t shifted_ups = ups << 1 | up, shifted_downs = downs << 1 | down;
        up = ups >> 63;
        down = downs >> 63;
        next_plus[k] = shifted_downs | ~(diagonal | shifted_ups);
        next_minus[k] = shifted_ups & diagonal;
    }
}

static void first_row(fth_align *w) {
    memset(w->plus, 0xff, w->n_words * sizeof *w->plus);
    memset(w->minus, 0, w->n_words * sizeof *w->minus);
}

/* The whole table is kept and walked from its end. */
static fth_err edits_by_table(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *hyp,
                              size_t m, fth_edits *sum) {
    FTH_TRY(make_masks(w, ref, n));
    size_t k = w->n_words;
    FTH_TRY(make_table(w, m + 1));
    first_row(w);
    for (size_t j = 0; j < m; j++)
        edit_step(k, mask_of(w, hyp[j]), w->plus + j * k, w->minus + j * k, w->plus + (j + 1) * k,
                  w->minus + (j + 1) * k);
    while (n && m) {
        if (bit(w->plus + m * k, n - 1)) {
            sum->deletions++;
            n--;
        } else if (--m, bit(w->minus + m * k, n - 1)) {
            sum->insertions++;
        } else if (ref[--n] == hyp[m]) {
            sum->hits++;
        } else {
            sum->substitutions++;
        }
    }
    sum->deletions += (int64_t)n;
    sum->insertions += (int64_t)m;
    return FTH_OK;
}

/* scores[i]: the distance of the first i symbols of ref to all of hyp. */
static fth_err last_row(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *hyp, size_t m,
                        size_t *scores /* [n + 1] */) {
    FTH_TRY(make_masks(w, ref, n));
    FTH_TRY(make_table(w, 1));
    first_row(w);
    for (size_t j = 0; j < m; j++)
        edit_step(w->n_words, mask_of(w, hyp[j]), w->plus, w->minus, w->plus, w->minus);
    scores[0] = m;
    for (size_t i = 0; i < n; i++)
        scores[i + 1] = scores[i] + (size_t)bit(w->plus, i) - (size_t)bit(w->minus, i);
    return FTH_OK;
}

static void reverse(uint32_t *out, const uint32_t *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = in[n - 1 - i];
}

/* Where a shortest way crosses the middle of hyp: the first such place of ref (Hirschberg,
 * 1975). */
static fth_err find_middle(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *hyp,
                           size_t m, size_t *middle, size_t *left, size_t *right) {
    fth_err err = FTH_OK;
    size_t half = m / 2;
    size_t *before = malloc(2 * (n + 1) * sizeof *before); /* [n + 1] then, for after, [n + 1] */
    uint32_t *turned = malloc((n + m) * sizeof *turned);   /* ref and hyp from the end */
    if (!before || !turned) {
        err = fth_fail(FTH_NO_MEMORY, "no memory to align %zu with %zu symbols", n, m);
        goto done;
    }
    size_t *after = before + n + 1;
    reverse(turned, ref, n);
    reverse(turned + n, hyp, m);
    FTH_TRY_OR(err, last_row(w, ref, n, hyp, half, before), done);
    FTH_TRY_OR(err, last_row(w, turned, n, turned + n, m - half, after), done);
    *middle = 0;
    for (size_t i = 1; i <= n; i++)
        if (before[i] + after[n - i] < before[*middle] + after[n - *middle]) *middle = i;
    *left = before[*middle];
    *right = after[n - *middle];
done:
    free(before);
    free(turned);
    return err;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* RapidFuzz splits a problem whose two bit tables, as wide as its distance can make them necessary,
 * take 1 MiB; the split decides between equally short ways, so it is made at the same sizes here.
 * Ours are not that narrow, which is why very large ones are split too. */
static int too_large(size_t n, size_t m, size_t most) {
    size_t band = smaller(n, 2 * most + 1);
    return n >= 65 && m >= 10 && (2 * band * m / 8 >= 1 << 20 || n * m / 8 >= 1 << 28);
}

/* most: an upper bound of the distance. */
static fth_err add_edits(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *hyp, size_t m,
                         size_t most, fth_edits *sum) {
    size_t middle = 0, left = 0, right = 0;
    for (; n && m && ref[0] == hyp[0]; ref++, hyp++, n--, m--) sum->hits++;
    for (; n && m && ref[n - 1] == hyp[m - 1]; n--, m--) sum->hits++;
    most = smaller(most, n > m ? n : m);
    if (!n || !m) {
        sum->deletions += (int64_t)n;
        sum->insertions += (int64_t)m;
        return FTH_OK;
    }
    if (!too_large(n, m, most)) return edits_by_table(w, ref, n, hyp, m, sum);
    FTH_TRY(find_middle(w, ref, n, hyp, m, &middle, &left, &right));
    FTH_TRY(add_edits(w, ref, middle, hyp, m / 2, left, sum));
    return add_edits(w, ref + middle, n - middle, hyp + m / 2, m - m / 2, right, sum);
}

fth_err fth_align_edits(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *hyp, size_t m,
                        fth_edits *sum) {
    return add_edits(w, ref, n, hyp, m, SIZE_MAX / 4, sum);
}

/* A row of the table for one symbol of can: bit i is 0 where the length grows from i to i + 1. */
static void lcs_step(size_t n_words, const uint64_t *mask, const uint64_t *row, uint64_t *next) {
    uint64_t carry = 0;
    for (size_t k = 0; k < n_words; k++) {
        uint64_t v = row[k], u = v & mask[k], sum = v + u, with_carry = sum + carry;
        carry = (sum < v) | (with_carry < sum);
        next[k] = with_carry | (v - u);
    }
}

fth_err fth_align_lcs(fth_align *w, const uint32_t *ref, size_t n, const uint32_t *can, size_t m,
                      uint8_t *chosen, size_t *length) {
    size_t k, kept = chosen ? 1 : 0; /* without chosen one row is enough */
    *length = 0;
    if (chosen) memset(chosen, 0, n);
    if (!n || !m) return FTH_OK;
    FTH_TRY(make_masks(w, ref, n));
    k = w->n_words;
    FTH_TRY(make_table(w, kept * m + 1));
    memset(w->plus, 0xff, k * sizeof *w->plus);
    for (size_t j = 0; j < m; j++)
        lcs_step(k, mask_of(w, can[j]), w->plus + kept * j * k, w->plus + kept * (j + 1) * k);
    const uint64_t *last = w->plus + kept * m * k;
    for (size_t i = 0; i < n; i++) *length += !bit(last, i);
    while (chosen && n && m) {
        if (ref[n - 1] == can[m - 1])
            chosen[--n] = 1, m--;
        else if (bit(w->plus + m * k, n - 1)) /* the length is the same without ref[n - 1] */
            n--;
        else
            m--;
    }
    return FTH_OK;
}
