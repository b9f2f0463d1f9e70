/* hf_fsmt.c: FSMTForConditionalGeneration of transformers: fairseq's plain Post-LN
 * encoder-decoders. It makes the sinusoidal positions itself, from the one after the pad's number
 * on, and its norms have an eps of 1e-5. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "exchange/hf.h"

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    if (m->config.arch != FTH_ENCDEC) return "holds encoder-decoders alone";
    if (norm != FTH_NORM_POST) return "holds plain Post-LN alone";
    if (m->config.positions == FTH_LEARNED)
        return "makes its positions itself, and here they are learned, or scaled by the fold";
    return m->config.pad == 1 ? NULL : "counts positions from the pad, whose number must be 1";
}

static const fth_row rows[] = {
    {"model.encoder.layers.", {"encoder.layers."}, false, 0, false},
    {"model.decoder.layers.", {"decoder.layers."}, false, 0, false},
    {"model.encoder.embed_tokens.weight", {"encoder.embed_tokens.weight"}, false, 0, false},
    {"model.decoder.embed_tokens.weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"model.decoder.embed_tokens.weight", {"embed_tokens.weight"}, false, 0, false},
    {"model.encoder.embed_tokens.weight", {"embed_tokens.weight"}, false, 0, true},
    {"model.decoder.output_projection.weight", {"output_projection.weight"}, false, 0, false},
    {"model.decoder.output_projection.weight", {"decoder.embed_tokens.weight"}, false, 0, false},
    {"model.decoder.output_projection.weight", {"embed_tokens.weight"}, false, 0, true},
    {NULL, {NULL}, false, 0, false}};

static json_t *config_of(const fth_export_job *job) {
    const fth_config *c = &job->model->config;
    json_t *out = fth_hf_config(job, "FSMTForConditionalGeneration", "fsmt");
    json_t *own = json_pack(
        "{s:[s,s], s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:b, s:i, s:b, s:n, s:f, "
        "s:f, s:f}",
        "langs", "src", "tgt", "src_vocab_size", c->src_vocab, "tgt_vocab_size", c->tgt_vocab,
        "d_model", c->d_model, "encoder_layers", c->encoder_layers, "decoder_layers",
        c->decoder_layers, "encoder_attention_heads", c->heads, "decoder_attention_heads", c->heads,
        "encoder_ffn_dim", c->ffn_dim, "decoder_ffn_dim", c->ffn_dim, "decoder_start_token_id",
        c->bos, "activation_function", fth_hf_activation(c), "scale_embedding", 1,
        "max_position_embeddings", c->max_positions, "is_encoder_decoder", 1, "forced_eos_token_id",
        "dropout", c->dropout, "attention_dropout", c->attention_dropout, "activation_dropout",
        c->activation_dropout);
    if (own)
        json_object_set_new(own, "tie_word_embeddings", json_boolean(c->share == FTH_SHARE_ALL));
    return fth_hf_join(out, own);
}

static fth_err write(const fth_export_job *job) {
    FTH_TRY(fth_json_save(config_of(job), job->folder, "config.json"));
    FTH_TRY(fth_write_tensors(job, rows, NULL, "model.safetensors"));
    FTH_TRY(fth_hf_write_generation(job, job->model->config.bos, 5));
    return fth_hf_write_words(job);
}

static fth_err read_config(const fth_hf_folder *h, fth_config *c, fth_hf_words *words) {
    bool tied = true;
    int32_t start = 0, pad = 1;
    FTH_TRY(fth_hf_int(h, "encoder_layers", INT32_MIN, &c->encoder_layers));
    FTH_TRY(fth_hf_int(h, "decoder_layers", INT32_MIN, &c->decoder_layers));
    FTH_TRY(fth_hf_int(h, "d_model", INT32_MIN, &c->d_model));
    FTH_TRY(fth_hf_twice(h, "encoder_ffn_dim", "decoder_ffn_dim", &c->ffn_dim));
    FTH_TRY(fth_hf_twice(h, "encoder_attention_heads", "decoder_attention_heads", &c->heads));
    FTH_TRY(fth_hf_int(h, "src_vocab_size", INT32_MIN, &c->src_vocab));
    FTH_TRY(fth_hf_int(h, "tgt_vocab_size", INT32_MIN, &c->tgt_vocab));
    FTH_TRY(fth_hf_int(h, "max_position_embeddings", 1024, &c->max_positions));
    FTH_TRY(fth_hf_number(h, "dropout", 0.1, &c->dropout));
    FTH_TRY(fth_hf_number(h, "attention_dropout", 0, &c->attention_dropout));
    FTH_TRY(fth_hf_number(h, "activation_dropout", 0, &c->activation_dropout));
    FTH_TRY(fth_hf_read_activation(h, "activation_function", "relu", &c->activation));
    FTH_TRY(fth_hf_expect(h, "scale_embedding", true, true, "embeddings are times sqrt(d)"));
    FTH_TRY(fth_hf_int(h, "pad_token_id", 1, &pad));
    if (pad != 1)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: pad_token_id is %d: positions are counted from it, and "
                        "fathom's begin at 2, so it must be 1",
                        h->file, pad);
    FTH_TRY(fth_hf_bool(h, "tie_word_embeddings", false, &tied));
    FTH_TRY(fth_hf_int(h, "decoder_start_token_id", 2, &start));
    c->share = tied ? FTH_SHARE_ALL : FTH_SHARE_NONE;
    return fth_hf_special(h, start, c, words);
}

static fth_err read_folder(const fth_hf_folder *h, fth_weighted *out) {
    static const char *const ignored[] = {"model.*coder.embed_positions.weight", NULL};
    fth_config c = fth_config_default();
    fth_hf_words words;
    fth_plain_method(&c, FTH_NORM_POST);
    FTH_TRY(read_config(h, &c, &words));
    const fth_rows_in in = {
        .rows = rows, .ignored = ignored, .more_words = words.more, .copied = words.copied};
    return fth_hf_read(h, &c, &in, NULL, out);
}

static fth_err read(const char *folder, fth_weighted *out) {
    return fth_hf_read_as(folder, "fsmt", read_folder, out);
}

const fth_format fth_format_hf_fsmt = {
    .name = "hf-fsmt",
    .title = "FSMT (transformers)",
    .one_eps = true,
    .eps = 1e-5,
    .lacks = lacks,
    .write = write,
    .read = read,
    .imports = true,
    .example = "import sentencepiece, torch\n"
               "from transformers import FSMTForConditionalGeneration\n"
               "model = FSMTForConditionalGeneration.from_pretrained(\".\")\n"
               "pieces = sentencepiece.SentencePieceProcessor(\"tokenizer.model\")\n"
               "ids = torch.tensor([pieces.encode(\"a line\") + [model.config.eos_token_id]])\n"
               "print(pieces.decode(model.generate(ids)[0].tolist()[1:-1]))\n",
};
