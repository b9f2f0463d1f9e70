/* hf_marian.c: MarianMTModel of transformers: plain Post-LN encoder-decoders, positions written
 * out, eps 1e-5, embeddings times sqrt(d). */
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "exchange/hf.h"

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    if (m->config.arch != FTH_ENCDEC) return "holds encoder-decoders alone";
    return norm == FTH_NORM_POST ? NULL : "holds plain Post-LN alone";
}

static const fth_row rows[] = {
    {"model.encoder.layers.", {"encoder.layers."}, false, 0, false},
    {"model.decoder.layers.", {"decoder.layers."}, false, 0, false},
    {"model.encoder.embed_positions.weight", {"encoder.embed_positions.weight"}, false, 0, false},
    {"model.decoder.embed_positions.weight", {"decoder.embed_positions.weight"}, false, 0, false},
    {"model.shared.weight", {"embed_tokens.weight"}, false, 0, false},
    {"model.encoder.embed_tokens.weight", {"embed_tokens.weight"}, false, 0, true},
    {"model.decoder.embed_tokens.weight", {"embed_tokens.weight"}, false, 0, true},
    {"lm_head.weight", {"embed_tokens.weight"}, false, 0, true},
    {"model.encoder.embed_tokens.weight", {"encoder.embed_tokens.weight"}, false, 0, false},
    {"model.decoder.embed_tokens.weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"lm_head.weight", {"output_projection.weight"}, false, 0, false},
    {"lm_head.weight", {"decoder.embed_tokens.weight"}, false, 0, true},
    {NULL, {NULL}, false, 0, false}};

/* ---- writing ---- */

static json_t *config_of(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    json_t *out = fth_hf_config(job, "MarianMTModel", "marian");
    json_t *own = json_pack(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:b,s:i,s:b,s:b,s:n,s:b,s:b,s:b,s:f,s:f,s:f}",
        "vocab_size", c->src_vocab, "decoder_vocab_size", c->tgt_vocab, "d_model", c->d_model,
        "encoder_layers", c->encoder_layers, "decoder_layers", c->decoder_layers,
        "encoder_attention_heads", c->heads, "decoder_attention_heads", c->heads, "encoder_ffn_dim",
        c->ffn_dim, "decoder_ffn_dim", c->ffn_dim, "activation_function", fth_hf_activation(c),
        "share_encoder_decoder_embeddings", c->share == FTH_SHARE_ALL, "max_position_embeddings",
        c->max_positions, "scale_embedding", 1, "static_position_embeddings", 1,
        "forced_eos_token_id", "normalize_before", 0, "normalize_embedding", 0,
        "add_final_layer_norm", 0, "dropout", c->dropout, "attention_dropout", c->attention_dropout,
        "activation_dropout", c->activation_dropout);
    if (own) json_object_set_new(own, "decoder_start_token_id", json_integer(c->bos));
    return fth_hf_join(out, own);
}

static json_t *tokenizer_config(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    const bool separate = job->src != job->tgt;
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:i}", "tokenizer_class", "MarianTokenizer",
                     "unk_token", fth_tokenizer_piece(job->src, c->unk), "eos_token",
                     fth_tokenizer_piece(job->src, c->eos), "pad_token",
                     *fth_tokenizer_piece(job->src, c->pad) ? fth_tokenizer_piece(job->src, c->pad)
                                                            : "<pad>",
                     "separate_vocabs", separate, "model_max_length", c->max_positions);
}

static fth_err write_tokenizer(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    const bool spm = fth_folder_has(job->spec->model, "tokenizer.model") ||
                     fth_folder_has(job->spec->model, "tokenizer.src.model");
    if (!spm || !job->src || !job->tgt) return fth_copy_tokenizers(job);
    FTH_TRY(fth_copy_tokenizer(job, true, "source.spm"));
    FTH_TRY(fth_copy_tokenizer(job, false, "target.spm"));
    FTH_TRY(fth_write_vocabulary(job, job->src, c->src_vocab, true, "vocab.json"));
    if (job->src != job->tgt)
        FTH_TRY(fth_write_vocabulary(job, job->tgt, c->tgt_vocab, true, "target_vocab.json"));
    return fth_json_save(tokenizer_config(job), job->folder, "tokenizer_config.json");
}

static fth_err write(const fth_export_job *job) {
    FTH_TRY(fth_json_save(config_of(job), job->folder, "config.json"));
    FTH_TRY(fth_write_tensors(job, rows, NULL, "model.safetensors"));
    FTH_TRY(fth_hf_write_generation(job, job->model->config.bos, 5));
    return write_tokenizer(job);
}

/* ---- reading ---- */

static fth_err read_sizes(const fth_hf_folder *h, fth_config *c) {
    FTH_TRY(fth_hf_int(h, "encoder_layers", INT32_MIN, &c->encoder_layers));
    FTH_TRY(fth_hf_int(h, "decoder_layers", INT32_MIN, &c->decoder_layers));
    FTH_TRY(fth_hf_int(h, "d_model", INT32_MIN, &c->d_model));
    FTH_TRY(fth_hf_twice(h, "encoder_ffn_dim", "decoder_ffn_dim", &c->ffn_dim));
    FTH_TRY(fth_hf_twice(h, "encoder_attention_heads", "decoder_attention_heads", &c->heads));
    FTH_TRY(fth_hf_int(h, "vocab_size", INT32_MIN, &c->src_vocab));
    FTH_TRY(fth_hf_int(h, "decoder_vocab_size", c->src_vocab, &c->tgt_vocab));
    FTH_TRY(fth_hf_int(h, "max_position_embeddings", 1024, &c->max_positions));
    FTH_TRY(fth_hf_number(h, "dropout", 0.1, &c->dropout));
    FTH_TRY(fth_hf_number(h, "attention_dropout", 0, &c->attention_dropout));
    FTH_TRY(fth_hf_number(h, "activation_dropout", 0, &c->activation_dropout));
    return fth_hf_read_activation(h, "activation_function", "gelu", &c->activation);
}

static fth_err read_config(const fth_hf_folder *h, fth_config *c, fth_hf_words *words) {
    bool all = true, tied = true;
    int32_t start = 0;
    FTH_TRY(read_sizes(h, c));
    FTH_TRY(fth_hf_expect(h, "normalize_before", false, false, "only Post-LN is read"));
    FTH_TRY(fth_hf_expect(h, "normalize_embedding", false, false, "embeddings have no norm here"));
    FTH_TRY(fth_hf_bool(h, "share_encoder_decoder_embeddings", true, &all));
    FTH_TRY(fth_hf_bool(h, "tie_word_embeddings", true, &tied));
    c->share = !tied ? FTH_SHARE_NONE : all ? FTH_SHARE_ALL : FTH_SHARE_DEC;
    c->positions = FTH_LEARNED;
    FTH_TRY(fth_hf_int(h, "decoder_start_token_id", INT32_MIN, &start));
    return fth_hf_special(h, start, c, words);
}

/* Where the file has no positions: transformers makes them when it loads a model, position k sin
 * and cos of k / 10000^(2 i / d), the sines first. */
static bool make_positions(const fth_model *m, const fth_param *p, float *out) {
    const int64_t d = m->config.d_model, half = d / 2 + d % 2;
    if (p->role != FTH_ROLE_POSITIONS) return false;
    for (int64_t k = 0; k < p->shape[0]; k++)
        for (int64_t i = 0; i < d; i++) {
            const double j = (double)(i < half ? i : i - half);
            const double angle = (double)k / pow(10000, 2 * j / (double)d);
            out[k * d + i] = (float)(i < half ? sin(angle) : cos(angle));
        }
    return true;
}

static fth_err read_folder(const fth_hf_folder *h, fth_weighted *out) {
    static const char *const zeros[] = {"final_logits_bias", NULL};
    static const char *const shared[] = {"model.shared.weight", NULL};
    fth_config c = fth_config_default();
    fth_hf_words words;
    bool scaled = true;
    fth_plain_method(&c, FTH_NORM_POST);
    FTH_TRY(read_config(h, &c, &words));
    FTH_TRY(fth_hf_bool(h, "scale_embedding", false, &scaled));
    const fth_rows_in in = {.rows = rows,
                            .zeros = zeros,
                            .ignored = shared,
                            .make = make_positions,
                            .more_words = words.more,
                            .copied = words.copied};
    return fth_hf_read(h, &c, &in, scaled ? NULL : fth_adjust_embeddings, out);
}

static fth_err read(const char *folder, fth_weighted *out) {
    return fth_hf_read_as(folder, "marian", read_folder, out);
}

const fth_format fth_format_hf_marian = {
    .name = "hf-marian",
    .title = "Marian (transformers)",
    .one_eps = true,
    .eps = 1e-5,
    .table = true,
    .lacks = lacks,
    .write = write,
    .read = read,
    .imports = true,
    .example = "from transformers import MarianMTModel, MarianTokenizer\n"
               "model, words = MarianMTModel.from_pretrained(\".\"), "
               "MarianTokenizer.from_pretrained(\".\")\n"
               "print(words.decode(model.generate(**words(\"a line\", return_tensors=\"pt\"))[0], "
               "skip_special_tokens=True))\n",
};
