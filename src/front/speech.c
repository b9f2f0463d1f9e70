/* speech.c: the place of speech among the fronts; its convolutions are not made yet. */
#include "front/front.h"

static int32_t width(const fth_config *c) {
    return c->features;
}

static fth_val rows(fth_builder *b, bool drop) {
    (void)drop;
    if (b->graph->err == FTH_OK)
        b->graph->err =
            fth_fail(FTH_BAD_CONFIG, "front \"%s\" does not exist yet: text and image do",
                     fth_front_name(b->config->front));
    return 0;
}

const fth_front fth_front_speech = {.input = FTH_INPUT_FRAMES, .rows = rows, .width = width};
