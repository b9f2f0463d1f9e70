/* image.c: a picture becomes rows: W patch + b for each patch in reading order, before them the
 * class token, in place of hidden ones the mask token; then positions and dropout (ViT, Dosovitskiy
 * et al. 2021, eq. 1; the mask token: BEiT, Bao et al. 2022, sec. 2.4). */
#include "front/front.h"

static int32_t width(const fth_config *c) {
    return c->channels * c->patch * c->patch;
}

static fth_val token(fth_builder *b, const char *name) {
    return fth_param_at(b, FTH_ROLE_TOKEN, 0, b->config->d_model, fth_init_normal(0.02), name);
}

static fth_val rows(fth_builder *b, bool drop) {
    const fth_config *c = b->config;
    fth_val weight = fth_param_at(b, FTH_ROLE_FRONT, c->d_model, width(c), fth_xavier_uniform(1),
                                  "patch_embed.weight");
    fth_val bias =
        fth_param_at(b, FTH_ROLE_FRONT_BIAS, 0, c->d_model, fth_init_const(0), "patch_embed.bias");
    fth_val cls = fth_config_has_cls(c) ? token(b, "cls_token") : 0;
    fth_val mask = fth_config_has(c, "visual_tokens") ? token(b, "mask_token") : 0;
    fth_val x = fth_linear(b, fth_numbers_in(b, width(c)), weight, bias, FTH_ACT_NONE);
    return fth_patches(b, x, fth_front_positions(b), cls, mask, drop);
}

const fth_front fth_front_image = {.input = FTH_INPUT_IMAGES, .rows = rows, .width = width};
