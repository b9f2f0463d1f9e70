/* links: exchange train decode store base */
/* Models of transformers come in with the logits that transformers gives (golden/exchange, made by
 * tools/exchange.py), go out and come in again, and what cannot be is refused in words. */
#include "test_files.h"

#include <math.h>

#include "backend/device/device.h"
#include "base/json.h"
#include "exchange/exchange.h"
#include "exchange/format.h"
#include "store/safetensors.h"
#include "train/trace.h"
#include "train/weights.h"

static const struct kind {
    const char *name, *format;
} kinds[] = {{"marian", "hf-marian"},   {"marian-untied", "hf-marian"},
             {"fsmt", "hf-fsmt"},       {"bert", "hf-bert"},
             {"bert-class", "hf-bert"}, {"opt", "hf-opt"},
             {"opt-post", "hf-opt"},    {"gpt2", "hf-gpt2"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void note(void *context, const char *text) {
    (void)text;
    ++*(int *)context;
}

static void golden_path(const char *kind, const char *file, char out[512]) {
    snprintf(out, 512, TEST_DIR "/golden/exchange/%s/%s", kind, file);
}

static void import_golden(const struct kind *k, const char *out) {
    char from[512];
    int notes = 0;
    golden_path(k->name, "", from);
    assert_ok(fth_import(k->format, from, out, note, &notes));
    assert_int_equal(notes, 1); /* no tokenizer */
}

/* Runs a model folder on the batch of a kind, and gives the logits as a file. */
static fth_st_file *logits_of(const char *folder, const char *kind, const char *out) {
    char batch[512];
    fth_model model;
    fth_device *device = NULL;
    float *flat = NULL;
    fth_st_file *f = NULL;
    golden_path(kind, "batch", batch);
    assert_ok(fth_weights_read(folder, &model, &flat));
    assert_ok(fth_device_open("cpu", "fp32", 1, &device));
    const fth_trace_spec spec = {.batch = batch, .out = out, .update = 1};
    assert_ok(fth_trace(&model, flat, device, &spec));
    assert_ok(fth_st_open(out, &f));
    fth_device_close(device);
    fth_model_fini(&model);
    free(flat);
    return f;
}

/* The words that the other program knows come first in every row. */
static void assert_same_logits(const fth_st_file *f, const char *kind) {
    char path[512];
    fth_st_file *g = NULL;
    const fth_st_tensor *ours = NULL, *theirs = NULL;
    golden_path(kind, "logits", path);
    assert_ok(fth_st_open(path, &g));
    assert_ok(fth_st_get(g, "logits", &theirs));
    assert_ok(fth_st_get(f, "logits", &ours));
    const size_t n = (size_t)theirs->shape[theirs->rank - 1],
                 m = (size_t)ours->shape[ours->rank - 1];
    const size_t rows = fth_st_count(theirs) / n;
    assert_true(m >= n && fth_st_count(ours) == rows * m);
    const float *x = ours->data, *y = theirs->data;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            if (!(fabsf(x[r * m + i] - y[r * n + i]) <= 1e-5f))
                fail_msg("%s: logit %zu of row %zu is %g, and %g in transformers", kind, i, r,
                         (double)x[r * m + i], (double)y[r * n + i]);
    fth_st_close(g);
}

static void models_come_in(void **state) {
    char model[512], trace[512];
    PATH(trace, *state, "trace");
    for (size_t i = 0; i < KINDS; i++) {
        PATH(model, *state, kinds[i].name);
        import_golden(&kinds[i], model);
        fth_st_file *f = logits_of(model, kinds[i].name, trace);
        assert_same_logits(f, kinds[i].name);
        fth_st_close(f);
    }
}

/* What came in goes out to the same format, with its check, and comes in again. */
static void models_go_out_again(void **state) {
    char model[512], out[512], again[512], trace[512];
    PATH(trace, *state, "trace");
    for (size_t i = 0; i < KINDS; i++) {
        int notes = 0;
        fth_check_result check;
        PATH(model, *state, "model");
        PATH(out, *state, "out");
        PATH(again, *state, "again");
        import_golden(&kinds[i], model);
        const fth_export_spec spec = {model, kinds[i].format, out, FTH_STORE_F32, true};
        assert_ok(fth_export(&spec, &check));
        assert_true(check.made && check.difference <= 1e-5 && check.largest > 0.1);
        assert_ok(fth_import(kinds[i].format, out, again, note, &notes));
        fth_st_file *f = logits_of(again, kinds[i].name, trace);
        assert_same_logits(f, kinds[i].name);
        fth_st_close(f);
        for (int k = 0; k < 3; k++)
            assert_ok(fth_remove_tree(k == 0 ? model : k == 1 ? out : again));
    }
}

/* ONNX and CTranslate2, whose files are checked by what was read back; test_exchange_python.sh runs
 * them. */
static void other_files(void **state) {
    char out[512], path[512], *data = NULL;
    size_t size = 0;
    fth_check_result check;
    const char *model = TEST_DIR "/old/0.1.0/run/checkpoints/step-00000003";
    static const fth_storage_kind storage[] = {FTH_STORE_F32, FTH_STORE_BF16, FTH_STORE_INT8};
    for (int i = 0; i < 3; i++) {
        PATH(out, *state, "ct2");
        const fth_export_spec spec = {model, "ctranslate2", out, storage[i], true};
        assert_ok(fth_export(&spec, &check));
        assert_true(check.made && check.difference <= (i ? 0.1 * check.largest : 1e-5));
        assert_true(i == 0 || check.difference > 0); /* it was rounded */
        PATH(path, *state, "ct2/model.bin");
        assert_ok(fth_file_read(path, &data, &size));
        assert_memory_equal(data, "\6\0\0\0\20\0TransformerSpec\0\7\0\0\0", 26);
        free(data);
    }
    PATH(path, *state, "ct2/shared_vocabulary.json");
    assert_ok(fth_file_read(path, &data, &size));
    assert_memory_equal(data, "[\"<s>\"", 6);
    free(data);
    PATH(out, *state, "onnx");
    const fth_export_spec spec = {model, "onnx", out, FTH_STORE_F32, true};
    assert_ok(fth_export(&spec, &check));
    assert_true(check.made && check.difference == 0);
    PATH(path, *state, "onnx/README.md");
    assert_ok(fth_file_read(path, &data, &size));
    assert_non_null(strstr(data, "| layers | encoder "));
    free(data);
}

/* ---- what a format cannot hold ---- */

static void make_model(const char *folder, const char *method, fth_arch arch) {
    fth_config c = fth_config_default();
    fth_model model;
    c.arch = arch;
    c.d_model = 8;
    c.heads = 2;
    c.ffn_dim = 8;
    c.max_positions = 8;
    c.encoder_layers = arch == FTH_DEC ? 0 : 2;
    c.decoder_layers = arch == FTH_ENC ? 0 : 2;
    c.src_vocab = arch == FTH_DEC ? 0 : 9;
    c.tgt_vocab = arch == FTH_ENC ? 0 : 9;
    c.share = FTH_SHARE_ALL;
    snprintf(c.method, sizeof c.method, "%s", method);
    assert_ok(fth_model_init(&model, &c));
    float *flat = malloc(sizeof *flat * (size_t)model.params.size);
    fth_model_draw(&model, 1, flat);
    assert_ok(fth_weights_write(folder, &model, flat, NULL));
    free(flat);
    fth_model_fini(&model);
}

static void what_cannot_go_out(void **state) {
    static const struct refusal {
        const char *method;
        fth_arch arch;
        const char *to;
        const char *words[4];
    } cases[] = {
        {"subln", FTH_ENCDEC, "hf-marian", {"Marian", "Post-LN alone", "--to onnx", NULL}},
        {"b2t", FTH_ENCDEC, "hf-marian", {"no place for the method", "layer input", "onnx", NULL}},
        {"preln", FTH_ENCDEC, "hf-marian", {"Post-LN alone", "--to ctranslate2", NULL}},
        {"postln", FTH_DEC, "hf-gpt2", {"Pre-LN alone", "--to hf-opt", NULL}},
        {"deepnorm", FTH_ENCDEC, "hf-fsmt", {"makes its positions itself", "ctranslate2", NULL}},
        {"postln", FTH_ENC, "hf-bert", {"needs a head", "onnx", NULL}},
        {"postln", FTH_ENCDEC, "hf-opt", {"decoders alone", "ctranslate2", NULL}},
        {"rezero", FTH_DEC, "hf-opt", {"layer norms", "onnx", NULL}}};
    char model[512], out[512];
    fth_check_result check;
    PATH(model, *state, "model");
    PATH(out, *state, "out");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_model(model, cases[i].method, cases[i].arch);
        const fth_export_spec spec = {model, cases[i].to, out, FTH_STORE_F32, true};
        assert_failed(fth_export(&spec, &check), FTH_BAD_CONFIG, cases[i].words);
        assert_false(fth_file_exists(out));
    }
    const fth_export_spec small = {model, "hf-opt", out, FTH_STORE_INT8, true};
    assert_failed(fth_export(&small, &check), FTH_USAGE, (const char *[]){"int8", "OPT", NULL});
    const fth_export_spec same = {model, "onnx", model, FTH_STORE_F32, true};
    assert_failed(fth_export(&same, &check), FTH_USAGE, (const char *[]){"the model itself", NULL});
    make_model(model, "postln", FTH_ENCDEC);
    const fth_export_spec mute = {model, "ctranslate2", out, FTH_STORE_F32, true};
    assert_failed(fth_export(&mute, &check), FTH_BAD_INPUT, (const char *[]){"no tokenizer", NULL});
    PATH(out, *state, "mine");
    assert_ok(fth_make_dirs(out));
    PATH(out, *state, "mine/letter.txt");
    put_bytes(out, "x", 1);
    PATH(out, *state, "mine");
    const fth_export_spec over = {model, "onnx", out, FTH_STORE_F32, true};
    assert_failed(fth_export(&over, &check), FTH_USAGE, (const char *[]){"letter.txt", NULL});
}

/* ---- bad input ---- */

/* A folder with the config and the tensors of a golden one. */
static void copy_golden(const char *kind, const char *folder) {
    static const char *const names[] = {"config.json", "model.safetensors"};
    char from[512], to[600], *data;
    size_t size;
    assert_ok(fth_make_dirs(folder));
    for (int i = 0; i < 2; i++) {
        golden_path(kind, names[i], from);
        snprintf(to, sizeof to, "%s/%s", folder, names[i]);
        assert_ok(fth_file_read(from, &data, &size));
        put_bytes(to, data, size);
        free(data);
    }
}

static void refused(void **state, const char *kind, const char *const *words) {
    char from[512], out[512], format[32];
    int notes = 0;
    PATH(from, *state, "theirs");
    PATH(out, *state, "ours");
    snprintf(format, sizeof format, "hf-%.*s", (int)strcspn(kind, "-"), kind);
    assert_failed(fth_import(format, from, out, note, &notes), FTH_BAD_INPUT, words);
    assert_false(fth_file_exists(out)); /* nothing is written */
}

static void wrong_configs(void **state) {
    static const struct change {
        const char *kind, *key, *value; /* value: JSON; NULL: the key is taken out */
        const char *words[4];
    } changes[] = {
        {"marian", "model_type", "\"bart\"", {"config.json", "model_type", "marian", NULL}},
        {"marian", "d_model", "\"wide\"", {"d_model is \"wide\"", "whole number", NULL}},
        {"marian", "d_model", NULL, {"config.json: d_model is missing", NULL}},
        {"marian", "d_model", "24", {"has shape [16]", "needs [24]", NULL}},
        {"marian", "d_model", "-16", {"d_model is -16", NULL}},
        {"marian", "d_model", "1e300", {"d_model", "whole number", NULL}},
        {"marian", "encoder_layers", "3", {"model.encoder.layers.2", "is missing", NULL}},
        {"marian", "encoder_layers", "1", {"model.encoder.layers.1", "no part of the model", NULL}},
        {"marian", "encoder_layers", "0", {"encoder_layers", NULL}},
        {"marian", "encoder_ffn_dim", "12", {"encoder_ffn_dim is 12", "decoder_ffn_dim 24", NULL}},
        {"marian", "encoder_attention_heads", "3", {"heads", "as many", NULL}},
        {"marian", "activation_function", "\"swish\"", {"activation_function", "\"swish\"", NULL}},
        {"marian", "normalize_embedding", "true", {"normalize_embedding is true", NULL}},
        {"fsmt", "scale_embedding", "false", {"scale_embedding is false", NULL}},
        {"fsmt", "pad_token_id", "5", {"pad_token_id is 5", "must be 1", NULL}},
        {"bert",
         "architectures",
         "[\"BertForNothing\"]",
         {"BertForNothing", "BertForMaskedLM", NULL}},
        {"bert", "position_embedding_type", "\"relative_key\"", {"relative_key", "absolute", NULL}},
        {"opt", "word_embed_proj_dim", "8", {"word_embed_proj_dim is 8", NULL}},
        {"opt", "enable_bias", "false", {"enable_bias is false", NULL}},
        {"gpt2", "activation_function", NULL, {"activation_function", "gelu_new", NULL}},
        {"gpt2", "n_head", "5", {"config.json", "heads", NULL}},
        {"gpt2", "n_layer", "200000", {"config.json", "decoder_layers", NULL}}};
    char folder[512], path[512];
    PATH(folder, *state, "theirs");
    PATH(path, *state, "theirs/config.json");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        json_t *config = NULL, *value = NULL;
        copy_golden(changes[i].kind, folder);
        assert_ok(fth_json_load(path, &config));
        if (changes[i].value) {
            value = json_loads(changes[i].value, JSON_DECODE_ANY, NULL);
            assert_int_equal(json_object_set_new(config, changes[i].key, value), 0);
        } else {
            assert_int_equal(json_object_del(config, changes[i].key), 0);
        }
        assert_ok(fth_json_save(config, folder, "config.json"));
        refused(state, changes[i].kind, changes[i].words);
    }
    put_bytes(path, "{\"d_model\": 16,", 15);
    refused(state, "marian", (const char *[]){"config.json:1:", "not JSON", NULL});
    put_bytes(path, "[]", 2);
    refused(state, "marian", (const char *[]){"config.json", "no object", NULL});
}

/* Writes the golden tensors of Marian again with the changes of `change`. */
static void changed_tensors(void **state, int change) {
    char folder[512], path[512];
    fth_st_file *f = NULL;
    PATH(folder, *state, "theirs");
    copy_golden("marian", folder);
    PATH(path, *state, "theirs/model.safetensors");
    assert_ok(fth_st_open(path, &f));
    fth_st_tensor *t = calloc(f->n + 1, sizeof *t);
    memcpy(t, f->tensors, sizeof *t * f->n);
    size_t n = f->n;
    uint16_t *numbers = calloc(fth_st_count(&t[0]) + fth_st_count(&t[1]), sizeof *numbers);
    assert_string_equal(t[0].name, "final_logits_bias");
    static const float bias[60];
    static const int32_t whole[64];
    if (change == 0) t[1] = t[--n]; /* one is missing */
    if (change == 1)                /* one too many */
        t[n++] = (fth_st_tensor){.name = "../../etc/passwd",
                                 .rank = 1,
                                 .shape = {60},
                                 .dtype = FTH_ST_F32,
                                 .data = bias};
    if (change == 2) t[1].data = numbers, numbers[3] = 0x7fc0; /* not a number */
    if (change == 3) t[0].data = numbers, numbers[7] = 0x3f00; /* 0.5 */
    if (change == 4)                                           /* whole numbers */
        t[1] = (fth_st_tensor){.name = t[1].name,
                               .rank = 1,
                               .shape = {t[1].shape[0]},
                               .dtype = FTH_ST_I32,
                               .data = whole};
    assert_ok(fth_st_write(path, t, n, NULL, NULL, NULL));
    free(numbers);
    free(t);
    fth_st_close(f);
}

static void wrong_tensors(void **state) {
    static const char *const words[][4] = {
        {"model.safetensors", "tensor \"model.", "is missing", NULL},
        {"model.safetensors", "\"../../etc/passwd\" is no part", NULL},
        {"model.safetensors", "is nan", "finite", NULL},
        {"final_logits_bias", "0.5 at 7", NULL},
        {"model.safetensors", "I32", NULL}};
    for (int change = 0; change < 5; change++) {
        changed_tensors(state, change);
        refused(state, "marian", words[change]);
    }
}

static void damaged_files(void **state) {
    char folder[512], path[512], *data = NULL;
    size_t size = 0;
    PATH(folder, *state, "theirs");
    PATH(path, *state, "theirs/model.safetensors");
    copy_golden("gpt2", folder);
    assert_ok(fth_file_read(path, &data, &size));
    put_bytes(path, data, size - 1); /* cut */
    refused(state, "gpt2", (const char *[]){"model.safetensors", NULL});
    memset(data, 0xff, 8); /* a header that lies about its size */
    put_bytes(path, data, size);
    refused(state, "gpt2", (const char *[]){"header length", NULL});
    free(data);
    assert_int_equal(unlink(path), 0);
    PATH(path, *state, "theirs/model.safetensors.index.json");
    put_bytes(path, "{}", 2);
    refused(state, "gpt2", (const char *[]){"index.json", "several files", NULL});
}

/* ---- fairseq ---- */

static void put_args(const char *folder, const char *more) {
    char path[600], text[900];
    snprintf(path, sizeof path, "%s/args.json", folder);
    const int n = snprintf(
        text, sizeof text,
        "{\"encoder_layers\": 2, \"decoder_layers\": 3, \"encoder_embed_dim\": 16, "
        "\"decoder_embed_dim\": 16, \"encoder_ffn_embed_dim\": 24, \"decoder_ffn_embed_dim\": 24, "
        "\"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, \"src_vocab\": 60, "
        "\"tgt_vocab\": 60, \"max_source_positions\": 20, \"max_target_positions\": 20%s}",
        more);
    put_bytes(path, text, (size_t)n);
}

/* FSMT is fairseq's model: its tensors without "model." before their names. */
static void put_fairseq(const char *folder) {
    char path[600];
    fth_st_file *f = NULL;
    size_t n = 0;
    golden_path("fsmt", "model.safetensors", path);
    assert_ok(fth_st_open(path, &f));
    fth_st_tensor *t = calloc(f->n, sizeof *t);
    for (size_t i = 0; i < f->n; i++) {
        t[n] = f->tensors[i];
        t[n].name += strlen("model.");
        n += !strstr(t[n].name, "embed_positions");
    }
    assert_ok(fth_make_dirs(folder));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(fth_st_write(path, t, n, NULL, NULL, NULL));
    free(t);
    fth_st_close(f);
}

static void fairseq_comes_in(void **state) {
    static const char *const wrong[][3] = {
        {", \"layernorm_embedding\": true", "layernorm_embedding is true", NULL},
        {", \"encoder_learned_pos\": true", "decoder_learned_pos", NULL},
        {", \"encoder_normalize_before\": true", "encoder.layer_norm.weight", NULL},
        {", \"no_scale_embedding\": true", "no_scale_embedding is true", NULL}};
    char from[512], out[512], trace[512];
    int notes = 0;
    PATH(from, *state, "fairseq");
    PATH(out, *state, "model");
    PATH(trace, *state, "trace");
    put_fairseq(from);
    put_args(from, "");
    assert_ok(fth_import("fairseq", from, out, note, &notes));
    fth_st_file *f = logits_of(out, "fsmt", trace);
    assert_same_logits(f, "fsmt");
    fth_st_close(f);
    assert_ok(fth_remove_tree(out));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_args(from, wrong[i][0]);
        assert_failed(fth_import("fairseq", from, out, note, &notes), FTH_BAD_INPUT, wrong[i] + 1);
        assert_false(fth_file_exists(out));
    }
    const fth_export_spec spec = {from, "fairseq", out, FTH_STORE_F32, true};
    assert_failed(fth_export(&spec, &(fth_check_result){0}), FTH_NOT_FOUND,
                  (const char *[]){"config.json", NULL});
}

static void count_values(void *context, const char *text) {
    *(int *)context += strstr(text, "value part") != NULL;
}

/* Its queries and values have one size, as in public code that forgets the values: twice a note. */
static void known_errors_are_said(void **state) {
    char from[512], out[512];
    int plain = 0, scaled = 0;
    PATH(from, *state, "fairseq");
    PATH(out, *state, "model");
    put_fairseq(from);
    put_args(from, "");
    assert_ok(fth_import("fairseq", from, out, count_values, &plain));
    assert_ok(fth_remove_tree(out));
    put_args(from, ", \"deepnorm\": true");
    assert_ok(fth_import("fairseq", from, out, count_values, &scaled));
    assert_int_equal(plain, 0);
    assert_int_equal(scaled, 2);
}

/* The words of the option tables are the list of formats. */
static void names_of_formats(void **state) {
    (void)state;
    fth_str all = {0}, in = {0};
    for (const fth_format *const *f = fth_formats(); *f; f++) {
        if ((*f)->write) assert_ok(fth_str_addf(&all, "%s%s", all.length ? "|" : "", (*f)->name));
        if ((*f)->imports) assert_ok(fth_str_addf(&in, "%s%s", in.length ? "|" : "", (*f)->name));
    }
    assert_string_equal(all.text, FTH_EXPORT_NAMES);
    assert_string_equal(in.text, FTH_IMPORT_NAMES);
    fth_str_fini(&all);
    fth_str_fini(&in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(models_come_in),        TEST(models_go_out_again),
        TEST(other_files),           TEST(what_cannot_go_out),
        TEST(wrong_configs),         TEST(wrong_tensors),
        TEST(damaged_files),         TEST(fairseq_comes_in),
        TEST(known_errors_are_said), cmocka_unit_test(names_of_formats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
