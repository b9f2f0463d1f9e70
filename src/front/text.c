/* text.c: words become rows: token embeddings and positions, and the matrix of the logits of words
 * (doc/mathematics.md#embeddings-and-positions, A.5). */
#include <math.h>

#include "front/front.h"
#include "graph/positions.h"

static fth_init embedding_init(const fth_config *c) {
    return fth_init_normal(1 / sqrt((double)c->d_model));
}

/* A single embedding serves the whole model? */
static bool one_table(const fth_config *c) {
    return c->arch == FTH_ENCDEC ? c->share == FTH_SHARE_ALL : c->share != FTH_SHARE_NONE;
}

static fth_val token_table(fth_builder *b, fth_stack stack) {
    const fth_config *c = b->config;
    int64_t rows = stack == FTH_ENCODER ? c->src_vocab : c->tgt_vocab;
    fth_stack old = b->stack;
    b->stack = one_table(c) ? FTH_NO_STACK : stack;
    fth_val table =
        fth_param_at(b, FTH_ROLE_EMBED, rows, c->d_model, embedding_init(c), "embed_tokens.weight");
    b->stack = old;
    return table;
}

fth_val fth_front_positions(fth_builder *b) {
    const fth_config *c = b->config;
    if (c->positions == FTH_SINUSOIDAL)
        return fth_constant(b, c->max_positions, c->d_model, fth_sinusoid);
    return fth_param_at(b, FTH_ROLE_POSITIONS, c->max_positions, c->d_model, embedding_init(c),
                        "embed_positions.weight");
}

fth_val fth_front_words(fth_builder *b, fth_stack stack, bool drop) {
    if (fth_config_is_adaptive(b->config)) return fth_adaptive_words(b, drop);
    fth_val table = token_table(b, stack);
    return fth_embed(b, stack == FTH_ENCODER ? FTH_SRC : FTH_TGT, table, fth_front_positions(b),
                     drop);
}

fth_val fth_front_output(fth_builder *b) {
    const fth_config *c = b->config;
    fth_stack top = c->arch == FTH_ENC ? FTH_ENCODER : FTH_DECODER;
    if (c->share != FTH_SHARE_NONE) return token_table(b, top);
    fth_stack old = b->stack;
    b->stack = FTH_NO_STACK;
    int64_t words = c->arch == FTH_ENC ? c->src_vocab : c->tgt_vocab;
    fth_val table = fth_param_at(b, FTH_ROLE_OUTPUT, words, c->d_model, embedding_init(c),
                                 "output_projection.weight");
    b->stack = old;
    return table;
}

fth_val fth_front_logits(fth_builder *b, fth_val x) {
    fth_val logits = fth_config_is_adaptive(b->config)
                         ? fth_adaptive_logits(b, x)
                         : fth_linear(b, x, fth_front_output(b), 0, FTH_ACT_NONE);
    fth_keep(b, logits);
    return logits;
}

static fth_val rows(fth_builder *b, bool drop) {
    return fth_front_words(b, FTH_ENCODER, drop);
}

const fth_front fth_front_text = {.input = FTH_INPUT_TOKENS, .rows = rows};
