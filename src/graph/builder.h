/* builder.h: how model and method code says what is computed. Every function appends an operation
 * (or joins it with the one before) and returns the value that it makes. Errors are sticky in
 * graph->err; a builder function given 0 because of one returns 0. */
#ifndef FTH_GRAPH_BUILDER_H
#define FTH_GRAPH_BUILDER_H

#include "base/config.h"
#include "graph/graph.h"
#include "graph/param.h"

typedef struct fth_builder fth_builder;

/* Gradients of values that someone wants to see. fth_backward makes the total gradient of every
 * value asked for exist as a value of its own, also where a fused operation would have passed over
 * it. What the other operations compute stays the same to the bit. */
typedef struct fth_grad_request {
    fth_val value;
    fth_val grad; /* set by fth_backward; stays 0 when the loss does not depend on the value */
} fth_grad_request;
typedef struct fth_grad_requests {
    fth_grad_request *item; /* [n] in the order of asking */
    int32_t n, capacity;
    /* Called when a gradient is complete: it can be read by operations added there and then.
     * NULL: nobody. */
    void (*made)(void *context, fth_builder *b, const fth_grad_request *item);
    void *context;
} fth_grad_requests;
void fth_grad_requests_fini(fth_grad_requests *w);

struct fth_builder {
    fth_graph *graph;
    fth_params *params;
    const fth_config *config;
    bool backward;  /* a backward follows: operations save what it needs */
    bool dropout;   /* the dropouts of config are on */
    bool keep_bits; /* with a backward, joins save which elements their dropout has kept */
    uint32_t sites; /* places of dropout so far */
    fth_grad_requests *requests; /* gradients to be shown; NULL: none, borrowed */
    /* Where the operations being added belong. */
    fth_stack stack;
    fth_sub sub;
    int32_t layer;
};

/* Gain and bias of one layer norm. */
typedef struct fth_norm_params {
    fth_val gain, bias;
    double eps;
} fth_norm_params;

/* What fth_attention needs to know beyond q, k and v. */
typedef struct fth_attention_spec {
    fth_side q_side, k_side;
    bool causal;
    fth_val previous;               /* carried scores of the layer below, 0: none */
    bool carry;                     /* scores are stored for the layer above */
    double divisor;                 /* of the carried sum before softmax; 0 means 1 */
    fth_val key_cache, value_cache; /* generation: both or none */
} fth_attention_spec;

/* A parameter, declared at first sight. `suffix` follows the name of the current place:
 * "encoder.layers.3." in a layer, "encoder." in a stack, "" outside. rows 0: a vector. */
fth_val fth_param_at(fth_builder *b, fth_role role, int64_t rows, int64_t width, fth_init init,
                     const char *suffix);
/* A convolution's weight [rows, channels, FTH_KERNEL]; as a value [rows, channels * FTH_KERNEL]. */
fth_val fth_kernel_at(fth_builder *b, fth_role role, int64_t rows, int64_t channels, fth_init init,
                      const char *suffix);
/* A parameter right behind the one that was declared last. */
fth_val fth_param_behind(fth_builder *b, fth_role role, int64_t rows, int64_t width, fth_init init,
                         const char *suffix);
/* Several parameters that lie behind one another (q, k, v) as one value of rows * count rows, or of
 * width * count columns for vectors. */
fth_val fth_params_at(fth_builder *b, const fth_role *roles, int count, int64_t rows, int64_t width,
                      fth_init init, const char *const *suffixes);
/* Part of a parameter: rows * width elements from element `first` on. */
fth_val fth_param_part(fth_builder *b, fth_val param, int64_t first, int64_t rows, int64_t width);

/* Gain and bias of a layer norm over `width` columns: suffix + ".weight" and ".bias". */
fth_norm_params fth_norm_at(fth_builder *b, int64_t width, const char *suffix);

/* sqrt(d) table[token] + positions, with the word dropout of config; `drop`: with its dropout
 * too. */
fth_val fth_embed(fth_builder *b, fth_side side, fth_val table, fth_val positions, bool drop);
/* The batch's rows of numbers. */
fth_val fth_numbers_in(fth_builder *b, int64_t width);
/* Rows of the source from rows of patches; cls and mask may be 0; `drop` as in fth_embed. */
fth_val fth_patches(fth_builder *b, fth_val x, fth_val positions, fth_val cls, fth_val mask,
                    bool drop);
/* What a convolution over time reads (UNFOLD_X in op.h), and its gate; x1 may be 0. */
fth_val fth_unfold(fth_builder *b, fth_val x, int per_row, int first);
fth_val fth_glu(fth_builder *b, fth_val x, fth_val x1);
fth_val fth_linear(fth_builder *b, fth_val x, fth_val weight, fth_val bias, fth_act act);
fth_val fth_columns(fth_builder *b, fth_val x, int column, int width);
/* scores: where the stored scores go, NULL when the specification carries none. */
fth_val fth_attention(fth_builder *b, fth_val q, fth_val k, fth_val v,
                      const fth_attention_spec *spec, fth_val *scores);
fth_val fth_activate(fth_builder *b, fth_val x, fth_act act);
fth_val fth_dropout(fth_builder *b, fth_val x, double p);
fth_val fth_norm(fth_builder *b, fth_val x, fth_norm_params norm);
/* s (x - c); scale or shift may be 0. */
fth_val fth_scale_shift(fth_builder *b, fth_val x, fth_val scale, fth_val shift);
/* factor x */
fth_val fth_scaled(fth_builder *b, fth_val x, double factor);
fth_val fth_head_scale(fth_builder *b, fth_val x, fth_val gamma, int heads);
/* sum_k w_k x_k */
fth_val fth_mix(fth_builder *b, fth_val weights, const fth_val *x, int n);

/* Coefficients of a join. */
fth_coef fth_const(double value);
fth_coef fth_slot(int slot);                         /* a number of the step */
fth_coef fth_learned(fth_builder *b, fth_val param); /* a scalar or a vector */

/* r x + a D(branch), D with the residual dropout of config. */
fth_val fth_join(fth_builder *b, fth_coef r, fth_val x, fth_coef a, fth_val branch);
/* r x + a D(branch) + c e */
fth_val fth_join3(fth_builder *b, fth_coef r, fth_val x, fth_coef a, fth_val branch, fth_coef c,
                  fth_val e);

/* r x + y, without a dropout */
fth_val fth_add(fth_builder *b, fth_coef r, fth_val x, fth_val y);

/* Rows of the source: the first of every sentence, those with a target, the mean of every
 * sentence. */
fth_val fth_pick_rows(fth_builder *b, fth_val x, fth_pick what);
fth_val fth_mean_rows(fth_builder *b, fth_val x);

/* What the loss operation makes. */
typedef struct fth_loss {
    fth_val sums;      /* [1, 2] loss and nll, kept */
    fth_val token_nll; /* [R, 1], kept; 0 unless asked for */
} fth_loss;
/* Cross entropy of x W^T + bias (0: none) against the targets of x's rows. */
fth_loss fth_xent(fth_builder *b, fth_val x, fth_val weight, fth_val bias, double smoothing,
                  bool per_row);
/* Squared distance of x [sentences, 1] from the values of the sentences. */
fth_loss fth_square(fth_builder *b, fth_val x);

/* Words in bands (front/adaptive.c): rows of a band's table for the target's words; x W for a W [n,
 * k] that stands as a linear map's; log-probabilities of all words; a loss under a cut, added to
 * the one before. */
fth_val fth_band(fth_builder *b, fth_val table, int64_t first);
fth_val fth_linear_turned(fth_builder *b, fth_val x, fth_val weight);
fth_val fth_log_words(fth_builder *b, const fth_val *products);
fth_loss fth_xent_cut(fth_builder *b, fth_val x, fth_val weight, fth_cut cut, fth_loss before,
                      bool per_row);

/* The k best of every row of logits, kept: see TOP_Y in op.h. */
fth_val fth_top(fth_builder *b, fth_val logits, int k);

/* Values from outside the arena. */
fth_val fth_constant(fth_builder *b, int64_t rows, int64_t width, fth_numbers numbers);
fth_val fth_state(fth_builder *b, int64_t rows, int64_t width);

/* Marks a value to stay readable after the run. */
void fth_keep(fth_builder *b, fth_val v);

/* Asks for the total gradient of a value, before fth_backward; needs b->requests. Asking twice is
 * asking once. */
void fth_want_gradient(fth_builder *b, fth_val v);

/* Appends the backward operations of everything that the loss depends on (autodiff.c). */
fth_err fth_backward(fth_builder *b);

#endif
