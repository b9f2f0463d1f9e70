/* predict.c: fathom predict MODEL: the class, its probabilities or the value of every line or
 * picture, or the classes of a picture's pixels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/json.h"
#include "cli/device_options.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "base/option_uses.h"
#include "base/staged_dir.h"
#include "base/str.h"
#include "data/augment.h"
#include "data/class_map.h"
#include "data/image_list.h"
#include "data/label_set.h"
#include "data/masking.h"
#include "data/records.h"
#include "text/tokenizer.h"
#include "train/predict.h"
#include "train/weights.h"

#define PREDICT_OPTIONS(X)                                                                         \
    X(STR, input, "-", FTH_SHOWN_AS("FILE"), "lines of text; - is standard input")                 \
    X(STR, columns, "", FTH_SHOWN_AS("text=C,text2=C"),                                            \
      "--input is a table: its columns of text, by number or by header (doc/data.md)")             \
    X(BOOL, header, "false", FTH_ANY, "the first line of a table is passed over")                  \
    X(STR, pair_separator, "", FTH_SHOWN_AS("TEXT"),                                               \
      "between text and text2; default: two end symbols")                                          \
    X(STR, images, "", FTH_SHOWN_AS("FILE"),                                                       \
      "pictures instead: lines of file<TAB>label, or records of CIFAR (.bin); labels are not "     \
      "read")                                                                                      \
    X(CHOICE, format, "text", FTH_CHOICES("text|tsv|json"),                                        \
      "text: the class or the value; tsv: and the probabilities; json: a JSON object a line")      \
    X(STR, maps, "", FTH_SHOWN_AS("FOLDER"),                                                       \
      "pictures, head token-class: the classes of pixels as 000000.png and so on in this new "     \
      "folder, in "                                                                                \
      "place "                                                                                     \
      "of lines of numbers")                                                                       \
    X(I64, max_tokens, "4096", FTH_RANGE(8, 16777216), "rows of a batch at most")
FTH_OPTIONS(predict_options, "predict", PREDICT_OPTIONS)

typedef struct work {
    const predict_options *o;
    fth_model model;
    float *flat;
    fth_device *device;
    fth_arenas arenas;
    fth_predictor predictor;
    fth_label_set labels;
    fth_image_facts image;
    fth_tokenizer *tokenizer;
    uint8_t *word_start; /* of head token-class on text: of each token */
    fth_ids ids, separator;
    double *out;    /* [max_tokens, outputs] */
    float *picture; /* [2, numbers of a picture] */
    int32_t *size;  /* [max_tokens, 2] rows and columns of the pictures of the batch */
    fth_staged_dir maps;
    int64_t pictures; /* whose maps are written */
} work;

static const char *name_of(const work *w, int32_t class, char room[16]) {
    if (class < w->labels.n) return w->labels.names[class];
    snprintf(room, 16, "%d", class);
    return room;
}

/* Logits to probabilities, in place; returns the best. */
static int32_t softmax(double *x, int32_t n) {
    int32_t best = 0;
    double sum = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    const double most = x[best];
    for (int32_t i = 0; i < n; i++) sum += x[i] = exp(x[i] - most);
    for (int32_t i = 0; i < n; i++) x[i] /= sum;
    return best;
}

static void print_class_json(const work *w, const double *p, int32_t n, int32_t best) {
    char room[16];
    json_t *all = json_object();
    for (int32_t i = 0; i < n; i++) json_object_set_new(all, name_of(w, i, room), json_real(p[i]));
    json_t *line = json_pack("{s:s, s:o}", "class", name_of(w, best, room), "probabilities", all);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(line);
}

static void print_sample(const work *w, double *x, int32_t n) {
    char room[16];
    const char format = w->o->format[0];
    if (w->model.config.head == FTH_HEAD_REGRESSION) {
        printf(format == 'j' ? "{\"value\":%.9g}\n" : "%.9g\n", x[0]);
        return;
    }
    const int32_t best = softmax(x, n);
    if (format == 'j') {
        print_class_json(w, x, n, best);
        return;
    }
    fputs(name_of(w, best, room), stdout);
    for (int32_t i = 0; i < n && format == 't' && w->o->format[1] == 's'; i++)
        printf("\t%.6g", x[i]);
    putchar('\n');
}

/* ---- classes of pixels and words ---- */

static void print_map(const uint8_t *map, int64_t n) {
    for (int64_t i = 0; i < n; i++) printf(i ? " %d" : "%d", map[i]);
    putchar('\n');
}

static fth_err write_map(work *w, const fth_image *map) {
    char *path = fth_strdup_printf("%s/%06lld.png", w->maps.temp, (long long)w->pictures++);
    fth_err err =
        path ? fth_image_write(path, map) : fth_fail(FTH_NO_MEMORY, "no memory for a map");
    free(path);
    return err;
}

/* Picture i of the batch; logits are those of its patches. */
static fth_err say_places(work *w, int32_t i, const double *logits) {
    const fth_config *c = &w->model.config;
    fth_image map;
    FTH_TRY(fth_image_init(&map, "a map", 1, w->size[2 * i], w->size[2 * i + 1]));
    fth_class_map(logits, c->image_size[0] / c->patch, c->image_size[1] / c->patch, c->classes,
                  map.height, map.width, map.pixels);
    fth_err err = FTH_OK;
    if (w->o->maps[0])
        err = write_map(w, &map);
    else
        print_map(map.pixels, (int64_t)map.height * map.width);
    fth_image_fini(&map);
    return err;
}

/* Row r of the batch in the words of the labels. */
static const char *class_of_row(const work *w, int32_t r, char room[16]) {
    const int32_t n = w->model.config.classes;
    const double *x = w->out + (int64_t)r * n;
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        if (x[k] > x[best]) best = k;
    return name_of(w, best, room);
}

/* A line of tags for each sentence: of its words' first tokens. The arrays of the batch are still
 * as they were filled. */
static void say_tags(const work *w, int32_t n) {
    const fth_predictor *p = &w->predictor;
    char room[16];
    for (int32_t i = 0; i < n; i++) {
        bool first = true;
        for (int32_t r = p->offsets[i] + 1; r < p->offsets[i + 1] - 1; r++) {
            if (r > p->offsets[i] + 1 && !w->word_start[p->ids[r]]) continue;
            printf(first ? "%s" : " %s", class_of_row(w, r, room));
            first = false;
        }
        putchar('\n');
    }
}

static fth_err say_all_places(work *w, int32_t n) {
    if (w->word_start) {
        say_tags(w, n);
        fflush(stdout);
        return FTH_OK;
    }
    const fth_config *c = &w->model.config;
    const int64_t rows = fth_config_patches(c) + fth_config_has_cls(c);
    for (int32_t i = 0; i < n; i++)
        FTH_TRY(say_places(w, i, w->out + (i * rows + fth_config_has_cls(c)) * c->classes));
    fflush(stdout);
    return FTH_OK;
}

/* Predicts what has been added, and prints it. */
static fth_err flush(work *w) {
    const int32_t n = w->predictor.n, outputs = fth_predictor_outputs(&w->predictor);
    FTH_TRY(fth_predictor_run(&w->predictor, w->out));
    if (fth_predictor_of_places(&w->predictor)) return say_all_places(w, n);
    for (int32_t i = 0; i < n; i++) print_sample(w, w->out + (int64_t)i * outputs, outputs);
    fflush(stdout);
    return FTH_OK;
}

/* ---- text ---- */

static fth_err add_ids(fth_ids *list, const fth_ids *more) {
    FTH_TRY(fth_ids_reserve(list, more->n));
    memcpy(list->ids + list->n, more->ids, more->n * sizeof *more->ids);
    list->n += more->n;
    return FTH_OK;
}

/* Words behind the end of what a model reads have no tags. */
static fth_err check_length(const work *w) {
    const int64_t rows = (int64_t)w->ids.n + 2, most = w->model.config.max_positions;
    if (!w->word_start || (rows <= most && rows <= w->o->max_tokens)) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "a line has %lld tokens, bos and eos included; the model reads %lld, "
                    "--max-tokens is %lld",
                    (long long)rows, (long long)most, (long long)w->o->max_tokens);
}

static fth_err add_record(work *w, const fth_record *r) {
    bool full;
    w->ids.n = 0;
    for (int i = 0; i < r->sides; i++) {
        if (i) FTH_TRY(add_ids(&w->ids, &w->separator));
        FTH_TRY(fth_tokenizer_encode(w->tokenizer, r->text[i], r->length[i], &w->ids));
    }
    FTH_TRY(check_length(w));
    FTH_TRY(fth_predictor_add_text(&w->predictor, w->ids.ids, (int64_t)w->ids.n, &full));
    if (!full) return FTH_OK;
    FTH_TRY(flush(w));
    return fth_predictor_add_text(&w->predictor, w->ids.ids, (int64_t)w->ids.n, &full);
}

static fth_err find_separator(work *w) {
    const char *text = w->o->pair_separator;
    if (text[0]) return fth_tokenizer_encode(w->tokenizer, text, strlen(text), &w->separator);
    FTH_TRY(fth_ids_reserve(&w->separator, 2));
    w->separator.ids[0] = w->separator.ids[1] = w->model.config.eos;
    w->separator.n = 2;
    return FTH_OK;
}

static fth_err predict_text(work *w, const char *folder) {
    fth_table_columns columns;
    const char *path = w->o->input;
    const fth_text_file file = {path, strcmp(path, "-") == 0 ? "standard input" : path};
    fth_text_spec spec = {.kind = FTH_TEXT_PLAIN, .files = {&file}, .n_files = {1}};
    fth_records *records = NULL;
    fth_record record;
    fth_tokenizer *source;
    if (w->o->columns[0]) {
        FTH_TRY(fth_columns_parse(w->o->columns, w->o->header, &columns));
        spec.kind = FTH_TEXT_COLUMNS;
        spec.columns = &columns;
    }
    FTH_TRY(fth_tokenizers_load(folder, &source, &w->tokenizer));
    if (source != w->tokenizer) fth_tokenizer_free(source); /* an encoder has one side */
    if (fth_predictor_of_places(&w->predictor))
        FTH_TRY(fth_word_starts(w->tokenizer, &w->word_start));
    FTH_TRY(find_separator(w));
    FTH_TRY(fth_records_new(&spec, &records));
    fth_err err;
    while ((err = fth_records_next(records, &record)) == FTH_OK && record.sides)
        if ((err = add_record(w, &record)) != FTH_OK) break;
    fth_records_free(records);
    return err == FTH_OK ? flush(w) : err;
}

/* ---- pictures ---- */

static fth_err add_picture(work *w, const fth_image *image, const char *place) {
    const fth_image_facts *f = &w->image;
    const int32_t size[2] = {image->height, image->width};
    fth_image other = {0};
    bool full;
    if (image->channels != f->channels)
        return fth_fail(FTH_BAD_INPUT, "%s: has %d channels, the model reads %d", place,
                        image->channels, f->channels);
    if (image->height != f->height || image->width != f->width) {
        FTH_TRY(fth_image_resize(image, f->height, f->width, &other));
        image = &other;
    }
    float *patches = w->picture + fth_image_numbers(f);
    fth_image_normalise(f, image->pixels, w->picture);
    fth_cut_patches(w->picture, f->channels, f->height, f->width, f->patch, patches);
    fth_image_fini(&other);
    FTH_TRY(fth_predictor_add_patches(&w->predictor, patches, &full));
    if (full) {
        FTH_TRY(flush(w));
        FTH_TRY(fth_predictor_add_patches(&w->predictor, patches, &full));
    }
    memcpy(w->size + (ptrdiff_t)2 * (w->predictor.n - 1), size, sizeof size);
    return FTH_OK;
}

static fth_err is_in_the_way(const char *path) {
    return fth_fail(FTH_USAGE, "--maps %s: is there already", path);
}

static fth_err predict_pictures(work *w, const char *folder) {
    fth_image_list *list = NULL;
    const fth_image *image;
    const char *label;
    FTH_TRY(fth_image_facts_load(&w->image, folder));
    if (!w->image.patch || w->model.config.front != FTH_FRONT_IMAGE)
        return fth_fail(FTH_USAGE, "%s: reads text; use --input", folder);
    w->picture = malloc(2 * sizeof *w->picture * (size_t)fth_image_numbers(&w->image));
    w->size = malloc(2 * sizeof *w->size * (size_t)w->o->max_tokens);
    if (!w->picture || !w->size) return fth_fail(FTH_NO_MEMORY, "no memory for a picture");
    if (w->o->maps[0]) FTH_TRY(fth_staged_dir_open(&w->maps, w->o->maps, is_in_the_way));
    FTH_TRY(fth_image_list_open(w->o->images, &list));
    fth_err err;
    while ((err = fth_image_list_next(list, 1, &image, &label)) == FTH_OK && label)
        if ((err = add_picture(w, image, fth_image_list_place(list))) != FTH_OK) break;
    fth_image_list_free(list);
    if (err == FTH_OK) err = flush(w);
    return err == FTH_OK && w->o->maps[0] ? fth_staged_dir_commit(&w->maps) : err;
}

/* Options that are of pixels alone, or not of them. */
static fth_err check_options(const work *w, const fth_option_group *groups, size_t n) {
    static const char *const of_samples[] = {"format", NULL};
    const bool places = fth_predictor_of_places(&w->predictor);
    if (!places || !w->o->images[0])
        FTH_TRY(fth_refuse_option(groups, n, "maps", "is for head token-class of pictures"));
    if (!places) return FTH_OK;
    return fth_refuse_options(groups, n, of_samples, "head token-class prints lines of classes");
}

static fth_err predict(work *w, const char *folder, const fth_device_options *d,
                       const fth_option_group *groups, size_t n_groups) {
    FTH_TRY(fth_weights_read(folder, &w->model, &w->flat));
    FTH_TRY(fth_label_set_load(&w->labels, folder));
    if (!w->o->images[0] && w->model.config.front == FTH_FRONT_IMAGE)
        return fth_fail(FTH_USAGE, "%s: reads pictures; use --images", folder);
    FTH_TRY(fth_device_open(d->device, d->precision, (int)d->threads, &w->device));
    FTH_TRY(fth_arenas_new(w->device, w->model.params.size, 0, 0, &w->arenas));
    FTH_TRY(fth_arenas_load(w->device, &w->arenas, w->flat));
    FTH_TRY(fth_predictor_init(&w->predictor, &w->model, w->device, &w->arenas,
                               (int32_t)w->o->max_tokens));
    FTH_TRY(check_options(w, groups, n_groups));
    w->out = malloc(sizeof *w->out * (size_t)w->o->max_tokens *
                    (size_t)fth_predictor_outputs(&w->predictor));
    if (!w->out) return fth_fail(FTH_NO_MEMORY, "no memory for what is predicted");
    return w->o->images[0] ? predict_pictures(w, folder) : predict_text(w, folder);
}

static void work_fini(work *w) {
    fth_predictor_fini(&w->predictor);
    if (w->device) fth_arenas_free(w->device, &w->arenas);
    fth_device_close(w->device);
    fth_label_set_fini(&w->labels);
    fth_tokenizer_free(w->tokenizer);
    fth_ids_fini(&w->ids);
    fth_ids_fini(&w->separator);
    free(w->out);
    free(w->word_start);
    free(w->picture);
    free(w->size);
    fth_staged_dir_fini(&w->maps);
    free(w->flat);
    fth_model_fini(&w->model);
}

fth_err fth_verb_predict(int argc, char **argv) {
    predict_options options;
    fth_device_options device;
    fth_option_group groups[] = {predict_options_group(&options),
                                 fth_device_options_group(&device)};
    const fth_usage usage = {"fathom predict", "MODEL --input FILE",
                             "Prints what an encoder with head class or regression says of every "
                             "line of text, or of every picture; with head token-class a line "
                             "for each, of the classes of its words or pixels.",
                             1, 1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 2, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        work w = {.o = &options};
        const char *folder = parsed.positionals[0];
        err = fth_model_path(&folder, &parsed.arena);
        if (err == FTH_OK) err = predict(&w, folder, &device, groups, 2);
        work_fini(&w);
    }
    fth_parsed_fini(&parsed);
    return err;
}
