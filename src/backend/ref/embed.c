/* embed.c: y = D(scale * E[token] + P[position]) (doc/mathematics.md#embeddings-and-positions), and
 * its gradient. Word dropout (doc/mathematics.md#dropout) takes the token's part away, whole and
 * without making the others larger. */
#include "backend/ref/ref.h"

/* The factor of a row's token: the scale, or 0 where word dropout strikes. */
static double word_factor(const fth_exec *ex, const fth_op *op, int64_t row) {
    const fth_drop *word = &op->u.embed.word;
    const fth_side side = op->u.embed.side;
    const bool spared = op->u.embed.keep_first && ex->batch.side[side].pos[row] == 0;
    if (word->p > 0 && !spared) {
        uint64_t e = (uint64_t)(ex->step.row_base[side] + row);
        if (!fth_drop_keeps(ex->step.seed, ex->step.update, word->site, word->p, e)) return 0;
    }
    return (double)op->u.embed.scale;
}

fth_err fth_ref_embed(fth_exec *ex, const fth_op *op) {
    const fth_tensor *table = fth_arg(ex, op->in[EMBED_TABLE]);
    const fth_tensor *positions = fth_arg(ex, op->in[EMBED_POS]);
    const fth_tensor *y = fth_arg(ex, op->out[EMBED_Y]);
    const fth_packed_side *side = &ex->batch.side[op->u.embed.side];
    for (int64_t row = 0; row < fth_rows_now(ex, y); row++) {
        const double factor = word_factor(ex, op, row);
        for (int32_t c = 0; c < y->width; c++) {
            double x = factor * fth_ref_get(table, side->ids[row], c) +
                       fth_ref_get(positions, side->pos[row], c);
            fth_ref_put(y, row, c, x * fth_ref_drop_at(ex, &op->u.embed.drop, y, row, c));
        }
    }
    return FTH_OK;
}

fth_err fth_ref_embed_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[EMBED_BWD_DY]);
    const fth_tensor *dtable = fth_arg(ex, op->out[EMBED_BWD_DTABLE]);
    const fth_tensor *dpositions = fth_arg(ex, op->out[EMBED_BWD_DPOS]);
    const fth_packed_side *side = &ex->batch.side[op->u.embed.side];
    for (int64_t row = 0; row < fth_rows_now(ex, dy); row++) {
        const double factor = word_factor(ex, op, row);
        for (int32_t c = 0; c < dy->width; c++) {
            double g = fth_ref_get(dy, row, c);
            g *= fth_ref_drop_at(ex, &op->u.embed.drop, dy, row, c);
            fth_ref_add_to(dtable, side->ids[row], c, factor * g);
            if (dpositions) fth_ref_add_to(dpositions, side->pos[row], c, g);
        }
    }
    return FTH_OK;
}
