/* op_harness.h: tests of kernels. A case is a small graph made by hand: an operation, or a forward
 * operation with its backward ones, over random values (op_cases.c has the table: variants times
 * shapes). The same case serves two checks:
 *   fth_harness_compare   every operation alone, on equal inputs, on a backend against ref;
 *   fth_harness_gradient  the gradients against signed finite differences, in double.
 * Both return FTH_OK, or an error whose message names the case, the operation and the number. */
#ifndef FTH_TEST_OP_HARNESS_H
#define FTH_TEST_OP_HARNESS_H

#include "backend/backend.h"
#include "base/philox.h"

enum { FTH_TRIAL_VALUES = 64, FTH_TRIAL_PAIRS = 16, FTH_SHAPE_SENTENCES = 4 };

typedef struct fth_shape {
    const char *name;
    int n_sent, src[FTH_SHAPE_SENTENCES], tgt[FTH_SHAPE_SENTENCES]; /* lengths of the sentences */
    int width, heads, inner, vocab; /* inner: the other side of a product */
    bool large;                     /* too slow for finite differences */
} fth_shape;

typedef struct fth_variant fth_variant; /* of op_build.h */

typedef struct fth_op_case {
    char name[96];
    const fth_variant *variant;
    const fth_shape *shape;
} fth_op_case;

/* Case number i; false past the last one. */
bool fth_op_case_at(size_t i, fth_op_case *out);

/* A case with its numbers. Everything is owned by the graph's arena. */
typedef struct fth_trial {
    const fth_op_case *from;
    fth_graph graph;
    fth_rng rng;
    double size;                      /* of its numbers; 1 in nearly all cases */
    double *host[FTH_TRIAL_VALUES];   /* by value that owns storage: [capacity, width] */
    fth_val shares[FTH_TRIAL_VALUES]; /* the value whose place it takes, 0: its own */
    int64_t rows[FTH_N_EXTENTS], capacity[FTH_N_EXTENTS];
    fth_batch batch;
    fth_step step;
    /* The loss is the sum over these of <value, weight>. */
    struct {
        fth_val value, weight;
    } loss[FTH_TRIAL_PAIRS];
    /* Values with the values that hold their gradients at the end. */
    struct {
        fth_val value, grad;
    } pair[FTH_TRIAL_PAIRS];
    int n_loss, n_pairs;
} fth_trial;

/* One side of a trial's batch (op_batch.c). */
fth_err fth_trial_side(fth_trial *t, const int *lengths, fth_packed_side *side);
/* Lists for heads, and rows of numbers [., width] for fronts. */
fth_err fth_trial_lists(fth_trial *t);
fth_err fth_trial_numbers(fth_trial *t, int32_t width, bool cls);

/* Builds a case's graph and numbers; fth_trial_fini frees a zeroed or half-built one too. */
fth_err fth_trial_init(fth_trial *t, const fth_op_case *c);
void fth_trial_fini(fth_trial *t);

/* Rounds a trial's numbers to what a device can hold, so that all see the same. */
void fth_trial_round(fth_trial *t, const fth_device *dev);

/* Values of a trial, filled with random numbers. */
fth_val fth_trial_input(fth_trial *t, fth_extent extent, int width, fth_class class);
fth_val fth_trial_fixed(fth_trial *t, fth_storage storage, int64_t rows, int width,
                        fth_class class);
/* A parameter's gradient, filled already: operations add to it. Registers the pair. */
fth_val fth_trial_param_grad(fth_trial *t, fth_val param);
/* A value for output `index` of an operation, like another in rows. */
fth_val fth_trial_output(fth_trial *t, fth_op *op, int index, fth_val like, int width,
                         fth_class class);
/* A random value by which y goes into the loss: the gradient of y. */
fth_val fth_trial_upstream(fth_trial *t, fth_val y);
void fth_trial_pair(fth_trial *t, fth_val value, fth_val grad);

/* What a backend does with the rows between those of the batch and the capacity. */
typedef enum fth_tail {
    FTH_TAIL_KEPT, /* neither reads nor writes them: garbage in, poison stays */
    FTH_TAIL_FREE  /* works on the whole capacity: they are 0 in inputs, anything in outputs */
} fth_tail;

/* Each operation of the case on `dev` against `ref`, from equal inputs: ||a - b|| within tolerance
 * of ||b|| for every operand, no element far off, inputs left alone, gradients of parameters added
 * to (also a second time), the same bits when run again. */
fth_err fth_harness_compare(fth_device *ref, fth_device *dev, const fth_op_case *c,
                            double tolerance, fth_tail tail);

/* The same for n devices of one precision; ref, which is slow, runs once for all of them. Ends at
 * the first device that is wrong: *at gets its number. */
fth_err fth_harness_compare_all(fth_device *ref, fth_device *const *dev, int n,
                                const fth_op_case *c, double tolerance, fth_tail tail, int *at);

/* Directional derivatives of the case's loss along random directions of every value of a pair,
 * against the gradients that the backward operations give. dev must store doubles. */
fth_err fth_harness_gradient(fth_device *dev, const fth_op_case *c);

/* Scratch of a device that lasts while operations want the same number of bytes: not one more, so
 * that a sanitizer sees who goes too far; and full of the last one's numbers, as in a program. */
typedef struct fth_spare {
    void *data;
    int64_t bytes;
} fth_spare;
fth_err fth_spare_fit(fth_device *dev, int64_t bytes, fth_spare *s); /* *s may be zeroed */
void fth_spare_fini(fth_device *dev, fth_spare *s);

/* Runs operation `index` of the trial `runs` times from the trial's numbers. result [n_values]
 * gets the numbers of every operand's owner after it, [capacity, width], out of arena. */
fth_err fth_harness_run(fth_device *dev, const fth_trial *t, int32_t index, int runs, fth_tail tail,
                        fth_arena *arena, double **result);

/* Runs all operations of the trial as one program, `runs` times; for devices that run programs
 * themselves. Values that the program writes are NaN before; result as above. */
fth_err fth_harness_run_together(fth_device *dev, const fth_trial *t, int runs, fth_arena *arena,
                                 double **result);

/* Runs all operations in order and puts what they wrote into the trial's numbers. */
fth_err fth_harness_run_all(fth_device *dev, fth_trial *t);

#endif
