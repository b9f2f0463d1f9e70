/* program.h: a planned graph on a device, ready to run again and again without allocating.
 *
 * Lies beside backend.h because it needs the backend's table; graph/ itself knows no device. */
#ifndef FTH_BACKEND_PROGRAM_H
#define FTH_BACKEND_PROGRAM_H

#include "backend/backend.h"
#include "graph/batch_store.h"
#include "graph/plan.h"

typedef struct fth_program fth_program;

typedef struct fth_shared {
    fth_val v;  /* a state of this program ... */
    void *data; /* ... that lives in memory of another program on the same device */
} fth_shared;

/* How a program is made. */
typedef struct fth_program_spec {
    int64_t capacity[FTH_N_EXTENTS]; /* most rows of a batch, by extent */
    const fth_arenas *arenas;        /* the parameters on the device; outlives the program */
    int64_t budget;                  /* most bytes of arena + scratch + constants; 0: no limit */
    const fth_shared *shared;        /* [n_shared] */
    int32_t n_shared;
    bool frozen; /* the parameters stay as they are while the program lives: it may pack them */
    /* A program whose arena and scratch serve this one too: the two are never run at the same time,
     * and what one keeps is gone when the other has run. Its arena is enlarged if need be (unless
     * others have it already). It outlives this one. NULL: none. */
    fth_program *lender;
} fth_program_spec;

/* Takes the graph over (also when it fails). */
fth_err fth_program_new(fth_device *dev, fth_graph *graph, const fth_program_spec *spec,
                        fth_program **out);
void fth_program_free(fth_program *p);

/* Runs every operation once. A failing kernel is named in the message. */
fth_err fth_program_run(fth_program *p, const fth_batch *batch, const fth_step *step);

/* In parts, on the host, a program that updates nothing: takes a batch up, then runs operations
 * [begin, end), whose inputs must be there. */
fth_err fth_program_load(fth_program *p, const fth_batch *batch, const fth_step *step);
fth_err fth_program_run_part(fth_program *p, int32_t begin, int32_t end);

/* Reads a kept value of the newest run as doubles: rows of the batch at hand times width. */
fth_err fth_program_read(fth_program *p, fth_val v, double *out);
fth_err fth_program_read_f32(fth_program *p, fth_val v, float *out);
/* Rows that a value has in the newest run. */
int64_t fth_program_rows(const fth_program *p, fth_val v);

/* Where a kept value or a state lives on the device, to be shared with another program. */
void *fth_program_address(const fth_program *p, fth_val v);

const fth_graph *fth_program_graph(const fth_program *p);

/* What the planner has to know of a device. */
fth_plan_spec fth_program_plan_spec(const fth_device *dev, const int64_t capacity[FTH_N_EXTENTS]);

/* Bytes that the program takes on the device (not what is lent to it), and the layers it
 * recomputes. */
int64_t fth_program_bytes(const fth_program *p);
/* What a program of this graph would take beside its arena: scratch, states and constants. */
int64_t fth_program_bytes_beside(const fth_device *dev, const fth_graph *g,
                                 const int64_t capacity[FTH_N_EXTENTS]);
int64_t fth_program_arena_bytes(const fth_program *p); /* of them, activations */
int32_t fth_program_recomputed(const fth_program *p);

/* Time by kind of operation since the last call with reset, in seconds; only while profiling. */
void fth_program_profile(fth_program *p, bool on);
const double *fth_program_times(const fth_program *p); /* [FTH_N_KINDS] */

/* Runs the operations one by one, with a call before and after each (either may be NULL). */
typedef fth_err fth_program_visit(void *context, const fth_op *op);
fth_err fth_program_walk(fth_program *p, const fth_batch *batch, const fth_step *step,
                         fth_program_visit *before, fth_program_visit *after, void *context);

/* Walks and finds the first operation whose output is not finite: *op is its index, or -1. */
fth_err fth_program_find_nonfinite(fth_program *p, const fth_batch *batch, const fth_step *step,
                                   int32_t *op);

#endif
