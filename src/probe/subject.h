/* subject.h: a model on a device, shown the probe set, and what can be seen of it. */
#ifndef FTH_PROBE_SUBJECT_H
#define FTH_PROBE_SUBJECT_H

#include "backend/arenas.h"
#include "backend/program.h"
#include "base/log.h"
#include "model/model.h"
#include "probe/set.h"

/* How models are looked at; the same for all of a call. */
typedef struct fth_probe_spec {
    fth_device *device;
    const char *batch;  /* batch file */
    int64_t max_tokens; /* of a piece of it */
    int64_t update;     /* number whose alpha is used; 0: the model's step, at least 1 */
    double smoothing;   /* of the loss */
    bool dropout;       /* the model's dropouts are on, drawn by seed */
    uint64_t seed;      /* of dropout and of random directions */
    bool embedding;     /* similarity: the embeddings are row and column 0 */
    int32_t grid;       /* points of a surface along each axis */
    fth_log *log;       /* for long work; NULL: nothing is shown */
    bool angle;         /* trajectory: distance and angle instead of a principal component */
} fth_probe_spec;

typedef struct fth_subject {
    const fth_probe_spec *spec;
    fth_model model;
    float *flat; /* [params.size] */
    fth_arenas arenas;
    fth_probe_set set;
} fth_subject;

/* Reads a model folder and the probe set, and brings both to the device. A zeroed subject may be
 * freed. A subject does not move. */
fth_err fth_subject_open(fth_subject *s, const fth_probe_spec *spec, const char *folder);
void fth_subject_close(fth_subject *s);

/* Gives the parameters other values [params.size], or back its own (flat). */
fth_err fth_subject_load(fth_subject *s, const float *flat);

/* An error where the probe set has no targets. */
fth_err fth_subject_has_loss(const fth_subject *s);

/* The update whose numbers the method uses. */
int64_t fth_subject_update(const fth_subject *s, int64_t step);

/* ---- looking ---- */

/* A program over the probe set with values that are to be seen. */
typedef struct fth_look {
    fth_subject *subject;
    fth_taps taps; /* filled when opened */
    fth_outputs outputs;
    fth_program *program;
    struct fth_sight *sight; /* [n_sights] by the operation that makes the value */
    int32_t n_sights, cap_sights;
    double loss, nll; /* of the newest run, per target token */
} fth_look;

/* Told of a value when it has been made, once for each piece of the probe set: x [rows, width]. */
typedef fth_err fth_see(void *context, int32_t id, const double *x, int64_t rows, int64_t width);

/* Adds the squares of value `id` to context, double [most id + 1]. */
fth_see fth_see_squares;

/* what: backward, hidden and logits are the caller's; gradients: FTH_TAP_*. */
fth_err fth_look_open(fth_look *l, fth_subject *s, fth_graph_spec what, unsigned gradients);
void fth_look_close(fth_look *l);

/* Asks for a value (0: nothing happens). */
fth_err fth_look_at(fth_look *l, fth_val v, int32_t id);

/* Shows the whole probe set as at update number `update`; see may be NULL. With a backward the
 * arenas have the gradient of the loss afterwards. */
fth_err fth_look_run(fth_look *l, int64_t update, fth_see *see, void *context);

/* The same for the piece that stands in the set; loss and nll count what it adds. */
fth_err fth_look_piece(fth_look *l, int64_t update, fth_see *see, void *context);

#endif
