/* speech.c: frames of sound become rows: two convolutions over time of kernel 5 and stride 2, each
 * followed by a GLU, then times sqrt(d), positions and dropout (fairseq's S2T Transformer, Wang et
 * al. 2020).
 *
 * A row of the source has four frames, and the two steps between the convolutions that come of
 * them: the even one, whose window begins two frames before the row's first, and the odd one. Where
 * an utterance ends with one or two frames of its last row, that row has no odd step, and the batch
 * hides it. */
#include <math.h>

#include "front/front.h"

enum { FRAMES = 4 }; /* of a row */

static int32_t width(const fth_config *c) {
    return FRAMES * c->features;
}

/* A convolution's weight [out, in, kernel] and bias. */
typedef struct layer {
    fth_val weight, bias;
} layer;

static layer layer_at(fth_builder *b, int64_t out, int64_t in, const char *const names[2]) {
    const fth_init zero = fth_init_const(0);
    return (layer){fth_kernel_at(b, FTH_ROLE_FRONT, out, in, fth_xavier_uniform(1), names[0]),
                   fth_param_at(b, FTH_ROLE_FRONT_BIAS, 0, out, zero, names[1])};
}

static fth_val convolve(fth_builder *b, fth_val x, int per_row, int first, layer l) {
    return fth_linear(b, fth_unfold(b, x, per_row, first), l.weight, l.bias, FTH_ACT_NONE);
}

static fth_val rows(fth_builder *b, bool drop) {
    static const char *const names[2][2] = {
        {"subsample.conv_layers.0.weight", "subsample.conv_layers.0.bias"},
        {"subsample.conv_layers.1.weight", "subsample.conv_layers.1.bias"}};
    const fth_config *c = b->config;
    const layer lower = layer_at(b, c->conv_channels, c->features, names[0]);
    const layer upper = layer_at(b, 2 * (int64_t)c->d_model, c->conv_channels / 2, names[1]);
    fth_val frames = fth_numbers_in(b, width(c));
    fth_val even = convolve(b, frames, FRAMES, -2, lower),
            odd = convolve(b, frames, FRAMES, 0, lower);
    fth_val steps = fth_glu(b, even, odd);
    fth_val x = fth_glu(b, convolve(b, steps, 2, -2, upper), 0);
    x = fth_scaled(b, x, sqrt((double)c->d_model));
    return fth_patches(b, x, fth_front_positions(b), 0, 0, drop);
}

const fth_front fth_front_speech = {.input = FTH_INPUT_FRAMES, .rows = rows, .width = width};
