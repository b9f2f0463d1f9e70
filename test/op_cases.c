/* op_cases.c: the table of cases: every variant of every kind, in every shape. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "op_build.h"

static const fth_shape shapes[] = {
    /* name             sentences  lengths of sources, targets   d heads inner  V  large */
    {"one token", 1, {1}, {1}, 8, 2, 12, 11, false},
    {"one head, width 129", 1, {5}, {4}, 129, 1, 33, 37, false},
    {"four sentences", 4, {3, 1, 7, 2}, {2, 5, 1, 4}, 12, 3, 16, 9, false},
    {"empty batch", 0, {0}, {0}, 16, 2, 20, 9, false},
    {"width 64", 2, {9, 17}, {18, 5}, 64, 2, 48, 65, false},
    {"long", 3, {130, 3, 40}, {30, 141, 1}, 128, 2, 256, 300, true},
};

enum { C = FTH_COEF_CONST, T = FTH_COEF_STEP, S = FTH_COEF_SCALAR, V = FTH_COEF_VECTOR };

static const fth_variant variants[] = {
    {"embed", .build = fth_case_embed},
    {"embed learned positions, dropouts", .build = fth_case_embed, .flags = LEARNED | TARGET,
     .p = 0.3f},
    {"linear", .build = fth_case_linear},
    {"linear bias", .build = fth_case_linear, .flags = BIAS | TARGET},
    {"linear bias relu", .build = fth_case_linear, .flags = BIAS, .act = FTH_ACT_RELU},
    {"linear bias gelu", .build = fth_case_linear, .flags = BIAS, .act = FTH_ACT_GELU},
    {"linear bias, gradient assigned", .build = fth_case_linear, .flags = BIAS | FRESH},
    {"linear after relu", .build = fth_case_linear_after, .act = FTH_ACT_RELU},
    {"linear after gelu, addend", .build = fth_case_linear_after, .flags = ADDEND,
     .act = FTH_ACT_GELU},
    {"linear after relu, addend in place", .build = fth_case_linear_after,
     .flags = ADDEND | IN_PLACE, .act = FTH_ACT_RELU},
    {"linear, addend in place", .build = fth_case_linear_after, .flags = ADDEND | IN_PLACE,
     .act = FTH_ACT_NONE},
    {"activation relu", .build = fth_case_activation, .act = FTH_ACT_RELU},
    {"activation gelu", .build = fth_case_activation, .flags = TARGET, .act = FTH_ACT_GELU},
    {"activation tanh", .build = fth_case_activation, .act = FTH_ACT_TANH},
    {"dropout of sentences", .build = fth_case_dropout, .flags = SENTENCES, .p = 0.3f},
    {"attention", .build = fth_case_attention, .number = 1},
    {"attention causal", .build = fth_case_attention, .flags = TARGET, .number = 1},
    {"attention separate, dropout", .build = fth_case_attention, .flags = SEPARATE, .p = 0.2f,
     .number = 1},
    {"attention causal dropout", .build = fth_case_attention, .flags = TARGET, .p = 0.4f,
     .number = 1},
    {"attention cross", .build = fth_case_attention, .flags = CROSS, .number = 1},
    {"attention cross dropout", .build = fth_case_attention, .flags = CROSS, .p = 0.2f,
     .number = 1},
    {"attention first of a chain", .build = fth_case_attention, .flags = CARRY | ADDEND,
     .number = 1},
    {"attention of a product", .build = fth_case_attention_of_product, .number = 1},
    {"attention of a product, causal", .build = fth_case_attention_of_product, .flags = TARGET,
     .number = 1},
    {"attention carried", .build = fth_case_attention, .flags = CARRY | PREVIOUS | ADDEND,
     .p = 0.2f, .number = 2},
    {"attention carried causal", .build = fth_case_attention,
     .flags = TARGET | CARRY | PREVIOUS | ADDEND, .number = 3},
    {"attention carried cross, last", .build = fth_case_attention,
     .flags = CROSS | CARRY | PREVIOUS, .number = 3},
    {"attention_cached", .build = fth_case_cached, .flags = TARGET, .number = 1},
    {"attention_cached carried", .build = fth_case_cached, .flags = TARGET | CARRY | PREVIOUS,
     .number = 2},
    {"join", .build = fth_case_join, .r = C, .a = C},
    {"join dropout step", .build = fth_case_join, .flags = TARGET, .p = 0.3f, .r = C, .a = T},
    {"join scalar (rezero)", .build = fth_case_join, .p = 0.3f, .r = C, .a = S},
    {"join vector (lambda)", .build = fth_case_join, .flags = TARGET, .p = 0.1f, .r = V, .a = C},
    {"join all learned", .build = fth_case_join, .flags = EXTRA, .p = 0.3f, .r = S, .a = V, .c = S},
    {"join dropout, bits", .build = fth_case_join, .flags = TARGET | BITS, .p = 0.3f, .r = C,
     .a = T},
    {"join all learned, bits", .build = fth_case_join, .flags = EXTRA | BITS, .p = 0.3f, .r = S,
     .a = V, .c = S},
    {"joined with the slope", .build = fth_case_feed_forward},
    {"joined products", .build = fth_case_joined, .flags = ADDEND, .p = 0.3f, .r = C, .a = T},
    {"joined products, no addend", .build = fth_case_joined, .flags = TARGET, .r = C, .a = C},
    {"norm", .build = fth_case_norm},
    {"norm addend", .build = fth_case_norm, .flags = TARGET | ADDEND},
    {"join_norm", .build = fth_case_join_norm, .r = C, .a = C},
    {"join_norm plain", .build = fth_case_join_norm_plain, .flags = ADDEND, .r = C, .a = C},
    {"join_norm dropout step", .build = fth_case_join_norm, .flags = TARGET | ADDEND, .p = 0.3f,
     .r = C, .a = T},
    {"join_norm third term (b2t)", .build = fth_case_join_norm, .flags = EXTRA, .p = 0.1f, .r = C,
     .a = C, .c = C},
    {"join_norm vector (admin)", .build = fth_case_join_norm, .flags = ADDEND, .p = 0.3f, .r = V,
     .a = C},
    {"join_norm all learned", .build = fth_case_join_norm, .flags = EXTRA | ADDEND, .p = 0.3f,
     .r = S, .a = S, .c = V},
    {"join_norm dropout, bits", .build = fth_case_join_norm, .flags = ADDEND | BITS, .p = 0.3f,
     .r = C, .a = T},
    {"join_norm third term, bits", .build = fth_case_join_norm, .flags = TARGET | EXTRA | BITS,
     .p = 0.5f, .r = C, .a = C, .c = C},
    {"join_norm all learned, bits", .build = fth_case_join_norm, .flags = EXTRA | ADDEND | BITS,
     .p = 0.3f, .r = S, .a = S, .c = V},
    {"dropout", .build = fth_case_dropout, .p = 0.3f},
    {"dropout target", .build = fth_case_dropout, .flags = TARGET, .p = 0.75f},
    {"scale_shift", .build = fth_case_scale_shift, .flags = LEARNED | SHIFT},
    {"scale_shift shift only", .build = fth_case_scale_shift, .flags = SHIFT | TARGET},
    {"scale_shift scale only", .build = fth_case_scale_shift, .flags = LEARNED},
    {"scale_shift factor only", .build = fth_case_scale_shift, .number = 0.75},
    {"scale_shift all", .build = fth_case_scale_shift, .flags = LEARNED | SHIFT | TARGET,
     .number = -1.5},
    {"head_scale", .build = fth_case_head_scale, .flags = TARGET},
    {"mix of 1", .build = fth_case_mix, .number = 1},
    {"mix of 5", .build = fth_case_mix, .flags = TARGET | ADDEND, .number = 5},
    {"mix of 4 in place", .build = fth_case_mix, .flags = ADDEND | IN_PLACE, .number = 4},
    {"add", .build = fth_case_add},
    {"add in place", .build = fth_case_add, .flags = TARGET | IN_PLACE},
    {"xent", .build = fth_case_xent, .flags = TARGET | LEARNED},
    {"xent smoothed, rows", .build = fth_case_xent, .flags = TARGET | LEARNED | EXTRA,
     .number = 0.1},
    {"xent source, dx only", .build = fth_case_xent, .flags = EXTRA, .number = 0.2},
    {"xent without gradients", .build = fth_case_xent, .flags = TARGET | NO_DX | EXTRA,
     .number = 0.1},
    {"xent bias", .build = fth_case_xent, .flags = TARGET | LEARNED | BIAS},
    {"xent of picked rows, bias", .build = fth_case_xent, .flags = LEARNED | BIAS | EXTRA | PICKED,
     .number = 0.1},
    {"xent of sentences, bias", .build = fth_case_xent, .flags = LEARNED | BIAS | SENTENCES},
    {"square", .build = fth_case_square},
    {"square without a gradient", .build = fth_case_square, .flags = NO_DX},
    {"pick first rows", .build = fth_case_pick, .number = FTH_PICK_FIRST},
    {"pick targets", .build = fth_case_pick, .number = FTH_PICK_TARGETS},
    {"mean", .build = fth_case_mean},
    {"unfold, four steps a row, from two before", .build = fth_case_unfold, .flags = SHIFT,
     .number = 4},
    {"unfold, four steps a row", .build = fth_case_unfold, .number = 4},
    {"unfold, two steps a row, from two before", .build = fth_case_unfold, .flags = SHIFT,
     .number = 2},
    {"band, the upper words", .build = fth_case_band},
    {"band, the lower words", .build = fth_case_band, .flags = EXTRA},
    {"log_words", .build = fth_case_log_words},
    {"glu", .build = fth_case_glu},
    {"glu of two, some hidden", .build = fth_case_glu, .flags = EXTRA},
    {"patches", .build = fth_case_patches},
    {"patches, class token, learned positions, dropout", .build = fth_case_patches,
     .flags = CLS | LEARNED, .p = 0.3f},
    {"patches, both tokens, dropout", .build = fth_case_patches, .flags = CLS | MASKED, .p = 0.2f},
    {"patches, mask token, learned positions", .build = fth_case_patches,
     .flags = MASKED | LEARNED},
    {"update", .build = fth_case_update, .number = 3},
    {"update watched", .build = fth_case_update, .flags = WATCHED, .number = 1},
    {"update of nothing", .build = fth_case_update, .flags = WATCHED},
    {"top 1", .build = fth_case_top, .number = 1},
    {"top 9", .build = fth_case_top, .number = 9},
    {"top 2, some forbidden", .build = fth_case_top, .flags = EXTRA, .number = 2},
    {"top 32, some forbidden", .build = fth_case_top, .flags = EXTRA, .number = 32},
    {"gauge norm", .build = fth_case_gauge, .number = FTH_GAUGE_NORM},
    {"gauge norm, tiny", .build = fth_case_gauge, .flags = TINY, .number = FTH_GAUGE_NORM},
    {"gauge norm, great", .build = fth_case_gauge, .flags = GREAT, .number = FTH_GAUGE_NORM},
    {"gauge nonzero", .build = fth_case_gauge, .flags = TARGET, .number = FTH_GAUGE_NONZERO},
    {"gauge cosine", .build = fth_case_gauge, .number = FTH_GAUGE_COSINE},
    {"gauge ratio", .build = fth_case_gauge, .flags = TARGET, .number = FTH_GAUGE_RATIO, .r = C,
     .a = T},
    {"gauge ratio learned", .build = fth_case_gauge, .number = FTH_GAUGE_RATIO, .r = V, .a = S},
    {"gauge_positions", .build = fth_case_gauge_positions},
    {"gauge_positions target", .build = fth_case_gauge_positions, .flags = TARGET},
    {"gauge_entropy", .build = fth_case_gauge_entropy, .number = 1},
    {"gauge_entropy causal", .build = fth_case_gauge_entropy, .flags = TARGET, .number = 1},
    {"gauge_entropy cross", .build = fth_case_gauge_entropy, .flags = CROSS, .number = 1},
    {"gauge_entropy carried", .build = fth_case_gauge_entropy, .flags = TARGET | CARRY | PREVIOUS,
     .number = 3},
};

bool fth_op_case_at(size_t i, fth_op_case *out) {
    const size_t n_shapes = sizeof shapes / sizeof *shapes;
    if (i >= n_shapes * (sizeof variants / sizeof *variants)) return false;
    out->variant = &variants[i / n_shapes];
    out->shape = &shapes[i % n_shapes];
    snprintf(out->name, sizeof out->name, "%s / %s", out->variant->name, out->shape->name);
    return true;
}

fth_err fth_trial_init(fth_trial *t, const fth_op_case *c) {
    const fth_shape *s = c->shape;
    *t = (fth_trial){.from = c, .size = 1};
    fth_graph_init(&t->graph);
    fth_rng_init(&t->rng, fth_hash64(c->name, strlen(c->name)), 0);
    t->batch.n_sent = s->n_sent;
    FTH_TRY(fth_trial_side(t, s->src, &t->batch.side[FTH_SRC]));
    FTH_TRY(fth_trial_side(t, s->tgt, &t->batch.side[FTH_TGT]));
    t->rows[FTH_ROWS_SRC] = t->batch.side[FTH_SRC].rows;
    t->rows[FTH_ROWS_TGT] = t->batch.side[FTH_TGT].rows;
    for (int k = 0; k < s->n_sent; k++) {
        t->rows[FTH_ROWS_SRC_PAIRS] += s->src[k] * s->src[k];
        t->rows[FTH_ROWS_TGT_PAIRS] += s->tgt[k] * s->tgt[k];
        t->rows[FTH_ROWS_CROSS_PAIRS] += s->tgt[k] * s->src[k];
    }
    FTH_TRY(fth_trial_lists(t));
    for (int e = 0; e < FTH_N_EXTENTS; e++) t->capacity[e] = t->rows[e] + 3;
    t->step = (fth_step){.seed = 0x5eed5eed5eedULL,
                         .update = 3,
                         .slots = {0.3, 0.7},
                         .loss_scale = 1 / 16.0,
                         .row_base = {5, 1001, 3, 17, 29}};
    c->variant->build(t, c->variant, s);
    return t->graph.err;
}
