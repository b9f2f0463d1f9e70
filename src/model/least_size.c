/* least_size.c: counts parameters and what the backward needs of a layer, times the layers. */
#include "model/least_size.h"

/* Products of the bounds of config.c: at most 1e5 layers of 8 * 2^34 + 2^38 numbers, far inside of
 * int64. */
int64_t fth_least_parameters(const fth_config *c) {
    const int64_t d = c->d_model, ffn = 2 * d * c->ffn_dim;
    const int64_t cross = c->arch == FTH_ENCDEC ? 4 * d * d : 0;
    const int64_t layers =
        c->encoder_layers * (4 * d * d + ffn) + c->decoder_layers * (4 * d * d + cross + ffn);
    const int64_t vocab = c->src_vocab > c->tgt_vocab ? c->src_vocab : c->tgt_vocab;
    return layers + vocab * d;
}

int64_t fth_least_kept(const fth_config *c) {
    const int64_t d = c->d_model, crossed = c->arch == FTH_ENCDEC ? 4 * d : 0;
    return c->encoder_layers * (4 * d + c->ffn_dim) +
           c->decoder_layers * (4 * d + crossed + c->ffn_dim);
}

/* Two thirds of what 2,000 layers of width 4 were seen to take: 90 KB each, 148 KB with
 * cross-attention. */
int64_t fth_least_description(const fth_config *c) {
    const int64_t plain = 60000, crossed = 100000;
    return c->encoder_layers * plain +
           c->decoder_layers * (c->arch == FTH_ENCDEC ? crossed : plain);
}

fth_err fth_least_size_check(const fth_config *c, int64_t bytes_each, double more,
                             int64_t free_bytes, const char *where) {
    const int64_t n = fth_least_parameters(c);
    const double needed = (double)n * (double)bytes_each + more;
    if (needed <= (double)free_bytes) return FTH_OK;
    return fth_fail(FTH_NO_MEMORY,
                    "a model of %d encoder and %d decoder layers, width %d, has more than %.4g "
                    "parameters: %.1f GiB at least, and %.1f GiB are free %s",
                    c->encoder_layers, c->decoder_layers, c->d_model, (double)n,
                    needed / 1073741824.0, (double)free_bytes / 1073741824.0, where);
}
