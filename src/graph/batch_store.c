/* batch_store.c: copies packed sides and derives what the kernels want beside them: positions,
 * words in order, rows that are picked. */
#include "graph/batch_store.h"

#include <stdlib.h>
#include <string.h>

enum { RADIX = 65536 };

fth_err fth_batch_store_init(fth_batch_store *s, int32_t src_rows, int32_t tgt_rows,
                             int32_t max_sent) {
    memset(s, 0, sizeof *s);
    s->max_rows[FTH_SRC] = src_rows;
    s->max_rows[FTH_TGT] = tgt_rows;
    s->max_sent = max_sent;
    int32_t larger = src_rows > tgt_rows ? src_rows : tgt_rows;
    s->counts = malloc(sizeof *s->counts * RADIX);
    s->temp = malloc(sizeof *s->temp * (size_t)(larger + 1));
    bool whole = s->counts && s->temp;
    for (int k = 0; k < 2; k++) {
        size_t bytes = sizeof(int32_t) * (size_t)(s->max_rows[k] + 1);
        whole &= (s->side[k].ids = malloc(bytes)) != NULL;
        whole &= (s->side[k].pos = malloc(bytes)) != NULL;
        whole &= (s->side[k].targets = malloc(bytes)) != NULL;
        whole &= (s->side[k].order = malloc(bytes)) != NULL;
        whole &= (s->side[k].sentence = malloc(bytes)) != NULL;
        whole &= (s->side[k].offsets = calloc((size_t)max_sent + 1, sizeof(int32_t))) != NULL;
    }
    const size_t picked = sizeof(int32_t) * (size_t)(src_rows + 1);
    whole &= (s->picked = malloc(picked)) && (s->picked_ids = malloc(picked));
    whole &= (s->number_offsets = calloc((size_t)max_sent + 1, sizeof(int32_t))) != NULL;
    whole &= (s->labels = malloc(sizeof *s->labels * ((size_t)max_sent + 1))) != NULL;
    whole &= (s->values = malloc(sizeof *s->values * ((size_t)max_sent + 1))) != NULL;
    if (whole) return FTH_OK;
    fth_batch_store_fini(s);
    return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %d tokens", larger);
}

int64_t fth_batch_store_bytes(int32_t src_rows, int32_t tgt_rows, int32_t max_sent) {
    const int64_t larger = src_rows > tgt_rows ? src_rows : tgt_rows;
    const int64_t rows = (int64_t)src_rows + 1 + (int64_t)tgt_rows + 1;
    const int64_t numbers = RADIX + larger + 1             /* counts, temp */
                            + 5 * rows                     /* ids, pos, targets, order, sentence */
                            + 2 * ((int64_t)src_rows + 1)  /* picked, picked_ids */
                            + 5 * ((int64_t)max_sent + 1); /* offsets of three, labels, values */
    return numbers * (int64_t)sizeof(int32_t);
}

void fth_batch_store_fini(fth_batch_store *s) {
    free(s->counts);
    free(s->temp);
    free(s->picked);
    free(s->picked_ids);
    free(s->number_offsets);
    free(s->numbers);
    free(s->masked);
    free(s->labels);
    free(s->values);
    for (int k = 0; k < 2; k++) {
        free(s->side[k].ids);
        free(s->side[k].pos);
        free(s->side[k].targets);
        free(s->side[k].order);
        free(s->side[k].sentence);
        free(s->side[k].offsets);
    }
    memset(s, 0, sizeof *s);
}

/* One stable pass of a radix sort by 16 bits of the ids. */
static void sort_pass(fth_batch_store *s, const int32_t *ids, int shift, const int32_t *from,
                      int32_t *to, int32_t n) {
    memset(s->counts, 0, sizeof *s->counts * RADIX);
    for (int32_t i = 0; i < n; i++) s->counts[((uint32_t)ids[i] >> shift) & (RADIX - 1)]++;
    uint32_t sum = 0;
    for (int k = 0; k < RADIX; k++) {
        uint32_t count = s->counts[k];
        s->counts[k] = sum;
        sum += count;
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t row = from ? from[i] : i;
        to[s->counts[((uint32_t)ids[row] >> shift) & (RADIX - 1)]++] = row;
    }
}

/* The rows of the source that have a target. */
static void pick_targets(fth_batch_store *s) {
    const fth_packed_side *src = &s->batch.side[FTH_SRC];
    int32_t n = 0;
    for (int32_t r = 0; src->targets && r < src->rows; r++) {
        if (src->targets[r] < 0) continue;
        s->picked[n] = r;
        s->picked_ids[n++] = src->targets[r];
    }
    s->batch.n_picked = n;
    s->batch.picked = s->picked;
    s->batch.picked_ids = s->picked_ids;
}

static fth_err check_rows(int32_t rows, const int32_t *ids, int32_t vocab, const int32_t *targets,
                          int32_t classes) {
    for (int32_t r = 0; r < rows; r++) {
        if (ids && (ids[r] < 0 || ids[r] >= vocab))
            return fth_fail(FTH_BAD_INPUT,
                            "token %d of the batch: id %d is outside of the vocabulary of %d", r,
                            ids[r], vocab);
        if (targets && targets[r] >= classes)
            return fth_fail(FTH_BAD_INPUT,
                            "target %d of the batch: id %d is outside of the vocabulary of %d", r,
                            targets[r], classes);
    }
    return FTH_OK;
}

fth_err fth_batch_store_fill(fth_batch_store *s, fth_side side, int32_t n_sent,
                             const int32_t *offsets, const int32_t *ids, const int32_t *targets,
                             int32_t vocab) {
    return fth_batch_store_rows(s, side, n_sent, offsets, ids, vocab, targets, vocab);
}

fth_err fth_batch_store_rows(fth_batch_store *s, fth_side side, int32_t n_sent,
                             const int32_t *offsets, const int32_t *ids, int32_t vocab,
                             const int32_t *targets, int32_t classes) {
    int32_t rows = offsets[n_sent], longest = 0;
    if (n_sent > s->max_sent || rows > s->max_rows[side])
        return fth_fail(FTH_FAILED,
                        "a batch of %d sentences and %d tokens does not fit into %d, %d", n_sent,
                        rows, s->max_sent, s->max_rows[side]);
    FTH_TRY(check_rows(rows, ids, vocab, targets, classes));
    if (ids) memcpy(s->side[side].ids, ids, sizeof *ids * (size_t)rows);
    if (!ids) memset(s->side[side].ids, 0, sizeof *ids * (size_t)rows);
    ids = s->side[side].ids;
    memcpy(s->side[side].offsets, offsets, sizeof *offsets * (size_t)(n_sent + 1));
    if (targets) memcpy(s->side[side].targets, targets, sizeof *targets * (size_t)rows);
    for (int32_t i = 0; i < n_sent; i++) {
        int32_t length = offsets[i + 1] - offsets[i];
        if (length > longest) longest = length;
        for (int32_t k = 0; k < length; k++) {
            s->side[side].pos[offsets[i] + k] = k;
            s->side[side].sentence[offsets[i] + k] = i;
        }
    }
    if (vocab > RADIX) {
        sort_pass(s, ids, 0, NULL, s->temp, rows);
        sort_pass(s, ids, 16, s->temp, s->side[side].order, rows);
    } else {
        sort_pass(s, ids, 0, NULL, s->side[side].order, rows);
    }
    s->batch.n_sent = n_sent;
    s->batch.side[side] = (fth_packed_side){.rows = rows,
                                            .max_len = longest,
                                            .ids = s->side[side].ids,
                                            .pos = s->side[side].pos,
                                            .targets = targets ? s->side[side].targets : NULL,
                                            .offsets = s->side[side].offsets,
                                            .order = s->side[side].order,
                                            .sentence = s->side[side].sentence};
    if (side == FTH_SRC) pick_targets(s);
    return FTH_OK;
}

static fth_err number_room(fth_batch_store *s, int64_t n) {
    if (n <= s->number_room) return FTH_OK;
    free(s->numbers);
    free(s->masked);
    s->numbers = malloc(sizeof *s->numbers * (size_t)n);
    s->masked = malloc(sizeof *s->masked * (size_t)n);
    s->number_room = s->numbers && s->masked ? n : 0;
    return s->number_room
               ? FTH_OK
               : fth_fail(FTH_NO_MEMORY, "no memory for a batch of %lld numbers", (long long)n);
}

/* Copies rows whose offsets are there. */
static fth_err keep_numbers(fth_batch_store *s, int32_t n_sent, int32_t width, const float *data,
                            const int32_t *masked) {
    const int32_t rows = s->number_offsets[n_sent];
    FTH_TRY(number_room(s, (int64_t)rows * width + 1));
    memcpy(s->numbers, data, sizeof *data * (size_t)rows * (size_t)width);
    if (masked) memcpy(s->masked, masked, sizeof *masked * (size_t)rows);
    s->batch.input =
        (fth_packed_numbers){rows, width, s->numbers, s->number_offsets, masked ? s->masked : NULL};
    return FTH_OK;
}

static fth_err check_sentences(const fth_batch_store *s, int32_t n_sent) {
    if (n_sent <= s->max_sent) return FTH_OK;
    return fth_fail(FTH_FAILED, "a batch of %d sentences does not fit into %d", n_sent,
                    s->max_sent);
}

fth_err fth_batch_store_numbers(fth_batch_store *s, int32_t n_sent, const int32_t *offsets,
                                int32_t width, const float *data, const int32_t *masked) {
    FTH_TRY(check_sentences(s, n_sent));
    memcpy(s->number_offsets, offsets, sizeof *offsets * (size_t)(n_sent + 1));
    return keep_numbers(s, n_sent, width, data, masked);
}

fth_err fth_batch_store_pictures(fth_batch_store *s, int32_t n_sent, int32_t rows, int32_t width,
                                 const float *data, const int32_t *masked) {
    FTH_TRY(check_sentences(s, n_sent));
    for (int32_t i = 0; i <= n_sent; i++) s->number_offsets[i] = i * rows;
    return keep_numbers(s, n_sent, width, data, masked);
}

void fth_batch_store_labels(fth_batch_store *s, const int32_t *labels, const float *values) {
    const size_t n = (size_t)s->batch.n_sent;
    if (labels) memcpy(s->labels, labels, sizeof *labels * n);
    if (values) memcpy(s->values, values, sizeof *values * n);
    s->batch.labels = labels ? s->labels : NULL;
    s->batch.values = values ? s->values : NULL;
}

void fth_batch_rows(const fth_batch *batch, int64_t rows[FTH_N_EXTENTS]) {
    const fth_packed_side *src = &batch->side[FTH_SRC], *tgt = &batch->side[FTH_TGT];
    memset(rows, 0, sizeof *rows * FTH_N_EXTENTS);
    rows[FTH_ROWS_SRC] = src->rows;
    rows[FTH_ROWS_TGT] = tgt->rows;
    rows[FTH_ROWS_SENTENCES] = batch->n_sent;
    rows[FTH_ROWS_PICKED] = batch->n_picked;
    rows[FTH_ROWS_INPUT] = batch->input.rows;
    for (int32_t s = 0; s < batch->n_sent; s++) {
        int64_t n = src->rows ? src->offsets[s + 1] - src->offsets[s] : 0;
        int64_t m = tgt->rows ? tgt->offsets[s + 1] - tgt->offsets[s] : 0;
        rows[FTH_ROWS_SRC_PAIRS] += n * n;
        rows[FTH_ROWS_CROSS_PAIRS] += m * n;
        if (!batch->length) rows[FTH_ROWS_TGT_PAIRS] += m * m;
    }
    for (int32_t r = 0; batch->length && r < tgt->rows; r++)
        rows[FTH_ROWS_TGT_PAIRS] += batch->length[r];
}
