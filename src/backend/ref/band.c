/* band.c: words by bands of their numbers. band: y = E[word - first] where the word is in the band,
 * else 0, and its gradient. log_words: log-probabilities of all words from the products of a head,
 * whose last entries are the bands behind it, and of these bands. */
#include "backend/ref/ref.h"

#include <math.h>

/* Row of the band's table, -1: the word is in another band. */
static int64_t place_in_band(const fth_exec *ex, const fth_op *op, int64_t row, int64_t size) {
    const int64_t place = (int64_t)ex->batch.side[FTH_TGT].ids[row] - op->u.band.first;
    return place >= 0 && place < size ? place : -1;
}

fth_err fth_ref_band(fth_exec *ex, const fth_op *op) {
    const fth_tensor *table = fth_arg(ex, op->in[BAND_TABLE]), *y = fth_arg(ex, op->out[BAND_Y]);
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++) {
        const int64_t place = place_in_band(ex, op, row, table->rows);
        for (int32_t c = 0; c < y->width; c++)
            fth_ref_put(y, row, c, place < 0 ? 0 : fth_ref_get(table, place, c));
    }
    return FTH_OK;
}

fth_err fth_ref_band_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[BAND_BWD_DY]);
    const fth_tensor *dtable = fth_arg(ex, op->out[BAND_BWD_DTABLE]);
    for (int64_t row = 0; row < fth_rows_now(ex, dy); row++) {
        const int64_t place = place_in_band(ex, op, row, dtable->rows);
        for (int32_t c = 0; place >= 0 && c < dy->width; c++)
            fth_ref_add_to(dtable, place, c, fth_ref_get(dy, row, c));
    }
    return FTH_OK;
}

static double log_sum(const fth_tensor *t, int64_t row) {
    double highest = -INFINITY, sum = 0;
    for (int32_t c = 0; c < t->width; c++) highest = fmax(highest, fth_ref_get(t, row, c));
    for (int32_t c = 0; c < t->width; c++) sum += exp(fth_ref_get(t, row, c) - highest);
    return highest + log(sum);
}

fth_err fth_ref_log_words(fth_exec *ex, const fth_op *op) {
    const fth_tensor *head = fth_arg(ex, op->in[LOG_WORDS_HEAD]), *y = fth_arg(ex, op->out[0]);
    const int32_t words = head->width - FTH_TAILS;
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++) {
        const double whole = log_sum(head, row);
        for (int32_t c = 0; c < words; c++)
            fth_ref_put(y, row, c, fth_ref_get(head, row, c) - whole);
        int32_t at = words;
        for (int k = 0; k < FTH_TAILS; k++) {
            const fth_tensor *tail = fth_arg(ex, op->in[LOG_WORDS_HEAD + 1 + k]);
            const double shift = fth_ref_get(head, row, words + k) - whole - log_sum(tail, row);
            for (int32_t c = 0; c < tail->width; c++)
                fth_ref_put(y, row, at++, fth_ref_get(tail, row, c) + shift);
        }
    }
    return FTH_OK;
}
