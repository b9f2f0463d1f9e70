/* hf.c: writes and reads what folders of transformers have in common. */
#include "exchange/hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "train/weights.h"

/* ---- writing ---- */

json_t *fth_hf_config(const fth_export_job *job, const char *architecture, const char *model_type) {
    const fth_config *c = &job->model->config;
    return json_pack("{s:[s], s:s, s:s, s:i, s:i, s:i, s:b}", "architectures", architecture,
                     "model_type", model_type, "dtype",
                     job->storage == FTH_STORE_BF16 ? "bfloat16" : "float32", "bos_token_id",
                     c->bos, "pad_token_id", c->pad, "eos_token_id", c->eos, "tie_word_embeddings",
                     c->share != FTH_SHARE_NONE);
}

json_t *fth_hf_join(json_t *config, json_t *own) {
    const int failed = !config || !own || json_object_update(config, own) != 0;
    json_decref(own);
    if (!failed) return config;
    json_decref(config);
    return NULL;
}

fth_err fth_hf_write_words(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    const int32_t size = c->arch == FTH_ENC ? c->src_vocab : c->tgt_vocab;
    if (job->tgt && job->src == job->tgt)
        FTH_TRY(fth_write_vocabulary(job, job->tgt, size, true, "vocab.json"));
    return fth_copy_tokenizers(job);
}

const char *fth_hf_activation(const fth_config *c) {
    return c->activation == FTH_GELU ? "gelu" : "relu";
}

fth_err fth_hf_write_generation(const fth_export_job *job, int32_t start, int beam) {
    const fth_config *c = &job->model->config;
    const int32_t bos = c->arch == FTH_DEC ? c->eos : c->bos; /* a text begins after another */
    json_t *g =
        json_pack("{s:i, s:i, s:i, s:i, s:i}", "bos_token_id", bos, "pad_token_id", c->pad,
                  "eos_token_id", c->eos, "max_length", c->max_positions, "num_beams", beam);
    if (g && start >= 0) json_object_set_new(g, "decoder_start_token_id", json_integer(start));
    return fth_json_save(g, job->folder, "generation_config.json");
}

/* ---- reading ---- */

static fth_err bad(const fth_hf_folder *h, const char *key, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s: %s is %s: %s", h->file, key,
                    fth_json_shown(json_object_get(h->config, key)).text, rule);
}

/* vocab.txt: a piece a line. */
static fth_err load_lines(fth_hf_folder *h) {
    char *text = NULL, *path = fth_strdup_printf("%s/vocab.txt", h->path);
    size_t size = 0;
    fth_err err = path ? fth_file_read(path, &text, &size) : fth_fail(FTH_NO_MEMORY, "no memory");
    h->vocab = err == FTH_OK ? json_object() : NULL;
    json_int_t n = 0;
    for (char *at = text; h->vocab && at < text + size; n++) {
        char *end = memchr(at, '\n', (size_t)(text + size - at));
        if (!end) end = text + size;
        json_object_set_new(h->vocab, (*end = 0, at), json_integer(n)); /* no text: no such piece */
        at = end + 1;
    }
    free(text);
    free(path);
    return err;
}

static fth_err load_vocab(fth_hf_folder *h) {
    if (fth_folder_has(h->path, "vocab.txt")) return load_lines(h);
    if (!fth_folder_has(h->path, "vocab.json")) return FTH_OK;
    char *path = fth_strdup_printf("%s/vocab.json", h->path);
    fth_err err = path ? fth_json_load(path, &h->vocab) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK && !json_is_object(h->vocab))
        err = fth_fail(FTH_BAD_INPUT, "%s: is no object of pieces and their numbers", path);
    free(path);
    return err;
}

fth_err fth_hf_open_as(fth_hf_folder *h, const char *path, const char *name) {
    *h = (fth_hf_folder){.path = path};
    if (snprintf(h->file, sizeof h->file, "%s/%s", path, name) >= (int)sizeof h->file)
        return fth_fail(FTH_USAGE, "%.100s...: the name is too long", path);
    FTH_TRY(fth_json_load(h->file, &h->config));
    if (json_is_object(h->config)) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: is no object", h->file);
}

static fth_err open_type(fth_hf_folder *h, const char *path, const char *model_type) {
    FTH_TRY(fth_hf_open_as(h, path, "config.json"));
    const char *type = json_string_value(json_object_get(h->config, "model_type"));
    if (!type || strcmp(type, model_type) != 0) {
        char rule[80];
        snprintf(rule, sizeof rule, "this reader takes \"%s\"", model_type);
        return bad(h, "model_type", rule);
    }
    return load_vocab(h);
}

void fth_hf_close(fth_hf_folder *h) {
    json_decref(h->config);
    json_decref(h->vocab);
    h->config = h->vocab = NULL;
}

fth_err fth_hf_read_as(const char *path, const char *model_type, fth_hf_reader *read,
                       fth_weighted *out) {
    fth_hf_folder h;
    fth_err err = open_type(&h, path, model_type);
    if (err == FTH_OK) err = read(&h, out);
    fth_hf_close(&h);
    return err;
}

static const json_t *get(const fth_hf_folder *h, const char *key) {
    const json_t *value = json_object_get(h->config, key);
    return json_is_null(value) ? NULL : value;
}

static fth_err missing(const fth_hf_folder *h, const char *key) {
    return fth_fail(FTH_BAD_INPUT, "%s: %s is missing", h->file, key);
}

fth_err fth_hf_int(const fth_hf_folder *h, const char *key, int64_t fallback, int32_t *out) {
    const json_t *value = get(h, key);
    if (!value && fallback == INT32_MIN) return missing(h, key);
    *out = (int32_t)fallback;
    if (!value) return FTH_OK;
    const json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < 0 || n > 1 << 28)
        return bad(h, key, "must be a whole number, 0 to 268435456");
    *out = (int32_t)n;
    return FTH_OK;
}

fth_err fth_hf_twice(const fth_hf_folder *h, const char *a, const char *b, int32_t *out) {
    int32_t other = 0;
    FTH_TRY(fth_hf_int(h, a, INT32_MIN, out));
    FTH_TRY(fth_hf_int(h, b, INT32_MIN, &other));
    if (other == *out) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: %s is %d and %s %d: both stacks must have as many", h->file,
                    a, *out, b, other);
}

fth_err fth_hf_number(const fth_hf_folder *h, const char *key, double fallback, double *out) {
    const json_t *value = get(h, key);
    *out = value ? json_number_value(value) : fallback;
    if (value && !json_is_number(value)) return bad(h, key, "must be a number");
    return FTH_OK;
}

fth_err fth_hf_bool(const fth_hf_folder *h, const char *key, bool fallback, bool *out) {
    const json_t *value = get(h, key);
    *out = value ? json_is_true(value) : fallback;
    if (value && !json_is_boolean(value)) return bad(h, key, "must be true or false");
    return FTH_OK;
}

fth_err fth_hf_expect(const fth_hf_folder *h, const char *key, bool fallback, bool wanted,
                      const char *rule) {
    bool found = false;
    FTH_TRY(fth_hf_bool(h, key, fallback, &found));
    if (found == wanted) return FTH_OK;
    if (get(h, key)) return bad(h, key, rule);
    return fth_fail(FTH_BAD_INPUT, "%s: %s is missing, so it is %s: %s", h->file, key,
                    fallback ? "true" : "false", rule);
}

fth_err fth_hf_read_activation(const fth_hf_folder *h, const char *key, const char *fallback,
                               fth_activation *out) {
    const json_t *value = get(h, key);
    const char *name = value ? json_string_value(value) : fallback;
    static const char rule[] = "fathom computes \"relu\" and \"gelu\" (by the error function)";
    if (name && strcmp(name, "relu") == 0)
        *out = FTH_RELU;
    else if (name && strcmp(name, "gelu") == 0)
        *out = FTH_GELU;
    else if (value)
        return bad(h, key, rule);
    else
        return fth_fail(FTH_BAD_INPUT, "%s: %s is missing, so it is \"%s\": %s", h->file, key,
                        fallback, rule);
    return FTH_OK;
}

/* ---- special words ---- */

/* The number of a piece by one of its usual names; -1: not known. */
static int32_t named(const fth_hf_folder *h, const char *const *names, int32_t vocab) {
    for (; *names; names++) {
        const json_t *value = json_object_get(h->vocab, *names);
        const json_int_t n = json_integer_value(value);
        if (json_is_integer(value) && n >= 0 && n < vocab) return (int32_t)n;
    }
    return -1;
}

/* The number that config.json has for a special word; -1: none, or a list of them. */
static int32_t given(const fth_hf_folder *h, const char *key, int32_t vocab) {
    const json_t *value = get(h, key);
    const json_int_t n = json_integer_value(value);
    return json_is_integer(value) && n >= 0 && n < vocab ? (int32_t)n : -1;
}

fth_err fth_hf_special(const fth_hf_folder *h, int32_t start, fth_config *c, fth_hf_words *words) {
    static const char *const unknown[] = {"<unk>", "[UNK]", "<|unk|>", NULL};
    static const char *const first[] = {"<s>", "[CLS]", NULL}, *const last[] = {"</s>", "[SEP]",
                                                                                NULL};
    int32_t vocab = c->arch == FTH_DEC ? c->tgt_vocab : c->src_vocab;
    if (c->arch == FTH_ENCDEC && c->tgt_vocab < vocab) vocab = c->tgt_vocab;
    int32_t *const id[] = {&c->eos, &c->pad, &c->bos, &c->unk};
    c->eos = given(h, "eos_token_id", vocab);
    if (c->eos < 0) c->eos = named(h, last, vocab);
    c->pad = given(h, "pad_token_id", vocab);
    c->bos = start >= 0 ? start : given(h, "bos_token_id", vocab);
    if (c->bos < 0) c->bos = named(h, first, vocab);
    c->unk = named(h, unknown, vocab);
    *words = (fth_hf_words){.copied = -1};
    for (int i = 0; i < 4; i++) {
        bool taken = *id[i] < 0;
        for (int k = 0; k < i; k++) taken |= *id[i] == *id[k];
        if (!taken) continue;
        if (id[i] == &c->bos && start >= 0) words->copied = start;
        /* fathom's own numbers where they are free: such a word is made by nothing, but read */
        const int32_t usual = id[i] == &c->unk ? 3 : -1;
        bool free_usual = usual >= 0 && usual < vocab && h->vocab == NULL;
        for (int k = 0; k < i; k++) free_usual &= usual != *id[k];
        *id[i] = free_usual ? usual : vocab + words->more++;
    }
    if (words->more && c->arch == FTH_ENCDEC && c->src_vocab != c->tgt_vocab)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: the model lacks %d of the words for begin, padding, end and unknown, "
                        "and its two vocabularies have different sizes",
                        h->file, words->more);
    if (c->arch != FTH_DEC) c->src_vocab += words->more;
    if (c->arch != FTH_ENC) c->tgt_vocab += words->more;
    return FTH_OK;
}

/* ---- weights ---- */

static fth_err read_weights(const char *path, const fth_config *c, const fth_rows_in *in,
                            fth_adjust *adjust, fth_weighted *out) {
    fth_st_file *file = NULL;
    FTH_TRY(fth_st_open(path, &file));
    fth_err err = fth_model_init(&out->model, c);
    out->there = err == FTH_OK;
    if (out->there) out->flat = malloc(sizeof *out->flat * (size_t)out->model.params.size);
    if (out->there && !out->flat)
        err = fth_fail(FTH_NO_MEMORY, "no memory for %lld parameters",
                       (long long)out->model.params.size);
    if (err == FTH_OK) err = fth_rows_in_read(in, file, &out->model, out->flat);
    if (err == FTH_OK && adjust) adjust(&out->model, out->flat, false);
    if (err == FTH_OK && in->copied >= 0 && c->share != FTH_SHARE_NONE)
        err = fth_untie(out, in->more_words);
    if (err == FTH_OK &&
        fth_weights_finite(&out->model, out->flat, "weights must be finite") != FTH_OK)
        err = fth_fail_in(FTH_BAD_INPUT, "%s", path);
    fth_st_close(file);
    return err;
}

fth_err fth_hf_read(const fth_hf_folder *h, const fth_config *c, const fth_rows_in *in,
                    fth_adjust *adjust, fth_weighted *out) {
    fth_err err = fth_config_validate(c);
    if (err != FTH_OK)
        return fth_fail_in(err == FTH_BAD_CONFIG ? FTH_BAD_INPUT : err, "%s", h->file);
    if (!fth_folder_has(h->path, "model.safetensors") &&
        fth_folder_has(h->path, "model.safetensors.index.json"))
        return fth_fail(FTH_BAD_INPUT,
                        "%s/model.safetensors.index.json: weights in several files are not read; "
                        "save_pretrained(DIR, max_shard_size=\"100GB\") writes one",
                        h->path);
    char *path = fth_strdup_printf("%s/model.safetensors", h->path);
    if (!path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    err = read_weights(path, c, in, adjust, out);
    free(path);
    return err;
}
