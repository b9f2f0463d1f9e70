/* embedding.c: token embeddings, positions and the output matrix (METHODS A.4, A.5). */
#include <math.h>

#include "graph/positions.h"
#include "model/build.h"

static fth_init embedding_init(const fth_config *c) {
    return (fth_init){.rule = FTH_INIT_NORMAL, .value = 1 / sqrt((double)c->d_model)};
}

/* A single embedding serves the whole model? */
static bool one_table(const fth_config *c) {
    return c->arch == FTH_ENCDEC ? c->share == FTH_SHARE_ALL : c->share != FTH_SHARE_NONE;
}

static fth_val token_table(fth_build *w, fth_stack stack) {
    const fth_config *c = w->config;
    fth_builder *b = &w->b;
    int64_t rows = stack == FTH_ENCODER ? c->src_vocab : c->tgt_vocab;
    fth_stack old = b->stack;
    b->stack = one_table(c) ? FTH_NO_STACK : stack;
    fth_val table =
        fth_param_at(b, FTH_ROLE_EMBED, rows, c->d_model, embedding_init(c), "embed_tokens.weight");
    b->stack = old;
    return table;
}

static fth_val positions(fth_build *w) {
    const fth_config *c = w->config;
    if (c->positions == FTH_SINUSOIDAL)
        return fth_constant(&w->b, c->max_positions, c->d_model, fth_sinusoid);
    return fth_param_at(&w->b, FTH_ROLE_POSITIONS, c->max_positions, c->d_model, embedding_init(c),
                        "embed_positions.weight");
}

fth_val fth_build_embedding(fth_build *w, fth_stack stack) {
    const fth_config *c = w->config;
    fth_builder *b = &w->b;
    const fth_side side = stack == FTH_ENCODER ? FTH_SRC : FTH_TGT;
    const char *norm = w->method->embed_norm ? w->method->embed_norm(w->state) : NULL;
    fth_val table = token_table(w, stack);
    fth_val x = fth_embed(b, side, table, positions(w), !norm);
    if (!norm) return x;
    return fth_dropout(b, fth_norm(b, x, fth_norm_at(b, c->d_model, norm)), c->dropout);
}

fth_val fth_build_output_weight(fth_build *w) {
    const fth_config *c = w->config;
    fth_builder *b = &w->b;
    fth_stack top = c->arch == FTH_ENC ? FTH_ENCODER : FTH_DECODER;
    if (c->share != FTH_SHARE_NONE) return token_table(w, top);
    fth_stack old = b->stack;
    b->stack = FTH_NO_STACK;
    fth_val table = fth_param_at(b, FTH_ROLE_OUTPUT, fth_config_output_vocab(c), c->d_model,
                                 embedding_init(c), "output_projection.weight");
    b->stack = old;
    return table;
}
