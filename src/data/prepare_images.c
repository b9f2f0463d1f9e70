/* prepare_images.c: one pass over the labels, one over the pictures of each split. */
#include "data/prepare_images.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/str.h"
#include "data/codebook.h"
#include "data/data_dir.h"
#include "data/image_list.h"

typedef struct work {
    const fth_prepare_images *p;
    fth_staged_dir folder;
    fth_image_facts facts;
    fth_label_set labels;
    json_t *splits;
    double sum[FTH_IMAGE_CHANNELS], squares[FTH_IMAGE_CHANNELS]; /* of the training set */
    double pixels;                                               /* of a channel */
} work;

/* Classes of maps are called by their numbers, from 0 to the largest. */
static fth_err add_numbers(fth_label_set *labels, const fth_image *map) {
    char name[16];
    const int64_t n = (int64_t)map->height * map->width;
    for (int64_t i = 0; i < n; i++)
        while (map->pixels[i] != FTH_NO_CLASS && map->pixels[i] >= labels->n) {
            snprintf(name, sizeof name, "%d", labels->n);
            FTH_TRY(fth_label_set_add(labels, name));
        }
    return FTH_OK;
}

static fth_err add_label(work *w, fth_image_list *list, const char *label) {
    const fth_image *map;
    if (w->labels.kind == FTH_LABELS_CLASS) return fth_label_set_add(&w->labels, label);
    FTH_TRY(fth_image_list_map(list, &map));
    return add_numbers(&w->labels, map);
}

static fth_err collect_labels(work *w) {
    const fth_label_set *asked = &w->p->labels;
    fth_image_list *list = NULL;
    const fth_image *image;
    const char *label;
    w->labels.kind = asked->kind;
    for (int32_t i = 0; i < asked->n; i++) FTH_TRY(fth_label_set_add(&w->labels, asked->names[i]));
    if (asked->kind == FTH_LABELS_NONE || asked->n) return FTH_OK;
    FTH_TRY(fth_image_list_open(w->p->list[FTH_TRAIN], &list));
    fth_err err;
    while ((err = fth_image_list_next(list, 0, &image, &label)) == FTH_OK && label)
        FTH_TRY_OR(err, add_label(w, list, label), end);
    if (w->labels.kind == FTH_LABELS_CLASS) fth_label_set_sort(&w->labels);
    if (err == FTH_OK && w->labels.kind == FTH_LABELS_PLACES && w->labels.n == 0)
        err = fth_fail(FTH_BAD_INPUT, "%s: no map has a class, %d alone", w->p->list[FTH_TRAIN],
                       FTH_NO_CLASS);
end:
    fth_image_list_free(list);
    return err;
}

/* The first picture says what the others must be, unless a size is asked for. */
static fth_err take_size(work *w, const fth_image *image, const char *place) {
    fth_image_facts *f = &w->facts;
    if (f->channels) return FTH_OK;
    f->channels = image->channels;
    f->height = w->p->height ? w->p->height : image->height;
    f->width = w->p->width ? w->p->width : image->width;
    f->patch = w->p->patch;
    if (f->height % f->patch == 0 && f->width % f->patch == 0) return FTH_OK;
    return fth_fail(FTH_USAGE,
                    "%s: %d x %d pixels are no whole patches of %d x %d; --image-size or --patch "
                    "must change",
                    place, f->width, f->height, f->patch, f->patch);
}

static fth_err check_picture(const work *w, const fth_image *image, const char *place) {
    const fth_image_facts *f = &w->facts;
    if (image->channels != f->channels)
        return fth_fail(FTH_BAD_INPUT, "%s: has %d channels and the first picture %d", place,
                        image->channels, f->channels);
    if ((image->height == f->height && image->width == f->width) || w->p->resize) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: %d x %d pixels, not %d x %d; --resize makes them so", place,
                    image->width, image->height, f->width, f->height);
}

static void measure(work *w, const uint8_t *pixels) {
    const fth_image_facts *f = &w->facts;
    const int32_t n = f->height * f->width;
    for (int32_t c = 0; c < f->channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (int32_t i = c * n; i < (c + 1) * n; i++) {
            sum += pixels[i];
            squares += (uint64_t)pixels[i] * pixels[i];
        }
        w->sum[c] += (double)sum;
        w->squares[c] += (double)squares;
    }
    w->pixels += n;
}

/* A map in the size of all pictures: the class of the pixel in the middle of what each covers. */
static fth_err put_map(const work *w, fth_image_list *list, fth_vectors_writer *labels) {
    const int32_t height = w->facts.height, width = w->facts.width;
    const fth_image *map;
    FTH_TRY(fth_image_list_map(list, &map));
    uint8_t *to = malloc((size_t)height * (size_t)width);
    if (!to) return fth_no_memory("preparing pictures");
    fth_err err = FTH_OK;
    for (int32_t y = 0; y < height && err == FTH_OK; y++)
        for (int32_t x = 0; x < width && err == FTH_OK; x++) {
            const int64_t row = (2 * (int64_t)y + 1) * map->height / (2 * (int64_t)height);
            const int64_t column = (2 * (int64_t)x + 1) * map->width / (2 * (int64_t)width);
            const uint8_t class = to[y * width + x] = map->pixels[row * map->width + column];
            if (class != FTH_NO_CLASS && class >= w->labels.n)
                err = fth_fail(FTH_BAD_INPUT,
                               "%s: its map has class %d, and there are %d, counted from 0 (%d: "
                               "none)",
                               fth_image_list_place(list), class, w->labels.n, FTH_NO_CLASS);
        }
    if (err == FTH_OK) err = fth_vectors_writer_add(labels, to, 1);
    free(to);
    return err;
}

static fth_err put_label(const work *w, fth_image_list *list, const char *label,
                         fth_vectors_writer *labels) {
    const char *place = fth_image_list_place(list);
    if (w->labels.kind == FTH_LABELS_PLACES) return put_map(w, list, labels);
    const int32_t class = fth_label_set_find(&w->labels, label);
    if (class < 0)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: the label '%.40s' is not among the %d of the training list", place,
                        label, w->labels.n);
    return fth_vectors_writer_add(labels, &class, 1);
}

static fth_err put_picture(work *w, int split, const fth_image *image, const char *place,
                           fth_vectors_writer *pictures) {
    fth_image other = {0};
    FTH_TRY(check_picture(w, image, place));
    if (image->height != w->facts.height || image->width != w->facts.width) {
        FTH_TRY(fth_image_resize(image, w->facts.height, w->facts.width, &other));
        image = &other;
    }
    if (split == FTH_TRAIN) measure(w, image->pixels);
    fth_err err = fth_vectors_writer_add(pictures, image->pixels, 1);
    fth_image_fini(&other);
    return err;
}

static char *split_file(const work *w, int split, const char *kind) {
    return fth_strdup_printf("%s/%s.%s", w->folder.temp, fth_split_name(split), kind);
}

/* Labels beside the pictures; nothing where they are not kept. */
static fth_err open_labels(const work *w, int split, fth_vectors_writer **out) {
    if (w->labels.kind == FTH_LABELS_NONE) return FTH_OK;
    char *path = split_file(w, split, "labels");
    const bool maps = w->labels.kind == FTH_LABELS_PLACES;
    const int32_t width = maps ? w->facts.height * w->facts.width : 1;
    fth_err err =
        path ? fth_vectors_writer_new(path, maps ? FTH_VECTOR_U8 : FTH_VECTOR_I32, width, 1, out)
             : fth_no_memory("preparing pictures");
    free(path);
    return err;
}

static fth_err copy_list(work *w, int split, fth_image_list *list, const fth_image *image,
                         const char *label, fth_vectors_writer *pictures) {
    fth_vectors_writer *labels = NULL;
    fth_progress progress;
    fth_progress_init(&progress, w->p->log, fth_real_clock(), fth_split_name(split), "pictures", 0,
                      0);
    fth_err err = open_labels(w, split, &labels);
    while (err == FTH_OK && label) {
        const char *place = fth_image_list_place(list);
        FTH_TRY_OR(err, put_picture(w, split, image, place, pictures), end);
        if (labels) FTH_TRY_OR(err, put_label(w, list, label, labels), end);
        fth_progress_update(&progress, fth_image_list_count(list), NULL);
        err = fth_image_list_next(list, 1, &image, &label);
    }
    if (err == FTH_OK) fth_progress_end(&progress);
    if (err == FTH_OK && labels) err = fth_vectors_writer_finish(labels);
end:
    fth_vectors_writer_free(labels);
    return err;
}

static fth_err write_split(work *w, int split, fth_image_list *list) {
    fth_vectors_writer *pictures = NULL;
    const fth_image *image;
    const char *label;
    FTH_TRY(fth_image_list_next(list, 1, &image, &label));
    if (!label) return fth_fail(FTH_BAD_INPUT, "%s: has no pictures", w->p->list[split]);
    FTH_TRY(take_size(w, image, fth_image_list_place(list)));
    char *path = split_file(w, split, "images");
    fth_err err = path ? fth_vectors_writer_new(path, FTH_VECTOR_U8, fth_image_numbers(&w->facts),
                                                1, &pictures)
                       : fth_no_memory("preparing pictures");
    free(path);
    if (err == FTH_OK) err = copy_list(w, split, list, image, label, pictures);
    if (err == FTH_OK) err = fth_vectors_writer_finish(pictures);
    fth_vectors_writer_free(pictures);
    return err;
}

static fth_err describe_split(work *w, int split, int64_t pictures) {
    json_t *entry = json_pack("{s:I}", "sentences", (json_int_t)pictures);
    if (json_object_set_new(w->splits, fth_split_name(split), entry) != 0)
        return fth_no_memory("preparing pictures");
    return fth_folder_describe_labels(w->folder.temp, split, &w->labels, entry);
}

static fth_err prepare_split(work *w, int split) {
    fth_image_list *list = NULL;
    if (!w->p->list[split]) return FTH_OK;
    FTH_TRY(fth_image_list_open(w->p->list[split], &list));
    fth_err err = write_split(w, split, list);
    if (err == FTH_OK) err = describe_split(w, split, fth_image_list_count(list));
    fth_image_list_free(list);
    return err;
}

/* A channel that never changes is left as it is. */
static void take_mean(work *w) {
    fth_image_facts *f = &w->facts;
    for (int32_t c = 0; c < f->channels; c++) {
        f->mean[c] = w->sum[c] / w->pixels;
        const double variance = w->squares[c] / w->pixels - f->mean[c] * f->mean[c];
        f->deviation[c] = variance > 1e-6 ? sqrt(variance) : 1;
    }
}

static fth_err make_codebook(work *w) {
    fth_vectors *pictures = NULL;
    w->facts.visual_tokens = w->p->visual_tokens;
    if (!w->p->visual_tokens) return FTH_OK;
    char *path = split_file(w, FTH_TRAIN, "images");
    char *book = fth_strdup_printf("%s/codebook", w->folder.temp);
    fth_err err =
        path && book ? fth_vectors_open(path, &pictures) : fth_no_memory("preparing pictures");
    if (err == FTH_OK) err = fth_codebook_make(&w->facts, pictures, book, w->p->log);
    fth_vectors_free(pictures);
    free(path);
    free(book);
    return err;
}

static fth_err write_description(const work *w) {
    json_t *about = w->p->about ? json_incref(w->p->about) : json_object();
    json_t *root =
        json_pack("{s:s, s:i, s:s, s:i, s:n, s:o, s:[], s:O}", "format", "fathom-dataset",
                  "version", 1, "fathom", FATHOM_VERSION, "sides", 0, "target_unigram_nll",
                  "options", about, "tokenizers", "splits", w->splits);
    FTH_TRY(fth_json_save(root, w->folder.temp, "dataset.json"));
    FTH_TRY(fth_image_facts_write(&w->facts, w->folder.temp));
    return fth_label_set_write(&w->labels, w->folder.temp);
}

static fth_err run(work *w) {
    if (!w->p->list[FTH_TRAIN])
        return fth_fail(FTH_USAGE, "no training pictures: name them with --train-images");
    FTH_TRY(collect_labels(w));
    w->splits = json_object();
    if (!w->splits) return fth_no_memory("preparing pictures");
    FTH_TRY(fth_data_dir_open(&w->folder, w->p->out, w->p->force));
    for (int split = 0; split < FTH_N_SPLITS; split++) FTH_TRY(prepare_split(w, split));
    take_mean(w);
    FTH_TRY(make_codebook(w));
    FTH_TRY(write_description(w));
    return fth_staged_dir_commit(&w->folder);
}

fth_err fth_prepare_images_run(const fth_prepare_images *p) {
    work w = {.p = p};
    fth_err err = run(&w);
    json_decref(w.splits);
    fth_label_set_fini(&w.labels);
    fth_staged_dir_fini(&w.folder);
    return err;
}
