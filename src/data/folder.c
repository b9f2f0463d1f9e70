/* folder.c: reads dataset.json and checks it against the splits and the tokenizer that lie beside
 * it. */
#include "data/folder.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/hash.h"
#include "base/str.h"

const char *fth_split_name(int split) {
    static const char *const names[] = {"train", "valid", "test"};
    return names[split];
}

static fth_err bad_key(const fth_folder *f, const char *key, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s/dataset.json: '%s' %s", f->path, key, rule);
}

static fth_err read_keys(fth_folder *f) {
    const char *format = json_string_value(json_object_get(f->json, "format"));
    if (!format || strcmp(format, "fathom-dataset") != 0)
        return bad_key(f, "format", "is not \"fathom-dataset\"");
    const json_t *version = json_object_get(f->json, "version");
    if (json_integer_value(version) != 1) return bad_key(f, "version", "is not 1");
    const json_t *sides = json_object_get(f->json, "sides");
    f->n_sides = (int)json_integer_value(sides);
    FTH_TRY(fth_image_facts_load(&f->image, f->path));
    FTH_TRY(fth_speech_facts_load(&f->speech, f->path));
    const bool pictures = f->image.patch > 0;
    if (pictures ? f->n_sides != 0 : f->n_sides != 1 && f->n_sides != 2)
        return bad_key(f, "sides", pictures ? "is not 0" : "is not 1 or 2");
    if (f->speech.rate && f->n_sides != 1) return bad_key(f, "sides", "is not 1");
    const json_t *tokenizers = json_object_get(f->json, "tokenizers");
    size_t n = json_array_size(tokenizers);
    if (!pictures && (n < 1 || n > (size_t)f->n_sides))
        return bad_key(f, "tokenizers", "is not a list with one entry, or one for each side");
    f->separate = n == 2;
    const json_t *nll = json_object_get(f->json, "target_unigram_nll");
    if (!json_is_number(nll) && !json_is_null(nll))
        return bad_key(f, "target_unigram_nll", "is neither a number nor null");
    f->target_unigram_nll = json_is_number(nll) ? json_number_value(nll) : NAN;
    const json_t *splits = json_object_get(f->json, "splits");
    if (!json_is_object(splits)) return bad_key(f, "splits", "is not an object");
    for (int s = 0; s < FTH_N_SPLITS; s++)
        f->has_split[s] = json_object_get(splits, fth_split_name(s)) != NULL;
    FTH_TRY(fth_label_set_load(&f->labels, f->path));
    return fth_languages_load(&f->languages, f->path);
}

fth_err fth_folder_open(fth_folder *f, const char *path) {
    fth_err err = FTH_OK;
    *f = (fth_folder){.path = strdup(path)};
    char *file = fth_strdup_printf("%s/dataset.json", path);
    if (!file || !f->path)
        err = fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", path);
    else if (!fth_file_exists(path))
        err = fth_fail(FTH_NOT_FOUND, "%s: no such folder; fathom prepare makes a data set", path);
    else if (!fth_file_exists(file))
        err =
            fth_fail(FTH_NOT_FOUND,
                     "%s: not a data set: it has no dataset.json; fathom prepare makes one", path);
    else
        err = fth_json_load(file, &f->json);
    if (err == FTH_OK) err = read_keys(f);
    free(file);
    if (err != FTH_OK) fth_folder_fini(f);
    return err;
}

void fth_folder_fini(fth_folder *f) {
    json_decref(f->json);
    fth_label_set_fini(&f->labels);
    fth_languages_fini(&f->languages);
    free(f->path);
    *f = (fth_folder){0};
}

/* A split has as many sentences as dataset.json says. */
static fth_err check_count(const fth_folder *f, int split, const fth_dataset *d) {
    const json_t *entry =
        json_object_get(json_object_get(f->json, "splits"), fth_split_name(split));
    const json_int_t said = json_integer_value(json_object_get(entry, "sentences"));
    if (d->sentences == said) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: has %lld sentences and dataset.json says %lld", d->path,
                    (long long)d->sentences, (long long)said);
}

/* Older data sets say nothing of their content. */
static fth_err check_hash(const fth_folder *f, int split, const fth_dataset *d) {
    const json_t *entry =
        json_object_get(json_object_get(f->json, "splits"), fth_split_name(split));
    const char *said = json_string_value(json_object_get(entry, "hash"));
    char hash[FTH_HASH_TEXT];
    fth_hash_text(d->hash, hash);
    if (!said || strcmp(said, hash) == 0) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: is not the file that fathom prepare wrote here: its hash is %s and "
                    "dataset.json says %s",
                    d->path, hash, said);
}

static fth_err need_split(const fth_folder *f, int split) {
    if (f->has_split[split]) return FTH_OK;
    return fth_fail(FTH_NOT_FOUND, "%s: the data set has no split '%s'; it has%s%s%s", f->path,
                    fth_split_name(split), f->has_split[0] ? " train" : "",
                    f->has_split[1] ? " valid" : "", f->has_split[2] ? " test" : "");
}

/* Labels belong to the sentences of a split and are among the classes. */
static fth_err check_labels(const fth_folder *f, int split, const fth_vectors *v) {
    const json_t *entry =
        json_object_get(json_object_get(f->json, "splits"), fth_split_name(split));
    const json_int_t said = json_integer_value(json_object_get(entry, "sentences"));
    const bool places = f->labels.kind == FTH_LABELS_PLACES, maps = places && f->image.patch;
    const fth_vector_type type = f->labels.kind == FTH_LABELS_NUMBER ? FTH_VECTOR_F32
                                 : maps                              ? FTH_VECTOR_U8
                                                                     : FTH_VECTOR_I32;
    if (v->type != type || v->width != (maps ? f->image.height * f->image.width : 1) ||
        (v->offsets != NULL) != (places && !maps))
        return fth_fail(FTH_BAD_INPUT, "%s: holds no labels of the kind that dataset.json names",
                        v->path);
    if (v->records != said)
        return fth_fail(FTH_BAD_INPUT, "%s: has %lld labels and dataset.json says %lld sentences",
                        v->path, (long long)v->records, (long long)said);
    const json_t *sum = json_object_get(entry, "labels_crc");
    if (sum && json_integer_value(sum) != (json_int_t)v->data_crc)
        return fth_fail(FTH_BAD_INPUT, "%s: is not the file that fathom prepare wrote here",
                        v->path);
    FTH_TRY(fth_vectors_check(v)); /* they are few bytes */
    for (int64_t i = 0; type == FTH_VECTOR_I32 && !places && i < v->records; i++) {
        const int32_t label = *(const int32_t *)fth_vectors_at(v, i);
        if (label < 0 || label >= f->labels.n)
            return fth_fail(FTH_BAD_INPUT, "%s: label %lld is %d, not in [0, %d)", v->path,
                            (long long)i, label, f->labels.n);
    }
    return FTH_OK;
}

fth_err fth_folder_labels(const fth_folder *f, int split, fth_vectors **out) {
    fth_vectors *v = NULL;
    if (f->labels.kind == FTH_LABELS_NONE)
        return fth_fail(FTH_USAGE,
                        "%s: has no labels; fathom prepare --columns text=...,label=... makes them",
                        f->path);
    char *path = fth_strdup_printf("%s/%s.labels", f->path, fth_split_name(split));
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    fth_err err = fth_vectors_open(path, &v);
    free(path);
    if (err == FTH_OK) err = check_labels(f, split, v);
    if (err != FTH_OK)
        fth_vectors_free(v);
    else
        *out = v;
    return err;
}

fth_err fth_folder_describe_labels(const char *folder, int split, const fth_label_set *labels,
                                   json_t *entry) {
    fth_vectors *v = NULL;
    if (labels->kind == FTH_LABELS_NONE) return FTH_OK;
    char *path = fth_strdup_printf("%s/%s.labels", folder, fth_split_name(split));
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory for a name in it", folder);
    fth_err err = fth_vectors_open(path, &v);
    free(path);
    FTH_TRY(err);
    const int failed =
        json_object_set_new(entry, "labels_crc", json_integer((json_int_t)v->data_crc));
    fth_vectors_free(v);
    return failed ? fth_fail(FTH_NO_MEMORY, "%s: no memory to describe it", folder) : FTH_OK;
}

fth_err fth_folder_images(const fth_folder *f, int split, fth_vectors **out) {
    fth_vectors *v = NULL;
    FTH_TRY(need_split(f, split));
    if (!f->image.patch)
        return fth_fail(FTH_USAGE,
                        "%s: has text, no pictures; fathom prepare --train-images makes them",
                        f->path);
    char *path = fth_strdup_printf("%s/%s.images", f->path, fth_split_name(split));
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    fth_err err = fth_vectors_open(path, &v);
    free(path);
    FTH_TRY(err);
    const json_t *entry =
        json_object_get(json_object_get(f->json, "splits"), fth_split_name(split));
    const json_int_t said = json_integer_value(json_object_get(entry, "sentences"));
    if (v->type != FTH_VECTOR_U8 || v->width != fth_image_numbers(&f->image) || v->records != said)
        err = fth_fail(FTH_BAD_INPUT,
                       "%s: has %lld records of %d numbers and dataset.json says %lld of %d",
                       v->path, (long long)v->records, v->width, (long long)said,
                       fth_image_numbers(&f->image));
    if (err)
        fth_vectors_free(v);
    else
        *out = v;
    return err;
}

/* A frame has the features that speech.json names, and every sentence its frames. */
static fth_err check_frames(const fth_folder *f, int split, const fth_vectors *v) {
    const json_t *entry =
        json_object_get(json_object_get(f->json, "splits"), fth_split_name(split));
    const json_int_t sentences = json_integer_value(json_object_get(entry, "sentences"));
    const char *said = json_string_value(json_object_get(json_object_get(entry, "audio"), "hash"));
    char hash[FTH_HASH_TEXT];
    fth_hash_text(v->hash, hash);
    if (v->type != FTH_VECTOR_F16 || v->width != f->speech.features || v->records != sentences)
        return fth_fail(
            FTH_BAD_INPUT, "%s: has %lld recordings of %d features, and the data set %lld of %d",
            v->path, (long long)v->records, v->width, (long long)sentences, f->speech.features);
    if (said && strcmp(said, hash) == 0) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: is not the file that fathom prepare wrote here", v->path);
}

fth_err fth_folder_frames(const fth_folder *f, int split, fth_vectors **out) {
    fth_vectors *v = NULL;
    char *path = fth_strdup_printf("%s/%s.frames", f->path, fth_split_name(split));
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    fth_err err = fth_vectors_open(path, &v);
    free(path);
    if (err == FTH_OK) err = check_frames(f, split, v);
    if (err != FTH_OK)
        fth_vectors_free(v);
    else
        *out = v;
    return err;
}

static fth_err open_text(const fth_folder *f, int split, fth_dataset **out) {
    char *path = fth_strdup_printf("%s/%s.fds", f->path, fth_split_name(split));
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    fth_err err = fth_dataset_open(path, out);
    if (err == FTH_OK && (*out)->n_sides != f->n_sides)
        err = fth_fail(FTH_BAD_INPUT, "%s: has %d sides and dataset.json says %d", path,
                       (*out)->n_sides, f->n_sides);
    if (err == FTH_OK) err = check_count(f, split, *out);
    if (err == FTH_OK) err = check_hash(f, split, *out);
    free(path);
    return err;
}

/* Where each direction's sentences begin, from their numbers in dataset.json. */
static fth_err take_directions(const fth_folder *f, int split, fth_dataset *d) {
    const json_t *entry =
        json_object_get(json_object_get(f->json, "splits"), fth_split_name(split));
    const json_t *counts = json_object_get(entry, "directions");
    const int32_t n = f->languages.n;
    if (json_array_size(counts) != (size_t)n)
        return fth_fail(FTH_BAD_INPUT,
                        "%s/dataset.json: '%s' has no list 'directions' of %d numbers, as many as "
                        "languages.json has",
                        f->path, fth_split_name(split), n);
    d->direction_first = calloc((size_t)n + 1, sizeof *d->direction_first);
    if (!d->direction_first) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    d->n_directions = n;
    d->temperature = f->languages.temperature;
    int64_t at = 0;
    for (int32_t k = 0; k < n; k++) {
        const json_int_t count = json_integer_value(json_array_get(counts, (size_t)k));
        if (count < 0 || count > d->sentences - at) break;
        at += count;
        d->direction_first[k + 1] = at;
        if (k == n - 1 && at == d->sentences) return FTH_OK;
    }
    return fth_fail(FTH_BAD_INPUT,
                    "%s/dataset.json: '%s': the numbers of 'directions' are not those of %lld "
                    "sentences",
                    f->path, fth_split_name(split), (long long)d->sentences);
}

/* A side of patches, which are no ids. */
static fth_err open_pictures(const fth_folder *f, int split, fth_dataset **out) {
    fth_dataset *d = *out = calloc(1, sizeof *d);
    char *book = fth_strdup_printf("%s/codebook", f->path);
    fth_err err = d && book && (d->path = strdup(f->path))
                      ? fth_folder_images(f, split, &d->images)
                      : fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    if (err == FTH_OK) {
        const int32_t patches = fth_image_patches(&f->image);
        d->n_sides = 1;
        d->sentences = d->images->records;
        d->side[0] = (fth_data_side){.tokens = d->sentences * patches,
                                     .longest = patches,
                                     .special = {FTH_BOS, FTH_PAD, FTH_EOS, FTH_UNK}};
        d->image = f->image;
        d->hash = d->images->data_crc;
    }
    if (err == FTH_OK && f->image.visual_tokens)
        err = fth_codebook_open(book, &f->image, &d->codebook);
    free(book);
    return err;
}

fth_err fth_folder_split(const fth_folder *f, int split, fth_dataset **out) {
    fth_dataset *d = NULL;
    FTH_TRY(need_split(f, split));
    fth_err err = f->image.patch ? open_pictures(f, split, &d) : open_text(f, split, &d);
    if (err == FTH_OK && f->labels.kind != FTH_LABELS_NONE) {
        d->classes = f->labels.n;
        d->places = f->labels.kind == FTH_LABELS_PLACES;
        err = fth_folder_labels(f, split, &d->labels);
    }
    if (err == FTH_OK && f->languages.n) err = take_directions(f, split, d);
    if (err == FTH_OK && f->speech.rate) err = fth_folder_frames(f, split, &d->frames);
    if (err != FTH_OK)
        fth_dataset_free(d);
    else
        *out = d;
    return err;
}

/* What the names of tokenizer i's file have before the suffix, in any folder. */
static const char *part_of(const fth_folder *f, size_t i) {
    return !f->separate ? "" : i == FTH_SOURCE ? ".src" : ".tgt";
}

/* Tokenizer file i of the data set; the name of a SentencePiece model where there is none. */
static char *tokenizer_in(const fth_folder *f, size_t i) {
    char *path = NULL;
    if (fth_tokenizer_find(f->path, part_of(f, i), &path)) return NULL;
    return path ? path : fth_strdup_printf("%s/tokenizer%s.model", f->path, part_of(f, i));
}

char *fth_folder_tokenizer_path(const fth_folder *f, int side) {
    return tokenizer_in(f, (size_t)side);
}

fth_err fth_folder_tokenizer(const fth_folder *f, int side, fth_tokenizer **out) {
    char *path = fth_folder_tokenizer_path(f, side);
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    fth_err err = fth_tokenizer_load(path, out);
    free(path);
    return err;
}

/* The tokenizer of a side has the size that every split was made for. */
static fth_err check_vocab(const fth_folder *f, int side, const fth_dataset *d) {
    fth_tokenizer *t = NULL;
    FTH_TRY(fth_folder_tokenizer(f, side, &t));
    int32_t size = fth_tokenizer_size(t);
    fth_tokenizer_free(t);
    if (size == d->side[side].vocab) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: made for %d ids, but the tokenizer of side %d has %d",
                    d->path, d->side[side].vocab, side, size);
}

static const char *expected_hash(const fth_folder *f, size_t i) {
    const json_t *entry = json_array_get(json_object_get(f->json, "tokenizers"), i);
    const char *hash = json_string_value(json_object_get(entry, "hash"));
    return hash ? hash : "nothing";
}

static fth_err hash_of(const char *path, char text[FTH_HASH_TEXT]) {
    char *data = NULL;
    size_t size = 0;
    FTH_TRY(fth_file_read(path, &data, &size));
    fth_hash_text(fth_hash64(data, size), text);
    free(data);
    return FTH_OK;
}

static fth_err check_tokenizer_file(const fth_folder *f, size_t i) {
    char *path = tokenizer_in(f, i), hash[FTH_HASH_TEXT];
    fth_err err =
        path ? hash_of(path, hash) : fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    if (err == FTH_OK && strcmp(hash, expected_hash(f, i)) != 0)
        err = fth_fail(FTH_BAD_INPUT, "%s: its hash is %s and dataset.json says %s", path, hash,
                       expected_hash(f, i));
    free(path);
    return err;
}

fth_err fth_folder_check_tokenizers(const fth_folder *f) {
    for (size_t i = 0; i < 1 + (size_t)f->separate && !f->image.patch; i++)
        FTH_TRY(check_tokenizer_file(f, i));
    return FTH_OK;
}

/* Does the folder have a tokenizer, for both sides or for one? */
static fth_err has_tokenizer(const char *model, bool *has) {
    static const char *const parts[] = {"", ".src", ".tgt"};
    *has = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !*has; i++) {
        char *path = NULL;
        FTH_TRY(fth_tokenizer_find(model, parts[i], &path));
        *has = path != NULL;
        free(path);
    }
    return FTH_OK;
}

fth_err fth_folder_check_model(const fth_folder *f, const char *model) {
    bool has;
    FTH_TRY(has_tokenizer(model, &has));
    for (size_t i = 0; i < 1 + (size_t)f->separate && !f->image.patch && has; i++) {
        char *path = NULL, hash[FTH_HASH_TEXT] = "";
        fth_err err = fth_tokenizer_find(model, part_of(f, i), &path);
        if (err == FTH_OK && path) err = hash_of(path, hash);
        if (err == FTH_OK && strcmp(hash, expected_hash(f, i)) != 0)
            err = fth_fail(FTH_BAD_INPUT,
                           "%s: was cut into tokens by another tokenizer than that of %s; fathom "
                           "prepare --tokenizer takes the model's",
                           f->path, model);
        free(path);
        FTH_TRY(err);
    }
    return FTH_OK;
}

uint64_t fth_folder_hash(const fth_folder *f) {
    uint64_t hash = 0;
    for (int k = 0; k < 2; k++) {
        const json_t *part = json_object_get(f->json, k ? "splits" : "tokenizers");
        char *text = fth_json_dump(part, JSON_SORT_KEYS | JSON_COMPACT);
        if (text) hash = hash * 31 + fth_hash64(text, strlen(text));
        free(text);
    }
    return hash;
}

/* The text of a side of a pair, which scores are taken against, has a line for each sentence. */
static fth_err check_text(const fth_folder *f, int split, int side, const fth_dataset *d) {
    if (split == FTH_TRAIN || f->n_sides != 2) return FTH_OK;
    char *path = fth_strdup_printf("%s/%s.%s.txt", f->path, fth_split_name(split),
                                   side == FTH_SOURCE ? "src" : "tgt");
    char *text = NULL;
    size_t size = 0;
    int64_t lines = 0;
    fth_err err = path ? fth_file_read(path, &text, &size)
                       : fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", f->path);
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    if (err == FTH_OK && lines != d->sentences)
        err = fth_fail(FTH_BAD_INPUT, "%s: has %lld lines, its split %lld sentences", path,
                       (long long)lines, (long long)d->sentences);
    free(text);
    free(path);
    return err;
}

static fth_err check_split(const fth_folder *f, int split) {
    fth_dataset *d = NULL;
    FTH_TRY(fth_folder_split(f, split, &d));
    fth_err err = fth_dataset_check(d);
    for (int s = 0; err == FTH_OK && s < f->n_sides; s++) {
        err = check_text(f, split, s, d);
        if (err == FTH_OK) err = check_vocab(f, s, d);
    }
    fth_dataset_free(d);
    return err;
}

fth_err fth_folder_check(const fth_folder *f) {
    FTH_TRY(fth_folder_check_tokenizers(f));
    for (int split = 0; split < FTH_N_SPLITS; split++)
        if (f->has_split[split]) FTH_TRY(check_split(f, split));
    return FTH_OK;
}
