/* resi_dual.c: a Post-LN stream x <- LN(x + D(G(x))) and beside it the plain sum of the same
 * branches, z <- z + D(G(x)), z_0 = x_0; a stack gives x + LN_f(z). */
#include "method/method.h"

typedef struct streams {
    fth_val z; /* [R, d] */
} streams;

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    streams *at = s->memo;
    const fth_coef one = fth_const(1);
    if (!at->z) at->z = x;
    f = fth_dropout(b, f, s->config->dropout); /* one mask for both streams */
    fth_val y = fth_norm(b, fth_add(b, one, x, f), s->norm);
    at->z = fth_add(b, one, at->z, f);
    return y;
}

static fth_val stack_out(fth_builder *b, const fth_site *s, fth_val x) {
    const streams *at = s->memo;
    fth_val z = fth_norm(b, at->z, fth_norm_at(b, s->config->d_model, "layer_norm"));
    return fth_add(b, fth_const(1), x, z);
}

const fth_method fth_method_resi_dual = {
    .id = "resi-dual",
    .title = "ResiDual",
    .paper = "Xie et al. 2023, arXiv 2304.14802",
    .equation = "x <- LN(x + D(G(x))), z <- z + D(G(x)); a stack gives x + LN(z)",
    .extra = "one LN per stack",
    .export_to = "cannot: the second stream stays",
    .advice = "trains without warm-up",
    .norm = FTH_NORM_POST,
    .memo_size = sizeof(streams),
    .join = join,
    .stack_out = stack_out,
};
