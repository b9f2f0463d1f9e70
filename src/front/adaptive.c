/* adaptive.c: words by three bands of their numbers, frequent ones first: the rarer a band, the
 * narrower its vectors (adaptive input: Baevski and Auli 2019, sec. 3; adaptive softmax: Grave et
 * al. 2017, as fairseq ties them). A word of band i has the row E_i1 E_i0[w], times sqrt(d). The
 * head's products are those of the first band's words and of one entry for each other band; band
 * i's are (E_i1^T h) . E_i0[w]. */
#include <math.h>
#include <stdio.h>

#include "front/front.h"
#include "graph/op.h"

enum { BANDS = 1 + FTH_TAILS };

typedef struct band {
    int64_t first, size;
    fth_val table, map; /* E_i0 [size, d / f^i], E_i1 [d, d / f^i] */
} band;

/* The bands, and the head's matrix [a + 2, d]: the first table with the other bands' entries behind
 * it. */
static fth_val declare(fth_builder *b, band out[BANDS]) {
    const fth_config *c = b->config;
    const int64_t edge[BANDS + 1] = {0, c->adaptive_cutoffs[0], c->adaptive_cutoffs[1],
                                     c->tgt_vocab};
    const fth_stack old = b->stack;
    b->stack = FTH_NO_STACK;
    for (int i = 0; i < BANDS; i++) {
        char table[64], map[64];
        const int64_t width = fth_config_band_width(c, i);
        snprintf(table, sizeof table, "embed_tokens.embeddings.%d.0.weight", i);
        snprintf(map, sizeof map, "embed_tokens.embeddings.%d.1.weight", i);
        out[i] = (band){.first = edge[i], .size = edge[i + 1] - edge[i]};
        out[i].table = fth_param_at(b, i ? FTH_ROLE_HEAD : FTH_ROLE_EMBED, out[i].size, width,
                                    fth_init_normal(1 / sqrt((double)width)), table);
        if (i == 0)
            fth_param_behind(b, FTH_ROLE_HEAD, FTH_TAILS, width, fth_xavier_uniform(1),
                             "adaptive_softmax.head.class_proj.weight");
        out[i].map = fth_param_at(b, FTH_ROLE_HEAD, c->d_model, width, fth_xavier_uniform(1), map);
    }
    b->stack = old;
    return fth_param_part(b, out[0].table, 0, out[0].size + FTH_TAILS, c->d_model);
}

fth_val fth_adaptive_words(fth_builder *b, bool drop) {
    band bands[BANDS];
    fth_val x = 0;
    declare(b, bands);
    for (int i = 0; i < BANDS; i++) {
        fth_val rows = fth_band(b, bands[i].table, bands[i].first);
        rows = fth_linear(b, rows, bands[i].map, 0, FTH_ACT_NONE);
        x = i ? fth_add(b, fth_const(1), x, rows) : rows;
    }
    x = fth_scaled(b, x, sqrt((double)b->config->d_model));
    return fth_patches(b, x, fth_front_positions(b), 0, 0, drop);
}

fth_val fth_adaptive_logits(fth_builder *b, fth_val x) {
    band bands[BANDS];
    fth_val products[BANDS] = {fth_linear(b, x, declare(b, bands), 0, FTH_ACT_NONE)};
    for (int i = 1; i < BANDS; i++)
        products[i] =
            fth_linear(b, fth_linear_turned(b, x, bands[i].map), bands[i].table, 0, FTH_ACT_NONE);
    return fth_log_words(b, products);
}

fth_loss fth_adaptive_loss(fth_builder *b, fth_val x, bool per_row) {
    band bands[BANDS];
    fth_val head = declare(b, bands);
    const fth_cut cut = {FTH_CUT_HEAD, (int32_t)bands[1].first, (int32_t)bands[2].first};
    fth_loss loss = fth_xent_cut(b, x, head, cut, (fth_loss){0}, per_row);
    for (int i = 1; i < BANDS; i++) {
        const fth_cut own = {FTH_CUT_TAIL, (int32_t)bands[i].first,
                             (int32_t)(bands[i].first + bands[i].size)};
        loss = fth_xent_cut(b, fth_linear_turned(b, x, bands[i].map), bands[i].table, own, loss,
                            per_row);
    }
    return loss;
}
