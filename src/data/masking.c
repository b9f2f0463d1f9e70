/* masking.c: units are chosen one by one until enough tokens are covered. */
#include "data/masking.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

/* A stream of numbers for an item in an epoch. */
static fth_rng numbers_of(uint64_t seed, int64_t epoch, int64_t item) {
    fth_rng rng;
    fth_rng_init(&rng,
                 seed ^ UINT64_C(0x6d61736b696e67) ^ (uint64_t)epoch * UINT64_C(0x9E3779B97F4A7C15),
                 (uint64_t)item);
    return rng;
}

static bool is_special(const fth_masking *m, int32_t id) {
    const fth_special_ids *s = &m->special;
    return id == s->bos || id == s->pad || id == s->eos || id == m->mask;
}

/* How many of n: the share, its fraction by chance. */
static int64_t how_many(fth_rng *rng, double share, int64_t n) {
    const int64_t count = (int64_t)(share * (double)n + fth_rng_uniform(rng));
    return count < n ? count : n;
}

/* A length of 1 to FTH_MASK_SPAN_MOST, geometric. */
static int64_t span_length(fth_rng *rng) {
    int64_t length = 1;
    while (length < FTH_MASK_SPAN_MOST && fth_rng_uniform(rng) >= 1 / FTH_MASK_SPAN_MEAN) length++;
    return length;
}

/* The units that begin at their first token: where unit i of the text starts, n_units in all. */
static int64_t find_units(const fth_masking *m, int64_t n, const int32_t *ids, int64_t *start) {
    int64_t units = 0;
    bool inside = false;
    for (int64_t i = 0; i < n; i++) {
        if (is_special(m, ids[i])) {
            inside = false;
            continue;
        }
        if (!inside || m->unit != FTH_MASK_WORDS || m->word_start[ids[i]]) start[units++] = i;
        inside = true;
    }
    return units;
}

/* Where the unit at a place ends. */
static int64_t unit_end(const fth_masking *m, fth_rng *rng, int64_t n, const int32_t *ids,
                        int64_t at) {
    int64_t end = at + 1;
    if (m->unit == FTH_MASK_WORDS)
        while (end < n && !is_special(m, ids[end]) && !m->word_start[ids[end]]) end++;
    const int64_t span = m->unit == FTH_MASK_SPANS ? span_length(rng) : 1;
    if (m->unit == FTH_MASK_SPANS)
        while (end < n && end < at + span && !is_special(m, ids[end])) end++;
    return end;
}

/* Marks units in a random order until `wanted` tokens are chosen; the last unit may be cut, but a
 * word. */
static void choose(const fth_masking *m, fth_rng *rng, int64_t n, const int32_t *ids,
                   int64_t *start, int64_t units, int64_t wanted, int32_t *targets) {
    int64_t chosen = 0;
    for (int64_t left = units; left > 0 && chosen < wanted; left--) {
        const int64_t k = (int64_t)fth_rng_below(rng, (uint64_t)left), at = start[k];
        start[k] = start[left - 1];
        const int64_t end = unit_end(m, rng, n, ids, at);
        for (int64_t i = at; i < end && (chosen < wanted || m->unit == FTH_MASK_WORDS); i++) {
            chosen += targets[i] < 0;
            targets[i] = ids[i];
        }
    }
}

/* Any token but special ones. */
static int32_t another(const fth_masking *m, fth_rng *rng) {
    for (;;) {
        const int32_t id = (int32_t)fth_rng_below(rng, (uint64_t)m->vocab);
        if (!is_special(m, id)) return id;
    }
}

fth_err fth_masking_apply(const fth_masking *m, int64_t epoch, int64_t item, int64_t n,
                          int32_t *ids, int32_t *targets) {
    for (int64_t i = 0; i < n; i++) targets[i] = -1;
    if (m->share <= 0 || n == 0) return FTH_OK;
    int64_t *start = malloc(sizeof *start * (size_t)n), maskable = 0;
    if (!start) return fth_fail(FTH_NO_MEMORY, "no memory to mask %lld tokens", (long long)n);
    fth_rng rng = numbers_of(m->seed, epoch, item);
    for (int64_t i = 0; i < n; i++) maskable += !is_special(m, ids[i]);
    const int64_t wanted = how_many(&rng, m->share, maskable);
    choose(m, &rng, n, ids, start, find_units(m, n, ids, start), wanted, targets);
    free(start);
    for (int64_t i = 0; i < n; i++) {
        if (targets[i] < 0) continue;
        const double u = fth_rng_uniform(&rng);
        if (u >= m->keep + m->random)
            ids[i] = m->mask;
        else if (u >= m->keep)
            ids[i] = another(m, &rng);
    }
    return FTH_OK;
}

/* A rectangle of at least 4 patches that leaves no more than `room`, with sides of 0.3 to 1 /
 * 0.3. */
static void choose_rectangle(fth_rng *rng, int64_t room, int32_t rows, int32_t columns,
                             int32_t *height, int32_t *width) {
    const double least = room < 4 ? (double)room : 4;
    const double area = least + fth_rng_uniform(rng) * ((double)room - least);
    const double ratio = exp((2 * fth_rng_uniform(rng) - 1) * -log(0.3));
    *height = (int32_t)lrint(sqrt(area * ratio));
    *width = (int32_t)lrint(sqrt(area / ratio));
    *height = *height < 1 ? 1 : *height > rows ? rows : *height;
    *width = *width < 1 ? 1 : *width > columns ? columns : *width;
}

int64_t fth_masking_blocks(uint64_t seed, int64_t epoch, int64_t item, double share, int32_t rows,
                           int32_t columns, int32_t *masked) {
    const int64_t n = (int64_t)rows * columns, wanted = llrint(share * (double)n);
    fth_rng rng = numbers_of(seed, epoch, item);
    int64_t done = 0;
    memset(masked, 0, sizeof *masked * (size_t)n);
    while (done < wanted) {
        int32_t height, width;
        choose_rectangle(&rng, wanted - done, rows, columns, &height, &width);
        const int32_t top = (int32_t)fth_rng_below(&rng, (uint64_t)(rows - height) + 1);
        const int32_t left = (int32_t)fth_rng_below(&rng, (uint64_t)(columns - width) + 1);
        for (int32_t y = top; y < top + height; y++)
            for (int32_t x = left; x < left + width && done < wanted; x++) {
                done += !masked[y * columns + x];
                masked[y * columns + x] = 1;
            }
    }
    return done;
}

fth_err fth_word_starts(const fth_tokenizer *t, uint8_t **out) {
    const int32_t n = fth_tokenizer_size(t);
    uint8_t *starts = malloc((size_t)n);
    if (!starts) return fth_fail(FTH_NO_MEMORY, "no memory for %d pieces", n);
    for (int32_t i = 0; i < n; i++) starts[i] = (uint8_t)fth_tokenizer_starts_word(t, i);
    *out = starts;
    return FTH_OK;
}
