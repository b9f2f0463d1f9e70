/* backend.h: what a backend is: memory, one kernel per kind of operation, and the work on the flat
 * arenas of parameters. `ref` (double, naive) has every entry and is the oracle; `cpu` starts from
 * ref's table and overrides; `cuda` has every entry of its own. */
#ifndef FTH_BACKEND_BACKEND_H
#define FTH_BACKEND_BACKEND_H

#include <signal.h>

#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/op.h"

typedef enum fth_dtype { FTH_F64, FTH_F32, FTH_BF16, FTH_U8 } fth_dtype;

static inline size_t fth_dtype_size(fth_dtype t) {
    return t == FTH_F64 ? 8 : t == FTH_F32 ? 4 : t == FTH_BF16 ? 2 : 1;
}

typedef enum fth_precision { FTH_PRECISION_FP32, FTH_PRECISION_BF16 } fth_precision;

typedef struct fth_backend fth_backend;

/* An opened backend. Backends extend it (first member of their own struct). */
typedef struct fth_device {
    const fth_backend *backend;
    fth_precision precision;
    int threads;
    /* What the classes of values mean here. */
    fth_dtype real, full;
    /* Not 0: a run of a program ends between two operations with FTH_STOPPED, as long as it has not
     * changed parameters. NULL: nobody asks. On the host only; a GPU runs its whole list. */
    const volatile sig_atomic_t *stop;
} fth_device;

static inline fth_dtype fth_dtype_of(const fth_device *dev, fth_class of) {
    return of == FTH_REAL ? dev->real : of == FTH_FULL ? dev->full : FTH_U8;
}

/* A value as a kernel sees it. Pointers are fixed when the program is made. */
typedef struct fth_tensor {
    void *data;      /* first element */
    int64_t ld;      /* elements from row to row (a view's base width) */
    int64_t rows;    /* FIXED extent: rows; else the capacity */
    int32_t width;   /* columns */
    fth_dtype dtype; /* real, full, bits; parameters: matrices real, vectors full */
    fth_extent extent;
} fth_tensor;

/* What kernels run in: resolved values, the batch, the step. */
typedef struct fth_exec {
    fth_device *device;
    const fth_graph *graph;
    const fth_tensor *tensor;    /* [n_values] */
    int64_t rows[FTH_N_EXTENTS]; /* rows of the batch at hand, by extent (FIXED: unused) */
    int64_t capacity[FTH_N_EXTENTS];
    fth_batch batch;
    fth_step step;
    int32_t
        first_update; /* the first operation that changes parameters; as many as there are: none */
    void *scratch;    /* shared by all kernels, each uses it only while it runs */
    int64_t scratch_bytes;
    bool frozen;       /* parameters stay as they are when prepare is called */
    void *own;         /* what the backend's prepare made */
    int64_t own_bytes; /* of the device's memory, that it takes beside arena and scratch */
} fth_exec;

/* The tensor of an operand, NULL when it is absent. A program always has tensors; said here, since
 * analysers take an absent operand for a sign that there are none. */
static inline const fth_tensor *fth_arg(const fth_exec *ex, fth_val v) {
    if (!ex->tensor) __builtin_unreachable();
    return v ? &ex->tensor[v] : NULL;
}

/* Whether an operation adds to an output (a gradient of parameters) instead of assigning it. */
static inline bool fth_adds_to(const fth_exec *ex, fth_val v) {
    return ex->graph->value[v].storage == FTH_IN_GRAD;
}

/* What a run that was asked to stop returns (program.c). */
fth_err fth_stopped(void);

/* Rows to work on now. */
static inline int64_t fth_rows_now(const fth_exec *ex, const fth_tensor *t) {
    return t->extent == FTH_ROWS_FIXED ? t->rows : ex->rows[t->extent];
}

/* The targets of the rows of an extent: of tokens, sentences, or picked rows; NULL: there are
 * none. */
static inline const int32_t *fth_targets_of(const fth_batch *b, fth_extent extent) {
    return extent == FTH_ROWS_SENTENCES ? b->labels
           : extent == FTH_ROWS_PICKED  ? b->picked_ids
                                        : b->side[extent == FTH_ROWS_TGT].targets;
}

/* What a target is under a cut; negative: no loss. */
static inline int32_t fth_target_cut(const fth_cut *cut, int32_t target) {
    if (cut->kind == FTH_CUT_HEAD)
        return target < cut->low ? target : cut->low + (target >= cut->high);
    if (cut->kind == FTH_CUT_TAIL)
        return target >= cut->low && target < cut->high ? target - cut->low : -1;
    return target;
}

/* Rows of this update in earlier micro-batches, for a value that has rows of the batch. */
static inline int64_t fth_row_base(const fth_step *step, fth_extent extent) {
    return (int)extent < FTH_ROW_EXTENTS ? step->row_base[extent] : 0;
}

/* A coefficient of a join as a number: STEP slots resolved, learned ones give 1 (the kernel
 * multiplies with the operand). */
static inline double fth_coef_now(const fth_exec *ex, const fth_coef *c) {
    return c->kind == FTH_COEF_STEP ? c->value * ex->step.slots[c->slot] : c->value;
}

typedef fth_err (*fth_kernel)(fth_exec *ex, const fth_op *op);

/* Bytes of scratch a kernel needs for an operation at the given capacity; NULL entry: none. */
typedef int64_t (*fth_scratch)(const fth_device *dev, const fth_graph *g, const fth_op *op,
                               const int64_t capacity[FTH_N_EXTENTS]);

/* The flat arenas of one set of parameters on a device; n elements each but grad, zero padded. */
typedef struct fth_arenas {
    int64_t n;
    void *master; /* dtype full: the parameters */
    void
        *weights; /* dtype real: the copy that products read; == master, and of its dtype, when real
                    * == full or there is no copy (fth_backend.rounds_weights) */
    void *grad;   /* dtype full; NULL when only running forward */
    void *m, *v;  /* dtype full: Adam's moments; NULL when not training */
    int64_t
        grads; /* elements of grad: fewer than n where some are updated early (inline_update.h) */
} fth_arenas;

/* What `add_up` adds up, of class full. */
typedef struct fth_addends {
    const void *data; /* [many, stride] */
    int64_t stride;   /* elements */
    int32_t many;
    bool fresh; /* the sum begins with the first of them */
} fth_addends;

struct fth_backend {
    const char *name;
    bool on_host; /* its memory can be read and written through plain pointers */
    fth_err (*open)(const fth_backend *self, fth_precision precision, int threads,
                    fth_device **out);
    void (*close)(fth_device *dev);
    /* Memory of the device, zeroed, 64-byte aligned or better. */
    fth_err (*alloc)(fth_device *dev, int64_t bytes, void **out);
    void (*release)(fth_device *dev, void *data);
    fth_err (*upload)(fth_device *dev, void *to, const void *from, int64_t bytes);
    fth_err (*download)(fth_device *dev, void *to, const void *from, int64_t bytes);
    fth_err (*zero)(fth_device *dev, void *data, int64_t bytes);
    /* Free and total memory of the device in bytes. */
    fth_err (*memory)(fth_device *dev, int64_t *free_bytes, int64_t *total_bytes);
    /* Runs all operations of ex->graph in order. NULL: the program walks the kernels itself. */
    fth_err (*run)(fth_exec *ex);
    /* By how many operations its run may let those that run aside (plan.h) end late. */
    int32_t lag;
    /* How many elements updates inside of a program (inline_update.h) should come in at least:
     * where a kernel takes as long to start as to update a small matrix. 0: one matrix at a
     * time. */
    int64_t update_together;
    /* Outputs of layer norms are made again for the backward in any case: where that takes no
     * longer than writing and reading them. */
    bool recompute_norms;
    /* A training keeps no copy of the weights in the type of activations: kernels take the
     * parameters themselves and round them. */
    bool rounds_weights;
    /* Joins write down which elements their dropout has kept, for the backward to read (JOIN_KEPT):
     * where a bit of memory costs less than drawing twice. false: the operand does not exist for
     * its kernels. */
    bool keep_bits;
    /* Joins make the products that they read: the plan keeps the operands for them (plan.h). */
    bool joined;
    /* Called when a program is made and freed: a place for captured graphs and the like. */
    fth_err (*prepare)(fth_exec *ex);
    void (*unprepare)(fth_exec *ex);
    /* Programs made from now on hold the weights of their linear maps in 8 bits. NULL: cannot. */
    fth_err (*quantize)(fth_device *dev);
    /* Over flat arenas: sum of squares (in double), Adam, and master -> weights. */
    fth_err (*sum_squares)(fth_device *dev, const void *full, int64_t n, double *out);
    /* The same by pieces of so many elements: out [n / piece, rounded up], each a sum of its own,
     * so that it does not depend on who has the other pieces. */
    fth_err (*square_sums)(fth_device *dev, const void *full, int64_t n, int64_t piece,
                           double *out);
    /* Adds `many` addends [n], `stride` elements apart, one after the other; to [n] is their first
     * when it is not `fresh`. */
    fth_err (*add_up)(fth_device *dev, void *to, const fth_addends *from, int64_t n);
    fth_err (*adam)(fth_device *dev, const fth_arenas *a, const fth_adam *args);
    fth_err (*refresh_weights)(fth_device *dev, const fth_arenas *a);
    /* Sums over each range of args, which otherwise is what adam got just before (lr 0: no update
     * was made): out [n_ranges, FTH_RANGE_SUMS]. A range is one thread's or block's work: the
     * caller cuts long ones. */
    fth_err (*range_sums)(fth_device *dev, const fth_arenas *a, const fth_adam *args, double *out);
    fth_kernel kernel[FTH_N_KINDS];
    fth_scratch scratch[FTH_N_KINDS];
};

/* The backends of this build. A device that is absent returns FTH_USAGE with the reason. */
const fth_backend *fth_backend_ref(void);
const fth_backend *fth_backend_cpu(void);
const fth_backend *fth_backend_cuda(void); /* NULL when built without CUDA */

#endif
