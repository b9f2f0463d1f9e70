/* build.h: what the files of src/model share while a graph is built. */
#ifndef FTH_MODEL_BUILD_H
#define FTH_MODEL_BUILD_H

#include "model/model.h"

/* One build of a graph. */
typedef struct fth_build {
    fth_builder b;
    const fth_config *config;
    const fth_method_state *state;
    const fth_method *method;
    fth_taps *taps; /* NULL: nobody looks */
    /* Generation only: */
    bool step;     /* one new row per hypothesis */
    int64_t slots; /* rows of the caches */
    int64_t src_capacity;
    fth_val *memory; /* [decoder_layers] */
} fth_build;

/* attention.c, ffn.c: the branch of a sub-layer, before D. `x` has gone through the method's
 * pre. */
fth_val fth_build_attention(fth_build *w, const fth_site *s, fth_val x, fth_val memory);
fth_val fth_build_ffn(fth_build *w, const fth_site *s, fth_val x);

/* attention.c: keys and values of a decoder layer's cross-attention. */
fth_val fth_build_memory(fth_build *w, int32_t layer, fth_val encoder_out);

/* stack.c: embedding, layers and top of a stack. */
fth_val fth_build_stack(fth_build *w, fth_stack stack, fth_val memory);

#endif
