/* method.h: what a method is. A method is one file: its forward equation, its initialisation, its
 * options. The model calls the hooks below while it builds the graph; a hook that is NULL does what
 * its comment says. Gradients follow by autodiff. methods.def lists all methods. */
#ifndef FTH_METHOD_METHOD_H
#define FTH_METHOD_METHOD_H

#include "graph/batch.h"
#include "graph/builder.h"

/* Where the layer norm of a sub-layer stands (doc/mathematics.md#one-form-for-all). */
typedef enum fth_norm_place { FTH_NORM_POST, FTH_NORM_PRE, FTH_NORM_NONE } fth_norm_place;

/* An option of a method (config.json's method_options). */
typedef struct fth_option_spec {
    const char *key;
    const char *kind;     /* "number", "bool", or the allowed words "linear|exp|sigmoid" */
    const char *fallback; /* default, as text */
    double min, max;      /* numbers only */
    const char *help;
} fth_option_spec;

/* A kind of layer norm that a method has beside the usual ones (self_attn_layer_norm,
 * encoder_attn_layer_norm, final_layer_norm of a layer, layer_norm on top of a stack): what its
 * name begins with behind the name of its stack or layer, and what analyses call it. */
typedef struct fth_norm_kind {
    const char *prefix, *name;
    bool below; /* it stands below the first layer */
} fth_norm_kind;

/* The numbers that a method computes once from a configuration: its constants. */
enum { FTH_METHOD_NUMBERS = 8 };
typedef struct fth_method_state {
    const struct fth_method *method;
    const fth_config *config;
    double number[FTH_METHOD_NUMBERS]; /* the method's own, named by an enum in its file */
} fth_method_state;

/* Where in the model a hook is called. */
typedef struct fth_site {
    const fth_config *config;
    const fth_method_state *state;
    fth_stack stack;
    int32_t layer, layers; /* 0-based; layers of the stack */
    fth_sub sub;
    fth_norm_place place; /* of this sub-layer's norm */
    bool last_in_layer;   /* the FFN */
    fth_val layer_input;  /* residual stream where the layer began */
    fth_norm_params norm; /* of this sub-layer; gain 0 in a method without LN */
    void *memo;           /* what the method keeps from layer to layer of one build (see begin) */
} fth_site;

/* What a fold does to a trained model (fold.h). */
struct fth_fold;

typedef struct fth_method {
    const char *id;         /* the name of the flag */
    bool plain;             /* what others of its `norm` fold to */
    const char *title;      /* its name in the papers, with another one that is used */
    const char *paper;      /* authors, year, reference */
    const char *equation;   /* one line of text */
    const char *extra;      /* extra learned parameters, in words */
    const char *export_to;  /* what a trained model folds to, in words */
    const char *advice;     /* what it needs to train: warm-up and the like */
    const char *torchscale; /* the key that chooses it in torchscale's settings; NULL: none */
    fth_norm_place norm;
    bool final_norm;            /* an LN after each stack */
    const fth_norm_kind *norms; /* of its own, ended by a NULL prefix; NULL: the usual ones alone */
    bool no_bias;               /* linear maps of layers have no bias */

    const fth_option_spec *options; /* ended by a NULL key; NULL: takes none */
    /* Computes state->number from the options; checks what the option table cannot. */
    fth_err (*resolve)(fth_method_state *state);

    /* ---- forward; each returns the value that takes the place of its last argument ---- */
    /* Bytes of zeroed memory that a stack's build keeps in site->memo. */
    size_t memo_size;
    /* Place of the norm where layers of a stack differ. NULL: `norm`. */
    fth_norm_place (*place)(const fth_site *s);
    /* Name of an LN between a stack's embedding and its dropout, or NULL. NULL: none. */
    const char *(*embed_norm)(const fth_method_state *state);
    /* Input of a layer from the output of the one below. NULL: the output itself. */
    fth_val (*layer_in)(fth_builder *b, const fth_site *s, fth_val x);
    /* What the branch reads (query side only in cross-attention). NULL: LN(x) where norm is PRE,
     * else x. */
    fth_val (*pre)(fth_builder *b, const fth_site *s, fth_val x);
    /* FFN: what enters the activation, from W_1 x + b_1. NULL: itself. */
    fth_val (*before_act)(fth_builder *b, const fth_site *s, fth_val h);
    /* What enters the branch's last map (W_o, W_2). NULL: itself. */
    fth_val (*inner)(fth_builder *b, const fth_site *s, fth_val h);
    /* What the branch gives, from the output of its last map. NULL: itself. */
    fth_val (*after)(fth_builder *b, const fth_site *s, fth_val f);
    /* The scores that attention starts from and whether it carries its own. NULL: none. */
    void (*attend)(fth_builder *b, const fth_site *s, fth_attention_spec *spec);
    void (*attended)(fth_builder *b, const fth_site *s, fth_val scores);
    /* The residual stream after the sub-layer. NULL: LN(x + D(f)), or x + D(f) unless POST. */
    fth_val (*join)(fth_builder *b, const fth_site *s, fth_val x, fth_val f);
    /* What the stack gives, s->layer = layers. NULL: LN_f(x) where final_norm, else x. */
    fth_val (*stack_out)(fth_builder *b, const fth_site *s, fth_val x);

    /* ---- before and during training ---- */
    /* Rule of a parameter; `base` is the baseline of doc/mathematics.md#initial-values. NULL: the
     * baseline. */
    fth_init (*init)(const fth_method_state *state, const fth_param *p, fth_init base);
    /* Numbers of update t (from 1) for step->slots; slot 0 is what logs call alpha. NULL: all 1. */
    void (*step)(const fth_method_state *state, int64_t t, double *slots);
    /* Factor on the learning rate of a parameter at update t. NULL: 1. */
    double (*lr_scale)(const fth_method_state *state, fth_role role, int64_t t);
    /* Learned parameters that are set from one batch before training:
     * the parameter of a sub-layer that takes sqrt(Var(r x) + Var(D f)) of the one below. NULL:
     * none. */
    const char *(*profiled)(const fth_method_state *state, fth_sub sub);
    /* One line of advice for a run with these options, or NULL. */
    const char *(*warn)(const fth_method_state *state);
    /* Fold to the plain method with the same `norm` (fold.h): first the configuration (NULL:
     * nothing changes), then the values. fold NULL: it cannot, export_to says why. */
    fth_err (*fold_config)(struct fth_fold *fold);
    fth_err (*fold)(struct fth_fold *fold);
    /* Makes a configuration whose schedule is at its end, for a run that starts from trained
     * weights. NULL: there is no schedule. */
    void (*settle)(fth_config *config);
} fth_method;

/* What a method advises against in a run with these options; NULL: nothing. What train warns of and
 * preflight counts as a risk. */
const char *fth_method_warning(const fth_method_state *state);

/* A schedule of the method's own. */
typedef struct fth_ramp {
    int64_t updates;   /* until it is at its end; 0: there is none */
    bool rate_follows; /* the branches' learning rate grows along with it */
} fth_ramp;
fth_ramp fth_method_ramp(const fth_method_state *state);

#define METHOD(name) extern const fth_method fth_method_##name;
#include "method/methods.def"
#undef METHOD

/* The list of methods.def, ended by NULL. */
const fth_method *const *fth_methods(void);
/* NULL: not there. */
const fth_method *fth_method_find(const char *id);
/* The plain method with this norm place: Post-LN, Pre-LN. */
const fth_method *fth_method_plain(fth_norm_place norm);

/* Finds config's method, checks its options by its table and computes its constants. */
fth_err fth_method_resolve(const fth_config *config, fth_method_state *out);

/* An option as given, or its default. */
double fth_option_number(const fth_method_state *state, const char *key);
const char *fth_option_text(const fth_method_state *state, const char *key);
bool fth_option_given(const fth_method_state *state, const char *key);

/* The numbers of update t for every method (1 where it has none). */
void fth_method_step(const fth_method_state *state, int64_t t, double slots[FTH_STEP_SLOTS]);

/* Layers of the stack that a parameter or site belongs to. */
static inline int32_t fth_stack_layers(const fth_config *c, fth_stack stack) {
    return stack == FTH_ENCODER ? c->encoder_layers : c->decoder_layers;
}

/* Residual branches (sub-layers) of a stack. */
static inline int32_t fth_stack_branches(const fth_config *c, fth_stack stack) {
    bool crossed = stack == FTH_DECODER && c->arch == FTH_ENCDEC;
    return fth_stack_layers(c, stack) * (crossed ? 3 : 2);
}

/* The same draw, multiplied. */
static inline fth_init fth_init_scaled(fth_init init, double factor) {
    init.gain *= factor;
    init.value *= factor;
    return init;
}

#endif
