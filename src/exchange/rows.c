/* rows.c: expands each row of a table over the layers, and gathers or scatters numbers. */
#include "exchange/rows.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256, PARTS = 3 };

void fth_tensors_fini(fth_tensors *t) {
    free(t->tensors);
    fth_arena_fini(&t->arena);
    *t = (fth_tensors){0};
}

fth_err fth_tensors_add(fth_tensors *t, const char *name, fth_st_dtype dtype, int rank,
                        const int64_t *shape, const void *data, float **room) {
    if (t->n == t->capacity) {
        const size_t capacity = t->capacity ? 2 * t->capacity : 256;
        fth_st_tensor *more = realloc(t->tensors, sizeof *more * capacity);
        if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for tensor %s", name);
        t->tensors = more;
        t->capacity = capacity;
    }
    fth_st_tensor *made = &t->tensors[t->n];
    *made = (fth_st_tensor){.dtype = dtype, .rank = rank, .data = data};
    if (rank > 0) memcpy(made->shape, shape, sizeof *shape * (size_t)rank);
    made->name = fth_arena_strdup(&t->arena, name);
    if (made->name && room) {
        *room = fth_arena_alloc(&t->arena, sizeof **room * (fth_st_count(made) + 1));
        made->data = *room;
    }
    if (!made->name || !made->data) return fth_fail(FTH_NO_MEMORY, "no memory for tensor %s", name);
    t->n++;
    return FTH_OK;
}

/* A row for one layer. */
typedef struct place {
    char name[NAME];
    const fth_param *part[PARTS]; /* [n] */
    int n;
    int rank;
    int64_t shape[2]; /* of the parts together, as fathom has them */
} place;

static const char *const ends[] = {"weight", "bias"};

static bool ends_with(const char *name, char c) {
    const size_t n = name ? strlen(name) : 0;
    return n > 0 && name[n - 1] == c;
}

static void expand(const char *pattern, int32_t layer, const char *end, char out[NAME]) {
    const char *star = strchr(pattern, '*');
    const int whole = (int)strlen(pattern) - ends_with(pattern, '@');
    if (star)
        snprintf(out, NAME, "%.*s%d%.*s%s", (int)(star - pattern), pattern, layer,
                 whole - (int)(star - pattern) - 1, star + 1, end);
    else
        snprintf(out, NAME, "%.*s%s", whole, pattern, end);
}

static void add_part(place *p, const fth_param *one) {
    p->part[p->n++] = one;
    p->rank = one->rank;
    p->shape[0] += one->shape[0];
    p->shape[1] = one->rank == 2 ? one->shape[1] : 1;
}

/* How many tensors a row may stand for. */
static int32_t places_of(const fth_row *row, const fth_model *m) {
    const char *ours = row->ours[0];
    if (ends_with(ours, '.')) return m->params.n;
    const int32_t each = ends_with(ours, '@') ? 2 : 1;
    if (!ours || !strchr(ours, '*')) return each;
    const bool encoder = strncmp(ours, "encoder.", 8) == 0;
    return each * (encoder ? m->config.encoder_layers : m->config.decoder_layers);
}

/* The i-th of them; false: the model has not what it is made of. */
static bool find_place(const fth_row *row, int32_t i, const fth_model *m, place *p) {
    *p = (place){.n = 0};
    if (ends_with(row->ours[0], '.')) {
        const fth_param *one = &m->params.param[i];
        const size_t n = strlen(row->ours[0]);
        if (strncmp(one->name, row->ours[0], n) != 0) return false;
        snprintf(p->name, NAME, "%s%s", row->theirs, one->name + n);
        add_part(p, one);
        return true;
    }
    const bool pair = ends_with(row->ours[0], '@');
    const char *end = pair ? ends[i % 2] : "";
    const int32_t layer = pair ? i / 2 : i;
    expand(row->theirs, layer, end, p->name);
    for (int k = 0; k < PARTS && row->ours[k]; k++) {
        char name[NAME];
        expand(row->ours[k], layer, end, name);
        const int32_t at = fth_params_find(&m->params, name);
        if (at < 0) return false;
        add_part(p, &m->params.param[at]);
    }
    return p->n > 0;
}

static bool is_turned(const fth_row *row, const place *p) {
    return row->turned && p->rank == 2;
}

/* The shape that the file has. */
static void their_shape(const fth_row *row, const place *p, int64_t shape[2]) {
    const int64_t rows = p->shape[0] + row->skip;
    shape[0] = is_turned(row, p) ? p->shape[1] : rows;
    shape[1] = is_turned(row, p) ? rows : p->shape[1];
}

/* Copies rows [n, width] into or out of columns of a turned matrix [width, all]. */
static void turn(float *theirs, float *ours, int64_t first, int64_t n, int64_t width, int64_t all,
                 bool out) {
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < width; c++) {
            float *a = theirs + c * all + first + r, *b = ours + r * width + c;
            *(out ? a : b) = *(out ? b : a);
        }
}

/* Between the parts of a place and the numbers of its tensor. */
static void move(const fth_row *row, const place *p, float *flat, float *theirs, bool out) {
    int64_t first = row->skip;
    for (int i = 0; i < p->n; i++) {
        const int64_t n = p->part[i]->shape[0], width = p->shape[1];
        float *ours = flat + p->part[i]->offset, *at = theirs + first * width;
        if (is_turned(row, p))
            turn(theirs, ours, first, n, width, p->shape[0] + row->skip, out);
        else
            memcpy(out ? at : ours, out ? ours : at, sizeof *ours * (size_t)(n * width));
        first += n;
    }
}

/* Whether an earlier row has given the tensor of this one, which stands for one alone. */
static bool is_there(const fth_row *row, const fth_tensors *t) {
    if (!row->ours[0] || strpbrk(row->theirs, "*@") || ends_with(row->ours[0], '.')) return false;
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->tensors[i].name, row->theirs) == 0) return true;
    return false;
}

fth_err fth_rows_out(const fth_row *rows, const fth_model *m, const float *flat, fth_tensors *out) {
    place p;
    int64_t shape[2];
    for (const fth_row *row = rows; row->theirs; row++) {
        if (row->reading || is_there(row, out)) continue;
        for (int32_t i = 0; i < places_of(row, m); i++) {
            if (!find_place(row, i, m, &p)) continue;
            their_shape(row, &p, shape);
            if (p.n == 1 && !is_turned(row, &p) && !row->skip) {
                FTH_TRY(fth_tensors_add(out, p.name, FTH_ST_F32, p.rank, shape,
                                        flat + p.part[0]->offset, NULL));
                continue;
            }
            float *room = NULL;
            FTH_TRY(fth_tensors_add(out, p.name, FTH_ST_F32, p.rank, shape, NULL, &room));
            move(row, &p, (float *)flat, room, true);
        }
    }
    return FTH_OK;
}

/* ---- the other way ---- */

typedef struct reading {
    const fth_rows_in *in;
    const fth_st_file *file;
    const fth_model *m;
    float *flat;
    bool *used;  /* [file->n] */
    bool *given; /* [params] */
} reading;

static bool is_words(const fth_param *p) {
    return p->role == FTH_ROLE_EMBED || p->role == FTH_ROLE_OUTPUT ||
           strcmp(p->name, "head.bias") == 0;
}

static fth_err wrong_shape(const reading *r, const fth_st_tensor *t, const int64_t shape[2],
                           int rank) {
    char found[96] = "", wanted[96] = "";
    size_t n = 0;
    for (int i = 0; i < t->rank && n + 24 < sizeof found; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, i ? ",%lld" : "%lld",
                              (long long)t->shape[i]);
    snprintf(wanted, sizeof wanted, rank == 2 ? "%lld,%lld" : "%lld", (long long)shape[0],
             (long long)shape[1]);
    return fth_fail(FTH_BAD_INPUT, "%s: tensor \"%s\" has shape [%s], but config.json needs [%s]",
                    r->file->path, t->name, found, wanted);
}

/* Rows of words that the file does not have. */
static void add_words(const reading *r, const fth_param *p) {
    const int64_t width = p->rank == 2 ? p->shape[1] : 1, more = r->in->more_words;
    float *to = r->flat + p->offset + (p->shape[0] - more) * width;
    for (int64_t i = 0; i < more; i++, to += width) {
        memset(to, 0, sizeof *to * (size_t)width);
        if (r->in->copied >= 0)
            memcpy(to, r->flat + p->offset + r->in->copied * width, sizeof *to * (size_t)width);
    }
}

static fth_err read_place(reading *r, const fth_row *row, place *p, const fth_st_tensor *t) {
    int64_t shape[2];
    const bool words = p->n == 1 && is_words(p->part[0]);
    if (words) p->shape[0] -= r->in->more_words;
    their_shape(row, p, shape);
    bool same = t->rank == p->rank;
    for (int i = 0; i < p->rank && same; i++) same = t->shape[i] == shape[i];
    if (!same) return wrong_shape(r, t, shape, p->rank);
    float *theirs = malloc(sizeof *theirs * (fth_st_count(t) + 1));
    if (!theirs) return fth_fail(FTH_NO_MEMORY, "no memory for tensor %s", t->name);
    fth_err err = fth_st_to_f32(r->file, t, theirs);
    if (err == FTH_OK && words) /* the parameter itself has more rows */
        memcpy(r->flat + p->part[0]->offset, theirs + row->skip * p->shape[1],
               sizeof *theirs * (size_t)(p->shape[0] * p->shape[1]));
    else if (err == FTH_OK)
        move(row, p, r->flat, theirs, false);
    free(theirs);
    if (err == FTH_OK && words && r->in->more_words) add_words(r, p->part[0]);
    for (int i = 0; i < p->n; i++) r->given[p->part[i] - r->m->params.param] = true;
    r->used[t - r->file->tensors] = true;
    return err;
}

/* The tensor of a place. */
static const fth_st_tensor *find_tensor(const reading *r, const char *name) {
    const fth_st_tensor *t = fth_st_find(r->file, name);
    const size_t n = r->in->prefix ? strlen(r->in->prefix) : 0;
    return t || !n || strncmp(name, r->in->prefix, n) != 0 ? t : fth_st_find(r->file, name + n);
}

static bool matches(const char *const *patterns, const char *name) {
    for (; patterns && *patterns; patterns++)
        if (fnmatch(*patterns, name, 0) == 0) return true;
    return false;
}

static fth_err check_zeros(const reading *r, const fth_st_tensor *t) {
    float *x = malloc(sizeof *x * (fth_st_count(t) + 1));
    if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for tensor %s", t->name);
    fth_err err = fth_st_to_f32(r->file, t, x);
    for (size_t i = 0; err == FTH_OK && i < fth_st_count(t); i++)
        if (x[i] != 0)
            err = fth_fail(FTH_BAD_INPUT,
                           "%s: tensor \"%s\" has %g at %zu: fathom's models have no such part, so "
                           "it must be 0 everywhere",
                           r->file->path, t->name, (double)x[i], i);
    free(x);
    return err;
}

static fth_err check_unused(const reading *r) {
    for (size_t i = 0; i < r->file->n; i++) {
        const fth_st_tensor *t = &r->file->tensors[i];
        if (r->used[i] || matches(r->in->ignored, t->name)) continue;
        if (!matches(r->in->zeros, t->name))
            return fth_fail(FTH_BAD_INPUT,
                            "%s: tensor \"%.150s\" is no part of the model that config.json "
                            "describes",
                            r->file->path, t->name);
        FTH_TRY(check_zeros(r, t));
    }
    return FTH_OK;
}

/* The first tensor that would have given a parameter. */
static fth_err missing(const reading *r, const fth_param *param) {
    place p;
    for (const fth_row *row = r->in->rows; row->theirs; row++)
        for (int32_t i = 0; i < places_of(row, r->m); i++) {
            if (!find_place(row, i, r->m, &p)) continue;
            for (int k = 0; k < p.n; k++)
                if (p.part[k] == param)
                    return fth_fail(FTH_BAD_INPUT,
                                    "%s: tensor \"%s\" is missing, which the model of config.json "
                                    "has",
                                    r->file->path, p.name);
        }
    return fth_fail(FTH_BAD_INPUT, "%s: nothing in it gives parameter %s", r->file->path,
                    param->name);
}

static fth_err check_given(const reading *r) {
    for (int32_t i = 0; i < r->m->params.n; i++) {
        const fth_param *p = &r->m->params.param[i];
        if (!r->given[i] && !(r->in->make && r->in->make(r->m, p, r->flat + p->offset)))
            return missing(r, p);
    }
    return FTH_OK;
}

static fth_err read_rows(reading *r) {
    place p;
    for (const fth_row *row = r->in->rows; row->theirs; row++)
        for (int32_t i = 0; i < places_of(row, r->m); i++) {
            if (!find_place(row, i, r->m, &p)) continue;
            const fth_st_tensor *t = find_tensor(r, p.name);
            if (!t) continue;
            if (r->given[p.part[0] - r->m->params.param]) /* an earlier row gave it */
                r->used[t - r->file->tensors] = true;
            else
                FTH_TRY(read_place(r, row, &p, t));
        }
    FTH_TRY(check_given(r));
    return check_unused(r);
}

fth_err fth_rows_in_read(const fth_rows_in *in, const fth_st_file *file, const fth_model *m,
                         float *flat) {
    reading r = {.in = in, .file = file, .m = m, .flat = flat};
    r.used = calloc(file->n + 1, sizeof *r.used);
    r.given = calloc((size_t)m->params.n + 1, sizeof *r.given);
    memset(flat, 0, sizeof *flat * (size_t)m->params.size);
    fth_err err = r.used && r.given
                      ? read_rows(&r)
                      : fth_fail(FTH_NO_MEMORY, "no memory for tensor %s", "of a model");
    free(r.used);
    free(r.given);
    return err;
}
