/* shapes.c: draws one to three shapes over a shaded background with noise, the later before the
 * earlier. Colours say nothing of the class. */
#include "corpus/shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/philox.h"
#include "base/progress.h"
#include "base/staged_dir.h"
#include "base/str.h"

enum { SIZE = FTH_SHAPES_SIZE, MOST_SHAPES = 3 };

/* ---- one picture ---- */

typedef struct shape {
    int class;
    double x, y, radius;
    double turn; /* of the first side's normal, in half circles */
    double colour[3];
} shape;

static void draw_colour(fth_rng *rng, double colour[3]) {
    for (int c = 0; c < 3; c++) colour[c] = 255 * fth_rng_uniform(rng);
}

/* A colour that differs enough from the background's to be seen. */
static void draw_other_colour(fth_rng *rng, const double background[3], double colour[3]) {
    double distance = 0;
    for (int tries = 0; distance < 90 && tries < 100; tries++) {
        draw_colour(rng, colour);
        distance = 0;
        for (int c = 0; c < 3; c++) distance += fabs(colour[c] - background[c]) / 3;
    }
}

static shape draw_shape(fth_rng *rng, const double background[3]) {
    shape s = {.class = 1 + (int)fth_rng_below(rng, FTH_SHAPES_CLASSES - 1)};
    s.radius = 5 + 4 * fth_rng_uniform(rng);
    s.x = 4 + (SIZE - 8) * fth_rng_uniform(rng);
    s.y = 4 + (SIZE - 8) * fth_rng_uniform(rng);
    s.turn =
        0.5 + 0.16 * (fth_rng_uniform(rng) - 0.5); /* a side below, turned by 14 degrees at most */
    draw_other_colour(rng, background, s.colour);
    return s;
}

/* Inside of a circle; else within all sides of a polygon with so many, all as far from its
 * middle. */
static bool is_inside(const shape *s, double x, double y) {
    const double dx = x - s->x, dy = y - s->y, pi = acos(-1);
    if (s->class == 1) return dx * dx + dy * dy < s->radius * s->radius;
    const int sides = s->class == 2 ? 4 : 3;
    const double reach = s->class == 2 ? 0.85 * s->radius : 0.65 * s->radius;
    for (int k = 0; k < sides; k++) {
        const double angle = s->turn * pi + 2 * pi * k / sides;
        if (dx * cos(angle) + dy * sin(angle) > reach) return false;
    }
    return true;
}

static uint8_t byte_of(double x) {
    return (uint8_t)lrint(x < 0 ? 0 : x > 255 ? 255 : x);
}

static void paint(fth_rng *rng, const double colour[3], double light, uint8_t *pixel) {
    for (int c = 0; c < 3; c++)
        pixel[c * SIZE * SIZE] = byte_of(colour[c] + light + 12 * fth_rng_normal(rng));
}

fth_err fth_shapes_draw(uint64_t seed, fth_corpus_split split, int64_t i, fth_image *picture,
                        fth_image *map) {
    fth_rng rng;
    double background[3];
    shape shapes[MOST_SHAPES];
    *map = (fth_image){0};
    FTH_TRY(fth_image_init(picture, "a picture", 3, SIZE, SIZE));
    fth_err err = fth_image_init(map, "a map", 1, SIZE, SIZE);
    if (err != FTH_OK) {
        fth_image_fini(picture);
        return err;
    }
    fth_rng_init(&rng, seed ^ UINT64_C(0x736861706573), (uint64_t)i * FTH_CORPUS_SPLITS + split);
    draw_colour(&rng, background);
    const int n = 1 + (int)fth_rng_below(&rng, MOST_SHAPES);
    for (int k = 0; k < n; k++) shapes[k] = draw_shape(&rng, background);
    const double down = 2 * fth_rng_uniform(&rng) - 1, across = 2 * fth_rng_uniform(&rng) - 1;
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            const shape *top = NULL;
            for (int k = 0; k < n; k++)
                if (is_inside(&shapes[k], x + 0.5, y + 0.5)) top = &shapes[k];
            map->pixels[y * SIZE + x] = (uint8_t)(top ? top->class : 0);
            const double light = top ? 0 : 2 * (down * (y - SIZE / 2) + across * (x - SIZE / 2));
            paint(&rng, top ? top->colour : background, light, picture->pixels + y * SIZE + x);
        }
    return FTH_OK;
}

/* ---- files ---- */

static const char *const names[FTH_CORPUS_SPLITS] = {"train", "valid", "test"};

typedef struct job {
    uint64_t seed;
    fth_staged_dir folder;
    fth_progress progress;
    int64_t done;
} job;

static fth_err put(const fth_image *image, const char *folder, const char *name) {
    char *path = fth_strdup_printf("%s/%s", folder, name);
    fth_err err =
        path ? fth_image_write(path, image) : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    free(path);
    return err;
}

/* Picture and map, and their line of the list. */
static fth_err write_pair(job *j, fth_corpus_split split, int64_t i, fth_str *list) {
    fth_image picture, map;
    char name[2][64];
    snprintf(name[0], sizeof name[0], "%s/%06lld.png", names[split], (long long)i);
    snprintf(name[1], sizeof name[1], "%s/%06lld.map.png", names[split], (long long)i);
    FTH_TRY(fth_shapes_draw(j->seed, split, i, &picture, &map));
    fth_err err = put(&picture, j->folder.temp, name[0]);
    if (err == FTH_OK) err = put(&map, j->folder.temp, name[1]);
    if (err == FTH_OK) err = fth_str_addf(list, "%s\t%s\n", name[0], name[1]);
    fth_image_fini(&picture);
    fth_image_fini(&map);
    fth_progress_update(&j->progress, ++j->done, NULL);
    return err;
}

static fth_err write_split(job *j, fth_corpus_split split, int64_t count) {
    fth_str list = {0};
    char *folder = fth_strdup_printf("%s/%s", j->folder.temp, names[split]);
    char *path = folder ? fth_strdup_printf("%s.tsv", folder) : NULL;
    fth_err err = path ? fth_make_dirs(folder) : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    for (int64_t i = 0; i < count && err == FTH_OK; i++) err = write_pair(j, split, i, &list);
    if (err == FTH_OK) err = fth_file_write(path, list.length ? list.text : "", list.length);
    if (err == FTH_OK) err = fth_sync_dir(folder);
    fth_str_fini(&list);
    free(folder);
    free(path);
    return err;
}

static fth_err unforced(const char *path) {
    return fth_fail(FTH_USAGE, "%s is there already (--force replaces it)", path);
}

static fth_err forced(const char *path) {
    if (fth_folder_has(path, "train.tsv") && fth_folder_has(path, "train")) return FTH_OK;
    return fth_fail(FTH_USAGE, "%s is there and has no pictures: --force does not replace it",
                    path);
}

fth_err fth_shapes_write(uint64_t seed, const char *folder, const int64_t count[FTH_CORPUS_SPLITS],
                         bool force, fth_log *log) {
    job j = {.seed = seed};
    FTH_TRY(fth_staged_dir_open(&j.folder, folder, force ? forced : unforced));
    fth_progress_init(&j.progress, log, fth_real_clock(), "corpus", "pictures", 0,
                      count[0] + count[1] + count[2]);
    fth_err err = FTH_OK;
    for (int s = 0; s < FTH_CORPUS_SPLITS && err == FTH_OK; s++)
        err = write_split(&j, (fth_corpus_split)s, count[s]);
    if (err == FTH_OK) fth_progress_end(&j.progress);
    if (err == FTH_OK) err = fth_staged_dir_commit(&j.folder);
    fth_staged_dir_fini(&j.folder);
    return err;
}
