/* patches.c: the rows of numbers that the batch brings, and rows of the source from rows of
 * patches: y = D(row + P[position]), where the row is a patch's, the class token in a sentence's
 * first row, or the mask token where the patch is hidden; and their gradients. */
#include "backend/ref/ref.h"

fth_err fth_ref_numbers(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->out[NUMBERS_X]);
    for (int64_t row = 0; row < fth_rows_now(ex, x); row++)
        for (int32_t c = 0; c < x->width; c++)
            fth_ref_put(x, row, c, (double)ex->batch.input.data[row * x->width + c]);
    return FTH_OK;
}

/* Which patch a source row shows: its row among the numbers, or one of these. */
enum { CLASS_TOKEN = -1, MASK_TOKEN = -2 };

/* *patch: the row of numbers that stands there, also when it is hidden; -1: none. */
static int64_t shown_at(const fth_exec *ex, const fth_op *op, int64_t sentence, int64_t position,
                        bool masks, int64_t *patch) {
    const int64_t k = position - op->u.patches.cls;
    const int32_t *offsets =
        op->u.patches.cls ? ex->batch.input.offsets : ex->batch.side[op->u.patches.side].offsets;
    *patch = k < 0 ? -1 : offsets[sentence] + k; /* without class tokens rows stand for rows */
    if (k < 0) return CLASS_TOKEN;
    return masks && ex->batch.input.masked && ex->batch.input.masked[*patch] ? MASK_TOKEN : *patch;
}

fth_err fth_ref_patches(fth_exec *ex, const fth_op *op) {
    const fth_tensor *x = fth_arg(ex, op->in[PATCHES_X]), *y = fth_arg(ex, op->out[PATCHES_Y]);
    const fth_tensor *positions = fth_arg(ex, op->in[PATCHES_POS]);
    const fth_tensor *cls = fth_arg(ex, op->in[PATCHES_CLS]);
    const fth_tensor *mask = fth_arg(ex, op->in[PATCHES_MASK]);
    const int32_t *offsets = ex->batch.side[op->u.patches.side].offsets;
    for (int64_t s = 0; s < ex->batch.n_sent; s++)
        for (int64_t row = offsets[s]; row < offsets[s + 1]; row++) {
            const int64_t position = row - offsets[s];
            int64_t patch;
            const int64_t shown = shown_at(ex, op, s, position, mask != NULL, &patch);
            for (int32_t c = 0; c < y->width; c++) {
                const double token = shown == CLASS_TOKEN  ? fth_ref_get(cls, 0, c)
                                     : shown == MASK_TOKEN ? fth_ref_get(mask, 0, c)
                                                           : fth_ref_get(x, patch, c);
                const double sum = token + fth_ref_get(positions, position, c);
                fth_ref_put(y, row, c, sum * fth_ref_drop_at(ex, &op->u.patches.drop, y, row, c));
            }
        }
    return FTH_OK;
}

fth_err fth_ref_patches_bwd(fth_exec *ex, const fth_op *op) {
    const fth_tensor *dy = fth_arg(ex, op->in[PATCHES_BWD_DY]);
    const fth_tensor *dx = fth_arg(ex, op->out[PATCHES_BWD_DX]);
    const fth_tensor *dpositions = fth_arg(ex, op->out[PATCHES_BWD_DPOS]);
    const fth_tensor *dcls = fth_arg(ex, op->out[PATCHES_BWD_DCLS]);
    const fth_tensor *dmask = fth_arg(ex, op->out[PATCHES_BWD_DMASK]);
    const int32_t *offsets = ex->batch.side[op->u.patches.side].offsets;
    for (int64_t s = 0; s < ex->batch.n_sent; s++)
        for (int64_t row = offsets[s]; row < offsets[s + 1]; row++) {
            const int64_t position = row - offsets[s];
            int64_t patch;
            const int64_t shown = shown_at(ex, op, s, position, dmask != NULL, &patch);
            for (int32_t c = 0; c < dy->width; c++) {
                const double g =
                    fth_ref_get(dy, row, c) * fth_ref_drop_at(ex, &op->u.patches.drop, dy, row, c);
                if (dpositions) fth_ref_add_to(dpositions, position, c, g);
                if (patch >= 0) fth_ref_put(dx, patch, c, shown == patch ? g : 0);
                if (shown == CLASS_TOKEN) fth_ref_add_to(dcls, 0, c, g);
                if (shown == MASK_TOKEN) fth_ref_add_to(dmask, 0, c, g);
            }
        }
    return FTH_OK;
}
