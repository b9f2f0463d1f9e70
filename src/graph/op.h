/* op.h: the operands of every kind, by name. in[LINEAR_X] is the input of a linear operation.
 * "opt" operands may be 0. Shapes: R rows of the batch, d width.
 *
 * Contract of gradients: outputs in the arena are assigned, outputs in FTH_IN_GRAD are added to. */
#ifndef FTH_GRAPH_OP_H
#define FTH_GRAPH_OP_H

enum {              /* embed */
       EMBED_TABLE, /* [V, d] parameter */
       EMBED_POS,   /* [max_positions, d] parameter or constant; row = index of the token, from 0 */
       EMBED_N_IN,
       EMBED_Y = 0, /* [R, d] */
       EMBED_N_OUT
};
enum {               /* embed_bwd */
       EMBED_BWD_DY, /* [R, d] */
       EMBED_BWD_N_IN,
       EMBED_BWD_DTABLE = 0, /* [V, d] grad */
       EMBED_BWD_DPOS,       /* [max_positions, d] grad, opt */
       EMBED_BWD_N_OUT
};
enum { NUMBERS_N_IN, NUMBERS_X = 0, NUMBERS_N_OUT }; /* numbers: X [rows of numbers, width] */
enum {              /* patches: row k of a sentence stands at position k; with a class token patch k
                        is its row k + 1 */
       PATCHES_X,   /* [rows of numbers, d] */
       PATCHES_POS, /* [max_positions, d] parameter or constant */
       PATCHES_CLS, /* [1, d] parameter, opt: present with u.patches.cls */
       PATCHES_MASK, /* [1, d] parameter, opt: stands where batch.input.masked says so */
       PATCHES_N_IN,
       PATCHES_Y = 0, /* [R, d] source rows */
       PATCHES_N_OUT
};
enum {                 /* patches_bwd */
       PATCHES_BWD_DY, /* [R, d] */
       PATCHES_BWD_N_IN,
       PATCHES_BWD_DX = 0, /* [rows of numbers, d]; 0 where the mask token stood */
       PATCHES_BWD_DPOS,   /* [max_positions, d] grad, opt */
       PATCHES_BWD_DCLS,   /* [1, d] grad, opt */
       PATCHES_BWD_DMASK,  /* [1, d] grad, opt */
       PATCHES_BWD_N_OUT
};
enum {
    BAND_TABLE,
    BAND_N_IN,
    BAND_Y = 0,
    BAND_N_OUT
}; /* TABLE [size, n] parameter, Y [target rows, n] */
enum { BAND_BWD_DY, BAND_BWD_N_IN, BAND_BWD_DTABLE = 0, BAND_BWD_N_OUT };
enum { FTH_TAILS = 2 }; /* bands behind the first */
enum {                  /* log_words */
       LOG_WORDS_HEAD,  /* [R, a + FTH_TAILS] products of the first band's words, then the tails */
       LOG_WORDS_TAIL,  /* [R, size] of each other band, FTH_TAILS of them */
       LOG_WORDS_N_IN = LOG_WORDS_TAIL + FTH_TAILS,
       LOG_WORDS_Y = 0, /* [R, V] */
       LOG_WORDS_N_OUT
};
enum { /* unfold: a row of x holds u.unfold.per_row steps of its sentence, step after step */
       UNFOLD_X, /* [source rows, per_row * channels] */
       UNFOLD_N_IN,
       UNFOLD_Y = 0, /* [source rows, channels * FTH_KERNEL] */
       UNFOLD_N_OUT
};
enum { UNFOLD_BWD_DY, UNFOLD_BWD_N_IN, UNFOLD_BWD_DX = 0, UNFOLD_BWD_N_OUT };
enum {         /* glu: the second part of y is 0 where batch.input.masked says so */
       GLU_X,  /* [source rows, 2 n] */
       GLU_X1, /* the same again, opt */
       GLU_N_IN,
       GLU_Y = 0, /* [source rows, n]; with two inputs [source rows, 2 n] */
       GLU_N_OUT
};
enum {
    GLU_BWD_DY,
    GLU_BWD_X,
    GLU_BWD_X1, /* opt */
    GLU_BWD_N_IN,
    GLU_BWD_DX = 0,
    GLU_BWD_DX1, /* opt */
    GLU_BWD_N_OUT
};
enum { FTH_KERNEL = 5 }; /* steps that a convolution reads */
enum {                   /* linear */
       LINEAR_X,         /* [R, k] */
       LINEAR_W,         /* [n, k] parameter */
       LINEAR_B,         /* [1, n] parameter, opt */
       LINEAR_N_IN,
       LINEAR_Y = 0, /* [R, n], after the activation */
       LINEAR_PRE,   /* [R, n], before it; opt: present when act is GELU and a backward follows */
       LINEAR_N_OUT
};
enum {                   /* linear_dx */
       LINEAR_DX_DY,     /* [R, n] */
       LINEAR_DX_W,      /* [n, k] parameter */
       LINEAR_DX_ADDEND, /* [R, k] opt; may share its place with DX */
       LINEAR_DX_SAVED,  /* [R, k] opt: present when act is not NONE. ReLU: the activation's output,
                         GELU: its input */
       LINEAR_DX_N_IN,
       LINEAR_DX_DX = 0, /* [R, k] */
       LINEAR_DX_N_OUT
};
enum {               /* linear_dw */
       LINEAR_DW_DY, /* [R, n] */
       LINEAR_DW_X,  /* [R, k] */
       LINEAR_DW_N_IN,
       LINEAR_DW_DW = 0, /* [n, k] grad */
       LINEAR_DW_DB,     /* [1, n] grad, opt */
       LINEAR_DW_N_OUT
};
enum {           /* attention; q, k, v are often views of one value: mind the leading dimension */
       ATT_Q,    /* [Rq, d] */
       ATT_K,    /* [Rk, d] */
       ATT_V,    /* [Rk, d] */
       ATT_PREV, /* [pairs, heads] carried scores of the layer below, opt */
       ATT_N_IN,
       ATT_O = 0,  /* [Rq, d] */
       ATT_LSE,    /* [Rq, heads] full: log of the sum of exponentials, for the backward */
       ATT_SCORES, /* [pairs, heads] full: scale q k^T + PREV, unmasked, opt */
       ATT_N_OUT
};
/* pairs of sentence s begin at sum over s' < s of q_len * k_len; pair (i, j) of a sentence is at
 * i * k_len + j. */
enum { /* attention_bwd */
       ATT_BWD_Q,
       ATT_BWD_K,
       ATT_BWD_V,
       ATT_BWD_O,
       ATT_BWD_LSE,
       ATT_BWD_DO,      /* [Rq, d] */
       ATT_BWD_SCORES,  /* [pairs, heads] opt: the scores that the forward stored */
       ATT_BWD_DSCORES, /* [pairs, heads] opt: gradient that came from the layer above */
       ATT_BWD_N_IN,
       ATT_BWD_DQ = 0, /* [Rq, d] */
       ATT_BWD_DK,     /* [Rk, d] */
       ATT_BWD_DV,     /* [Rk, d] */
       ATT_BWD_DPREV,  /* [pairs, heads] opt: own score gradient (unscaled by q k^T) + DSCORES */
       ATT_BWD_N_OUT
};
enum {               /* attention_cached: row r is a hypothesis; its history is batch.history */
       ATT_CACHED_Q, /* [R, d] */
       ATT_CACHED_K, /* [R, d] new key, written to the cache at batch.slot[r] first */
       ATT_CACHED_V,
       ATT_CACHED_PREV,   /* [pairs, heads] opt */
       ATT_CACHED_KCACHE, /* [slots, d] state */
       ATT_CACHED_VCACHE, /* [slots, d] state */
       ATT_CACHED_N_IN,
       ATT_CACHED_O = 0,  /* [R, d] */
       ATT_CACHED_SCORES, /* [pairs, heads] opt: pairs of row r begin at sum of earlier lengths */
       ATT_CACHED_N_OUT
};
enum {             /* join, norm (X, GAIN, BIAS only), join_norm */
       JOIN_X,     /* [R, d] */
       JOIN_F,     /* [R, d] the branch; absent in norm */
       JOIN_E,     /* [R, d] opt */
       JOIN_R,     /* parameter of coefficient r: [1, 1] or [1, d], opt */
       JOIN_A,     /* of a, opt */
       JOIN_C,     /* of c, opt */
       JOIN_GAIN,  /* [1, d] norm, join_norm */
       JOIN_BIAS,  /* [1, d] */
       JOIN_GIVEN, /* [R, 2] full, norm, opt: what STATS will be, from when y was made before; a
                      backend may take it instead of its own */
       JOIN_N_IN,
       JOIN_Z = 0, /* [R, d]; absent in norm */
       JOIN_Y,     /* [R, d] norm, join_norm */
       JOIN_STATS, /* [R, 2] full: mean and 1 / sqrt(var + eps) */
       JOIN_KEPT,  /* [R, ceil(d / 8)] bits, opt: which elements of the branch dropout has kept; 0
                    past the last column. For backends that ask for it (backend.h) */
       JOIN_N_OUT
};
enum {                 /* join_bwd, norm_bwd, join_norm_bwd */
       JOIN_BWD_DY,    /* [R, d] gradient of y; absent in join_bwd */
       JOIN_BWD_DZ,    /* [R, d] gradient that z has from its other readers: join_bwd always,
                        norm_bwd and join_norm_bwd opt (added to the LN's own) */
       JOIN_BWD_KEPT,  /* [R, ceil(d / 8)] bits, opt: the forward's; absent: drawn again */
       JOIN_BWD_Z,     /* [R, d] the LN's input (norm_bwd: x) */
       JOIN_BWD_STATS, /* [R, 2] full */
       JOIN_BWD_GAIN,  /* [1, d] */
       JOIN_BWD_X,     /* [R, d] opt: where r is learned */
       JOIN_BWD_F,     /* [R, d] opt: where a is learned */
       JOIN_BWD_E,     /* [R, d] opt: where c is learned */
       JOIN_BWD_R,     /* parameters of the coefficients, opt */
       JOIN_BWD_A,
       JOIN_BWD_C,
       JOIN_BWD_N_IN,
       JOIN_BWD_DX = 0, /* [R, d] r dz; norm_bwd: the gradient of x. opt */
       JOIN_BWD_DF,     /* [R, d] a D(dz), opt: absent when it equals DX */
       JOIN_BWD_DE,     /* [R, d] c dz, opt: absent when it equals DX */
       JOIN_BWD_DGAIN,  /* grads, opt */
       JOIN_BWD_DBIAS,
       JOIN_BWD_DR,
       JOIN_BWD_DA,
       JOIN_BWD_DC,
       JOIN_BWD_N_OUT
};
enum { ACT_X, ACT_N_IN, ACT_Y = 0, ACT_N_OUT }; /* activation */
enum { ACT_BWD_DY, ACT_BWD_SAVED, ACT_BWD_N_IN, ACT_BWD_DX = 0, ACT_BWD_N_OUT };
enum { DROP_X, DROP_N_IN, DROP_Y = 0, DROP_N_OUT };                       /* dropout */
enum { SHIFT_X, SHIFT_S, SHIFT_C, SHIFT_N_IN, SHIFT_Y = 0, SHIFT_N_OUT }; /* S, C [1, 1], opt */
enum {
    SHIFT_BWD_DY,
    SHIFT_BWD_X, /* opt: where s is learned */
    SHIFT_BWD_S,
    SHIFT_BWD_C,
    SHIFT_BWD_N_IN,
    SHIFT_BWD_DX = 0,
    SHIFT_BWD_DS,
    SHIFT_BWD_DC,
    SHIFT_BWD_N_OUT
};
enum { HEADS_X, HEADS_GAMMA, HEADS_N_IN, HEADS_Y = 0, HEADS_N_OUT }; /* head_scale; GAMMA [1, h] */
enum {
    HEADS_BWD_DY,
    HEADS_BWD_X,
    HEADS_BWD_GAMMA,
    HEADS_BWD_N_IN,
    HEADS_BWD_DX = 0,
    HEADS_BWD_DGAMMA,
    HEADS_BWD_N_OUT
};
/* mix of k values: in = {W, x_0, ..., x_{k-1}}, W [1, k]; out = {y} */
enum { MIX_W, MIX_X0, MIX_Y = 0 };
/* mix_bwd: in = {dy, W, x_0 .. x_{k-1}, addend_0 .. addend_{k-1}}, addends opt, each may share its
 * place with dx_i; out = {dW, dx_0 .. dx_{k-1}}. k = (n_in - 2) / 2. */
enum { MIX_BWD_DY, MIX_BWD_W, MIX_BWD_X0, MIX_BWD_DW = 0, MIX_BWD_DX0 };
enum { ADD_A, ADD_B, ADD_N_IN, ADD_Y = 0, ADD_N_OUT }; /* y may share its place with a */
enum {
    PICK_X,
    PICK_N_IN,
    PICK_Y = 0,
    PICK_N_OUT
}; /* X [source rows, d], Y [sentences or picked, d] */
enum { PICK_BWD_DY, PICK_BWD_N_IN, PICK_BWD_DX = 0, PICK_BWD_N_OUT };
enum { MEAN_X, MEAN_N_IN, MEAN_Y = 0, MEAN_N_OUT }; /* X [source rows, d], Y [sentences, d] */
enum { MEAN_BWD_DY, MEAN_BWD_N_IN, MEAN_BWD_DX = 0, MEAN_BWD_N_OUT };
enum { /* xent: targets are those of x's rows (fth_targets_of); a negative target carries no loss */
       XENT_X,          /* [R, d] */
       XENT_W,          /* [V, d] parameter */
       XENT_B,          /* [1, V] parameter, opt */
       XENT_BEFORE,     /* [1, 2] full, opt: sums that this loss is added to, */
       XENT_NLL_BEFORE, /* [R, 1] full, opt: and the nll of every row; present with XENT_NLL */
       XENT_N_IN,
       XENT_LOSS = 0, /* [1, 2] full: sums over the batch of loss and nll */
       XENT_NLL,      /* [R, 1] full, opt: nll of every row, 0 where there is no target */
       XENT_DX,       /* [R, d] opt: gradient of loss * step.loss_scale */
       XENT_DW,       /* [V, d] grad, opt */
       XENT_DB,       /* [1, V] grad, opt: present with XENT_B and a gradient */
       XENT_N_OUT
};
enum {           /* square: against batch.values */
       SQUARE_X, /* [sentences, 1] */
       SQUARE_N_IN,
       SQUARE_LOSS = 0, /* [1, 2] full: sum over the batch, twice */
       SQUARE_DX,       /* [sentences, 1] opt: gradient of loss * step.loss_scale */
       SQUARE_N_OUT
};
enum {        /* top: a row is a hypothesis, its columns are the words that may come next */
       TOP_X, /* [R, V] logits */
       TOP_N_IN,
       TOP_Y = 0, /* [R, TOP_BEST + 2 k] full, by the columns below */
       TOP_N_OUT
};
enum {            /* columns of TOP_Y: one row is all that the host reads of V words */
       TOP_LSE,   /* log of the sum of the exponentials of all logits */
       TOP_ASKED, /* the logit of the word that batch.side[FTH_TGT].targets names; none: 0 */
       TOP_BEST   /* k logits, the largest first, equal ones by number, then the k words' numbers.
                     -inf and NaN are no candidates; places that are left have -inf and word -1 */
};
enum {
    FTH_TOP_MOST = 32,      /* the largest k */
    FTH_TOP_VOCAB = 1 << 18 /* the largest V: numbers of words fit into floats, candidates into the
                               memory of a GPU's block */
};

enum {              /* update: nothing happens where the loss or a gradient is not finite */
       UPDATE_GRAD, /* [n, k] full */
       UPDATE_LOSS, /* [1, 2] full: of xent */
       UPDATE_N_IN,
       UPDATE_MASTER = 0, /* [n, k] parameter, full */
       UPDATE_M,          /* [n, k] moments */
       UPDATE_V,
       UPDATE_WEIGHTS, /* [n, k] parameter, real: the copy that products read, or master itself */
       UPDATE_SUMS,    /* [1, FTH_RANGE_SUMS] full: roots of the sums of backend.h */
       UPDATE_N_OUT
};

/* The three that gauge values: nothing reads what they write but the host. */
enum {          /* gauge: u.gauge.what says which two sums, see graph.h */
       GAUGE_X, /* [R, d] */
       GAUGE_F, /* [R, d] cosine, ratio */
       GAUGE_R, /* ratio: parameter of coefficient r, [1, 1] or [1, d], opt */
       GAUGE_A, /* of a, opt */
       GAUGE_N_IN,
       GAUGE_SUMS = 0, /* [1, 2] full */
       GAUGE_N_OUT
};
enum { GAUGE_POSITIONS_X, GAUGE_POSITIONS_N_IN }; /* [R, d]; out [1, 2] full: cosines, sentences */
enum {                     /* gauge_entropy, with the attributes of the attention */
       GAUGE_ENTROPY_Q,    /* [Rq, d] */
       GAUGE_ENTROPY_K,    /* [Rk, d] */
       GAUGE_ENTROPY_PREV, /* [pairs, heads] opt */
       GAUGE_ENTROPY_LSE,  /* [Rq, heads] full */
       GAUGE_ENTROPY_N_IN
}; /* out [1, 2] full: sum of entropies in nats, how many (one for each row looked at and head) */
/* Entropy looks at rows 0, s, 2 s, ... with s = ceil(rows / this): at most so many. */
enum { FTH_GAUGE_QUERIES = 64 };

#endif
