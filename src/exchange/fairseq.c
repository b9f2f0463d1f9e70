/* fairseq.c: encoder-decoders of fairseq and torchscale, as scripts/fairseq-to-safetensors writes
 * them: model.safetensors and args.json. Post-LN, Pre-LN, and what torchscale has of methods. A
 * decoder begins with the end symbol there, so the symbol of the beginning becomes a copy of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exchange/hf.h"

static const fth_row rows[] = {
    {"encoder.layers.", {"encoder.layers."}, false, 0, false},
    {"decoder.layers.", {"decoder.layers."}, false, 0, false},
    {"encoder.layers.*.ffn.fc1.@", {"encoder.layers.*.fc1.@"}, false, 0, false},
    {"encoder.layers.*.ffn.fc2.@", {"encoder.layers.*.fc2.@"}, false, 0, false},
    {"decoder.layers.*.ffn.fc1.@", {"decoder.layers.*.fc1.@"}, false, 0, false},
    {"decoder.layers.*.ffn.fc2.@", {"decoder.layers.*.fc2.@"}, false, 0, false},
    {"encoder.layer_norm.@", {"encoder.layer_norm.@"}, false, 0, false},
    {"decoder.layer_norm.@", {"decoder.layer_norm.@"}, false, 0, false},
    {"decoder.embed_tokens.weight", {"embed_tokens.weight"}, false, 0, false},
    {"encoder.embed_tokens.weight", {"embed_tokens.weight"}, false, 0, false},
    {"decoder.output_projection.weight", {"embed_tokens.weight"}, false, 0, false},
    {"encoder.embed_tokens.weight", {"encoder.embed_tokens.weight"}, false, 0, false},
    {"decoder.embed_tokens.weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"decoder.output_projection.weight", {"output_projection.weight"}, false, 0, false},
    {"decoder.output_projection.weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"encoder.embed_positions.weight", {"encoder.embed_positions.weight"}, false, 2, false},
    {"decoder.embed_positions.weight", {"decoder.embed_positions.weight"}, false, 2, false},
    {NULL, {NULL}, false, 0, false}};

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    (void)m;
    (void)norm;
    return "is read, not written";
}

static fth_err read_sizes(const fth_hf_folder *h, fth_config *c) {
    int32_t source = 0, target = 0;
    FTH_TRY(fth_hf_int(h, "encoder_layers", INT32_MIN, &c->encoder_layers));
    FTH_TRY(fth_hf_int(h, "decoder_layers", INT32_MIN, &c->decoder_layers));
    FTH_TRY(fth_hf_twice(h, "encoder_embed_dim", "decoder_embed_dim", &c->d_model));
    FTH_TRY(fth_hf_twice(h, "encoder_ffn_embed_dim", "decoder_ffn_embed_dim", &c->ffn_dim));
    FTH_TRY(fth_hf_twice(h, "encoder_attention_heads", "decoder_attention_heads", &c->heads));
    FTH_TRY(fth_hf_int(h, "src_vocab", INT32_MIN, &c->src_vocab));
    FTH_TRY(fth_hf_int(h, "tgt_vocab", INT32_MIN, &c->tgt_vocab));
    FTH_TRY(fth_hf_int(h, "max_source_positions", 1024, &source));
    FTH_TRY(fth_hf_int(h, "max_target_positions", 1024, &target));
    c->max_positions = source < target ? source : target;
    FTH_TRY(fth_hf_number(h, "dropout", 0.1, &c->dropout));
    FTH_TRY(fth_hf_number(h, "attention_dropout", 0, &c->attention_dropout));
    FTH_TRY(fth_hf_number(h, "activation_dropout", 0, &c->activation_dropout));
    return fth_hf_read_activation(h, "activation_fn", "relu", &c->activation);
}

/* The method that torchscale's settings have a key for, if it is on. */
static fth_err read_key(const fth_hf_folder *h, fth_config *c) {
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        bool on = false;
        if ((*m)->torchscale) FTH_TRY(fth_hf_bool(h, (*m)->torchscale, false, &on));
        if (on) snprintf(c->method, sizeof c->method, "%s", (*m)->id);
    }
    return FTH_OK;
}

static fth_err read_method(const fth_hf_folder *h, fth_config *c) {
    bool before = false;
    FTH_TRY(fth_hf_bool(h, "encoder_normalize_before", false, &before));
    FTH_TRY(fth_hf_expect(h, "layernorm_embedding", false, false, "embeddings have no norm here"));
    FTH_TRY(fth_hf_expect(h, "adaptive_input", false, false, "words have one width here"));
    FTH_TRY(fth_hf_expect(h, "no_scale_embedding", false, false, "embeddings are times sqrt(d)"));
    FTH_TRY(fth_hf_expect(h, "decoder_normalize_before", before, before,
                          "both stacks must have their norms in one place"));
    fth_plain_method(c, before ? FTH_NORM_PRE : FTH_NORM_POST);
    return read_key(h, c);
}

static fth_err read_config(const fth_hf_folder *h, fth_config *c, fth_hf_words *words) {
    bool all = false, decoder = false, learned = false;
    FTH_TRY(read_sizes(h, c));
    FTH_TRY(read_method(h, c));
    FTH_TRY(fth_hf_bool(h, "share_all_embeddings", false, &all));
    FTH_TRY(fth_hf_bool(h, "share_decoder_input_output_embed", false, &decoder));
    FTH_TRY(fth_hf_bool(h, "encoder_learned_pos", false, &learned));
    FTH_TRY(fth_hf_expect(h, "decoder_learned_pos", false, learned,
                          "both stacks must have the same kind of positions"));
    c->share = all ? FTH_SHARE_ALL : decoder ? FTH_SHARE_DEC : FTH_SHARE_NONE;
    c->positions = learned ? FTH_LEARNED : FTH_SINUSOIDAL;
    c->pad = 1, c->eos = 2, c->unk = 3; /* of every dictionary of fairseq */
    if (c->src_vocab != c->tgt_vocab) {
        c->bos = 0; /* there is no room for a new word in both */
        *words = (fth_hf_words){.copied = -1};
        return FTH_OK;
    }
    *words = (fth_hf_words){.more = 1, .copied = c->eos};
    c->bos = c->src_vocab++;
    c->tgt_vocab++;
    return FTH_OK;
}

/* The symbol of the beginning is fairseq's <s>, which its decoder never reads: it reads the end. */
static fth_err begin_with_end(fth_weighted *w) {
    if (w->model.config.share != FTH_SHARE_NONE) FTH_TRY(fth_untie(w, 0));
    const fth_config *c = &w->model.config;
    const int32_t at = fth_params_find(&w->model.params, "decoder.embed_tokens.weight");
    if (at < 0) return fth_fail(FTH_FAILED, "the decoder has no words");
    float *words = w->flat + w->model.params.param[at].offset;
    memcpy(words + (int64_t)c->bos * c->d_model, words + (int64_t)c->eos * c->d_model,
           sizeof *words * (size_t)c->d_model);
    return FTH_OK;
}

static fth_err read_folder(const fth_hf_folder *h, fth_weighted *out) {
    static const char *const ignored[] = {"*coder.version", "*coder.embed_positions._float_tensor",
                                          NULL};
    fth_config c = fth_config_default();
    fth_hf_words words;
    FTH_TRY(read_config(h, &c, &words));
    const fth_rows_in in = {
        .rows = rows, .ignored = ignored, .more_words = words.more, .copied = words.copied};
    FTH_TRY(fth_hf_read(h, &c, &in, NULL, out));
    return words.copied < 0 ? begin_with_end(out) : FTH_OK;
}

static fth_err read(const char *folder, fth_weighted *out) {
    fth_hf_folder h;
    fth_err err = fth_hf_open_as(&h, folder, "args.json");
    if (err == FTH_OK) err = read_folder(&h, out);
    fth_hf_close(&h);
    return err;
}

/* ---- known errors of public code ---- */

/* Root of the mean square of the parameters of a role in a stack. */
static double size_of(const fth_weighted *w, fth_stack stack, fth_role role) {
    double sum = 0, n = 0;
    for (int32_t i = 0; i < w->model.params.n; i++) {
        const fth_param *p = &w->model.params.param[i];
        if (p->stack != stack || p->role != role) continue;
        for (int64_t k = 0; k < fth_param_size(p); k++) {
            const double x = (double)w->flat[p->offset + k];
            sum += x * x;
        }
        n += (double)fth_param_size(p);
    }
    return n > 0 ? sqrt(sum / n) : 0;
}

/* What the method's recipe draws them with. */
static double drawn_with(const fth_weighted *w, fth_stack stack, fth_role role) {
    for (int32_t i = 0; i < w->model.params.n; i++) {
        const fth_param *p = &w->model.params.param[i];
        if (p->stack == stack && p->role == role) return fth_init_std(p);
    }
    return 0;
}

static bool near(double x, double y) {
    return fabs(x - y) < 0.05 * y;
}

/* Both errors are of the first draw, so they show until training has gone far. */
static void remarks(const fth_weighted *w, fth_import_note *note, void *context) {
    static const char *const names[] = {"encoder", "decoder"};
    char text[256];
    if (!w->model.method.method->torchscale) return;
    for (int stack = 0; stack < 2; stack++) {
        const double q = size_of(w, (fth_stack)stack, FTH_ROLE_Q);
        const double v = size_of(w, (fth_stack)stack, FTH_ROLE_V);
        const double beta = drawn_with(w, (fth_stack)stack, FTH_ROLE_V) /
                            drawn_with(w, (fth_stack)stack, FTH_ROLE_Q);
        if (!near(v, q) || near(beta, 1)) continue;
        snprintf(text, sizeof text,
                 "%s: values are as large as queries, not %.2f times: public code that never "
                 "scales the value part began so; the model is taken as it is",
                 names[stack], beta);
        note(context, text);
    }
    const double gain =
        size_of(w, FTH_ENCODER, FTH_ROLE_FC1) / drawn_with(w, FTH_ENCODER, FTH_ROLE_FC1);
    if (!near(gain, 1 / (0.87 * 0.87))) return;
    note(context,
         "encoder: weights are 1.32 times as large as the method's recipe draws them: public "
         "code divides by the constant 0.87 where the paper multiplies; the model is taken "
         "as it is");
}

const fth_format fth_format_fairseq = {
    .name = "fairseq",
    .title = "fairseq",
    .lacks = lacks,
    .read = read,
    .remarks = remarks,
    .imports = true,
};
