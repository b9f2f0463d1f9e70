/* embed.c: y = D(scale * E[token] + P[position]) (doc/mathematics.md#embeddings-and-positions) and
 * its gradient. A thread owns whole tokens of the table (batch.order sorts the rows by token), so
 * that sums never collide and always have the same order. Bound by memory. */
#include "backend/cpu/kernel/kernel.h"

#include "graph/dropout.h"

/* The factor of a row's token: the scale, or 0 where word dropout strikes. */
static float word_factor(const fth_exec *ex, const fth_op *op, int64_t row) {
    const fth_drop *word = &op->u.embed.word;
    const fth_side side = op->u.embed.side;
    const bool spared = op->u.embed.keep_first && ex->batch.side[side].pos[row] == 0;
    if (word->p > 0 && !spared) {
        const uint64_t e = (uint64_t)(ex->step.row_base[side] + row);
        if (!fth_drop_keeps(ex->step.seed, ex->step.update, word->site, word->p, e)) return 0;
    }
    return op->u.embed.scale;
}

FTH_SCRATCH(embed) {
    (void)capacity;
    return threads_scratch_bytes(dev, 2 * g->value[op->out[EMBED_Y]].width);
}

/* A token's row of the table as floats. */
static void word_row(const fth_tensor *table, int64_t token, float *restrict_ out) {
    if (table->dtype == REAL_DTYPE) {
        const real *word = (const real *)table->data + token * table->ld;
#pragma omp simd
        for (int32_t i = 0; i < table->width; i++) out[i] = from_real(word[i]);
    } else { /* the parameters themselves (weights.h) */
        const float *word = (const float *)table->data + token * table->ld;
#pragma omp simd
        for (int32_t i = 0; i < table->width; i++) out[i] = from_real(to_real(word[i]));
    }
}

FTH_PART(embed) {
    const fth_tensor *t = fth_arg(ex, op->out[EMBED_Y]), *pos = fth_arg(ex, op->in[EMBED_POS]);
    const fth_tensor *table = fth_arg(ex, op->in[EMBED_TABLE]);
    const rows y = rows_of(ex, op->out[EMBED_Y]);
    const fth_packed_side *side = &ex->batch.side[op->u.embed.side];
    const fth_drop *drop = &op->u.embed.drop;
    const int32_t width = t->width;
    float *factor = thread_scratch(ex, team->thread, 2 * width), *word = factor + width; /* [d] */
    const fth_cpu_share mine = fth_team_share(team, fth_rows_now(ex, t), 1);
    for (int32_t i = 0; i < width; i++) factor[i] = 1;
    for (int64_t row = mine.begin; row < mine.end; row++) {
        const float scale = word_factor(ex, op, row);
        const int64_t p = side->pos[row];
        real *out = y.data + row * y.ld;
        word_row(table, side->ids[row], word);
        if (drop->p > 0) FTH_NAME(drop_factors)(ex, drop, drop_element(ex, t, row), width, factor);
        if (pos->dtype == FTH_F32) {
            const float *place = (const float *)pos->data + p * pos->ld;
#pragma omp simd
            for (int32_t i = 0; i < width; i++)
                out[i] = to_real(factor[i] * (scale * word[i] + place[i]));
        } else {
            const uint16_t *place = (const uint16_t *)pos->data + p * pos->ld;
#pragma omp simd
            for (int32_t i = 0; i < width; i++)
                out[i] = to_real(factor[i] * (scale * word[i] + fth_float_of_bf16(place[i])));
        }
    }
}

FTH_SCRATCH(embed_bwd) {
    (void)capacity;
    return threads_scratch_bytes(dev, g->value[op->in[EMBED_BWD_DY]].width);
}

/* Adds D(dy) * scale, columns [first, end) of a row, to out. */
static void add_row(const fth_exec *ex, const fth_op *op, int64_t row, fth_cpu_share columns,
                    float scale, float *restrict_ factor, float *restrict_ out) {
    const fth_tensor *t = fth_arg(ex, op->in[EMBED_BWD_DY]);
    const fth_drop *drop = &op->u.embed.drop;
    const int64_t n = columns.end - columns.begin;
    const real *dy = (const real *)t->data + row * t->ld + columns.begin;
    if (drop->p > 0) {
        FTH_NAME(drop_factors)
        (ex, drop, drop_element(ex, t, row) + (uint64_t)columns.begin, n, factor);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] += scale * factor[i] * from_real(dy[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] += scale * from_real(dy[i]);
    }
}

/* The first place in the order at or after `at` where a new token begins. */
static int64_t token_border(const fth_packed_side *side, int64_t at) {
    while (at > 0 && at < side->rows &&
           side->ids[side->order[at]] == side->ids[side->order[at - 1]])
        at++;
    return at;
}

FTH_PART(embed_bwd) {
    const fth_tensor *t = fth_arg(ex, op->in[EMBED_BWD_DY]);
    const full_rows dtable = full_of(ex, op->out[EMBED_BWD_DTABLE]);
    const full_rows dpos = full_of(ex, op->out[EMBED_BWD_DPOS]);
    const fth_packed_side *side = &ex->batch.side[op->u.embed.side];
    float *factor = thread_scratch(ex, team->thread, t->width); /* [d] */
    const fth_cpu_share part = fth_team_share(team, side->rows, 1);
    const int64_t begin = token_border(side, part.begin), end = token_border(side, part.end);
    for (int64_t i = begin; i < end && dtable.data; i++) {
        const int64_t row = side->order[i];
        const float scale = word_factor(ex, op, row);
        if (scale == 0) continue;
        add_row(ex, op, row, (fth_cpu_share){0, t->width}, scale, factor,
                dtable.data + side->ids[row] * dtable.ld);
    }
    if (!dpos.data) return;
    /* rows are not sorted by position: here a thread owns columns */
    const fth_cpu_share columns = fth_team_share(team, t->width, 16);
    for (int64_t row = 0; row < side->rows && columns.begin < columns.end; row++)
        add_row(ex, op, row, columns, 1, factor,
                dpos.data + side->pos[row] * dpos.ld + columns.begin);
}
