/* hf_bert.c: BERT of transformers: plain Post-LN encoders with a norm of the embeddings, for words
 * behind masks, classes of texts and of words. Embeddings have no factor; the kind of a text is
 * always the first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "exchange/hf.h"

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    const fth_config *c = &m->config;
    if (c->arch != FTH_ENC) return "holds encoders alone";
    if (norm != FTH_NORM_POST) return "holds plain Post-LN alone";
    if (c->head == FTH_HEAD_NEXT_TOKEN) return "needs a head: masked-token, class and the like";
    if (c->pool != FTH_POOL_FIRST && c->head != FTH_HEAD_MASKED_TOKEN)
        return "pools the first row of a text alone";
    if (fth_params_find(&m->params, "encoder.layernorm_embedding.weight") < 0)
        return "has a norm of the embeddings, which a model trained with --method-option "
               "embed_norm=true has too, and this one has not";
    return NULL;
}

#define NORM(theirs, ours)                                                                         \
    {theirs ".@", {ours ".@"}, false, 0, false},                                                   \
        {theirs ".gamma", {ours ".weight"}, false, 0, true}, {                                     \
        theirs ".beta", {ours ".bias"}, false, 0, true                                             \
    }
#define LAYER "bert.encoder.layer.*."
#define OURS  "encoder.layers.*."

/* What all have; names that old files have are for reading alone. */
#define BODY                                                                                       \
    {"bert.embeddings.word_embeddings.weight", {"embed_tokens.weight"}, false, 0, false},          \
        {"bert.embeddings.word_embeddings.weight",                                                 \
         {"encoder.embed_tokens.weight"},                                                          \
         false,                                                                                    \
         0,                                                                                        \
         false},                                                                                   \
        {"bert.embeddings.position_embeddings.weight",                                             \
         {"encoder.embed_positions.weight"},                                                       \
         false,                                                                                    \
         0,                                                                                        \
         false},                                                                                   \
        {LAYER "attention.self.query.@", {OURS "self_attn.q_proj.@"}, false, 0, false},            \
        {LAYER "attention.self.key.@", {OURS "self_attn.k_proj.@"}, false, 0, false},              \
        {LAYER "attention.self.value.@", {OURS "self_attn.v_proj.@"}, false, 0, false},            \
        {LAYER "attention.output.dense.@", {OURS "self_attn.out_proj.@"}, false, 0, false},        \
        {LAYER "intermediate.dense.@", {OURS "fc1.@"}, false, 0, false}, {                         \
        LAYER "output.dense.@", {OURS "fc2.@"}, false, 0, false                                    \
    }

static const fth_row rows[] = {
    BODY,
    NORM("bert.embeddings.LayerNorm", "encoder.layernorm_embedding"),
    NORM(LAYER "attention.output.LayerNorm", OURS "self_attn_layer_norm"),
    NORM(LAYER "output.LayerNorm", OURS "final_layer_norm"),
    {"cls.predictions.transform.dense.@", {"head.dense.@"}, false, 0, false},
    NORM("cls.predictions.transform.LayerNorm", "head.layer_norm"),
    {"cls.predictions.bias", {"head.bias"}, false, 0, false},
    {"cls.predictions.decoder.bias", {"head.bias"}, false, 0, false},
    {"cls.predictions.decoder.weight", {"output_projection.weight"}, false, 0, false},
    {NULL, {NULL}, false, 0, false}};

/* A model with classes has the map of its head under another name. */
static const fth_row class_rows[] = {
    BODY,
    NORM("bert.embeddings.LayerNorm", "encoder.layernorm_embedding"),
    NORM(LAYER "attention.output.LayerNorm", OURS "self_attn_layer_norm"),
    NORM(LAYER "output.LayerNorm", OURS "final_layer_norm"),
    {"classifier.@", {"head.out.@"}, false, 0, false},
    {"bert.pooler.dense.@", {"head.dense.@"}, false, 0, false},
    {NULL, {NULL}, false, 0, false}};

static const fth_row *rows_of(const fth_config *c) {
    return c->head == FTH_HEAD_MASKED_TOKEN ? rows : class_rows;
}

/* ---- writing ---- */

static const char *class_of(const fth_config *c) {
    switch (c->head) {
    case FTH_HEAD_MASKED_TOKEN: return "BertForMaskedLM";
    case FTH_HEAD_TOKEN_CLASS: return "BertForTokenClassification";
    default: return "BertForSequenceClassification";
    }
}

/* {"0": "LABEL_0", ...}: how transformers knows the number of classes. */
static json_t *labels_of(const fth_config *c) {
    const int32_t n = c->head == FTH_HEAD_REGRESSION ? 1 : c->classes;
    json_t *out = json_object();
    char key[16], name[32];
    for (int32_t i = 0; i < n && out; i++) {
        snprintf(key, sizeof key, "%d", i);
        snprintf(name, sizeof name, "LABEL_%d", i);
        json_object_set_new(out, key, json_string(name));
    }
    return out;
}

static json_t *config_of(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    json_t *out = fth_hf_config(job, class_of(c), "bert");
    json_t *own =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:f}", "vocab_size",
                  c->src_vocab, "hidden_size", c->d_model, "num_hidden_layers", c->encoder_layers,
                  "num_attention_heads", c->heads, "intermediate_size", c->ffn_dim,
                  "max_position_embeddings", c->max_positions, "type_vocab_size", 1, "hidden_act",
                  fth_hf_activation(c), "layer_norm_eps", c->layer_norm_eps, "hidden_dropout_prob",
                  c->dropout, "attention_probs_dropout_prob", c->attention_dropout);
    if (own && c->head != FTH_HEAD_MASKED_TOKEN) json_object_set_new(own, "id2label", labels_of(c));
    if (own && c->head == FTH_HEAD_REGRESSION)
        json_object_set_new(own, "problem_type", json_string("regression"));
    return fth_hf_join(out, own);
}

static fth_err write_weights(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    const int64_t shape[] = {1, c->d_model};
    fth_tensors more = {0};
    float *nothing = NULL;
    fth_err err = fth_tensors_add(&more, "bert.embeddings.token_type_embeddings.weight", FTH_ST_F32,
                                  2, shape, NULL, &nothing);
    if (err == FTH_OK) err = fth_write_tensors(job, rows_of(c), &more, "model.safetensors");
    fth_tensors_fini(&more);
    return err;
}

static fth_err write(const fth_export_job *job) {
    FTH_TRY(fth_json_save(config_of(job), job->folder, "config.json"));
    FTH_TRY(write_weights(job));
    return fth_hf_write_words(job);
}

/* ---- reading ---- */

static fth_err read_head(const fth_hf_folder *h, fth_config *c) {
    const char *name =
        json_string_value(json_array_get(json_object_get(h->config, "architectures"), 0));
    const size_t labels = json_object_size(json_object_get(h->config, "id2label"));
    const char *problem = json_string_value(json_object_get(h->config, "problem_type"));
    c->classes = (int32_t)(labels ? labels : 2);
    if (name && strcmp(name, "BertForMaskedLM") == 0) {
        c->head = FTH_HEAD_MASKED_TOKEN;
        c->classes = 0;
    } else if (name && strcmp(name, "BertForTokenClassification") == 0) {
        c->head = FTH_HEAD_TOKEN_CLASS;
    } else if (name && strcmp(name, "BertForSequenceClassification") == 0) {
        c->head = labels == 1 || (problem && strcmp(problem, "regression") == 0)
                      ? FTH_HEAD_REGRESSION
                      : FTH_HEAD_CLASS;
        if (c->head == FTH_HEAD_REGRESSION) c->classes = 0;
    } else {
        return fth_fail(FTH_BAD_INPUT,
                        "%s: architectures is %s: this reader takes BertForMaskedLM, "
                        "BertForSequenceClassification and BertForTokenClassification",
                        h->file, fth_json_shown(json_object_get(h->config, "architectures")).text);
    }
    return FTH_OK;
}

static fth_err read_config(const fth_hf_folder *h, fth_config *c, fth_hf_words *words) {
    bool tied = true;
    c->arch = FTH_ENC;
    c->tgt_vocab = c->decoder_layers = 0;
    FTH_TRY(read_head(h, c));
    FTH_TRY(fth_hf_int(h, "vocab_size", INT32_MIN, &c->src_vocab));
    FTH_TRY(fth_hf_int(h, "hidden_size", INT32_MIN, &c->d_model));
    FTH_TRY(fth_hf_int(h, "num_hidden_layers", INT32_MIN, &c->encoder_layers));
    FTH_TRY(fth_hf_int(h, "num_attention_heads", INT32_MIN, &c->heads));
    FTH_TRY(fth_hf_int(h, "intermediate_size", INT32_MIN, &c->ffn_dim));
    FTH_TRY(fth_hf_int(h, "max_position_embeddings", 512, &c->max_positions));
    FTH_TRY(fth_hf_read_activation(h, "hidden_act", "gelu", &c->activation));
    FTH_TRY(fth_hf_number(h, "layer_norm_eps", 1e-12, &c->layer_norm_eps));
    FTH_TRY(fth_hf_number(h, "hidden_dropout_prob", 0.1, &c->dropout));
    FTH_TRY(fth_hf_number(h, "attention_probs_dropout_prob", 0.1, &c->attention_dropout));
    FTH_TRY(fth_hf_bool(h, "tie_word_embeddings", true, &tied));
    const json_t *kind = json_object_get(h->config, "position_embedding_type");
    if (kind && strcmp(json_string_value(kind) ? json_string_value(kind) : "", "absolute") != 0)
        return fth_fail(FTH_BAD_INPUT, "%s: position_embedding_type is %s: must be \"absolute\"",
                        h->file, fth_json_shown(kind).text);
    c->encoder_layer_norm_eps = c->decoder_layer_norm_eps = c->layer_norm_eps;
    c->share = tied ? FTH_SHARE_DEC : FTH_SHARE_NONE;
    c->positions = FTH_LEARNED;
    fth_plain_method(c, FTH_NORM_POST);
    c->options[c->n_options++] =
        (fth_method_option){.key = "embed_norm", .type = FTH_OPT_BOOL, .number = 1};
    return fth_hf_special(h, -1, c, words);
}

/* The vector of the first kind of text, which every row gets, becomes part of the positions. */
static fth_err add_kind(const fth_hf_folder *h, fth_weighted *w) {
    static const char *const names[] = {"bert.embeddings.token_type_embeddings.weight",
                                        "embeddings.token_type_embeddings.weight"};
    char *path = fth_strdup_printf("%s/model.safetensors", h->path);
    const int32_t at = fth_params_find(&w->model.params, "encoder.embed_positions.weight");
    const int64_t d = w->model.config.d_model;
    fth_st_file *file = NULL;
    float *kinds = NULL, *to = w->flat + w->model.params.param[at].offset;
    fth_err err = path ? fth_st_open(path, &file) : fth_fail(FTH_NO_MEMORY, "no memory");
    const fth_st_tensor *t = file ? fth_st_find(file, names[0]) : NULL;
    if (file && !t) t = fth_st_find(file, names[1]);
    if (err == FTH_OK && (!t || t->rank != 2 || t->shape[0] < 1 || t->shape[1] != d))
        err = fth_fail(FTH_BAD_INPUT, "%s: tensor \"%s\" must be there, with rows of %lld", path,
                       names[0], (long long)d);
    if (err == FTH_OK && !(kinds = malloc(sizeof *kinds * fth_st_count(t))))
        err = fth_fail(FTH_NO_MEMORY, "no memory for %s", names[0]);
    if (err == FTH_OK) err = fth_st_to_f32(file, t, kinds);
    for (int64_t i = 0; err == FTH_OK && i < w->model.config.max_positions * d; i++)
        to[i] += kinds[i % d];
    free(kinds);
    fth_st_close(file);
    free(path);
    return err;
}

static fth_err read_folder(const fth_hf_folder *h, fth_weighted *out) {
    static const char *const tied[] = {"*embeddings.token_type_embeddings.weight",
                                       "*embeddings.position_ids",
                                       "cls.seq_relationship.*",
                                       "bert.pooler.*",
                                       "cls.predictions.decoder.weight",
                                       NULL};
    static const char *const untied[] = {"*embeddings.token_type_embeddings.weight",
                                         "*embeddings.position_ids", "cls.seq_relationship.*",
                                         "bert.pooler.*", NULL};
    fth_config c = fth_config_default();
    fth_hf_words words;
    FTH_TRY(read_config(h, &c, &words));
    const fth_rows_in in = {.rows = rows_of(&c),
                            .prefix = "bert.",
                            .ignored = c.share == FTH_SHARE_NONE ? untied : tied,
                            .more_words = words.more,
                            .copied = words.copied};
    FTH_TRY(fth_hf_read(h, &c, &in, fth_adjust_embeddings, out));
    return add_kind(h, out);
}

static fth_err read(const char *folder, fth_weighted *out) {
    return fth_hf_read_as(folder, "bert", read_folder, out);
}

const fth_format fth_format_hf_bert = {
    .name = "hf-bert",
    .title = "BERT (transformers)",
    .one_eps = true,
    .table = true,
    .lacks = lacks,
    .adjust = fth_adjust_embeddings,
    .write = write,
    .read = read,
    .imports = true,
    .example = "import sentencepiece, torch, transformers\n"
               "kind = transformers.AutoConfig.from_pretrained(\".\").architectures[0]\n"
               "model = getattr(transformers, kind).from_pretrained(\".\")\n"
               "pieces = sentencepiece.SentencePieceProcessor(\"tokenizer.model\")\n"
               "ids = [model.config.bos_token_id, *pieces.encode(\"a line\"), "
               "model.config.eos_token_id]\n"
               "print(model(torch.tensor([ids])).logits)\n",
};
