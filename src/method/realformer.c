/* realformer.c: Post-LN; attention scores add up from layer to layer, one chain for each kind of
 * attention. */
#include <string.h>

#include "method/method.h"

/* The newest scores of each chain of a stack. */
typedef struct chains {
    fth_val scores[2]; /* by FTH_SELF, FTH_CROSS */
} chains;

static void attend(fth_builder *b, const fth_site *s, fth_attention_spec *spec) {
    (void)b;
    const chains *c = s->memo;
    spec->previous = c->scores[s->sub];
    spec->carry = s->layers > 1;
    if (strcmp(fth_option_text(s->state, "mode"), "mean") == 0) spec->divisor = s->layer + 1;
}

static void attended(fth_builder *b, const fth_site *s, fth_val scores) {
    (void)b;
    chains *c = s->memo;
    c->scores[s->sub] = scores;
}

static const fth_option_spec options[] = {
    {"mode", "sum|mean", "sum", 0, 0, "mean divides the sum by the layer: for 30 layers and more"},
    {0}};

const fth_method fth_method_realformer = {
    .id = "realformer",
    .title = "RealFormer, residual attention",
    .paper = "He et al. 2021, arXiv 2012.11747",
    .equation = "x <- LN(x + D(G(x))); attention scores S_l = q k^T / sqrt(d_h) + S_{l-1}",
    .extra = "none",
    .export_to = "cannot: attention reads the scores of the layer below",
    .advice = "warm-up; mode=mean from 30 layers on",
    .norm = FTH_NORM_POST,
    .memo_size = sizeof(chains),
    .options = options,
    .attend = attend,
    .attended = attended,
};
