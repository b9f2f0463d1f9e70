/* param.h: the table of parameters. All live in one flat arena, in the order in which the model
 * first names them. Files see names; everything inside goes by role, stack and layer. */
#ifndef FTH_GRAPH_PARAM_H
#define FTH_GRAPH_PARAM_H

#include "graph/graph.h"

/* What a parameter is for. Initialisation, learning rates and folding go by role. */
typedef enum fth_role {
    FTH_ROLE_EMBED,     /* token embedding [V, d] */
    FTH_ROLE_POSITIONS, /* learned positions [max_positions, d] */
    FTH_ROLE_OUTPUT,    /* untied output matrix [V, d] */
    FTH_ROLE_Q,
    FTH_ROLE_K,
    FTH_ROLE_V,
    FTH_ROLE_O,   /* attention's matrices [d, d] */
    FTH_ROLE_FC1, /* [f, d] */
    FTH_ROLE_FC2, /* [d, f] */
    FTH_ROLE_Q_BIAS,
    FTH_ROLE_K_BIAS,
    FTH_ROLE_V_BIAS,
    FTH_ROLE_O_BIAS,
    FTH_ROLE_FC1_BIAS,
    FTH_ROLE_FC2_BIAS,
    FTH_ROLE_GAIN, /* of a layer norm */
    FTH_ROLE_NORM_BIAS,
    FTH_ROLE_FRONT, /* matrices of a front and of a head, and their biases */
    FTH_ROLE_FRONT_BIAS,
    FTH_ROLE_TOKEN, /* rows that stand for themselves: class token, mask token */
    FTH_ROLE_HEAD,
    FTH_ROLE_HEAD_BIAS,
    FTH_ROLE_EXTRA /* what only one method has */
} fth_role;

const char *fth_role_name(fth_role role);

enum { FTH_PARAM_ALIGNMENT = 64 }; /* elements: groups start on a cache line in every precision */

typedef enum fth_init_rule {
    FTH_INIT_CONST,          /* every entry is `value` */
    FTH_INIT_XAVIER_UNIFORM, /* XU(gain), doc/mathematics.md#initial-values */
    FTH_INIT_XAVIER_NORMAL,  /* XN(gain) */
    FTH_INIT_NORMAL,         /* N(0, value) */
    FTH_INIT_MEAN_OF_ROW     /* row r: 1 / (r + 1) up to the diagonal, 0 above */
} fth_init_rule;

typedef struct fth_init {
    fth_init_rule rule;
    double gain;  /* of the Xavier rules */
    double value; /* CONST: the value; NORMAL: the standard deviation */
} fth_init;

/* Rules of initialisation, doc/mathematics.md#initial-values. */
static inline fth_init fth_xavier_uniform(double gain) {
    return (fth_init){.rule = FTH_INIT_XAVIER_UNIFORM, .gain = gain};
}
static inline fth_init fth_xavier_normal(double gain) {
    return (fth_init){.rule = FTH_INIT_XAVIER_NORMAL, .gain = gain};
}
static inline fth_init fth_init_const(double value) {
    return (fth_init){.rule = FTH_INIT_CONST, .value = value};
}
static inline fth_init fth_init_normal(double deviation) {
    return (fth_init){.rule = FTH_INIT_NORMAL, .value = deviation};
}

typedef struct fth_param {
    const char *name; /* doc/formats.md#names-of-parameters */
    fth_role role;
    fth_stack stack;
    fth_sub sub;
    int32_t layer; /* 0-based, -1 outside of layers */
    int32_t rank;
    int64_t shape[2];
    int32_t
        kernel; /* of a convolution: the last of its three dimensions in files, shape[1] holds it;
                       0: a matrix or a vector */
    bool adjacent;  /* lies right behind the parameter before it (q, k, v) */
    int64_t offset; /* first element in the arena */
    fth_init init;
    float share; /* multiplies its learning rate: 1, or what was asked for (run/rates.h); 0: it is
                    frozen, and gets no gradient */
} fth_param;

typedef struct fth_params {
    fth_arena arena; /* owns the names */
    fth_param *param;
    int32_t n, capacity;
    int64_t size;    /* elements of the arena, paddings included */
    int32_t *bucket; /* hash table of names, -1 = empty */
    int32_t n_buckets;
    bool frozen; /* the model is complete: a new name is an error */
} fth_params;

void fth_params_init(fth_params *p);
void fth_params_fini(fth_params *p);

/* Index of the parameter of that name, -1: not there. */
int32_t fth_params_find(const fth_params *p, const char *name);

/* Adds a parameter (its name is copied, offset is set) and gives its index, or finds it again when
 * it is there with the same shape. */
fth_err fth_params_declare(fth_params *p, const fth_param *wanted, int32_t *index);

/* The shape that files have, and how many dimensions that are. */
static inline int fth_param_file_shape(const fth_param *p, int64_t shape[3]) {
    shape[0] = p->shape[0];
    shape[1] = p->kernel ? p->shape[1] / p->kernel : p->shape[1];
    shape[2] = p->kernel;
    return p->kernel ? 3 : p->rank;
}

static inline int64_t fth_param_size(const fth_param *p) {
    return p->shape[0] * (p->rank == 2 ? p->shape[1] : 1);
}

/* Matrices that enter products: kept in the precision of activations. */
static inline bool fth_role_is_matrix(fth_role role) {
    return role == FTH_ROLE_EMBED || role == FTH_ROLE_OUTPUT || role == FTH_ROLE_FRONT ||
           role == FTH_ROLE_HEAD || (role >= FTH_ROLE_Q && role <= FTH_ROLE_FC2);
}

/* W_q W_k W_v W_o W_1 W_2 and their biases. */
static inline bool fth_role_is_branch(fth_role role) {
    return role >= FTH_ROLE_Q && role <= FTH_ROLE_FC2_BIAS;
}

/* The first parameter that begins at or behind an element of the arena; p->n: none. */
int32_t fth_params_from(const fth_params *p, int64_t offset);

/* Whether elements [begin, end) belong to frozen parameters alone. */
bool fth_params_frozen(const fth_params *p, int64_t begin, int64_t end);

/* Number of real elements, paddings left out. */
int64_t fth_params_count(const fth_params *p);

#endif
