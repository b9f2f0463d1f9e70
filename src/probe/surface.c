/* surface.c: the loss on a plane around a model (doc/analyses.md#surface): two random directions,
 * every row of a matrix as long as the row of the model, vectors and scalars left where they are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/philox.h"
#include "probe/plane.h"

/* Does the parameter move? Matrices of linear maps, embeddings and positions do. */
static bool is_moved(const fth_param *p) {
    return fth_role_is_matrix(p->role) || p->role == FTH_ROLE_POSITIONS;
}

static double norm_of(const float *x, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (double)x[i] * (double)x[i];
    return sqrt(squares);
}

/* A draw depends on the seed and the parameter's name alone. */
static void draw_direction(const fth_params *params, const float *theta, uint64_t seed,
                           float *out) {
    memset(out, 0, sizeof *out * (size_t)params->size);
#pragma omp parallel for schedule(dynamic)
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        if (!is_moved(p)) continue;
        fth_rng rng;
        fth_rng_init(&rng, seed, fth_hash64(p->name, strlen(p->name)));
        for (int64_t row = 0; row < p->shape[0]; row++) {
            float *x = out + p->offset + row * p->shape[1];
            for (int64_t c = 0; c < p->shape[1]; c++) x[c] = (float)fth_rng_normal(&rng);
            double scale = norm_of(theta + p->offset + row * p->shape[1], p->shape[1]) /
                           (norm_of(x, p->shape[1]) + 1e-10);
            for (int64_t c = 0; c < p->shape[1]; c++) x[c] = (float)((double)x[c] * scale);
        }
    }
}

fth_err fth_probe_surface(fth_subject *s, fth_table *out) {
    size_t bytes = sizeof(float) * (size_t)s->model.params.size;
    float *delta = malloc(bytes), *eta = malloc(bytes);
    fth_err err = delta && eta ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for two directions");
    if (err == FTH_OK) {
        draw_direction(&s->model.params, s->flat, s->spec->seed, delta);
        draw_direction(&s->model.params, s->flat, s->spec->seed + 1, eta);
        fth_plane plane = {.centre = s->flat,
                           .axis = {delta, eta},
                           .from = {-1, -1},
                           .to = {1, 1},
                           .points = s->spec->grid,
                           .step = s->model.config.step};
        err = fth_plane_measure(&plane, s, out);
    }
    free(delta);
    free(eta);
    return err;
}
