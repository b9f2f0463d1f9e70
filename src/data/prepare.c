/* prepare.c: reads the training text once for the vocabulary and once for its ids, then the other
 * splits with the same tokenizer. */
#include "data/prepare.h"

#include <math.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/data_dir.h"
#include "data/encode.h"
#include "data/language_sample.h"
#include "data/prepare_pairs.h"
#include "data/sample.h"
#include "data/spool.h"
#include "data/word_tags.h"

typedef struct work {
    const fth_prepare *p;
    int n_sides;
    fth_staged_dir folder;
    fth_arena arena;
    fth_text_spec text[FTH_N_SPLITS]; /* as asked for, with copies of what cannot be read twice */
    int copies;
    fth_tokenizer *tokenizer[2]; /* the second only when separate */
    int separate;
    json_t *tokenizers, *splits;    /* for dataset.json */
    int64_t *unigram;               /* [size of the last side's tokenizer] */
    double unigram_nll;             /* NAN without a train split */
    fth_label_set labels;           /* NONE: no tables */
    fth_ids separator;              /* between the two texts of a table */
    const fth_languages *languages; /* n 0: one pair */
    fth_tagging tagging;            /* of these */
    fth_audio_counts audio[FTH_N_SPLITS];
} work;

static int sides_of(const fth_text_spec *text) {
    return text->kind == FTH_TEXT_PLAIN || text->kind == FTH_TEXT_COLUMNS ||
                   text->kind == FTH_TEXT_TAGGED
               ? 1
               : 2;
}

static fth_err check_request(work *w) {
    const fth_prepare *p = w->p;
    for (int i = 0; i < FTH_N_SPLITS; i++) {
        if (p->text[i].kind == FTH_TEXT_NONE) continue;
        if (w->n_sides && sides_of(&p->text[i]) != w->n_sides)
            return fth_fail(FTH_USAGE, "%s is %s: all splits must be pairs, or all plain text",
                            fth_split_name(i), w->n_sides == 2 ? "plain text" : "pairs");
        w->n_sides = sides_of(&p->text[i]);
    }
    if (!w->n_sides) return fth_fail(FTH_USAGE, "no text to prepare: name the training text");
    if (p->text[FTH_TRAIN].kind == FTH_TEXT_NONE && !p->tokenizer_path[0])
        return fth_fail(FTH_USAGE, "no training text, and no tokenizer is given");
    w->separate = p->tokenizer_path[0] ? p->tokenizer_path[1] != NULL : p->separate;
    if (w->separate && w->n_sides == 1)
        return fth_fail(FTH_USAGE, "plain text has one side: it cannot have separate tokenizers");
    return FTH_OK;
}

/* The texts of recordings stand in files of the new folder, from where they are read as any. */
static fth_err take_recordings(work *w) {
    const fth_prepare_audio *a = w->p->audio;
    FTH_TRY(fth_prepare_audio_splits(a, w->folder.temp, w->audio));
    for (int i = 0; i < FTH_N_SPLITS; i++) {
        if (!a->manifest[i]) continue;
        char *path = fth_strdup_printf("%s/%s.tgt.txt", w->folder.temp, fth_split_name(i));
        fth_text_file *file = fth_arena_alloc(&w->arena, sizeof *file);
        if (path && file)
            *file = (fth_text_file){fth_arena_strdup(&w->arena, path), a->manifest[i]};
        free(path);
        if (!path || !file || !file->path) return fth_no_memory("preparing a data set");
        w->text[i] = w->p->text[i];
        w->text[i].files[0] = file;
    }
    return FTH_OK;
}

/* What is needed no longer. */
static fth_err drop_training_text(const work *w) {
    if (!w->p->audio || !w->p->audio->manifest[FTH_TRAIN]) return FTH_OK;
    char *path = fth_strdup_printf("%s/train.tgt.txt", w->folder.temp);
    const int failed = path ? remove(path) : 0;
    free(path);
    if (!path) return fth_no_memory("preparing a data set");
    return failed ? fth_fail(FTH_IO, "%s: cannot remove a file of it", w->folder.temp) : FTH_OK;
}

static fth_err copy_inputs(work *w) {
    if (w->p->audio) return take_recordings(w);
    for (int i = 0; i < FTH_N_SPLITS; i++) {
        w->text[i] = w->p->text[i];
        for (int s = 0; s < 2; s++) {
            size_t n = w->text[i].n_files[s];
            if (!n) continue;
            fth_text_file *files = fth_arena_alloc(&w->arena, n * sizeof *files);
            if (!files) return fth_no_memory("preparing a data set");
            memcpy(files, w->text[i].files[s], n * sizeof *files);
            FTH_TRY(fth_spool(w->folder.temp, files, n, &w->arena, &w->copies));
            w->text[i].files[s] = files;
        }
    }
    return FTH_OK;
}

/* A class, or the tags of a sentence. */
static fth_err add_labels(work *w, const char *text) {
    size_t length;
    if (w->labels.kind != FTH_LABELS_PLACES) return fth_label_set_add(&w->labels, text);
    for (const char *tag; tag = fth_tagged_tag(&text, &length), length > 0;) {
        char *name = strndup(tag, length);
        fth_err err =
            name ? fth_label_set_add(&w->labels, name) : fth_no_memory("preparing a data set");
        free(name);
        FTH_TRY(err);
    }
    return FTH_OK;
}

/* The classes of the training text. */
static fth_err collect_labels(work *w) {
    fth_records *records = NULL;
    fth_record record;
    FTH_TRY(fth_records_new(&w->text[FTH_TRAIN], &records));
    fth_err err = FTH_OK;
    while ((err = fth_records_next(records, &record)) == FTH_OK && record.sides)
        FTH_TRY_OR(err, add_labels(w, record.label), end);
    fth_label_set_sort(&w->labels);
end:
    fth_records_free(records);
    return err;
}

/* Labels that were given are kept, in their order. */
static fth_err find_labels(work *w) {
    const fth_label_set *asked = &w->p->labels;
    w->labels.kind = asked->kind;
    for (int32_t i = 0; i < asked->n; i++) FTH_TRY(fth_label_set_add(&w->labels, asked->names[i]));
    const bool classes = asked->kind == FTH_LABELS_CLASS || asked->kind == FTH_LABELS_PLACES;
    if (!classes || asked->n) return FTH_OK;
    if (!w->text[FTH_TRAIN].kind)
        return fth_fail(FTH_USAGE,
                        "--labels auto: takes the labels of the training text, and there is none");
    FTH_TRY(collect_labels(w));
    if (w->labels.n < 2)
        return fth_fail(FTH_BAD_INPUT, "%s: has %d different label; a class needs two at least",
                        w->text[FTH_TRAIN].files[0][0].name, w->labels.n);
    return FTH_OK;
}

/* What stands between two texts: two end symbols, or the ids of a text. */
static fth_err find_separator(work *w) {
    const char *text = w->p->pair_separator;
    if (!text || !text[0]) {
        FTH_TRY(fth_ids_reserve(&w->separator, 2));
        w->separator.ids[0] = w->separator.ids[1] = fth_tokenizer_special(w->tokenizer[0]).eos;
        w->separator.n = 2;
        return FTH_OK;
    }
    return fth_tokenizer_encode(w->tokenizer[0], text, strlen(text), &w->separator);
}

static void progress_start(fth_progress *progress, const work *w, const char *title,
                           const fth_text_spec *text) {
    fth_progress_init(progress, w->p->log, fth_real_clock(), title, "kB", 0,
                      fth_text_spec_size(text) / 1000);
}

/* SentencePiece cannot make a vocabulary of no characters, and does not name the file. */
static fth_err fail_blank(const work *w, int side) {
    const fth_text_spec *text = &w->text[FTH_TRAIN];
    if (!text->n_files[side]) side = 0;
    const size_t more = text->n_files[side] - 1;
    char others[32] = "";
    if (more) snprintf(others, sizeof others, " and %zu more", more);
    return fth_fail(FTH_BAD_INPUT,
                    "%s%s: has blank lines alone; a vocabulary needs a line with characters",
                    text->files[side][0].name, others);
}

/* Characters between two blanks. SentencePiece's BPE counts them in 16 bits with a sign, after a
 * normalisation that makes up to 18 of one; nothing to learn is in a word as long as this. */
enum { LONGEST_WORD = 1000 };

/* Words and characters are only counted, and a cut would make other words; byte-level BPE has no
 * such bound. */
static size_t longest_word(const fth_prepare *p) {
    const char *type = p->tokenizer.model_type;
    return strcmp(type, "bpe") == 0 || strcmp(type, "unigram") == 0 ? LONGEST_WORD : SIZE_MAX;
}

static void warn_cut(const work *w, int64_t cut) {
    if (cut)
        fth_log_warn(w->p->log,
                     "%lld lines have more than %d characters without a blank; the vocabulary is "
                     "made of them cut into pieces",
                     (long long)cut, LONGEST_WORD);
}

/* One pass over the training text. samples[side], or samples[0] for both. */
static fth_err read_samples(const work *w, fth_sample samples[2]) {
    fth_err err = FTH_OK;
    fth_records *records = NULL;
    fth_record record;
    fth_progress progress;
    int64_t cut = 0;
    bool has_text[2] = {false, w->separate == 0}; /* by sample */
    progress_start(&progress, w, "reading", &w->text[FTH_TRAIN]);
    FTH_TRY(fth_records_new(&w->text[FTH_TRAIN], &records));
    for (int64_t line = 1;; line++) {
        FTH_TRY_OR(err, fth_records_next(records, &record), end);
        if (!record.sides) break;
        for (int s = 0; s < record.sides; s++) {
            const int to = w->separate ? s : 0;
            FTH_TRY_OR(err,
                       fth_sample_add_cut(&samples[to], record.text[s], record.length[s],
                                          longest_word(w->p), &cut),
                       end);
            if (!fth_utf8_is_blank(record.text[s], record.length[s])) has_text[to] = true;
        }
        if (line % 1024 == 0)
            fth_progress_update(&progress, fth_records_bytes(records) / 1000, NULL);
    }
    fth_progress_update(&progress, fth_records_bytes(records) / 1000, NULL);
    fth_progress_end(&progress);
    warn_cut(w, cut);
    for (int i = 0; i < 2 && err == FTH_OK; i++)
        if (!has_text[i]) err = fail_blank(w, i);
end:
    fth_records_free(records);
    return err;
}

/* Of many languages each has its share. */
static fth_err read_language_samples(const work *w, fth_language_sample *sample) {
    const fth_text_spec *text = &w->text[FTH_TRAIN];
    fth_log_info(w->p->log, "reading the training text of %zu directions", text->n_files[0]);
    FTH_TRY(fth_language_sample_read(sample, w->languages, text, w->p->sample_bytes,
                                     longest_word(w->p)));
    warn_cut(w, sample->cut);
    for (int32_t l = 0; l < sample->n; l++)
        if (sample->lines[l]) return FTH_OK;
    return fail_blank(w, 0);
}

/* Puts a tokenizer into the data set and makes it ready for use. */
static fth_err keep_tokenizer(work *w, int i, const char *model, size_t size, const char *name) {
    const char *part = !w->separate ? "" : i == 0 ? ".src" : ".tgt";
    char hash[FTH_HASH_TEXT], file[32];
    FTH_TRY(fth_tokenizer_parse(model, size, name, &w->tokenizer[i]));
    snprintf(file, sizeof file, "tokenizer%s.%s", part, fth_tokenizer_suffix(w->tokenizer[i]));
    char *path = fth_strdup_printf("%s/%s", w->folder.temp, file);
    if (!path) return fth_no_memory("preparing a data set");
    fth_err err = fth_file_write(path, model, size);
    free(path);
    FTH_TRY(err);
    fth_hash_text(fth_hash64(model, size), hash);
    json_t *entry = json_pack("{s:s, s:i, s:s}", "file", file, "size",
                              (int)fth_tokenizer_size(w->tokenizer[i]), "hash", hash);
    return json_array_append_new(w->tokenizers, entry) == 0 ? FTH_OK
                                                            : fth_no_memory("preparing a data set");
}

static fth_err train_tokenizers(work *w) {
    fth_err err;
    fth_sample samples[2] = {{0}};
    char *model = NULL;
    size_t size = 0;
    int n = 1 + w->separate;
    for (int i = 0; i < n; i++) samples[i].budget = (size_t)w->p->sample_bytes / (size_t)n;
    FTH_TRY_OR(err, read_samples(w, samples), end);
    for (int i = 0; i < n; i++) {
        const char *whose = !w->separate ? "" : i == 0 ? " source" : " target";
        fth_log_info(w->p->log, "making a%s vocabulary of %llu lines (%llu were read)", whose,
                     (unsigned long long)samples[i].kept, (unsigned long long)samples[i].seen);
        FTH_TRY_OR(
            err, fth_tokenizer_train(&w->p->tokenizer, fth_sample_next, &samples[i], &model, &size),
            end);
        fth_sample_fini(&samples[i]);
        FTH_TRY_OR(err, keep_tokenizer(w, i, model, size, "the new tokenizer"), end);
        free(model);
        model = NULL;
    }
end:
    for (int i = 0; i < 2; i++) fth_sample_fini(&samples[i]);
    free(model);
    return err;
}

static fth_err train_language_tokenizer(work *w) {
    fth_language_sample sample = {0};
    char *model = NULL;
    size_t size = 0;
    fth_err err = read_language_samples(w, &sample);
    if (err == FTH_OK) {
        fth_log_info(w->p->log, "making a vocabulary of %d languages", w->languages->n_codes);
        err =
            fth_tokenizer_train(&w->p->tokenizer, fth_language_sample_next, &sample, &model, &size);
    }
    fth_language_sample_fini(&sample);
    if (err == FTH_OK) err = keep_tokenizer(w, 0, model, size, "the new tokenizer");
    free(model);
    return err;
}

static fth_err load_tokenizers(work *w) {
    for (int i = 0; i < 1 + w->separate; i++) {
        char *model = NULL;
        size_t size = 0;
        FTH_TRY(fth_tokenizer_read(w->p->tokenizer_path[i], &model, &size));
        fth_err err = keep_tokenizer(w, i, model, size, w->p->tokenizer_path[i]);
        free(model);
        FTH_TRY(err);
    }
    return FTH_OK;
}

/* H_uni of doc/analyses.md#when-a-run-has-failed, nats per token. */
static double unigram_nll(const int64_t *counts, int32_t n) {
    double total = 0, sum = 0;
    for (int32_t i = 0; i < n; i++) {
        total += (double)counts[i];
        if (counts[i]) sum += (double)counts[i] * log((double)counts[i]);
    }
    return total > 0 ? log(total) - sum / total : 0;
}

static void warn_left_out(const work *w, int split, const fth_encode_counts *c) {
    if (c->too_long)
        fth_log_warn(w->p->log, "%s: %lld of %lld left out: longer than max-positions %lld",
                     fth_split_name(split), (long long)c->too_long, (long long)c->read,
                     (long long)w->p->max_positions);
    if (c->empty)
        fth_log_warn(w->p->log, "%s: %lld of %lld left out: a side is empty", fth_split_name(split),
                     (long long)c->empty, (long long)c->read);
    if (c->tagged)
        fth_log_warn(
            w->p->log,
            "%s: %lld of %lld left out: a language's tag is in their text; the first is %s",
            fth_split_name(split), (long long)c->tagged, (long long)c->read, c->first_tagged);
}

/* What dataset.json says about a split; the rest is in the split's own header. */
static fth_err describe_split(work *w, int split, const char *path, const fth_encode_counts *c) {
    fth_dataset *d = NULL;
    FTH_TRY(fth_dataset_open(path, &d));
    json_t *sides = json_array();
    char hash[FTH_HASH_TEXT];
    fth_hash_text(d->hash, hash);
    for (int s = 0; s < d->n_sides; s++)
        json_array_append_new(
            sides,
            json_pack("{s:I, s:I, s:I, s:i, s:I}", "tokens", (json_int_t)d->side[s].tokens, "words",
                      (json_int_t)d->side[s].words, "bytes", (json_int_t)d->side[s].bytes,
                      "longest", (int)d->side[s].longest, "unknown", (json_int_t)c->unknown[s]));
    fth_dataset_free(d);
    json_t *entry = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:i, s:s, s:o}", "sentences", (json_int_t)c->written, "read",
        (json_int_t)c->read, "too_long", (json_int_t)c->too_long, "empty", (json_int_t)c->empty,
        "cut", (json_int_t)c->cut, "references", (int)c->references, "hash", hash, "sides", sides);
    if (json_object_set_new(w->splits, fth_split_name(split), entry) != 0)
        return fth_no_memory("preparing a data set");
    return FTH_OK;
}

static fth_err encode(work *w, int split, const char *path, const char *prefix,
                      fth_vectors_writer *labels, fth_encode_counts *counts) {
    const fth_prepare *p = w->p;
    const int table =
        w->text[split].kind == FTH_TEXT_COLUMNS || w->text[split].kind == FTH_TEXT_TAGGED;
    fth_dataset_writer *out = NULL;
    fth_progress progress;
    fth_data_side sides[2] = {{0}};
    fth_encode_options o = {
        .tokenizer = {w->tokenizer[0], w->tokenizer[w->separate]},
        .threads = p->threads > 0 ? p->threads : fth_cores_usable().threads,
        .max_positions = w->n_sides == 2 ? p->max_positions : 0,
        .max_tokens = {p->max_tokens[0], p->max_tokens[1]},
        .strict = p->strict,
        .segmentations = split == FTH_TRAIN ? p->segmentations : 1,
        .bpe_dropout = split == FTH_TRAIN ? p->bpe_dropout : 0,
        .drop_empty = (split == FTH_TRAIN || w->languages->n) && w->n_sides == 2,
        .text_prefix = split == FTH_TRAIN || table ? NULL : prefix,
        .separator = table ? &w->separator : NULL,
        .labels = &w->labels,
        .label_out = labels,
        .tags = w->tagging.tags,
        .is_tag = w->tagging.is_tag,
        .written_of = w->tagging.written,
        .progress = &progress,
    };
    for (int s = 0; s < w->n_sides; s++) {
        sides[s].vocab = fth_tokenizer_size(o.tokenizer[s]);
        sides[s].special = fth_tokenizer_special(o.tokenizer[s]);
    }
    if (table && !o.max_tokens[0])
        o.max_tokens[0] = p->max_positions - 1; /* a bos comes before it */
    if (w->tagging.n) memset(w->tagging.written, 0, sizeof(int64_t) * (size_t)w->tagging.n);
    FTH_TRY(fth_dataset_writer_new(path, w->n_sides, sides, &out));
    progress_start(&progress, w, fth_split_name(split), &w->text[split]);
    fth_err err =
        fth_encode_split(&w->text[split], &o, out, split == FTH_TRAIN ? w->unigram : NULL, counts);
    if (err == FTH_OK) fth_progress_end(&progress);
    if (err == FTH_OK) err = fth_dataset_writer_finish(out);
    fth_dataset_writer_free(out);
    return err;
}

/* train.labels beside train.fds. */
static fth_err encode_with_labels(work *w, int split, const char *path, const char *prefix,
                                  fth_encode_counts *counts) {
    fth_vectors_writer *labels = NULL;
    if (w->labels.kind == FTH_LABELS_NONE) return encode(w, split, path, prefix, NULL, counts);
    const fth_vector_type type =
        w->labels.kind == FTH_LABELS_NUMBER ? FTH_VECTOR_F32 : FTH_VECTOR_I32;
    char *name = fth_strdup_printf("%s.labels", prefix);
    fth_err err =
        name ? fth_vectors_writer_new(name, type, 1, w->labels.kind != FTH_LABELS_PLACES, &labels)
             : fth_no_memory("preparing a data set");
    free(name);
    if (err == FTH_OK) err = encode(w, split, path, prefix, labels, counts);
    if (err == FTH_OK) err = fth_vectors_writer_finish(labels);
    fth_vectors_writer_free(labels);
    return err;
}

static fth_err prepare_split(work *w, int split) {
    fth_encode_counts counts;
    if (w->text[split].kind == FTH_TEXT_NONE) return FTH_OK;
    char *prefix = fth_strdup_printf("%s/%s", w->folder.temp, fth_split_name(split));
    char *path = prefix ? fth_strdup_printf("%s.fds", prefix) : NULL;
    fth_err err = path ? encode_with_labels(w, split, path, prefix, &counts)
                       : fth_no_memory("preparing a data set");
    if (err == FTH_OK) warn_left_out(w, split, &counts);
    if (err == FTH_OK && counts.written == 0)
        err = fth_fail(FTH_BAD_INPUT, "%s: none of its %lld sentences can be used",
                       fth_split_name(split), (long long)counts.read);
    if (err == FTH_OK) err = describe_split(w, split, path, &counts);
    if (err == FTH_OK && w->p->audio)
        err = fth_prepare_audio_describe(w->folder.temp, split, &w->audio[split],
                                         json_object_get(w->splits, fth_split_name(split)));
    if (err == FTH_OK)
        err = fth_folder_describe_labels(w->folder.temp, split, &w->labels,
                                         json_object_get(w->splits, fth_split_name(split)));
    if (err == FTH_OK)
        err =
            fth_tagging_describe(&w->tagging, w->languages, &w->text[split], fth_split_name(split),
                                 w->p->log, json_object_get(w->splits, fth_split_name(split)));
    free(prefix);
    free(path);
    return err;
}

/* The small splits first: what is wrong with them shows before the long work. */
static fth_err prepare_splits(work *w) {
    static const int order[] = {FTH_VALID, FTH_TEST, FTH_TRAIN};
    int32_t size = fth_tokenizer_size(w->tokenizer[w->separate]);
    w->unigram = calloc((size_t)size, sizeof *w->unigram);
    if (!w->unigram) return fth_no_memory("preparing a data set");
    for (int i = 0; i < FTH_N_SPLITS; i++) FTH_TRY(prepare_split(w, order[i]));
    w->unigram_nll = w->text[FTH_TRAIN].kind ? unigram_nll(w->unigram, size) : NAN;
    return FTH_OK;
}

static fth_err write_description(work *w) {
    json_t *nll = isnan(w->unigram_nll) ? json_null() : json_real(w->unigram_nll);
    json_t *about = w->p->about ? json_incref(w->p->about) : json_object();
    json_t *root =
        json_pack("{s:s, s:i, s:s, s:i, s:o, s:o, s:O, s:O}", "format", "fathom-dataset", "version",
                  1, "fathom", FATHOM_VERSION, "sides", w->n_sides, "target_unigram_nll", nll,
                  "options", about, "tokenizers", w->tokenizers, "splits", w->splits);
    FTH_TRY(fth_json_save(root, w->folder.temp, "dataset.json"));
    FTH_TRY(fth_languages_write(w->languages, w->folder.temp));
    return fth_label_set_write(&w->labels, w->folder.temp);
}

static fth_err run(work *w) {
    FTH_TRY(check_request(w));
    w->tokenizers = json_array();
    w->splits = json_object();
    if (!w->tokenizers || !w->splits) return fth_no_memory("preparing a data set");
    FTH_TRY(fth_data_dir_open(&w->folder, w->p->out, w->p->force));
    FTH_TRY(copy_inputs(w));
    FTH_TRY(find_labels(w));
    FTH_TRY(w->p->tokenizer_path[0] ? load_tokenizers(w)
            : w->languages->n       ? train_language_tokenizer(w)
                                    : train_tokenizers(w));
    FTH_TRY(fth_tagging_init(&w->tagging, w->languages, w->tokenizer[0]));
    FTH_TRY(find_separator(w));
    FTH_TRY(prepare_splits(w));
    FTH_TRY(fth_spool_remove(w->folder.temp, w->copies));
    FTH_TRY(drop_training_text(w));
    FTH_TRY(write_description(w));
    return fth_staged_dir_commit(&w->folder);
}

fth_err fth_prepare_run(const fth_prepare *p) {
    static const fth_languages one_pair = {0};
    work w = {.p = p, .languages = p->pairs ? &p->pairs->languages : &one_pair};
    fth_err err = run(&w);
    for (int i = 0; i < 2; i++) fth_tokenizer_free(w.tokenizer[i]);
    free(w.unigram);
    fth_label_set_fini(&w.labels);
    fth_ids_fini(&w.separator);
    fth_tagging_fini(&w.tagging);
    json_decref(w.tokenizers);
    json_decref(w.splits);
    fth_staged_dir_fini(&w.folder);
    fth_arena_fini(&w.arena);
    return err;
}
