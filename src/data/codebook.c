/* codebook.c: k-means over a sample of patches, by Lloyd's algorithm from patches that are far
 * apart (k-means++). */
#include "data/codebook.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/progress.h"
#include "data/augment.h"

enum { SAMPLE = 40000, ROUNDS = 12 };

typedef struct means {
    int64_t n;
    int32_t k, width;
    float *patch;     /* [n, width] */
    float *mean;      /* [k, width] */
    int32_t *nearest; /* [n] */
    float *distance;  /* [n] to the nearest mean */
    double *sum;      /* [k, width] */
    int64_t *count;   /* [k] */
} means;

static float distance(const float *a, const float *b, int32_t width) {
    float sum = 0;
    for (int32_t i = 0; i < width; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static void means_fini(means *m) {
    free(m->patch);
    free(m->mean);
    free(m->nearest);
    free(m->distance);
    free(m->sum);
    free(m->count);
}

static fth_err means_init(means *m, int64_t n, int32_t k, int32_t width) {
    const size_t w = (size_t)width;
    *m = (means){.n = n, .k = k, .width = width};
    m->patch = malloc(sizeof *m->patch * (size_t)n * w);
    m->mean = malloc(sizeof *m->mean * (size_t)k * w);
    m->nearest = malloc(sizeof *m->nearest * (size_t)n);
    m->distance = malloc(sizeof *m->distance * (size_t)n);
    m->sum = malloc(sizeof *m->sum * (size_t)k * w);
    m->count = malloc(sizeof *m->count * (size_t)k);
    if (m->patch && m->mean && m->nearest && m->distance && m->sum && m->count) return FTH_OK;
    means_fini(m);
    return fth_fail(FTH_NO_MEMORY, "no memory for a codebook of %d patterns", k);
}

/* Patches from evenly spread pictures. */
static fth_err gather(const fth_image_facts *f, const fth_vectors *pictures, means *m) {
    const int32_t patches = fth_image_patches(f), numbers = fth_image_numbers(f);
    const int64_t used = m->n / patches;
    float *picture = malloc(sizeof *picture * (size_t)numbers);
    if (!picture) return fth_fail(FTH_NO_MEMORY, "no memory for a picture");
    for (int64_t i = 0; i < used; i++) {
        fth_image_normalise(f, fth_vectors_at(pictures, i * pictures->records / used), picture);
        fth_cut_patches(picture, f->channels, f->height, f->width, f->patch,
                        m->patch + i * numbers);
    }
    free(picture);
    return FTH_OK;
}

/* Each first mean is a patch, taken with a chance that grows with its distance to those before
 * it. */
static void spread(means *m) {
    fth_rng rng;
    fth_rng_init(&rng, UINT64_C(0x636f6465626f6f6b), 0);
    int64_t at = (int64_t)fth_rng_below(&rng, (uint64_t)m->n);
    for (int64_t i = 0; i < m->n; i++) m->distance[i] = FLT_MAX;
    for (int32_t k = 0; k < m->k; k++) {
        float *mean = m->mean + (size_t)k * (size_t)m->width;
        double all = 0;
        memcpy(mean, m->patch + at * m->width, sizeof *mean * (size_t)m->width);
        for (int64_t i = 0; i < m->n; i++) {
            const float d = distance(m->patch + i * m->width, mean, m->width);
            if (d < m->distance[i]) m->distance[i] = d;
            all += m->distance[i];
        }
        double mark = fth_rng_uniform(&rng) * all;
        for (at = 0; at < m->n - 1 && mark >= m->distance[at]; at++) mark -= m->distance[at];
    }
}

static int32_t nearest(const fth_codebook *b, const float *patch) {
    int32_t best = 0;
    memset(b->far, 0, sizeof *b->far * (size_t)b->k);
    for (int32_t j = 0; j < b->width; j++) {
        const float *number = b->number + (size_t)j * (size_t)b->k;
        for (int32_t i = 0; i < b->k; i++)
            b->far[i] += (patch[j] - number[i]) * (patch[j] - number[i]);
    }
    for (int32_t i = 1; i < b->k; i++)
        if (b->far[i] < b->far[best]) best = i;
    return best;
}

static void turn(const float *mean, fth_codebook *b) {
    for (int32_t i = 0; i < b->k; i++)
        for (int32_t j = 0; j < b->width; j++)
            b->number[(size_t)j * (size_t)b->k + (size_t)i] =
                mean[(size_t)i * (size_t)b->width + (size_t)j];
}

static fth_err book_init(fth_codebook *b, int32_t k, int32_t width) {
    *b = (fth_codebook){k, width, malloc(sizeof *b->number * (size_t)k * (size_t)width),
                        malloc(sizeof *b->far * (size_t)k)};
    if (b->number && b->far) return FTH_OK;
    fth_codebook_fini(b);
    return fth_fail(FTH_NO_MEMORY, "no memory for a codebook of %d patterns", k);
}

/* A round of Lloyd's algorithm; a mean without patches stays where it is. */
static void improve(means *m, fth_codebook *book) {
    turn(m->mean, book);
    const size_t w = (size_t)m->width;
    memset(m->sum, 0, sizeof *m->sum * (size_t)m->k * w);
    memset(m->count, 0, sizeof *m->count * (size_t)m->k);
    for (int64_t i = 0; i < m->n; i++) {
        const float *patch = m->patch + (size_t)i * w;
        const int32_t k = m->nearest[i] = nearest(book, patch);
        for (size_t j = 0; j < w; j++) m->sum[(size_t)k * w + j] += patch[j];
        m->count[k]++;
    }
    for (size_t k = 0; k < (size_t)m->k; k++)
        for (size_t j = 0; j < w && m->count[k]; j++)
            m->mean[k * w + j] = (float)(m->sum[k * w + j] / (double)m->count[k]);
}

static fth_err write_means(const means *m, const char *path) {
    fth_vectors_writer *out = NULL;
    FTH_TRY(fth_vectors_writer_new(path, FTH_VECTOR_F32, m->width, 1, &out));
    fth_err err = FTH_OK;
    for (int32_t k = 0; err == FTH_OK && k < m->k; k++)
        err = fth_vectors_writer_add(out, m->mean + (size_t)k * (size_t)m->width, 1);
    if (err == FTH_OK) err = fth_vectors_writer_finish(out);
    fth_vectors_writer_free(out);
    return err;
}

fth_err fth_codebook_make(const fth_image_facts *facts, const fth_vectors *pictures,
                          const char *path, fth_log *log) {
    const int32_t patches = fth_image_patches(facts);
    int64_t used = SAMPLE / patches + 1;
    if (used > pictures->records) used = pictures->records;
    if (used * patches < facts->visual_tokens)
        return fth_fail(FTH_USAGE, "--visual-tokens %d: the training pictures have %lld patches",
                        facts->visual_tokens, (long long)(used * patches));
    means m = {0};
    fth_codebook book = {0};
    fth_progress progress;
    FTH_TRY(means_init(&m, used * patches, facts->visual_tokens, fth_image_patch_width(facts)));
    fth_err err = gather(facts, pictures, &m);
    fth_progress_init(&progress, log, fth_real_clock(), "codebook", "rounds", 0, ROUNDS);
    if (err == FTH_OK) err = book_init(&book, m.k, m.width);
    if (err == FTH_OK) spread(&m);
    for (int round = 1; err == FTH_OK && round <= ROUNDS; round++) {
        improve(&m, &book);
        fth_progress_update(&progress, round, NULL);
    }
    if (err == FTH_OK) fth_progress_end(&progress);
    if (err == FTH_OK) err = write_means(&m, path);
    fth_codebook_fini(&book);
    means_fini(&m);
    return err;
}

void fth_codebook_fini(fth_codebook *b) {
    free(b->number);
    free(b->far);
    *b = (fth_codebook){0};
}

fth_err fth_codebook_open(const char *path, const fth_image_facts *facts, fth_codebook *out) {
    fth_vectors *v = NULL;
    FTH_TRY(fth_vectors_open(path, &v));
    fth_err err = FTH_OK;
    if (v->type != FTH_VECTOR_F32 || v->width != fth_image_patch_width(facts) ||
        v->vectors != facts->visual_tokens || v->offsets)
        err = fth_fail(FTH_BAD_INPUT, "%s: is no codebook of %d patterns of %d numbers", path,
                       facts->visual_tokens, fth_image_patch_width(facts));
    if (err == FTH_OK) err = fth_vectors_check(v);
    if (err == FTH_OK) err = book_init(out, facts->visual_tokens, v->width);
    if (err == FTH_OK) turn(v->data, out);
    fth_vectors_free(v);
    return err;
}

void fth_codebook_tokens(const fth_codebook *b, const float *patches, int64_t n, int32_t *tokens) {
    for (int64_t i = 0; i < n; i++) tokens[i] = nearest(b, patches + i * b->width);
}
