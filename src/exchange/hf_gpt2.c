/* hf_gpt2.c: GPT2LMHeadModel of transformers: plain Pre-LN decoders. Matrices are [in, out], q, k
 * and v are one; embeddings have no factor. */
#include <stdio.h>

#include "base/json.h"
#include "exchange/hf.h"

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    if (m->config.arch != FTH_DEC) return "holds decoders alone";
    return norm == FTH_NORM_PRE ? NULL : "holds plain Pre-LN alone";
}

static const fth_row rows[] = {
    {"transformer.wte.weight", {"embed_tokens.weight"}, false, 0, false},
    {"transformer.wte.weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"transformer.wpe.weight", {"decoder.embed_positions.weight"}, false, 0, false},
    {"transformer.h.*.ln_1.@", {"decoder.layers.*.self_attn_layer_norm.@"}, false, 0, false},
    {"transformer.h.*.attn.c_attn.@",
     {"decoder.layers.*.self_attn.q_proj.@", "decoder.layers.*.self_attn.k_proj.@",
      "decoder.layers.*.self_attn.v_proj.@"},
     true,
     0,
     false},
    {"transformer.h.*.attn.c_proj.@", {"decoder.layers.*.self_attn.out_proj.@"}, true, 0, false},
    {"transformer.h.*.ln_2.@", {"decoder.layers.*.final_layer_norm.@"}, false, 0, false},
    {"transformer.h.*.mlp.c_fc.@", {"decoder.layers.*.fc1.@"}, true, 0, false},
    {"transformer.h.*.mlp.c_proj.@", {"decoder.layers.*.fc2.@"}, true, 0, false},
    {"transformer.ln_f.@", {"decoder.layer_norm.@"}, false, 0, false},
    {"lm_head.weight", {"output_projection.weight"}, false, 0, false},
    {NULL, {NULL}, false, 0, false}};

static json_t *config_of(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    json_t *out = fth_hf_config(job, "GPT2LMHeadModel", "gpt2");
    json_t *own = json_pack(
        "{s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:f}", "vocab_size", c->tgt_vocab,
        "n_embd", c->d_model, "n_layer", c->decoder_layers, "n_head", c->heads, "n_inner",
        c->ffn_dim, "n_positions", c->max_positions, "activation_function", fth_hf_activation(c),
        "layer_norm_epsilon", c->decoder_layer_norm_eps, "resid_pdrop", c->dropout, "embd_pdrop",
        c->dropout, "attn_pdrop", c->attention_dropout);
    return fth_hf_join(out, own);
}

static fth_err write(const fth_export_job *job) {
    FTH_TRY(fth_json_save(config_of(job), job->folder, "config.json"));
    FTH_TRY(fth_write_tensors(job, rows, NULL, "model.safetensors"));
    FTH_TRY(fth_hf_write_generation(job, -1, 1));
    return fth_hf_write_words(job);
}

static fth_err read_config(const fth_hf_folder *h, fth_config *c, fth_hf_words *words) {
    static const char scores[] = "attention scores are divided by sqrt(head width) alone";
    bool tied = true;
    c->arch = FTH_DEC;
    c->src_vocab = c->encoder_layers = 0;
    FTH_TRY(fth_hf_int(h, "vocab_size", INT32_MIN, &c->tgt_vocab));
    FTH_TRY(fth_hf_int(h, "n_embd", INT32_MIN, &c->d_model));
    FTH_TRY(fth_hf_int(h, "n_layer", INT32_MIN, &c->decoder_layers));
    FTH_TRY(fth_hf_int(h, "n_head", INT32_MIN, &c->heads));
    FTH_TRY(fth_hf_int(h, "n_inner", 4 * (int64_t)c->d_model, &c->ffn_dim));
    FTH_TRY(fth_hf_int(h, "n_positions", 1024, &c->max_positions));
    FTH_TRY(fth_hf_read_activation(h, "activation_function", "gelu_new", &c->activation));
    FTH_TRY(fth_hf_number(h, "layer_norm_epsilon", 1e-5, &c->layer_norm_eps));
    FTH_TRY(fth_hf_number(h, "resid_pdrop", 0.1, &c->dropout));
    FTH_TRY(fth_hf_number(h, "attn_pdrop", 0.1, &c->attention_dropout));
    FTH_TRY(fth_hf_expect(h, "scale_attn_weights", true, true, scores));
    FTH_TRY(fth_hf_expect(h, "scale_attn_by_inverse_layer_idx", false, false, scores));
    FTH_TRY(fth_hf_expect(h, "add_cross_attention", false, false, "decoders have no source here"));
    FTH_TRY(fth_hf_bool(h, "tie_word_embeddings", true, &tied));
    c->encoder_layer_norm_eps = c->decoder_layer_norm_eps = c->layer_norm_eps;
    c->share = tied ? FTH_SHARE_DEC : FTH_SHARE_NONE;
    c->positions = FTH_LEARNED;
    fth_plain_method(c, FTH_NORM_PRE);
    return fth_hf_special(h, -1, c, words);
}

static fth_err read_folder(const fth_hf_folder *h, fth_weighted *out) {
    /* masks that old files have, and a copy of a tied matrix */
    static const char *const ignored[] = {"*h.*.attn.bias", "*h.*.attn.masked_bias", NULL};
    static const char *const tied[] = {"*h.*.attn.bias", "*h.*.attn.masked_bias", "lm_head.weight",
                                       NULL};
    fth_config c = fth_config_default();
    fth_hf_words words;
    FTH_TRY(read_config(h, &c, &words));
    const fth_rows_in in = {.rows = rows,
                            .prefix = "transformer.",
                            .ignored = c.share == FTH_SHARE_NONE ? ignored : tied,
                            .more_words = words.more,
                            .copied = words.copied};
    return fth_hf_read(h, &c, &in, fth_adjust_embeddings, out);
}

static fth_err read(const char *folder, fth_weighted *out) {
    return fth_hf_read_as(folder, "gpt2", read_folder, out);
}

const fth_format fth_format_hf_gpt2 = {
    .name = "hf-gpt2",
    .title = "GPT-2 (transformers)",
    .one_eps = true,
    .table = true,
    .lacks = lacks,
    .adjust = fth_adjust_embeddings,
    .write = write,
    .read = read,
    .imports = true,
    .example = FTH_HF_DECODER_EXAMPLE("GPT2LMHeadModel"),
};
