/* stack.c: one primitive for all methods (doc/mathematics.md#one-form-for-all):
 * x <- POST(r x + a D(G(PRE(x))) + e), sub-layer by sub-layer. */
#include "front/front.h"
#include "model/build.h"

static fth_norm_params site_norm(fth_build *w, fth_sub sub) {
    static const char *const names[] = {"self_attn_layer_norm", "encoder_attn_layer_norm",
                                        "final_layer_norm"};
    if (w->method->norm == FTH_NORM_NONE) return (fth_norm_params){0};
    return fth_norm_at(&w->b, w->config->d_model, names[sub]);
}

static fth_val pre(fth_build *w, const fth_site *s, fth_val x) {
    if (w->method->pre) return w->method->pre(&w->b, s, x);
    return s->place == FTH_NORM_PRE ? fth_norm(&w->b, x, s->norm) : x;
}

static fth_val join(fth_build *w, const fth_site *s, fth_val x, fth_val f) {
    if (w->method->join) return w->method->join(&w->b, s, x, f);
    fth_val sum = fth_join(&w->b, fth_const(1), x, fth_const(1), f);
    return s->place == FTH_NORM_POST ? fth_norm(&w->b, sum, s->norm) : sum;
}

static fth_val sub_layer(fth_build *w, fth_site *s, fth_sub sub, fth_val x, fth_val memory) {
    s->sub = w->b.sub = sub;
    s->last_in_layer = sub == FTH_FFN;
    s->place = w->method->place ? w->method->place(s) : w->method->norm;
    s->norm = site_norm(w, sub);
    fth_taps_open(w->taps, s, x);
    fth_val u = pre(w, s, x);
    fth_val f = sub == FTH_FFN ? fth_build_ffn(w, s, u) : fth_build_attention(w, s, u, memory);
    fth_val y = join(w, s, x, f);
    fth_taps_close(w->taps, &w->b, s, f, y);
    return y;
}

static fth_val layer(fth_build *w, fth_site *s, fth_val x, fth_val memory) {
    s->sub = w->b.sub = FTH_NO_SUB;
    if (w->method->layer_in) x = w->method->layer_in(&w->b, s, x);
    s->layer_input = x;
    x = sub_layer(w, s, FTH_SELF, x, memory);
    if (s->stack == FTH_DECODER && w->config->arch == FTH_ENCDEC)
        x = sub_layer(w, s, FTH_CROSS, x, memory);
    return sub_layer(w, s, FTH_FFN, x, memory);
}

static fth_val top(fth_build *w, const fth_site *s, fth_val x) {
    if (w->method->stack_out) x = w->method->stack_out(&w->b, s, x);
    if (!w->method->final_norm) return x;
    return fth_norm(&w->b, x, fth_norm_at(&w->b, w->config->d_model, "layer_norm"));
}

/* x_0, with the layer norm that some methods have before its dropout. */
static fth_val start(fth_build *w, fth_stack stack) {
    const fth_config *c = w->config;
    fth_builder *b = &w->b;
    const char *norm = w->method->embed_norm ? w->method->embed_norm(w->state) : NULL;
    fth_val x =
        stack == FTH_ENCODER ? fth_front_of(c)->rows(b, !norm) : fth_front_words(b, stack, !norm);
    if (!norm) return x;
    return fth_dropout(b, fth_norm(b, x, fth_norm_at(b, c->d_model, norm)), c->dropout);
}

fth_val fth_build_stack(fth_build *w, fth_stack stack, fth_val memory) {
    fth_builder *b = &w->b;
    fth_site s = {.config = w->config,
                  .state = w->state,
                  .stack = stack,
                  .layers = fth_stack_layers(w->config, stack)};
    b->stack = stack;
    b->layer = -1;
    b->sub = FTH_NO_SUB;
    if (w->method->memo_size) {
        s.memo = fth_arena_alloc(&b->graph->arena, w->method->memo_size);
        if (!s.memo) {
            b->graph->err = fth_fail(FTH_NO_MEMORY, "no memory for a graph");
            return 0;
        }
    }
    fth_val x = start(w, stack);
    if (w->taps) w->taps->embed[stack] = x;
    for (s.layer = 0; s.layer < s.layers && b->graph->err == FTH_OK; s.layer++) {
        b->layer = s.layer;
        x = layer(w, &s, x, memory);
    }
    b->layer = -1;
    b->sub = s.sub = FTH_NO_SUB;
    return top(w, &s, x);
}
