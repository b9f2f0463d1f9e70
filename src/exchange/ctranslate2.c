/* ctranslate2.c: a model of CTranslate2: model.bin of binary version 6 with a TransformerSpec of
 * revision 7, config.json and vocabularies. Weights in 8 bits have a scale for each row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/writer.h"
#include "exchange/ct2_file.h"
#include "exchange/format.h"

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    (void)norm;
    return m->config.arch == FTH_ENCDEC ? NULL : "is written for encoder-decoders alone";
}

#define NORM(theirs, ours)                                                                         \
    {theirs "/gamma", {ours ".weight"}, false, 0, false}, {                                        \
        theirs "/beta", {ours ".bias"}, false, 0, false                                            \
    }
#define SELF(s)                                                                                    \
    {s "/layer_*/self_attention/linear_0/@",                                                       \
     {s ".layers.*.self_attn.q_proj.@", s ".layers.*.self_attn.k_proj.@",                          \
      s ".layers.*.self_attn.v_proj.@"},                                                           \
     false,                                                                                        \
     0,                                                                                            \
     false},                                                                                       \
        {s "/layer_*/self_attention/linear_1/@",                                                   \
         {s ".layers.*.self_attn.out_proj.@"},                                                     \
         false,                                                                                    \
         0,                                                                                        \
         false},                                                                                   \
        NORM(s "/layer_*/self_attention/layer_norm", s ".layers.*.self_attn_layer_norm")
#define FFN(s)                                                                                     \
    {s "/layer_*/ffn/linear_0/@", {s ".layers.*.fc1.@"}, false, 0, false},                         \
        {s "/layer_*/ffn/linear_1/@", {s ".layers.*.fc2.@"}, false, 0, false},                     \
        NORM(s "/layer_*/ffn/layer_norm", s ".layers.*.final_layer_norm"),                         \
        NORM(s "/layer_norm", s ".layer_norm"), {                                                  \
        s "/position_encodings/encodings", {s ".embed_positions.weight"}, false, 0, false          \
    }

static const fth_row rows[] = {
    SELF("encoder"),
    FFN("encoder"),
    SELF("decoder"),
    FFN("decoder"),
    {"decoder/layer_*/attention/linear_0/@",
     {"decoder.layers.*.encoder_attn.q_proj.@"},
     false,
     0,
     false},
    {"decoder/layer_*/attention/linear_1/@",
     {"decoder.layers.*.encoder_attn.k_proj.@", "decoder.layers.*.encoder_attn.v_proj.@"},
     false,
     0,
     false},
    {"decoder/layer_*/attention/linear_2/@",
     {"decoder.layers.*.encoder_attn.out_proj.@"},
     false,
     0,
     false},
    NORM("decoder/layer_*/attention/layer_norm", "decoder.layers.*.encoder_attn_layer_norm"),
    {"decoder/embeddings/weight", {"embed_tokens.weight"}, false, 0, false},
    {"decoder/embeddings/weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"encoder/embeddings_0/weight", {"encoder.embed_tokens.weight"}, false, 0, false},
    {"decoder/projection/weight", {"output_projection.weight"}, false, 0, false},
    {NULL, {NULL}, false, 0, false}};

enum { RELU = 0, GELU = 3 }; /* of CTranslate2's list of activations */

/* ---- writing ---- */

static fth_err add_number(fth_tensors *t, const char *stack, const char *name, fth_st_dtype dtype,
                          int value) {
    char full[64];
    int16_t *place = fth_arena_alloc(&t->arena, sizeof *place);
    if (!place) return fth_fail(FTH_NO_MEMORY, "no memory for %s", name);
    const int8_t narrow = (int8_t)value;
    if (dtype == FTH_ST_I8)
        memcpy(place, &narrow, sizeof narrow);
    else
        *place = (int16_t)value;
    snprintf(full, sizeof full, "%s/%s", stack, name);
    return fth_tensors_add(t, full, dtype, 0, NULL, place, NULL);
}

static fth_err add_settings(fth_tensors *t, const fth_model *m) {
    static const char *const off[] = {"alibi", "alibi_use_positive_positions", "scale_alibi",
                                      "start_from_zero_embedding", NULL};
    const fth_config *c = &m->config;
    const int pre = m->method.method->norm == FTH_NORM_PRE;
    const int activation = c->activation == FTH_GELU ? GELU : RELU;
    for (int stack = 0; stack < 2; stack++) {
        const char *name = stack == FTH_ENCODER ? "encoder" : "decoder";
        FTH_TRY(add_number(t, name, "num_heads", FTH_ST_I16, c->heads));
        FTH_TRY(add_number(t, name, "pre_norm", FTH_ST_I8, pre));
        FTH_TRY(add_number(t, name, "activation", FTH_ST_I8, activation));
        FTH_TRY(add_number(t, name, "scale_embeddings", FTH_ST_I8, 1));
    }
    FTH_TRY(add_number(t, "encoder", "embeddings_merge", FTH_ST_I8, 0));
    FTH_TRY(add_number(t, "decoder", "alignment_layer", FTH_ST_I16, -1));
    FTH_TRY(add_number(t, "decoder", "alignment_heads", FTH_ST_I16, 1));
    for (const char *const *name = off; *name; name++)
        FTH_TRY(add_number(t, "decoder", *name, FTH_ST_I8, 0));
    return FTH_OK;
}

/* Weights that it keeps in 8 bits: matrices of products and of words. */
static bool takes_int8(const fth_st_tensor *t) {
    const size_t n = strlen(t->name);
    return t->rank == 2 && n > 7 && strcmp(t->name + n - 7, "/weight") == 0;
}

static fth_err quantize(fth_tensors *all, size_t i) {
    const fth_st_tensor t = all->tensors[i];
    const float *x = t.data;
    const int64_t n = t.shape[0], width = t.shape[1];
    char name[256];
    float *scale = NULL;
    int8_t *q = fth_arena_alloc(&all->arena, fth_st_count(&t) + 1);
    if (!q) return fth_fail(FTH_NO_MEMORY, "no memory for tensor %s", t.name);
    snprintf(name, sizeof name, "%s_scale", t.name);
    FTH_TRY(fth_tensors_add(all, name, FTH_ST_F32, 1, &n, NULL, &scale));
    for (int64_t r = 0; r < n; r++) {
        float most = 0;
        for (int64_t c = 0; c < width; c++) most = fmaxf(most, fabsf(x[r * width + c]));
        scale[r] = most > 0 ? 127.0f / most : 1.0f;
        for (int64_t c = 0; c < width; c++)
            q[r * width + c] = (int8_t)rintf(x[r * width + c] * scale[r]);
    }
    all->tensors[i].dtype = FTH_ST_I8;
    all->tensors[i].data = q;
    return FTH_OK;
}

static fth_err store_as(fth_tensors *t, fth_storage_kind storage) {
    const size_t n = t->n;
    for (size_t i = 0; i < n; i++) {
        if (storage == FTH_STORE_BF16) t->tensors[i].dtype = FTH_ST_BF16;
        if (storage == FTH_STORE_INT8 && takes_int8(&t->tensors[i])) FTH_TRY(quantize(t, i));
    }
    return FTH_OK;
}

/* Which names share a matrix. */
static int aliases_of(fth_share share, const char *alias[2]) {
    alias[0] = "decoder/projection/weight";
    alias[1] = "encoder/embeddings_0/weight";
    return share == FTH_SHARE_ALL ? 2 : share == FTH_SHARE_DEC ? 1 : 0;
}

static fth_err write_config(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    const char *bos = fth_tokenizer_piece(job->tgt, c->bos);
    return fth_json_save(json_pack("{s:b, s:b, s:s, s:s, s:s, s:f, s:b, s:s}", "add_source_bos", 0,
                                   "add_source_eos", 1, "bos_token", bos, "decoder_start_token",
                                   bos, "eos_token", fth_tokenizer_piece(job->tgt, c->eos),
                                   "layer_norm_epsilon", c->encoder_layer_norm_eps,
                                   "multi_query_attention", 0, "unk_token",
                                   fth_tokenizer_piece(job->tgt, c->unk)),
                         job->folder, "config.json");
}

static fth_err write_words(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    if (job->src == job->tgt)
        return fth_write_vocabulary(job, job->tgt, c->tgt_vocab, false, "shared_vocabulary.json");
    FTH_TRY(fth_write_vocabulary(job, job->src, c->src_vocab, false, "source_vocabulary.json"));
    return fth_write_vocabulary(job, job->tgt, c->tgt_vocab, false, "target_vocabulary.json");
}

static fth_err write_model(const fth_export_job *job) {
    fth_tensors t = {0};
    const char *alias[2];
    const int n = aliases_of(job->model->config.share, alias);
    fth_err err = fth_rows_out(rows, job->model, job->flat, &t);
    if (err == FTH_OK) err = store_as(&t, job->storage);
    if (err == FTH_OK) err = add_settings(&t, job->model);
    if (err == FTH_OK) err = fth_ct2_write(job->folder, &t, alias, n, "decoder/embeddings/weight");
    fth_tensors_fini(&t);
    return err;
}

static fth_err write(const fth_export_job *job) {
    if (!job->src || !job->tgt)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: has no tokenizer, and CTranslate2 needs the words of the vocabulary",
                        job->spec->model);
    FTH_TRY(write_model(job));
    FTH_TRY(write_config(job));
    FTH_TRY(write_words(job));
    return fth_copy_tokenizers(job);
}

/* ---- reading back ---- */

static int32_t count_layers(const fth_st_file *f, const char *stack) {
    char name[64];
    for (int32_t n = 0;; n++) {
        snprintf(name, sizeof name, "%s/layer_%d/ffn/linear_0/weight", stack, n);
        if (!fth_st_find(f, name)) return n;
    }
}

static int setting(const fth_st_file *f, const char *name, int fallback) {
    const fth_st_tensor *t = fth_st_find(f, name);
    int16_t wide;
    if (!t || t->rank != 0) return fallback;
    if (t->dtype == FTH_ST_I8) return *(const int8_t *)t->data;
    memcpy(&wide, t->data, sizeof wide);
    return wide;
}

/* A dimension of a tensor; 0: there is none. */
static int32_t size_of(const fth_st_file *f, const char *name, int dimension) {
    const fth_st_tensor *t = fth_st_find(f, name);
    return t && dimension < t->rank ? (int32_t)t->shape[dimension] : 0;
}

static void config_of(const fth_ct2_file *file, double eps, fth_config *c) {
    const fth_st_file *f = &file->file;
    *c = fth_config_default();
    fth_plain_method(c, setting(f, "encoder/pre_norm", 0) ? FTH_NORM_PRE : FTH_NORM_POST);
    c->encoder_layers = count_layers(f, "encoder");
    c->decoder_layers = count_layers(f, "decoder");
    c->heads = setting(f, "encoder/num_heads", 0);
    c->activation = setting(f, "encoder/activation", RELU) == GELU ? FTH_GELU : FTH_RELU;
    c->tgt_vocab = size_of(f, "decoder/embeddings/weight", 0);
    c->d_model = size_of(f, "decoder/embeddings/weight", 1);
    c->src_vocab = file->aliases == 2 ? c->tgt_vocab : size_of(f, "encoder/embeddings_0/weight", 0);
    c->ffn_dim = size_of(f, "encoder/layer_0/ffn/linear_0/weight", 0);
    c->max_positions = size_of(f, "encoder/position_encodings/encodings", 0);
    c->positions = FTH_LEARNED;
    c->share = file->aliases == 2   ? FTH_SHARE_ALL
               : file->aliases == 1 ? FTH_SHARE_DEC
                                    : FTH_SHARE_NONE;
    c->layer_norm_eps = c->encoder_layer_norm_eps = c->decoder_layer_norm_eps = eps;
}

static fth_err read_eps(const char *folder, double *eps) {
    json_t *config = NULL;
    char *path = fth_strdup_printf("%s/config.json", folder);
    fth_err err = path ? fth_json_load(path, &config) : fth_fail(FTH_NO_MEMORY, "no memory");
    *eps = json_number_value(json_object_get(config, "layer_norm_epsilon"));
    json_decref(config);
    free(path);
    return err;
}

static fth_err read_model(const fth_ct2_file *file, double eps, fth_weighted *out) {
    static const char *const settings[] = {"*coder/num_heads",
                                           "*coder/pre_norm",
                                           "*coder/activation",
                                           "*coder/scale_embeddings",
                                           "*/embeddings_merge",
                                           "*/alignment_*",
                                           "decoder/*alibi*",
                                           "*/start_from_zero_embedding",
                                           NULL};
    fth_config c;
    config_of(file, eps, &c);
    FTH_TRY(fth_model_init(&out->model, &c));
    out->there = true;
    out->flat = malloc(sizeof *out->flat * (size_t)out->model.params.size);
    if (!out->flat) return fth_fail(FTH_NO_MEMORY, "no memory for the model read back");
    const fth_rows_in in = {.rows = rows, .ignored = settings, .copied = -1};
    return fth_rows_in_read(&in, &file->file, &out->model, out->flat);
}

static fth_err read(const char *folder, fth_weighted *out) {
    fth_ct2_file file = {0};
    double eps = 0;
    fth_err err = fth_ct2_open(folder, &file);
    if (err == FTH_OK) err = read_eps(folder, &eps);
    if (err == FTH_OK) err = read_model(&file, eps, out);
    fth_ct2_close(&file);
    return err;
}

const fth_format fth_format_ctranslate2 = {
    .name = "ctranslate2",
    .title = "CTranslate2",
    .int8 = true,
    .one_eps = true,
    .table = true,
    .lacks = lacks,
    .write = write,
    .read = read,
    .example = "import ctranslate2, sentencepiece\n"
               "model = ctranslate2.Translator(\".\")\n"
               "pieces = sentencepiece.SentencePieceProcessor(\"tokenizer.model\")\n"
               "found = model.translate_batch([pieces.encode(\"a line\", out_type=str)])\n"
               "print(pieces.decode(found[0].hypotheses[0]))\n",
};
