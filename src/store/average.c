/* average.c: reads the models tensor by tensor, in pieces, and adds them up in double. */
#include "store/average.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/config_json.h"

typedef struct mean {
    const fth_model_dir *const *models; /* [n] */
    size_t n;
    size_t capacity; /* elements that piece and sum have room for */
    float *piece;    /* [capacity] of one model */
    double *sum;     /* [capacity] over the models */
} mean;

static fth_err make_room(mean *m, size_t count) {
    if (count <= m->capacity) return FTH_OK;
    free(m->piece);
    free(m->sum);
    m->piece = malloc(count * sizeof *m->piece);
    m->sum = malloc(count * sizeof *m->sum);
    m->capacity = m->piece && m->sum ? count : 0;
    return m->capacity ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for %zu numbers", count);
}

/* Adds a piece of one model's tensor to the sum. */
static fth_err add_piece(mean *m, const fth_st_file *f, const char *name, size_t first,
                         size_t count) {
    const fth_st_tensor *t = NULL;
    FTH_TRY(fth_st_get(f, name, &t));
    fth_st_tensor piece = {.name = name, .dtype = t->dtype, .rank = 1, .shape = {(int64_t)count}};
    piece.data = (const char *)t->data + first * fth_st_dtype_size(t->dtype);
    FTH_TRY(fth_st_to_f32(f, &piece, m->piece));
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(m->piece[i]))
            return fth_fail(FTH_BAD_INPUT,
                            "%s: tensor \"%s\": element %zu is %g: only finite numbers have a mean",
                            f->path, name, first + i, (double)m->piece[i]);
        m->sum[i] += (double)m->piece[i];
    }
    return FTH_OK;
}

static fth_err fill_mean(void *context, const fth_st_tensor *t, size_t first, size_t count,
                         void *out) {
    mean *m = context;
    FTH_TRY(make_room(m, count));
    memset(m->sum, 0, count * sizeof *m->sum);
    for (size_t i = 0; i < m->n; i++)
        FTH_TRY(add_piece(m, m->models[i]->weights, t->name, first, count));
    float *values = out;
    for (size_t i = 0; i < count; i++) values[i] = (float)(m->sum[i] / (double)m->n);
    return FTH_OK;
}

static fth_err check_alike(const fth_model_dir *const *models, size_t n) {
    if (!n) return fth_fail(FTH_USAGE, "no model to average");
    const fth_st_file *first = models[0]->weights;
    for (size_t i = 1; i < n; i++) {
        const char *key;
        FTH_TRY(fth_config_difference(&models[0]->config, &models[i]->config, &key));
        if (key)
            return fth_fail(FTH_BAD_CONFIG,
                            "%s and %s differ in %s: only models of one kind can be averaged",
                            models[0]->path, models[i]->path, key);
        FTH_TRY(fth_st_expect(models[i]->weights, first->tensors, first->n));
    }
    return FTH_OK;
}

fth_err fth_average_write(const char *path, const fth_model_dir *const *models, size_t n) {
    FTH_TRY(check_alike(models, n));
    mean m = {.models = models, .n = n};
    const fth_st_file *first = models[0]->weights;
    fth_config config = models[0]->config;
    for (size_t i = 1; i < n; i++)
        if (models[i]->config.step > config.step) config.step = models[i]->config.step;
    fth_st_tensor *tensors = calloc(first->n + 1, sizeof *tensors); /* [first->n] */
    fth_err err = tensors ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for the tensors' names");
    if (!err) {
        for (size_t i = 0; i < first->n; i++) {
            tensors[i] = first->tensors[i];
            tensors[i].dtype = FTH_ST_F32;
        }
        fth_model_content content = {&config, tensors, first->n, fill_mean, &m, models[0]->path};
        err = fth_model_dir_write(path, &content);
    }
    free(m.piece);
    free(m.sum);
    free(tensors);
    return err;
}
