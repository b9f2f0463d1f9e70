/* trajectory.c: the way of a run through parameter space (doc/analyses.md#trajectory). Axis A leads
 * from theta_0 to the last checkpoint, axis B is the first principal component of what the others
 * have beside it, as long as A. Only the Gram matrix of the differences D_i = theta_i - theta_0 is
 * needed to find it, so the checkpoints are read in blocks and never lie in memory together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/model_dir.h"
#include "probe/eigen.h"
#include "probe/plane.h"
#include "probe/series.h"

enum { BLOCK = 65536 }; /* elements of a parameter that are read at once */

typedef struct way {
    const fth_series *series;
    fth_subject subject;
    int32_t k;           /* K: D_1 .. D_K */
    float *start;        /* [params.size] theta_0 */
    float *last, *other; /* [params.size] A and B */
    fth_model_dir **dir; /* [K] checkpoints 1 .. K, mapped */
    float *block;        /* [K, BLOCK] of the D_i */
    double *gram;        /* [K, K] <D_i, D_j> */
    double *weight;      /* [K] B = sum_j weight_j D_j */
    double *a, *b;       /* [K + 1] the points */
} way;

static void way_fini(way *w) {
    for (int32_t i = 0; w->dir && i < w->k; i++) fth_model_dir_close(w->dir[i]);
    free(w->dir);
    free(w->start);
    free(w->last);
    free(w->other);
    free(w->block);
    free(w->gram);
    free(w->weight);
    free(w->a);
    free(w->b);
    fth_subject_close(&w->subject);
}

static fth_err way_init(way *w, const fth_series *s, const fth_probe_spec *spec) {
    w->series = s;
    w->k = s->n - 1;
    FTH_TRY(fth_subject_open(&w->subject, spec, s->folder[s->n - 1]));
    FTH_TRY(fth_subject_has_loss(&w->subject));
    size_t size = (size_t)w->subject.model.params.size, k = (size_t)w->k;
    w->start = malloc(sizeof *w->start * size);
    w->last = calloc(size, sizeof *w->last);
    w->other = calloc(size, sizeof *w->other);
    w->dir = calloc(k, sizeof(fth_model_dir *));
    w->block = malloc(sizeof *w->block * k * BLOCK);
    w->gram = calloc(k * k, sizeof *w->gram);
    w->weight = calloc(k, sizeof *w->weight);
    w->a = calloc(k + 1, sizeof *w->a);
    w->b = calloc(k + 1, sizeof *w->b);
    if (!w->start || !w->last || !w->other || !w->dir || !w->block || !w->gram || !w->weight ||
        !w->a || !w->b)
        return fth_fail(FTH_NO_MEMORY, "no memory for the way of %zu checkpoints", k);
    for (int32_t i = 0; i < w->k; i++) FTH_TRY(fth_model_dir_open(s->folder[i + 1], &w->dir[i]));
    return fth_series_weights(s, 0, &w->subject.model, w->start);
}

/* Elements [first, first + n) of a parameter of every D_i, into block. */
static fth_err read_block(way *w, const fth_param *p, int64_t first, int64_t n) {
    for (int32_t i = 0; i < w->k; i++) {
        const fth_st_file *file = w->dir[i]->weights;
        const fth_st_tensor *t = NULL;
        FTH_TRY(fth_st_get(file, p->name, &t));
        if ((int64_t)fth_st_count(t) != fth_param_size(p))
            return fth_fail(FTH_BAD_INPUT, "%s: tensor %s has %zu elements, the last model %lld",
                            file->path, p->name, fth_st_count(t), (long long)fth_param_size(p));
        fth_st_tensor part = *t;
        part.rank = 1;
        part.shape[0] = n;
        part.data = (const char *)t->data + (size_t)first * fth_st_dtype_size(t->dtype);
        float *d = w->block + (int64_t)i * BLOCK;
        FTH_TRY(fth_st_to_f32(file, &part, d));
        for (int64_t e = 0; e < n; e++) d[e] -= w->start[p->offset + first + e];
    }
    return FTH_OK;
}

static double dot(const float *x, const float *y, int64_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

static void add_gram(way *w, const fth_param *p, int64_t first, int64_t n) {
    (void)p;
    (void)first;
#pragma omp parallel for schedule(dynamic)
    for (int32_t i = 0; i < w->k; i++)
        for (int32_t j = 0; j <= i; j++) {
            double sum = dot(w->block + (int64_t)i * BLOCK, w->block + (int64_t)j * BLOCK, n);
            w->gram[i * w->k + j] += sum;
            if (i != j) w->gram[j * w->k + i] += sum;
        }
}

/* A = D_K and B. */
static void add_axes(way *w, const fth_param *p, int64_t first, int64_t n) {
    memcpy(w->last + p->offset + first, w->block + (int64_t)(w->k - 1) * BLOCK,
           sizeof *w->last * (size_t)n);
    for (int64_t e = 0; e < n; e++) {
        double sum = 0;
        for (int32_t j = 0; j < w->k; j++)
            sum += w->weight[j] * (double)w->block[(int64_t)j * BLOCK + e];
        w->other[p->offset + first + e] = (float)sum;
    }
}

static fth_err each_block(way *w, void (*use)(way *, const fth_param *, int64_t, int64_t)) {
    const fth_params *params = &w->subject.model.params;
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        int64_t size = fth_param_size(p);
        for (int64_t first = 0; first < size; first += BLOCK) {
            int64_t n = size - first < BLOCK ? size - first : BLOCK;
            FTH_TRY(read_block(w, p, first, n));
            use(w, p, first, n);
        }
    }
    return FTH_OK;
}

/* Distance from theta_0 and angle to A, in units of ||A||. */
static void points_by_angle(way *w) {
    double whole = w->gram[w->k * w->k - 1];
    for (int32_t i = 1; i < w->k; i++) {
        double square = w->gram[(i - 1) * (w->k + 1)];
        w->a[i] = w->gram[(i - 1) * w->k + w->k - 1] / whole;
        w->b[i] = sqrt(fmax(0, square / whole - w->a[i] * w->a[i]));
    }
    w->a[w->k] = 1;
}

/* Principal component of the residuals r_i = D_i - A <D_i, A> / <A, A>: with v the first
 * eigenvector of their Gram matrix R it is sum_j v_j r_j, and its length is sqrt(lambda). */
static fth_err points_by_component(way *w) {
    int32_t k = w->k;
    double whole = w->gram[k * k - 1], lambda = 0, largest = 0, along = 0;
    double *residual = calloc((size_t)k * (size_t)k, sizeof *residual);
    if (!residual) return fth_fail(FTH_NO_MEMORY, "no memory for %d checkpoints", k);
    for (int32_t i = 0; i < k - 1; i++) /* that of D_K itself is 0 */
        for (int32_t j = 0; j < k - 1; j++)
            residual[i * k + j] =
                w->gram[i * k + j] - w->gram[i * k + k - 1] * w->gram[j * k + k - 1] / whole;
    fth_err err = fth_first_eigenvector(residual, k, w->weight, &lambda);
    double scale = lambda > 0 ? sqrt(whole / lambda) : 0;
    for (int32_t i = 0; i < k; i++) w->weight[i] *= scale;
    for (int32_t i = 1; i <= k; i++) {
        w->a[i] = w->gram[(i - 1) * k + k - 1] / whole;
        for (int32_t j = 0; j < k; j++) w->b[i] += w->weight[j] * residual[(i - 1) * k + j] / whole;
        if (fabs(w->b[i]) > fabs(largest)) largest = w->b[i];
    }
    for (int32_t i = 0; i < k; i++) { /* the point farthest from A lies above it */
        if (largest < 0) w->weight[i] = -w->weight[i];
        if (largest < 0) w->b[i + 1] = -w->b[i + 1];
        along += w->weight[i] * w->gram[i * k + k - 1] / whole;
    }
    w->weight[k - 1] -= along; /* B is sum_j weight_j r_j, written in the D_j */
    free(residual);
    return err;
}

/* The checkpoints themselves, each with the numbers of its own step. */
static fth_err add_points(way *w, fth_table *out) {
    fth_subject *s = &w->subject;
    fth_look look;
    float *flat = malloc(sizeof *flat * (size_t)s->model.params.size);
    fth_stack top = s->model.config.arch == FTH_ENC ? FTH_ENCODER : FTH_DECODER;
    fth_err err = fth_look_open(&look, s, (fth_graph_spec){0}, 0);
    if (err == FTH_OK && !flat) err = fth_fail(FTH_NO_MEMORY, "no memory for the parameters");
    for (int32_t i = 0; i <= w->k && err == FTH_OK; i++) {
        int64_t step = w->series->step[i];
        err = fth_series_weights(w->series, i, &s->model, flat);
        if (err == FTH_OK) err = fth_subject_load(s, flat);
        if (err == FTH_OK) err = fth_look_run(&look, fth_subject_update(s, step), NULL, NULL);
        if (err == FTH_OK)
            err = fth_table_add(out, (fth_probe_row){.stack = top,
                                                     .index = i,
                                                     .step = step,
                                                     .word = "point",
                                                     .number = {w->a[i], w->b[i], look.loss}});
    }
    free(flat);
    fth_look_close(&look);
    return err;
}

/* Range of the points with a quarter of it on each side. */
static void cover(const double *x, int32_t n, double *from, double *to) {
    double low = x[0], high = x[0];
    for (int32_t i = 1; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    double margin = high > low ? 0.25 * (high - low) : 0.25;
    *from = low - margin;
    *to = high + margin;
}

static fth_err add_surface(way *w, fth_table *out) {
    fth_plane plane = {.centre = w->start,
                       .axis = {w->last, w->other},
                       .points = w->subject.spec->grid,
                       .step = w->series->step[w->k],
                       .word = "surface"};
    cover(w->a, w->k + 1, &plane.from[0], &plane.to[0]);
    cover(w->b, w->k + 1, &plane.from[1], &plane.to[1]);
    FTH_TRY(each_block(w, add_axes));
    return fth_plane_measure(&plane, &w->subject, out);
}

static fth_err follow(way *w, fth_table *out) {
    FTH_TRY(each_block(w, add_gram));
    if (!(w->gram[w->k * w->k - 1] > 0))
        return fth_fail(FTH_BAD_INPUT, "trajectory: the last checkpoint of %s equals theta_0",
                        w->series->label);
    if (w->subject.spec->angle)
        points_by_angle(w);
    else
        FTH_TRY(points_by_component(w));
    FTH_TRY(add_points(w, out));
    /* distance and angle are no plane of parameter space: there is no surface to them */
    return w->subject.spec->angle ? FTH_OK : add_surface(w, out);
}

fth_err fth_probe_trajectory(const fth_series *s, const fth_probe_spec *spec, fth_table *out) {
    way w = {.k = 0};
    fth_err err = FTH_OK;
    if (s->n < 3)
        err = fth_fail(FTH_USAGE,
                       "trajectory: %s has %d checkpoint%s, must have at least 3: theta_0, the "
                       "last and one between",
                       s->label, s->n, s->n == 1 ? "" : "s");
    if (err == FTH_OK) err = way_init(&w, s, spec);
    if (err == FTH_OK) err = fth_table_subject(out, s->label, &w.subject.model.config);
    if (err == FTH_OK) err = follow(&w, out);
    way_fini(&w);
    return err;
}
