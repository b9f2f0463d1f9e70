/* graph.h: values and operations. Model and method code builds a graph (builder.h), autodiff
 * appends the backward operations, the planner places the values, a backend runs the list.
 * Nothing is computed while building. */
#ifndef FTH_GRAPH_GRAPH_H
#define FTH_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* A value of the graph; 0 is "none". */
typedef int32_t fth_val;

typedef enum fth_stack { FTH_ENCODER, FTH_DECODER, FTH_NO_STACK } fth_stack;
typedef enum fth_sub { FTH_SELF, FTH_CROSS, FTH_FFN, FTH_NO_SUB } fth_sub;
typedef enum fth_side { FTH_SRC, FTH_TGT } fth_side;
/* TANH: in operations activation and activation_bwd alone. */
typedef enum fth_act { FTH_ACT_NONE, FTH_ACT_RELU, FTH_ACT_GELU, FTH_ACT_TANH } fth_act;
/* Which rows of the source a pick takes. */
typedef enum fth_pick {
    FTH_PICK_FIRST,  /* the first of every sentence */
    FTH_PICK_TARGETS /* those with a target */
} fth_pick;

/* What a value's number of rows is. All but FIXED are known only when a batch comes; the plan
 * works with their capacity. */
typedef enum fth_extent {
    FTH_ROWS_SRC,         /* source tokens of the batch */
    FTH_ROWS_TGT,         /* target tokens of the batch (generation: live hypotheses) */
    FTH_ROWS_SENTENCES,   /* one for each sentence */
    FTH_ROWS_PICKED,      /* source rows with a target */
    FTH_ROWS_INPUT,       /* rows of numbers: patches, frames */
    FTH_ROWS_SRC_PAIRS,   /* sum over sentences of source length squared */
    FTH_ROWS_TGT_PAIRS,   /* sum of target length squared (generation: sum of history lengths) */
    FTH_ROWS_CROSS_PAIRS, /* sum of target length times source length */
    FTH_ROWS_FIXED,       /* a number of its own */
    FTH_N_EXTENTS
} fth_extent;

/* Where a value lives. */
typedef enum fth_storage {
    FTH_IN_ARENA,   /* placed by the planner, lives from its operation to its last reader */
    FTH_IN_PARAM,   /* a range of the parameters */
    FTH_IN_GRAD,    /* the same range of their gradients: operations ADD to it */
    FTH_IN_MOMENT1, /* the same range of Adam's moments */
    FTH_IN_MOMENT2,
    FTH_IN_STATE, /* kept from run to run: key and value caches */
    FTH_IN_CONST  /* filled once when the program is made: the sinusoidal table */
} fth_storage;

/* Which precision a value has: the backend says what it means (ref: double for the first two). */
typedef enum fth_class {
    FTH_REAL, /* activations: fp32 or bf16 */
    FTH_FULL, /* always fp32: statistics, losses, vectors of parameters */
    FTH_BITS  /* always bytes, each the bits of eight columns, the first one lowest */
} fth_class;

/* A number of a constant by row, column and width: made when a program is, never stored here. */
typedef double (*fth_numbers)(int64_t row, int64_t column, int64_t width);

typedef struct fth_value {
    fth_storage storage;
    fth_class class;
    fth_extent extent;
    int64_t rows;         /* FIXED extent: the rows */
    int32_t width;        /* columns */
    int32_t column;       /* a view: first column in base */
    fth_val base;         /* a view of columns of this value; 0: it owns its storage */
    int64_t offset;       /* PARAM, GRAD, MOMENT: first element in the flat arena */
    int32_t producer;     /* the operation that makes it, -1: none */
    bool keep;            /* readable after the run: its place is not used again */
    fth_numbers constant; /* CONST: what its numbers are */
} fth_value;

typedef enum fth_kind {
#define KIND(name, text) FTH_KIND_##name,
#include "graph/kinds.def"
#undef KIND
    FTH_N_KINDS
} fth_kind;

/* A number that multiplies a term of a join: value * (step slot | learned scalar | learned vector
 * | 1). The learned ones are operands of the operation. */
typedef enum fth_coef_kind {
    FTH_COEF_CONST,
    FTH_COEF_STEP,
    FTH_COEF_SCALAR,
    FTH_COEF_VECTOR
} fth_coef_kind;
typedef struct fth_coef {
    fth_coef_kind kind;
    int slot;      /* STEP: index into fth_step.slots */
    double value;  /* CONST: the number; STEP: multiplies the slot; else 1 */
    fth_val param; /* SCALAR, VECTOR: the parameter (given to the builder; an operand in the op) */
} fth_coef;

/* Dropout of one place: element e of row r is dropped by philox(seed; update, site, r, e). */
typedef struct fth_drop {
    float p;       /* 0: no dropout, nothing is drawn */
    uint32_t site; /* number of the place, the same on every backend */
} fth_drop;

/* What a gauge operation sums up. Roots keep squares within the range of a float. */
typedef enum fth_gauge_what {
    FTH_GAUGE_NORM,    /* sqrt(sum of x^2); sum over rows of |x| */
    FTH_GAUGE_NONZERO, /* entries of x that are not 0; all entries */
    FTH_GAUGE_COSINE,  /* sum over rows of <x, f> / (|x| |f|); rows */
    FTH_GAUGE_RATIO    /* sqrt(sum of (a f)^2); sqrt(sum of (r x)^2) */
} fth_gauge_what;

/* What of a vocabulary in bands a loss is about: the words below `low`, then one entry for those
 * below `high` and one for the others; or the words from low to high, counted from low. */
typedef enum fth_cut_kind { FTH_CUT_NONE, FTH_CUT_HEAD, FTH_CUT_TAIL } fth_cut_kind;
typedef struct fth_cut {
    fth_cut_kind kind;
    int32_t low, high;
} fth_cut;

typedef struct fth_op {
    fth_kind kind;
    int32_t n_in, n_out;
    fth_val *in, *out; /* by the names of op.h; 0 where an optional operand is absent */
    bool backward;
    bool
        deferrable; /* telemetry, or made again for gradients of weights only (fth_is_deferrable) */
    fth_stack stack; /* where it belongs, for recompute, reports and telemetry */
    fth_sub sub;
    int32_t layer; /* 0-based, -1 outside of layers */
    union {
        struct {
            fth_side side;
            float scale;
            fth_drop drop, word;
            bool keep_first;
        } embed;
        struct {
            fth_act act;
        } linear; /* linear, linear_dx, activation and its backward */
        struct {
            fth_side q_side, k_side;
            int32_t heads;
            bool causal;
            float scale;   /* multiplies q k^T */
            float divisor; /* the carried sum of scores is divided by it before softmax; 1 */
            fth_drop drop;
        } attention;
        struct {
            fth_coef r, a, c;
            fth_drop drop;
            double eps;
        } join; /* also norm: eps */
        struct {
            fth_drop drop;
        } dropout;
        struct {
            float factor; /* a constant that multiplies it all; 1 */
        } scale_shift;    /* and its backward */
        struct {
            int32_t heads;
        } head_scale;
        struct {
            double smoothing;
            fth_cut cut;
        } xent; /* the targets are those of its rows: of tokens, sentences, or picked rows */
        struct {
            fth_pick what;
        } pick;
        struct {
            fth_drop drop;
            bool cls; /* a sentence's first row is the class token */
            fth_side side;
        } patches;
        struct {
            int32_t first; /* word of the band */
        } band;            /* and its backward; target words */
        struct {
            int32_t per_row; /* steps that a row holds */
            int32_t first;   /* of a window, counted from the row's first step */
        } unfold;
        struct {
            fth_gauge_what what;
            fth_coef r, a; /* ratio */
            fth_side side; /* gauge_positions */
        } gauge;
        struct {
            int32_t rate; /* index into fth_step.rate */
            float share;  /* multiplies it */
            bool watched; /* all sums are wanted, not that of the gradient alone */
        } update;
    } u;
} fth_op;

typedef struct fth_graph {
    fth_arena arena;  /* owns everything below */
    fth_value *value; /* [n_values], value[0] unused */
    int32_t n_values, cap_values;
    fth_op *op; /* [n_ops] in order of execution */
    int32_t n_ops, cap_ops;
    fth_err err; /* first error while building: sticky, returned at the end */
} fth_graph;

const char *fth_kind_name(fth_kind kind);
void fth_graph_init(fth_graph *g);
void fth_graph_fini(fth_graph *g);

/* Adds a value or an operation; on failure sets g->err and returns 0 / NULL. The pointer to an
 * operation is good until the next one is added. */
fth_val fth_graph_value(fth_graph *g, fth_value v);
fth_op *fth_graph_op(fth_graph *g, fth_kind kind, int n_in, int n_out);

/* A fresh arena value with the extent, rows, width and class of another. */
fth_val fth_graph_like(fth_graph *g, fth_val v);

/* A view of columns [column, column + width) of a value that owns its storage. */
fth_val fth_graph_columns(fth_graph *g, fth_val base, int column, int width);

/* Sets an output of an operation and notes who makes the value. */
void fth_graph_output(fth_graph *g, fth_op *op, int index, fth_val v);
/* Which operation makes each value, after operations have been put elsewhere. */
void fth_graph_find_producers(fth_graph *g);

#endif
