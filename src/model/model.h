/* model.h: a Transformer as a description: its parameters and the graphs that compute it. Knows no
 * method by name; what differs between methods is asked of the method's hooks. */
#ifndef FTH_MODEL_MODEL_H
#define FTH_MODEL_MODEL_H

#include "method/method.h"
#include "model/taps.h"

typedef struct fth_model {
    fth_config config;
    fth_method_state method; /* points at config: a model does not move */
    fth_params params;       /* complete after fth_model_init */
} fth_model;

/* Checks the configuration, resolves the method and declares every parameter. */
fth_err fth_model_init(fth_model *m, const fth_config *config);
void fth_model_fini(fth_model *m);

/* The initial values of the layers' matrices are drawn `scale` times as large: of embeddings, gains
 * and biases not. Before fth_model_draw. */
void fth_model_scale_init(fth_model *m, double scale);

/* Draws fresh parameters into flat [params.size] (doc/mathematics.md#initial-values and the
 * method's own rules). */
void fth_model_draw(const fth_model *m, uint64_t seed, float *flat);

/* Standard deviation (or value) that a parameter's rule gives. */
double fth_init_std(const fth_param *p);

/* ---- graphs ---- */

/* What a graph over whole sentences is for. */
typedef struct fth_graph_spec {
    bool backward;    /* gradients of every parameter */
    bool dropout;     /* the dropouts of the configuration are on */
    bool keep_bits;   /* joins save for the backward what their dropout has kept */
    bool hidden;      /* keep the outputs of the stacks */
    bool logits;      /* make and keep the logits of every row of the loss */
    bool token_nll;   /* keep the nll of every row of the loss */
    double smoothing; /* label smoothing */
    fth_taps *taps;   /* where to write down which value is which; NULL: nowhere */
} fth_graph_spec;

typedef struct fth_outputs {
    fth_val loss;      /* [1, 2] sums of loss and nll */
    fth_val token_nll; /* [rows of the loss, 1] */
    fth_val logits;    /* [rows of the loss, V] */
    fth_val hidden[2]; /* by fth_stack: [R, d] output of the stack */
    fth_val updates;   /* what updates inside of the graph sum up (inline_update.h) */
    fth_side side;     /* the side that carries the loss */
    fth_extent rows;   /* of the loss */
} fth_outputs;

/* graph is initialised by the call; the caller hands it to fth_program_new. */
fth_err fth_model_graph(const fth_model *m, const fth_graph_spec *spec, fth_graph *graph,
                        fth_outputs *out);

/* Generation, in two graphs. `encode` runs the encoder and keeps the keys and values that every
 * decoder layer's cross-attention needs; `step` advances every live hypothesis by one token. */
typedef struct fth_encode_graph {
    fth_graph graph;
    fth_val *memory; /* [decoder_layers] kept [src rows, 2d]: keys, then values; in the graph's
                        arena */
} fth_encode_graph;

typedef struct fth_step_graph {
    fth_graph graph;
    fth_val *memory; /* [decoder_layers] states [src capacity, 2d] to be shared with encode's */
    fth_val logits;  /* [hypotheses, V], kept */
} fth_step_graph;

fth_err fth_model_encode_graph(const fth_model *m, fth_encode_graph *out);
/* slots: rows of the key and value caches; src_capacity: most source tokens of a batch. */
fth_err fth_model_step_graph(const fth_model *m, int64_t slots, int64_t src_capacity,
                             fth_step_graph *out);

#endif
