/* taps.h: where to look inside a model. While fth_model_graph builds a graph it writes down which
 * value is which: what a sub-layer got and gave, its branch, what enters its layer norm, its
 * attention, its activation; and, with a backward, which value holds the total gradient of the
 * sub-layer's output and of its layer norm's input. Works for every method and architecture; with
 * spec.taps NULL the graph is what it is without this file.
 *
 *     fth_taps taps = {0};                    (zeroed; set .gradients and the calls as needed)
 *     fth_graph_spec spec = {.backward = true, .taps = &taps, ...};
 *     fth_model_graph(model, &spec, &graph, &outputs);
 *     ... taps.sub[0 .. n_sub), taps.norm[0 .. n_norm), taps.embed[stack] ...
 *     fth_taps_fini(&taps);
 *
 * Two ways to use what is written down:
 * - read it after a run: fth_taps_keep(&graph, v) before fth_program_new, then fth_program_read;
 * - reduce it inside of the program: append operations from the calls below. `built` comes when a
 *   sub-layer's forward is complete, `made` when a gradient is; both may add operations that read
 *   the values there and then, so nothing has to stay in memory longer than that.
 * A value that is only noted lives as long as the plan needs it: keep it or read it in place.
 *
 * Rows of all values are the tokens of the stack's own side (k and v of a cross-attention: of the
 * source). The output of a layer as in doc/analyses.md#gradnorm (after the last LN in Post-LN
 * methods, else the residual stream below the final LN; before DLCL's mixing) is the y of its FFN.
 */
#ifndef FTH_MODEL_TAPS_H
#define FTH_MODEL_TAPS_H

#include "method/method.h"

/* One sub-layer; 0 where it has no such value. */
typedef struct fth_tap {
    fth_stack stack;
    int32_t layer; /* from 0 */
    fth_sub sub;
    fth_norm_place place; /* of its LN */
    fth_val x;            /* [R, d] what it got: its residual */
    fth_val f;            /* [R, d] output of its branch, before dropout and coefficient */
    fth_val z;       /* [R, d] what enters its LN: the whole sum (Post-LN), x itself (Pre-LN) */
    fth_val y;       /* [R, d] what it gave */
    fth_val act;     /* [R, f] FFN: output of the activation itself, before dropout and the like */
    fth_val q, k, v; /* [R, d] attention: without the factor 1 / sqrt(d_h); views as a rule */
    fth_val lse;     /* [R, heads] full: log of the sum of exponentials; with a backward only */
    fth_val scores;  /* [pairs, heads] full: carried sums, unmasked, undivided */
    double divisor;  /* of the scores before softmax (mean of carried sums); 1 */
    fth_val dy, dz;  /* [R, d] total gradients of y and z; with taps.gradients only */
} fth_tap;

/* One layer norm of the model, in the order of the forward. */
typedef struct fth_norm_tap {
    fth_stack stack;
    const char *ln; /* self_attn, encoder_attn, ffn, final, or what its method calls it */
    int32_t
        index;    /* layer from 1; on top of the stack: layers + 1, below it: 0; of a numbered list:
                       its number from 1 */
    fth_val z, y; /* [R, n] input and output */
} fth_norm_tap;

/* Which total gradients are made to exist. Each costs memory and, where fused away, work. */
enum { FTH_TAP_DY = 1, FTH_TAP_DZ = 2 };

typedef struct fth_taps {
    unsigned gradients; /* FTH_TAP_*, set by the caller; needs spec.backward */
    /* Set by the caller, either may be NULL. */
    void (*built)(void *context, fth_builder *b, const fth_tap *tap);
    void (*made)(void *context, fth_builder *b, const fth_grad_request *gradient);
    void *context;

    /* Filled by fth_model_graph. */
    fth_tap *sub; /* [n_sub] the encoder's sub-layers, then the decoder's, bottom to top */
    int32_t n_sub;
    fth_norm_tap *norm; /* [n_norm] */
    int32_t n_norm;
    fth_val embed[2]; /* by stack: x_0, [R, d] */
    fth_grad_requests requests;
} fth_taps;

void fth_taps_fini(fth_taps *t);

/* Marks a value (0: nothing) to be read after the run. */
void fth_taps_keep(fth_graph *graph, fth_val v);

/* The sub-layer of which `v` is the output (or NULL), for `made`. */
const fth_tap *fth_taps_by_output(const fth_taps *t, fth_val v);

/* ---- for the files of src/model ---- */

fth_err fth_taps_begin(fth_taps *t, const fth_config *config, fth_builder *b);
/* The sub-layer that is being built. */
fth_tap *fth_taps_here(fth_taps *t);
/* Notes the attention that made `o`. */
void fth_taps_attention(fth_taps *t, const fth_builder *b, fth_val o, fth_val scores);
/* Begin and end of a sub-layer; t NULL: nothing. */
void fth_taps_open(fth_taps *t, const fth_site *s, fth_val x);
void fth_taps_close(fth_taps *t, fth_builder *b, const fth_site *s, fth_val f, fth_val y);
/* Finds the layer norms of a forward that is complete. */
fth_err fth_taps_norms(fth_taps *t, const fth_graph *graph, const fth_config *config,
                       const fth_method *method, const fth_params *params);
/* Fills dy and dz after the backward. */
fth_err fth_taps_gradients(fth_taps *t, const fth_graph *graph);

#endif
