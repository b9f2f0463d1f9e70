/* dlcl.c: the input of a layer is a learned mix of all outputs below it, over Pre-LN or Post-LN
 * layers. */
#include <stdio.h>

#include "method/method.h"

/* The outputs of a stack so far: y_0 .. y_l, in `pre` already normed. */
typedef struct history {
    fth_val *z; /* [layers + 1] */
    int n;
} history;

static fth_norm_params history_norm(fth_builder *b, const fth_site *s, int k) {
    char name[64];
    snprintf(name, sizeof name, "history.layer_norms.%d", k - 1);
    return fth_norm_at(b, s->config->d_model, name);
}

/* Parameters of the history belong to the stack, not to the layer that reads them. */
static fth_val mix(fth_builder *b, const fth_site *s, fth_val y, bool post) {
    history *h = s->memo;
    int32_t layer = b->layer;
    b->layer = -1;
    if (!h->z) h->z = fth_arena_alloc(&b->graph->arena, sizeof *h->z * (size_t)(s->layers + 1));
    fth_val x = 0;
    if (!h->z) {
        b->graph->err = fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    } else {
        int r = h->n, rows = s->layers + 1;
        const fth_init mean = {.rule = FTH_INIT_MEAN_OF_ROW};
        h->z[h->n++] = post || r == 0 ? y : fth_norm(b, y, history_norm(b, s, r));
        fth_val w = fth_param_at(b, FTH_ROLE_EXTRA, rows, rows, mean, "history.weight");
        x = fth_mix(b, fth_param_part(b, w, (int64_t)r * rows, 1, r + 1), h->z, r + 1);
        if (post && r > 0) x = fth_norm(b, x, history_norm(b, s, r));
    }
    b->layer = layer;
    return x;
}

static fth_val mix_pre(fth_builder *b, const fth_site *s, fth_val x) {
    return mix(b, s, x, false);
}

static fth_val mix_post(fth_builder *b, const fth_site *s, fth_val x) {
    return mix(b, s, x, true);
}

static const fth_norm_kind norms[] = {{"history.layer_norms", "history", false}, {0}};

#define PAPER     "Wang et al. 2019, arXiv 1906.01787"
#define EXTRA     "per stack (L+1)(L+2)/2 weights and L layer norms"
#define NO_EXPORT "cannot be folded: layers read mixes of all outputs below"

const fth_method fth_method_dlcl_pre = {
    .id = "dlcl-pre",
    .title = "Dynamic linear combination of layers, Pre-LN",
    .paper = PAPER,
    .equation = "x_{r+1} = sum_k w[r][k] LN_k(y_k); Pre-LN layers",
    .extra = EXTRA,
    .export_to = NO_EXPORT,
    .advice = "trains without warm-up",
    .norm = FTH_NORM_PRE,
    .final_norm = true,
    .norms = norms,
    .memo_size = sizeof(history),
    .layer_in = mix_pre,
    .stack_out = mix_pre,
};

const fth_method fth_method_dlcl_post = {
    .id = "dlcl-post",
    .title = "Dynamic linear combination of layers, Post-LN",
    .paper = PAPER,
    .equation = "x_{r+1} = LN_r(sum_k w[r][k] y_k); Post-LN layers",
    .extra = EXTRA,
    .export_to = NO_EXPORT,
    .advice = "warm-up",
    .norm = FTH_NORM_POST,
    .norms = norms,
    .memo_size = sizeof(history),
    .layer_in = mix_post,
    .stack_out = mix_post,
};
