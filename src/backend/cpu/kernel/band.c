/* band.c: words by bands of their numbers: rows of a band's table and their gradient, and the
 * log-probabilities of all words. Bound by memory. */
#include "backend/cpu/kernel/kernel.h"

#include "backend/cpu/kernel/math.h"

/* Row of the band's table, -1: the word is in another band. */
static int64_t place_in_band(const fth_exec *ex, const fth_op *op, int64_t row, int64_t size) {
    const int64_t place = (int64_t)ex->batch.side[FTH_TGT].ids[row] - op->u.band.first;
    return place >= 0 && place < size ? place : -1;
}

FTH_PART(band) {
    const fth_tensor *t = fth_arg(ex, op->out[BAND_Y]);
    const fth_tensor *table = fth_arg(ex, op->in[BAND_TABLE]);
    const rows y = rows_of(ex, op->out[BAND_Y]);
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const int64_t place = place_in_band(ex, op, row, table->rows);
        real *out = y.data + row * y.ld;
        for (int32_t i = 0; i < t->width; i++)
            out[i] = to_real(place < 0 ? 0 : element(table, place, i));
    }
}

/* A thread owns columns, so equal words do not collide. */
FTH_PART(band_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[BAND_BWD_DY]);
    const int64_t size = fth_arg(ex, op->out[BAND_BWD_DTABLE])->rows;
    const rows dy = rows_of(ex, op->in[BAND_BWD_DY]);
    const full_rows dtable = full_of(ex, op->out[BAND_BWD_DTABLE]);
    const fth_cpu_share columns = fth_team_share(team, t->width, 16);
    for (int64_t row = 0; row < fth_rows_now(ex, t); row++) {
        const int64_t place = place_in_band(ex, op, row, size);
        if (place < 0) continue;
        const real *in = dy.data + row * dy.ld;
        float *out = dtable.data + place * dtable.ld;
        for (int64_t i = columns.begin; i < columns.end; i++) out[i] += from_real(in[i]);
    }
}

static float log_sum(const real *x, int64_t n) {
    float highest = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) highest = fmaxf(highest, from_real(x[i]));
    for (int64_t i = 0; i < n; i++) sum += (double)fast_exp(from_real(x[i]) - highest);
    return highest + (float)log(sum);
}

FTH_PART(log_words) {
    const fth_tensor *t = fth_arg(ex, op->out[LOG_WORDS_Y]);
    const rows y = rows_of(ex, op->out[LOG_WORDS_Y]), head = rows_of(ex, op->in[LOG_WORDS_HEAD]);
    const int32_t words = fth_arg(ex, op->in[LOG_WORDS_HEAD])->width - FTH_TAILS;
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const real *z = head.data + row * head.ld;
        real *out = y.data + row * y.ld;
        const float whole = log_sum(z, words + FTH_TAILS);
        for (int32_t i = 0; i < words; i++) out[i] = to_real(from_real(z[i]) - whole);
        out += words;
        for (int k = 0; k < FTH_TAILS; k++) {
            const rows tail = rows_of(ex, op->in[LOG_WORDS_HEAD + 1 + k]);
            const int32_t size = fth_arg(ex, op->in[LOG_WORDS_HEAD + 1 + k])->width;
            const real *x = tail.data + row * tail.ld;
            const float shift = from_real(z[words + k]) - whole - log_sum(x, size);
            for (int32_t i = 0; i < size; i++) out[i] = to_real(from_real(x[i]) + shift);
            out += size;
        }
    }
}
