/* hf_opt.c: OPTForCausalLM of transformers: decoders, plain Post-LN (do_layer_norm_before false) or
 * Pre-LN. Positions are a table whose first two rows are not used; embeddings have no factor. */
#include <stdio.h>

#include "base/json.h"
#include "exchange/hf.h"

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    if (m->config.arch != FTH_DEC) return "holds decoders alone";
    return norm == FTH_NORM_NONE ? "needs layer norms" : NULL;
}

static const fth_row rows[] = {
    {"model.decoder.layers.", {"decoder.layers."}, false, 0, false},
    {"model.decoder.final_layer_norm.@", {"decoder.layer_norm.@"}, false, 0, false},
    {"model.decoder.embed_positions.weight", {"decoder.embed_positions.weight"}, false, 2, false},
    {"model.decoder.embed_tokens.weight", {"embed_tokens.weight"}, false, 0, false},
    {"lm_head.weight", {"embed_tokens.weight"}, false, 0, true},
    {"model.decoder.embed_tokens.weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"lm_head.weight", {"output_projection.weight"}, false, 0, false},
    {NULL, {NULL}, false, 0, false}};

static json_t *config_of(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    json_t *out = fth_hf_config(job, "OPTForCausalLM", "opt");
    json_t *own = json_pack(
        "{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:b, s:b, s:b, s:f, s:f}", "vocab_size",
        c->tgt_vocab, "hidden_size", c->d_model, "word_embed_proj_dim", c->d_model, "ffn_dim",
        c->ffn_dim, "num_hidden_layers", c->decoder_layers, "num_attention_heads", c->heads,
        "max_position_embeddings", c->max_positions, "activation_function", fth_hf_activation(c),
        "do_layer_norm_before", job->model->method.method->norm == FTH_NORM_PRE, "enable_bias", 1,
        "layer_norm_elementwise_affine", 1, "dropout", c->dropout, "attention_dropout",
        c->attention_dropout);
    return fth_hf_join(out, own);
}

static fth_err write(const fth_export_job *job) {
    FTH_TRY(fth_json_save(config_of(job), job->folder, "config.json"));
    FTH_TRY(fth_write_tensors(job, rows, NULL, "model.safetensors"));
    FTH_TRY(fth_hf_write_generation(job, -1, 1));
    return fth_hf_write_words(job);
}

static fth_err read_config(const fth_hf_folder *h, fth_config *c, fth_hf_words *words) {
    int32_t width = 0;
    bool tied = true, before = true;
    c->arch = FTH_DEC;
    c->src_vocab = c->encoder_layers = 0;
    FTH_TRY(fth_hf_int(h, "vocab_size", INT32_MIN, &c->tgt_vocab));
    FTH_TRY(fth_hf_int(h, "hidden_size", INT32_MIN, &c->d_model));
    FTH_TRY(fth_hf_int(h, "word_embed_proj_dim", c->d_model, &width));
    if (width != c->d_model)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: word_embed_proj_dim is %d and hidden_size %d: words of "
                        "another width are not read",
                        h->file, width, c->d_model);
    FTH_TRY(fth_hf_int(h, "ffn_dim", INT32_MIN, &c->ffn_dim));
    FTH_TRY(fth_hf_int(h, "num_hidden_layers", INT32_MIN, &c->decoder_layers));
    FTH_TRY(fth_hf_int(h, "num_attention_heads", INT32_MIN, &c->heads));
    FTH_TRY(fth_hf_int(h, "max_position_embeddings", INT32_MIN, &c->max_positions));
    FTH_TRY(fth_hf_number(h, "dropout", 0.1, &c->dropout));
    FTH_TRY(fth_hf_number(h, "attention_dropout", 0, &c->attention_dropout));
    FTH_TRY(fth_hf_read_activation(h, "activation_function", "relu", &c->activation));
    FTH_TRY(fth_hf_expect(h, "enable_bias", true, true, "linear maps have biases here"));
    FTH_TRY(fth_hf_expect(h, "layer_norm_elementwise_affine", true, true,
                          "norms have gains and biases here"));
    FTH_TRY(fth_hf_expect(h, "_remove_final_layer_norm", false, false, "Pre-LN has a last norm"));
    FTH_TRY(fth_hf_bool(h, "tie_word_embeddings", true, &tied));
    FTH_TRY(fth_hf_bool(h, "do_layer_norm_before", true, &before));
    c->share = tied ? FTH_SHARE_DEC : FTH_SHARE_NONE;
    c->positions = FTH_LEARNED;
    fth_plain_method(c, before ? FTH_NORM_PRE : FTH_NORM_POST);
    return fth_hf_special(h, -1, c, words);
}

static fth_err read_folder(const fth_hf_folder *h, fth_weighted *out) {
    fth_config c = fth_config_default();
    fth_hf_words words;
    FTH_TRY(read_config(h, &c, &words));
    const fth_rows_in in = {
        .rows = rows, .prefix = "model.", .more_words = words.more, .copied = words.copied};
    return fth_hf_read(h, &c, &in, fth_adjust_embeddings, out);
}

static fth_err read(const char *folder, fth_weighted *out) {
    return fth_hf_read_as(folder, "opt", read_folder, out);
}

const fth_format fth_format_hf_opt = {
    .name = "hf-opt",
    .title = "OPT (transformers)",
    .one_eps = true,
    .eps = 1e-5,
    .table = true,
    .lacks = lacks,
    .adjust = fth_adjust_embeddings,
    .write = write,
    .read = read,
    .imports = true,
    .example = FTH_HF_DECODER_EXAMPLE("OPTForCausalLM"),
};
