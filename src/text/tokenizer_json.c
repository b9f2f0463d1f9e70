/* tokenizer_json.c: reads and writes tokenizer.json. What it says beside vocabulary and merges must
 * be what byte_bpe.c does; anything else is refused by its key. */
#include "text/tokenizer_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/byte_bpe.h"

static fth_err bad(const char *name, const char *key, const json_t *value, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s: '%s' is %s; %s", name, key,
                    value ? fth_json_shown(value).text : "missing", rule);
}

static bool is_text(const json_t *object, const char *key, const char *wanted) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, wanted) == 0;
}

/* null, false, "" and what is not there are all the same. */
static bool is_off(const json_t *value) {
    const char *text = json_string_value(value);
    return !value || json_is_null(value) || json_is_false(value) || (text && !text[0]);
}

static fth_err check_model(const char *name, const json_t *model) {
    static const char *const off[] = {"dropout",
                                      "continuing_subword_prefix",
                                      "end_of_word_suffix",
                                      "byte_fallback",
                                      "ignore_merges",
                                      "fuse_unk"};
    if (!is_text(model, "type", "BPE") && json_object_get(model, "type"))
        return bad(name, "model.type", json_object_get(model, "type"),
                   "of these files, byte-level BPE can be read");
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        const json_t *value = json_object_get(model, off[i]);
        if (!is_off(value)) return bad(name, off[i], value, "GPT-2's BPE has no such thing");
    }
    if (!json_is_object(json_object_get(model, "vocab")))
        return bad(name, "model.vocab", json_object_get(model, "vocab"),
                   "must be an object of tokens and ids");
    if (!json_is_array(json_object_get(model, "merges")))
        return bad(name, "model.merges", json_object_get(model, "merges"), "must be a list");
    return FTH_OK;
}

/* What is done to a text before the BPE sees it. */
static fth_err check_before(const char *name, const json_t *root, bool *blank_before) {
    const json_t *normalizer = json_object_get(root, "normalizer");
    const json_t *cutter = json_object_get(root, "pre_tokenizer");
    if (!is_off(normalizer))
        return bad(name, "normalizer", normalizer, "byte-level BPE takes a text as it is");
    if (!is_text(cutter, "type", "ByteLevel"))
        return bad(name, "pre_tokenizer", cutter, "must be of type ByteLevel");
    if (json_is_false(json_object_get(cutter, "use_regex")))
        return bad(name, "use_regex", json_object_get(cutter, "use_regex"),
                   "must be true: words are cut by GPT-2's pattern");
    *blank_before = json_is_true(json_object_get(cutter, "add_prefix_space"));
    return FTH_OK;
}

/* The number of ids: tokens of the vocabulary, and added ones that are not in it. */
static size_t count_tokens(const json_t *vocab, const json_t *added) {
    size_t n = json_object_size(vocab), i;
    json_t *entry;
    json_array_foreach(added, i, entry) {
        const char *content = json_string_value(json_object_get(entry, "content"));
        n += content && !json_object_get(vocab, content);
    }
    return n;
}

/* A token beside the vocabulary: an end of text and such, or a symbol that text may hold. */
static fth_err read_added(const char *name, const json_t *entry, fth_bpe_parts *p) {
    static const char *const off[] = {"single_word", "lstrip", "rstrip"};
    const json_t *id = json_object_get(entry, "id");
    const char *content = json_string_value(json_object_get(entry, "content"));
    if (!content || !content[0] || !json_is_integer(id))
        return bad(name, "added_tokens", entry, "each must have a content and an id");
    FTH_TRY(fth_bpe_parts_put(p, name, content, json_integer_value(id)));
    const int32_t at = (int32_t)json_integer_value(id);
    if (fth_bpe_parts_give_role(p, at)) return FTH_OK;
    const bool mask = strcmp(content, FTH_MASK_PIECE) == 0;
    p->uses[at] =
        json_is_true(json_object_get(entry, "special")) && !mask ? FTH_BPE_CONTROL : FTH_BPE_SYMBOL;
    for (size_t i = 0; i < 3 && p->uses[at] == FTH_BPE_SYMBOL && !mask; i++)
        if (!is_off(json_object_get(entry, off[i])))
            return bad(name, off[i], entry, "a symbol is found wherever it stands");
    return FTH_OK;
}

static fth_err read_merges(const char *name, const json_t *model, fth_bpe_parts *p) {
    const json_t *vocab = json_object_get(model, "vocab");
    const json_t *merges = json_object_get(model, "merges");
    json_t *entry;
    size_t i;
    char where[512];
    json_array_foreach(merges, i, entry) {
        const char *left = json_string_value(json_array_get(entry, 0)),
                   *right = json_string_value(json_array_get(entry, 1));
        snprintf(where, sizeof where, "%s: merge %zu", name, i + 1);
        if (json_is_string(entry)) {
            char *pair = strdup(json_string_value(entry));
            fth_err err = pair ? fth_bpe_parts_merge_pair(p, where, vocab, pair)
                               : fth_fail(FTH_NO_MEMORY, "no memory for a vocabulary");
            free(pair);
            FTH_TRY(err);
        } else if (left && right && json_array_size(entry) == 2)
            FTH_TRY(fth_bpe_parts_merge(p, where, vocab, left, right));
        else
            return bad(where, "merges", entry, "must be two tokens");
    }
    return FTH_OK;
}

static fth_err read_parts(const char *name, const json_t *root, fth_bpe_parts *p) {
    const json_t *model = json_object_get(root, "model");
    const json_t *added = json_object_get(root, "added_tokens");
    json_t *vocab = json_object_get(model, "vocab"), *entry;
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    size_t i;
    FTH_TRY(check_model(name, model));
    bool blank_before = false;
    FTH_TRY(check_before(name, root, &blank_before));
    const size_t n = count_tokens(vocab, added);
    const size_t n_merges = json_array_size(json_object_get(model, "merges"));
    FTH_TRY(fth_bpe_parts_init(p, n, n_merges));
    p->blank_before = blank_before;
    FTH_TRY(fth_bpe_parts_vocab(p, name, vocab));
    json_array_foreach(added, i, entry) FTH_TRY(read_added(name, entry, p));
    if (unknown && p->special.unk < 0 && json_object_get(vocab, unknown)) {
        p->special.unk = (int32_t)json_integer_value(json_object_get(vocab, unknown));
        if (p->special.unk == p->special.eos) p->special.unk = -1; /* GPT-2's has one for both */
    }
    FTH_TRY(fth_bpe_parts_check(p, name));
    return read_merges(name, model, p);
}

fth_err fth_tokenizer_json_parse(const void *data, size_t size, const char *name,
                                 fth_tokenizer **out) {
    json_t *root = NULL;
    fth_bpe_parts parts = {0};
    FTH_TRY(fth_json_parse(name, data, size, &root));
    fth_err err = FTH_OK;
    if (!json_is_object(json_object_get(root, "model")))
        err = bad(name, "model", json_object_get(root, "model"),
                  "must be an object: not a tokenizer.json");
    if (!err) err = read_parts(name, root, &parts);
    if (!err) err = fth_byte_bpe_new(&parts, name, out);
    fth_bpe_parts_fini(&parts);
    json_decref(root);
    return err;
}

/* ---- writing ---- */

static json_t *added_json(const fth_bpe_parts *p) {
    json_t *all = json_array();
    for (int32_t i = 0; i < p->n; i++) {
        if (p->uses[i] == FTH_BPE_TEXT) continue;
        json_array_append_new(all, json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (int)i,
                                             "content", p->names[i], "single_word", 0, "lstrip", 0,
                                             "rstrip", 0, "normalized", 0, "special",
                                             p->uses[i] == FTH_BPE_CONTROL));
    }
    return all;
}

static json_t *model_json(const fth_bpe_parts *p) {
    json_t *vocab = json_object(), *merges = json_array();
    for (int32_t i = 0; i < p->n; i++) json_object_set_new(vocab, p->names[i], json_integer(i));
    for (int32_t i = 0; i < p->n_merges; i++)
        json_array_append_new(
            merges, json_sprintf("%s %s", p->names[p->merges[i][0]], p->names[p->merges[i][1]]));
    return json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
}

static json_t *byte_level_json(bool blank_before) {
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", blank_before,
                     "trim_offsets", 1, "use_regex", 1);
}

fth_err fth_tokenizer_json_print(const fth_bpe_parts *parts, char **text, size_t *size) {
    fth_str out = {0};
    json_t *root =
        json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:o, s:o}", "version", "1.0", "truncation",
                  "padding", "added_tokens", added_json(parts), "normalizer", "pre_tokenizer",
                  byte_level_json(parts->blank_before), "post_processor", "decoder",
                  byte_level_json(true), "model", model_json(parts));
    fth_err err = root ? fth_json_write(root, 0, &out)
                       : fth_fail(FTH_NO_MEMORY, "no memory for a tokenizer.json");
    json_decref(root);
    if (err) fth_str_fini(&out);
    *text = out.text;
    *size = out.length;
    return err;
}
