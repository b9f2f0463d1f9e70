/* prepare.c: fathom prepare: text files to a data set with its tokenizer. */
#include "data/prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/option_uses.h"
#include "cli/prepare_recordings.h"
#include "cli/verb.h"
#include "data/describe.h"
#include "data/prepare_images.h"
#include "data/prepare_pairs.h"

#define TEXT_OPTIONS(X)                                                                            \
    X(LIST, train_src, "", FTH_SHOWN_AS("FILE"), "source of the training pairs")                   \
    X(LIST, train_tgt, "", FTH_SHOWN_AS("FILE"), "target of the training pairs, line by line")     \
    X(LIST, train_tsv, "", FTH_SHOWN_AS("FILE"),                                                   \
      "training pairs as lines of source<TAB>target, or a table (see --columns)")                  \
    X(LIST, train_jsonl, "", FTH_SHOWN_AS("FILE"), "training pairs as JSON lines")                 \
    X(LIST, train_text, "", FTH_SHOWN_AS("FILE"), "plain text, for a language model")              \
    X(LIST, train_tagged, "", FTH_SHOWN_AS("FILE"),                                                \
      "words with a class for each: lines of word<TAB>tag, a blank line after a sentence (CoNLL)") \
    X(LIST, valid_src, "", FTH_SHOWN_AS("FILE"), "source of the validation pairs")                 \
    X(LIST, valid_tgt, "", FTH_SHOWN_AS("FILE"), "target of the validation pairs")                 \
    X(LIST, valid_tsv, "", FTH_SHOWN_AS("FILE"), "validation pairs as lines of source<TAB>target") \
    X(LIST, valid_jsonl, "", FTH_SHOWN_AS("FILE"), "validation pairs as JSON lines")               \
    X(LIST, valid_text, "", FTH_SHOWN_AS("FILE"), "plain text for validation")                     \
    X(LIST, valid_tagged, "", FTH_SHOWN_AS("FILE"), "tagged words for validation")                 \
    X(LIST, test_src, "", FTH_SHOWN_AS("FILE"), "source of the test pairs")                        \
    X(LIST, test_tgt, "", FTH_SHOWN_AS("FILE"), "target of the test pairs")                        \
    X(LIST, test_tsv, "", FTH_SHOWN_AS("FILE"), "test pairs as lines of source<TAB>target")        \
    X(LIST, test_jsonl, "", FTH_SHOWN_AS("FILE"), "test pairs as JSON lines")                      \
    X(LIST, test_text, "", FTH_SHOWN_AS("FILE"), "plain text for the test")                        \
    X(LIST, test_tagged, "", FTH_SHOWN_AS("FILE"), "tagged words for the test")                    \
    X(STR, json_source, "source", FTH_SHOWN_AS("KEY"), "JSON lines: the key of the source")        \
    X(STR, json_target, "target", FTH_SHOWN_AS("KEY"), "JSON lines: the key of the target")        \
    X(STR, json_references, "references", FTH_SHOWN_AS("KEY"),                                     \
      "JSON lines: the key of a list of further references, if there is one")
FTH_OPTIONS(text_options, "text (plain, .gz or .zst; - is standard input)", TEXT_OPTIONS)

#define LANGUAGE_OPTIONS(X)                                                                        \
    X(STR, pairs, "", FTH_SHOWN_AS("FILE"),                                                        \
      "the files of many directions (doc/languages.md); one vocabulary serves all")                \
    X(F64, sampling_temperature, "5", FTH_RANGE(1, 1e6),                                           \
      "how evenly languages come, in the vocabulary and in training: 1 as they are, more: evener") \
    X(CHOICE, language_tags, "target", FTH_CHOICES("target|source-target"),                        \
      "before each source: __de__ for a target de, or __en__ __de__")
FTH_OPTIONS(language_options, "many languages", LANGUAGE_OPTIONS)

#define TABLE_OPTIONS(X)                                                                           \
    X(STR, columns, "", FTH_SHOWN_AS("text=C,label=C"),                                            \
      "--...-tsv are tables: columns of text, text2 (of pairs) and label, by number or by header") \
    X(BOOL, header, "false", FTH_ANY, "the first line of a table is passed over")                  \
    X(STR, labels, "auto", FTH_SHOWN_AS("auto|number|A,B"),                                        \
      "classes: those of the training text, or these in this order; number: values to predict")    \
    X(STR, pair_separator, "", FTH_SHOWN_AS("TEXT"),                                               \
      "between text and text2; default: two end symbols")
FTH_OPTIONS(table_options, "tables, for classification and regression", TABLE_OPTIONS)

#define IMAGE_OPTIONS(X)                                                                           \
    X(STR, train_images, "", FTH_SHOWN_AS("FILE"),                                                 \
      "training pictures: lines of file<TAB>label (PNG, JPEG), or records of CIFAR (.bin)")        \
    X(BOOL, label_maps, "false", FTH_ANY,                                                          \
      "in place of a label each line names a map: a PNG whose pixels are class numbers, 255 "      \
      "where "                                                                                     \
      "there is none")                                                                             \
    X(STR, valid_images, "", FTH_SHOWN_AS("FILE"), "pictures for validation")                      \
    X(STR, test_images, "", FTH_SHOWN_AS("FILE"), "pictures for the test")                         \
    X(STR, image_size, "", FTH_SHOWN_AS("HxW"),                                                    \
      "rows and columns of all pictures; default: those of the first")                             \
    X(BOOL, resize, "false", FTH_ANY, "pictures of another size are brought to it, not refused")   \
    X(I64, patch, "4", FTH_RANGE(1, 1024), "side of the square patches that a model reads")        \
    X(I64, visual_tokens, "0", FTH_RANGE(0, 65536),                                                \
      "patterns of a codebook of patches, for masked image models; 0: none")
FTH_OPTIONS(image_options, "pictures", IMAGE_OPTIONS)

#define VOCABULARY_OPTIONS(X)                                                                      \
    X(CHOICE, model_type, "bpe", FTH_CHOICES("bpe|unigram|word|char|byte-bpe"),                    \
      "kind of tokens; byte-bpe is GPT-2's, which has a token for every byte")                     \
    X(I64, vocab_size, "8000", FTH_RANGE(0, 16777216),                                             \
      "ids of a tokenizer, special ones included; word and char take all there are by default")    \
    X(BOOL, joint, "true", FTH_ANY, "one tokenizer for source and target")                         \
    X(BOOL, separate, "false", FTH_ANY, "a tokenizer for each side: the same as --no-joint")       \
    X(F64, character_coverage, "1", FTH_RANGE(0, 1),                                               \
      "share of the text's characters that get a token; 0.9995 for Chinese or Japanese")           \
    X(BOOL, byte_fallback, "false", FTH_ANY, "bytes for other characters, instead of <unk>")       \
    X(STR, user_symbols, "", FTH_SHOWN_AS("A,B"), "words that always are one token")               \
    X(BOOL, mask, "false", FTH_ANY, "a piece <mask>, for masked language models")                  \
    X(CHOICE, normalization, "auto",                                                               \
      FTH_CHOICES("auto|nmt_nfkc|nmt_nfkc_cf|nfkc|nfkc_cf|identity"),                              \
      "of text before it is cut; _cf folds case; auto: identity for word and char, else nmt_nfkc") \
    X(SIZE, tokenizer_sample, "100M", FTH_MIN(1024), "text that a tokenizer is made of at most")   \
    X(LIST, tokenizer, "", FTH_SHOWN_AS("FILE"),                                                   \
      "use this SentencePiece model, tokenizer.json, or vocab.json with merges.txt beside it; "    \
      "given twice: those of source and target")
FTH_OPTIONS(vocabulary_options, "tokenizer", VOCABULARY_OPTIONS)

#define PREPARE_OPTIONS(X)                                                                         \
    X(STR, out, "", FTH_SHOWN_AS("FOLDER"), "the data set to make")                                \
    X(BOOL, force, "false", FTH_ANY, "replace a data set that is there")                           \
    X(I64, max_positions, "1024", FTH_RANGE(2, 1 << 20),                                           \
      "pairs with more tokens on a side, end symbol included, are left out")                       \
    X(BOOL, strict, "false", FTH_ANY, "a pair that is too long is an error")                       \
    X(F64, bpe_dropout, "0", FTH_BELOW(0, 1),                                                      \
      "cut training text at random: the share of BPE merges that are skipped; 0.1 is usual")       \
    X(I64, segmentations, "1", FTH_RANGE(1, 100),                                                  \
      "with --bpe-dropout: times that each training line is written, each time cut anew")          \
    X(I64, max_source_tokens, "", FTH_MIN(2),                                                      \
      "cut longer sources to so many, end symbol included")                                        \
    X(I64, max_target_tokens, "", FTH_MIN(2), "cut longer targets")                                \
    X(I64, threads, "", FTH_MIN(1), "threads that cut text; default: one for each core")
FTH_OPTIONS(prepare_options, "data set", PREPARE_OPTIONS)

enum { TEXT, LANGUAGES, TABLES, PICTURES, RECORDINGS, VOCABULARY, DATA_SET, N_GROUPS };

/* The lists of a split, as the options have them. */
typedef struct split_lists {
    const fth_list *src, *tgt, *tsv, *jsonl, *text, *tagged;
} split_lists;

static fth_text_file *list_files(const fth_list *list, fth_arena *arena) {
    fth_text_file *files = fth_arena_alloc(arena, (list->count + 1) * sizeof *files);
    for (size_t i = 0; files && i < list->count; i++)
        files[i] = (fth_text_file){.path = list->items[i], .name = list->items[i]};
    return files;
}

static fth_err add_files(fth_text_spec *spec, int side, const fth_list *list, fth_arena *arena) {
    spec->files[side] = list_files(list, arena);
    spec->n_files[side] = list->count;
    return spec->files[side] ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a list of files");
}

/* Which kind of text a split has; more than one kind is an error. */
static fth_err describe_split(const split_lists *l, const char *name, fth_text_spec *spec,
                              fth_arena *arena) {
    int pairs = l->src->count || l->tgt->count;
    if (pairs + !!l->tsv->count + !!l->jsonl->count + !!l->text->count + !!l->tagged->count > 1)
        return fth_fail(FTH_USAGE,
                        "--%s-...: give pairs of files, tsv, jsonl, text or tagged, not several of "
                        "them",
                        name);
    if (pairs) {
        if (!l->src->count || !l->tgt->count)
            return fth_fail(FTH_USAGE, "--%s-%s is given without --%s-%s", name,
                            l->src->count ? "src" : "tgt", name, l->src->count ? "tgt" : "src");
        spec->kind = FTH_TEXT_PARALLEL;
        FTH_TRY(add_files(spec, 0, l->src, arena));
        return add_files(spec, 1, l->tgt, arena);
    }
    const fth_list *list = l->tsv->count      ? l->tsv
                           : l->jsonl->count  ? l->jsonl
                           : l->tagged->count ? l->tagged
                                              : l->text;
    if (!list->count) return FTH_OK;
    spec->kind = l->tsv->count      ? FTH_TEXT_TSV
                 : l->jsonl->count  ? FTH_TEXT_JSONL
                 : l->tagged->count ? FTH_TEXT_TAGGED
                                    : FTH_TEXT_PLAIN;
    return add_files(spec, 0, list, arena);
}

/* "auto", "number", or the names of classes. */
static fth_err describe_labels(const char *text, fth_label_set *labels) {
    labels->kind = strcmp(text, "number") == 0 ? FTH_LABELS_NUMBER : FTH_LABELS_CLASS;
    if (labels->kind == FTH_LABELS_NUMBER || strcmp(text, "auto") == 0) return FTH_OK;
    for (const char *item = text; *item;) {
        const size_t length = strcspn(item, ",");
        char *name = strndup(item, length);
        fth_err err = name ? fth_label_set_add(labels, name)
                           : fth_fail(FTH_NO_MEMORY, "no memory for a label");
        free(name);
        FTH_TRY(err);
        item += length + (item[length] == ',');
    }
    if (labels->n < 2)
        return fth_fail(FTH_USAGE, "--labels %s: must be auto, number or two classes at least",
                        text);
    return FTH_OK;
}

static bool has_tags(const fth_prepare *p) {
    for (int i = 0; i < FTH_N_SPLITS; i++)
        if (p->text[i].kind == FTH_TEXT_TAGGED) return true;
    return false;
}

static fth_err describe_tags(const table_options *o, const fth_option_group *groups,
                             fth_prepare *p) {
    static const char *const of_columns[] = {"columns", "header", "pair_separator", NULL};
    FTH_TRY(fth_refuse_options(groups, N_GROUPS, of_columns, "is for tables, not tagged words"));
    for (int i = 0; i < FTH_N_SPLITS; i++)
        if (p->text[i].kind != FTH_TEXT_NONE && p->text[i].kind != FTH_TEXT_TAGGED)
            return fth_fail(FTH_USAGE, "--%s-...: must be tagged words as in the other splits",
                            fth_split_name(i));
    FTH_TRY(describe_labels(o->labels, &p->labels));
    if (p->labels.kind == FTH_LABELS_NUMBER)
        return fth_fail(FTH_USAGE, "--labels number: words have classes");
    p->labels.kind = FTH_LABELS_PLACES;
    return FTH_OK;
}

/* Tables in the place of pairs between tabs. */
static fth_err describe_tables(const table_options *o, const fth_option_group *groups,
                               fth_table_columns *columns, fth_prepare *p) {
    static const char *const of_tables[] = {"header", "labels", "pair_separator", NULL};
    if (has_tags(p)) return describe_tags(o, groups, p);
    if (!o->columns[0])
        return fth_refuse_options(groups, N_GROUPS, of_tables, "is for tables; needs --columns");
    FTH_TRY(fth_columns_parse(o->columns, o->header, columns));
    for (int i = 0; i < FTH_N_SPLITS; i++) {
        fth_text_spec *spec = &p->text[i];
        if (spec->kind == FTH_TEXT_NONE) continue;
        if (spec->kind != FTH_TEXT_TSV)
            return fth_fail(FTH_USAGE, "--columns: needs --%s-tsv", fth_split_name(i));
        spec->kind = FTH_TEXT_COLUMNS;
        spec->columns = columns;
    }
    p->pair_separator = o->pair_separator;
    if (!columns->name[FTH_COLUMN_LABEL][0]) return FTH_OK;
    return describe_labels(o->labels, &p->labels);
}

static fth_err describe_text(const text_options *o, fth_prepare *p, fth_arena *arena) {
    const split_lists lists[FTH_N_SPLITS] = {
        {&o->train_src, &o->train_tgt, &o->train_tsv, &o->train_jsonl, &o->train_text,
         &o->train_tagged},
        {&o->valid_src, &o->valid_tgt, &o->valid_tsv, &o->valid_jsonl, &o->valid_text,
         &o->valid_tagged},
        {&o->test_src, &o->test_tgt, &o->test_tsv, &o->test_jsonl, &o->test_text, &o->test_tagged}};
    int inputs = 0;
    for (int i = 0; i < FTH_N_SPLITS; i++) {
        fth_text_spec *spec = &p->text[i];
        FTH_TRY(describe_split(&lists[i], fth_split_name(i), spec, arena));
        spec->keys[0] = o->json_source;
        spec->keys[1] = o->json_target;
        spec->keys[2] = o->json_references;
        for (int s = 0; s < 2; s++)
            for (size_t k = 0; k < spec->n_files[s]; k++)
                inputs += strcmp(spec->files[s][k].path, "-") == 0;
    }
    if (inputs > 1)
        return fth_fail(FTH_USAGE, "- (standard input) is given %d times; it can be read once",
                        inputs);
    return FTH_OK;
}

/* A tokenizer that is there has all this in it. */
static fth_err check_tokenizer(const vocabulary_options *o, const fth_option_group *groups) {
    static const char *const made[] = {"model_type",       "vocab_size",   "character_coverage",
                                       "byte_fallback",    "user_symbols", "normalization",
                                       "tokenizer_sample", "mask",         NULL};
    static const char *const of_characters[] = {"character_coverage", "byte_fallback",
                                                "normalization", NULL};
    const size_t n = o->tokenizer.count;
    if (n > 2) return fth_fail(FTH_USAGE, "--tokenizer is given %zu times; two are the most", n);
    if (n == 0 && strcmp(o->model_type, FTH_BYTE_BPE) == 0)
        return fth_refuse_options(
            groups, N_GROUPS, of_characters,
            "is for tokens of characters; byte-bpe has all bytes as they are");
    if (n == 0) return FTH_OK;
    FTH_TRY(fth_refuse_options(groups, N_GROUPS, made,
                               "is for a new tokenizer; cannot be given with --tokenizer"));
    if (n == 1 && (o->separate || !o->joint))
        return fth_fail(FTH_USAGE, "--separate: needs --tokenizer twice, for source and target");
    return FTH_OK;
}

/* The symbols of the user, and the mask. */
static const char *with_mask(const vocabulary_options *o, fth_arena *arena) {
    if (!o->mask) return o->user_symbols;
    if (!o->user_symbols[0]) return FTH_MASK_PIECE;
    char *all = fth_strdup_printf("%s," FTH_MASK_PIECE, o->user_symbols);
    char *kept = all ? fth_arena_strdup(arena, all) : NULL;
    free(all);
    return kept ? kept : o->user_symbols;
}

static fth_err describe_vocabulary(const vocabulary_options *o, const fth_option_group *groups,
                                   fth_prepare *p, fth_arena *arena) {
    FTH_TRY(check_tokenizer(o, groups));
    bool size_was_set = fth_option_was_set(groups, N_GROUPS, "vocab_size");
    int whole = strcmp(o->model_type, "word") == 0 || strcmp(o->model_type, "char") == 0;
    int automatic = strcmp(o->normalization, "auto") == 0;
    p->tokenizer = (fth_tokenizer_spec){
        .model_type = o->model_type,
        .vocab_size = whole && !size_was_set ? 0 : (int32_t)o->vocab_size,
        .character_coverage = o->character_coverage,
        .byte_fallback = o->byte_fallback,
        .user_symbols = with_mask(o, arena),
        .normalization = automatic ? NULL : o->normalization,
    };
    p->separate = o->separate || !o->joint;
    p->sample_bytes = o->tokenizer_sample;
    for (size_t i = 0; i < o->tokenizer.count; i++) p->tokenizer_path[i] = o->tokenizer.items[i];
    return FTH_OK;
}

/* Every option as it was given or by its default, for dataset.json. */
static json_t *options_json(const fth_option_group *groups, size_t n) {
    json_t *all = json_object();
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const fth_option *option = &groups[g].table[i];
            const void *value = (const char *)groups[g].values + option->offset;
            json_t *entry = NULL;
            switch (option->kind) {
            case FTH_OPTION_I64: entry = json_integer(*(const int64_t *)value); break;
            case FTH_OPTION_F64: entry = json_real(*(const double *)value); break;
            case FTH_OPTION_BOOL: entry = json_boolean(*(const bool *)value); break;
            case FTH_OPTION_SIZE:
                entry = json_integer((json_int_t) * (const uint64_t *)value);
                break;
            case FTH_OPTION_STR:
            case FTH_OPTION_CHOICE: entry = json_string(*(const char *const *)value); break;
            case FTH_OPTION_LIST: {
                const fth_list *list = value;
                entry = json_array();
                for (size_t k = 0; k < list->count; k++)
                    json_array_append_new(entry, json_string(list->items[k]));
                break;
            }
            }
            json_object_set_new(all, option->field, entry);
        }
    return all;
}

/* "32x48" is 32 rows of 48 pixels, "32" a square. */
static fth_err parse_size(const char *text, int32_t *height, int32_t *width) {
    char *end;
    if (!text[0]) return FTH_OK;
    const long rows = strtol(text, &end, 10),
               columns = *end == 'x' ? strtol(end + 1, &end, 10) : rows;
    if (*end || rows < 1 || columns < 1 || rows > 1 << 14 || columns > 1 << 14)
        return fth_fail(FTH_USAGE, "--image-size %s: must be ROWSxCOLUMNS, 1 to %d each", text,
                        1 << 14);
    *height = (int32_t)rows;
    *width = (int32_t)columns;
    return FTH_OK;
}

static bool of_pictures(const image_options *o) {
    return o->train_images[0] || o->valid_images[0] || o->test_images[0];
}

/* Options of text mean nothing to pictures. */
static fth_err check_picture_options(const fth_option_group *groups) {
    static const char *const kept[] = {"out", "force", "labels"};
    for (size_t g = 0; g < N_GROUPS; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const char *const name[] = {groups[g].table[i].field, NULL};
            bool fine = g == PICTURES;
            for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
                fine |= strcmp(kept[k], name[0]) == 0;
            if (!fine)
                FTH_TRY(
                    fth_refuse_options(groups, N_GROUPS, name, "is for text; there are pictures"));
        }
    return FTH_OK;
}

static fth_err prepare_pictures(const image_options *o, const table_options *table,
                                const prepare_options *prepare, const fth_option_group *groups,
                                fth_log *log) {
    const char *lists[FTH_N_SPLITS] = {o->train_images, o->valid_images, o->test_images};
    fth_prepare_images p = {.out = prepare->out,
                            .force = prepare->force,
                            .patch = (int32_t)o->patch,
                            .resize = o->resize,
                            .visual_tokens = (int32_t)o->visual_tokens,
                            .log = log};
    FTH_TRY(check_picture_options(groups));
    FTH_TRY(parse_size(o->image_size, &p.height, &p.width));
    for (int i = 0; i < FTH_N_SPLITS; i++) p.list[i] = lists[i][0] ? lists[i] : NULL;
    fth_err err = describe_labels(table->labels, &p.labels);
    if (err == FTH_OK && p.labels.kind == FTH_LABELS_NUMBER)
        err = fth_fail(FTH_USAGE, "--labels number: pictures have classes");
    if (o->label_maps) p.labels.kind = FTH_LABELS_PLACES;
    p.about = options_json(groups, N_GROUPS);
    if (err == FTH_OK) err = fth_prepare_images_run(&p);
    fth_label_set_fini(&p.labels);
    json_decref(p.about);
    return err;
}

/* The symbols of the user, and a tag for each language. */
static fth_err add_tags(const char *symbols, const fth_languages *l, fth_arena *arena,
                        const char **out) {
    fth_str all = {0};
    fth_err err = fth_str_addf(&all, "%s%s", symbols, symbols[0] ? "," : "");
    if (err == FTH_OK) err = fth_languages_pieces(l, &all);
    if (err == FTH_OK && !(*out = fth_arena_strdup(arena, all.text)))
        err = fth_fail(FTH_NO_MEMORY, "no memory for the tags of languages");
    fth_str_fini(&all);
    return err;
}

/* Options that another kind of text has in the place of --pairs. */
static fth_err check_pairs_options(const fth_option_group *groups) {
    for (size_t i = 0; i < groups[TEXT].count; i++) {
        const char *const name[] = {groups[TEXT].table[i].field, NULL};
        FTH_TRY(fth_refuse_options(groups, N_GROUPS, name, "cannot be given with --pairs"));
    }
    static const char *const others[] = {"columns",     "separate",   "train_audio",
                                         "valid_audio", "test_audio", NULL};
    return fth_refuse_options(groups, N_GROUPS, others, "cannot be given with --pairs");
}

static fth_err describe_pairs(const language_options *o, const fth_option_group *groups,
                              fth_pairs *pairs, fth_prepare *p, fth_arena *arena) {
    static const char *const of_pairs[] = {"sampling_temperature", "language_tags", NULL};
    if (!o->pairs[0]) return fth_refuse_options(groups, N_GROUPS, of_pairs, "needs --pairs");
    FTH_TRY(fth_pairs_read(o->pairs, pairs));
    pairs->languages.temperature = o->sampling_temperature;
    pairs->languages.tags =
        strcmp(o->language_tags, "target") == 0 ? FTH_TAGS_TARGET : FTH_TAGS_SOURCE_TARGET;
    p->pairs = pairs;
    FTH_TRY(fth_pairs_texts(pairs, arena, p->text));
    fth_pairs_warn_missing(pairs, p->log);
    return add_tags(p->tokenizer.user_symbols, &pairs->languages, arena,
                    &p->tokenizer.user_symbols);
}

static fth_err show_result(const char *out, fth_log *log) {
    fth_folder folder;
    fth_str text = {0};
    FTH_TRY(fth_folder_open(&folder, out));
    fth_err err = fth_describe_folder(&folder, &text);
    for (char *line = text.text, *end; !err && line && (end = strchr(line, '\n')); line = end + 1)
        fth_log_info(log, "%.*s", (int)(end - line), line);
    fth_str_fini(&text);
    fth_folder_fini(&folder);
    return err;
}

static fth_err run(const text_options *text, const language_options *languages,
                   const table_options *table, const image_options *images,
                   const fth_recording_options *recordings, const vocabulary_options *vocabulary,
                   const prepare_options *o, const fth_option_group *groups, fth_arena *arena) {
    fth_log log;
    fth_log_init(&log, stderr, false);
    fth_prepare p = {.out = o->out,
                     .force = o->force,
                     .max_positions = o->max_positions,
                     .max_tokens = {o->max_source_tokens, o->max_target_tokens},
                     .strict = o->strict,
                     .segmentations = (int32_t)o->segmentations,
                     .bpe_dropout = o->bpe_dropout,
                     .threads = (int)o->threads,
                     .log = &log};
    if (!o->out[0]) return fth_fail(FTH_USAGE, "--out FOLDER is missing");
    if (o->segmentations > 1 && !(o->bpe_dropout > 0))
        return fth_fail(FTH_USAGE,
                        "--segmentations %lld: needs --bpe-dropout, or all would be the same",
                        (long long)o->segmentations);
    fth_table_columns columns;
    if (of_pictures(images)) {
        FTH_TRY(prepare_pictures(images, table, o, groups, &log));
        return show_result(o->out, &log);
    }
    if (languages->pairs[0]) FTH_TRY(check_pairs_options(groups));
    FTH_TRY(describe_text(text, &p, arena));
    FTH_TRY(describe_vocabulary(vocabulary, groups, &p, arena));
    fth_pairs pairs = {0};
    fth_prepare_audio audio;
    fth_text_file manifests[FTH_N_SPLITS];
    if (fth_has_recordings(recordings))
        FTH_TRY(
            fth_recordings_take(recordings, groups, N_GROUPS, o->strict, &audio, manifests, &p));
    else
        FTH_TRY(fth_recordings_refuse(groups, N_GROUPS));
    fth_err err = describe_tables(table, groups, &columns, &p);
    if (err == FTH_OK) err = describe_pairs(languages, groups, &pairs, &p, arena);
    p.about = options_json(groups, N_GROUPS);
    if (err == FTH_OK) err = fth_prepare_run(&p);
    fth_label_set_fini(&p.labels);
    json_decref(p.about);
    fth_pairs_fini(&pairs);
    return err ? err : show_result(o->out, &log);
}

fth_err fth_verb_prepare(int argc, char **argv) {
    text_options text;
    language_options languages;
    table_options table;
    image_options images;
    fth_recording_options recordings;
    vocabulary_options vocabulary;
    prepare_options options;
    fth_option_group groups[N_GROUPS] = {text_options_group(&text),
                                         language_options_group(&languages),
                                         table_options_group(&table),
                                         image_options_group(&images),
                                         fth_recording_options_group(&recordings),
                                         vocabulary_options_group(&vocabulary),
                                         prepare_options_group(&options)};
    const fth_usage usage = {"fathom prepare", "--train-src FILE --train-tgt FILE --out FOLDER",
                             "Makes a data set of text, pictures or recordings: trains a "
                             "tokenizer, cuts every line into "
                             "tokens, and writes them "
                             "where training can map them.",
                             0, 0};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, N_GROUPS, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done)
        err = run(&text, &languages, &table, &images, &recordings, &vocabulary, &options, groups,
                  &parsed.arena);
    fth_parsed_fini(&parsed);
    return err;
}
