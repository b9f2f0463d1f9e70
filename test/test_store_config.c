/* links: store base */
/* config.json: what is written reads back, and every wrong value is refused in words. */
#include "test_files.h"

#include <jansson.h>

#include "base/philox.h"
#include "store/config_json.h"

static const char base_text[] =
    "{\"format\": \"fathom-model\", \"version\": 1, \"arch\": \"encdec\","
    " \"method\": \"somenorm\","
    " \"method_options\": {\"steps\": 4000, \"growth\": \"linear\", \"end\": 0.25, \"on\": true},"
    " \"encoder_layers\": 6, \"decoder_layers\": 5, \"d_model\": 512, \"ffn_dim\": 2048,"
    " \"heads\": 8, \"src_vocab\": 8000, \"tgt_vocab\": 8000, \"share\": \"all\","
    " \"activation\": \"gelu\", \"positions\": \"learned\", \"max_positions\": 1024,"
    " \"layer_norm_eps\": 1e-5, \"dropout\": 0.1, \"attention_dropout\": 0.0,"
    " \"activation_dropout\": 0, \"word_dropout\": 0.3, \"bos\": 0, \"pad\": 1, \"eos\": 2,"
    " \"unk\": 3, \"step\": 12345678901}";

/* Up to two keys of the base set to other values (NULL: removed), then the words to be found. */
static const struct bad_config {
    const char *key, *value, *key2, *value2;
    const char *words[5];
} bad[] = {
    {"format", "\"x\"", 0, 0, {"format", "\"x\"", "fathom-model"}},
    {"format", NULL, 0, 0, {"format", "missing"}},
    {"version", "2", 0, 0, {"version", "2", "1"}},
    {"version", "\"1\"", 0, 0, {"version", "\"1\""}},
    {"arch", "\"encoder\"", 0, 0, {"arch", "\"encoder\"", "\"encdec\" \"enc\" \"dec\""}},
    {"arch", "1", 0, 0, {"arch", "1", "\"enc\""}},
    {"arch", NULL, 0, 0, {"arch", "missing"}},
    {"method", "\"\"", 0, 0, {"method", "\"\"", "31"}},
    {"method", "\"0123456789012345678901234567890x\"", 0, 0, {"method", "0123456789", "31"}},
    {"method", "7", 0, 0, {"method", "7", "string"}},
    {"method_options", "[]", 0, 0, {"method_options", "[]", "object"}},
    {"method_options", "{\"a\":null}", 0, 0, {"method_options", "a null", "bool"}},
    {"method_options", "{\"a\":[1]}", 0, 0, {"method_options", "a [1]", "number"}},
    {"method_options", "{\"\":1}", 0, 0, {"method_options", "\"\"", "31"}},
    {"method_options",
     "{\"a\":\"0123456789012345678901234567890123456789012345678901234567890123\"}",
     0,
     0,
     {"method_options", "0123456789", "63"}},
    {"method_options",
     "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,\"k\":1,"
     "\"l\":1,\"m\":1,\"n\":1,\"o\":1,\"p\":1,\"q\":1}",
     0,
     0,
     {"method_options", "17", "16"}},
    {"encoder_layers", "0", 0, 0, {"encoder_layers", "0", "1"}},
    {"encoder_layers", "-3", 0, 0, {"encoder_layers", "-3"}},
    {"decoder_layers", "0", 0, 0, {"decoder_layers", "0", "1"}},
    {"decoder_layers", NULL, 0, 0, {"decoder_layers", "missing"}},
    {"d_model", "512.0", 0, 0, {"d_model", "512.0", "whole"}},
    {"d_model", "\"512\"", 0, 0, {"d_model", "\"512\"", "whole"}},
    {"d_model", "2", "heads", "1", {"d_model", "2", "4"}},
    {"d_model", "510", 0, 0, {"d_model", "510", "heads", "8"}},
    {"d_model", "4294967808", 0, 0, {"d_model", "4294967808", "32 bits"}},
    {"ffn_dim", "0", 0, 0, {"ffn_dim", "0", "1"}},
    {"heads", "0", 0, 0, {"heads", "0", "1"}},
    {"heads", "7", 0, 0, {"d_model", "512", "heads", "7"}},
    {"src_vocab", "3", "tgt_vocab", "3", {"src_vocab", "3", "4"}},
    {"tgt_vocab", "2147483647", 0, 0, {"tgt_vocab", "2147483647"}},
    {"tgt_vocab", "7999", 0, 0, {"share", "\"all\"", "8000", "7999"}},
    {"share", "\"both\"", 0, 0, {"share", "\"both\"", "\"all\""}},
    {"share", "null", 0, 0, {"share", "null", "\"all\""}},
    {"activation", "\"swish\"", 0, 0, {"activation", "\"swish\"", "\"relu\" \"gelu\""}},
    {"positions", "\"rotary\"", 0, 0, {"positions", "\"rotary\"", "\"sinusoidal\""}},
    {"max_positions", "0", 0, 0, {"max_positions", "0", "1"}},
    {"layer_norm_eps", "-1e-5", 0, 0, {"layer_norm_eps", "-1e-05", "above 0"}},
    {"layer_norm_eps", "0", 0, 0, {"layer_norm_eps", "0", "above 0"}},
    {"layer_norm_eps", "true", 0, 0, {"layer_norm_eps", "true", "number"}},
    {"encoder_layer_norm_eps", "-1", 0, 0, {"encoder_layer_norm_eps", "-1", "above 0"}},
    {"decoder_layer_norm_eps", "[]", 0, 0, {"decoder_layer_norm_eps", "[]", "number"}},
    {"dropout", "1", 0, 0, {"dropout", "1", "below 1"}},
    {"dropout", NULL, 0, 0, {"dropout", "missing"}},
    {"attention_dropout", "-0.1", 0, 0, {"attention_dropout", "-0.1", "at least 0"}},
    {"activation_dropout", "1.5", 0, 0, {"activation_dropout", "1.5", "below 1"}},
    {"word_dropout", "\"0.1\"", 0, 0, {"word_dropout", "\"0.1\"", "number"}},
    {"bos", "8000", 0, 0, {"bos", "8000", "7999"}},
    {"pad", "-1", 0, 0, {"pad", "-1", "0 to"}},
    {"eos", "0", 0, 0, {"eos", "0", "bos"}},
    {"unk", "2", 0, 0, {"unk", "2", "eos"}},
    {"unk", "7", "tgt_vocab", "7", {"share", "7"}},
    {"step", "-1", 0, 0, {"step", "-1", "0 or more"}},
    {"step", "9007199254740993", 0, 0, {"step", "9007199254740993", "at most 9007199254740992"}},
    {"step", "9223372036854775807", 0, 0, {"step", "9223372036854775807", "at most"}},
    {"step", "1.5", 0, 0, {"step", "1.5", "whole"}},
    {"step", NULL, 0, 0, {"step", "missing"}},
    {"d_mdoel", "512", 0, 0, {"\"d_mdoel\"", "512", "d_model"}},
    {"xyzzyxyzzyxyzzy", "[1]", 0, 0, {"\"xyzzyxyzzyxyzzy\"", "[1]", "no such key"}},
    {"arch", "\"enc\"", "tgt_vocab", NULL, {"decoder_layers", "5", "enc", "left out"}},
    {"arch", "\"enc\"", "decoder_layers", NULL, {"tgt_vocab", "8000", "enc", "left out"}},
    {"arch", "\"dec\"", "src_vocab", NULL, {"encoder_layers", "6", "dec", "left out"}},
    {"arch", "\"dec\"", "encoder_layers", NULL, {"src_vocab", "8000", "dec", "left out"}},
};

static void set_key(json_t *root, const char *key, const char *value) {
    if (!key) return;
    if (!value)
        json_object_del(root, key);
    else
        assert_int_equal(json_object_set_new(root, key, json_loads(value, JSON_DECODE_ANY, NULL)),
                         0);
}

/* Parses the base with two keys changed, after those of `more` (an object; null removes a key). */
static fth_err parse_more(const char *more, const char *key, const char *value, const char *key2,
                          const char *value2, fth_config *c) {
    json_t *root = json_loads(base_text, 0, NULL), *others = json_loads(more, 0, NULL), *other;
    const char *name;
    assert_non_null(root);
    assert_non_null(others);
    json_object_foreach(others, name, other) {
        if (json_is_null(other))
            json_object_del(root, name);
        else
            json_object_set(root, name, other);
    }
    json_decref(others);
    set_key(root, key, value);
    set_key(root, key2, value2);
    char *text = json_dumps(root, JSON_REAL_PRECISION(15));
    fth_err err = fth_config_parse(text, strlen(text), "some/config.json", c);
    free(text);
    json_decref(root);
    return err;
}

static fth_err parse_changed(const char *key, const char *value, const char *key2,
                             const char *value2, fth_config *c) {
    return parse_more("{}", key, value, key2, value2, c);
}

#define ENC_KEYS "\"arch\": \"enc\", \"decoder_layers\": null, \"tgt_vocab\": null"

static const char sentences[] = "{" ENC_KEYS ", \"head\": \"class\", \"classes\": 3}";
static const char pictures[] =
    "{" ENC_KEYS ", \"front\": \"image\", \"head\": \"masked-token\", \"visual_tokens\": 64,"
    " \"src_vocab\": null, \"share\": null, \"image_size\": [32, 24], \"channels\": 3,"
    " \"patch\": 8, \"pool\": \"mean\"}";
static const char utterances[] = "{\"front\": \"speech\", \"src_vocab\": null, \"share\": \"dec\","
                                 " \"features\": 80, \"conv_channels\": 1024}";

/* The same of models with fronts and heads. */
static void names_what_a_front_or_head_forbids(void **state) {
    (void)state;
    static const struct {
        const char *base;
        struct bad_config change;
    } cases[] = {
        {"{}", {"head", "\"class\"", "classes", "2", {"classes", "2", "encdec", "left out"}}},
        {"{}", {"head", "\"token-class\"", 0, 0, {"head", "\"token-class\"", "enc"}}},
        {"{}",
         {"head", "\"words\"", 0, 0, {"head", "\"words\"", "\"next-token\" \"masked-token\""}}},
        {"{}",
         {"front", "\"sound\"", 0, 0, {"front", "\"sound\"", "\"text\" \"image\" \"speech\""}}},
        {"{}", {"pool", "\"mean\"", 0, 0, {"pool", "\"mean\"", "left out"}}},
        {"{}", {"front", "\"image\"", 0, 0, {"src_vocab", "8000", "front image", "left out"}}},
        {sentences, {"classes", NULL, 0, 0, {"classes", "missing", "head class"}}},
        {sentences, {"classes", "1", 0, 0, {"classes", "1", "2 to"}}},
        {sentences, {"classes", "2.5", 0, 0, {"classes", "2.5", "whole"}}},
        {sentences, {"pool", "\"last\"", 0, 0, {"pool", "\"last\"", "\"first\" \"mean\""}}},
        {sentences,
         {"head", "\"regression\"", 0, 0, {"classes", "3", "head regression", "left out"}}},
        {sentences, {"visual_tokens", "9", 0, 0, {"visual_tokens", "9", "left out"}}},
        {sentences, {"head", "\"masked-token\"", "classes", NULL, {NULL}}},
        {sentences, {"image_size", "[8, 8]", 0, 0, {"image_size", "[8,8]", "left out"}}},
        {pictures, {"head", NULL, "visual_tokens", NULL, {"head", "missing", "\"image\""}}},
        {pictures, {"visual_tokens", NULL, 0, 0, {"visual_tokens", "missing", "front image"}}},
        {pictures, {"image_size", "[32]", 0, 0, {"image_size", "[32]", "two whole numbers"}}},
        {pictures, {"image_size", "[32, 20]", 0, 0, {"image_size", "[32, 20]", "20", "patch 8"}}},
        {pictures, {"image_size", "[0, 8]", 0, 0, {"image_size", "0", "1 to"}}},
        {pictures, {"patch", "0", 0, 0, {"patch", "0", "1 to"}}},
        {pictures, {"channels", NULL, 0, 0, {"channels", "missing"}}},
        {pictures, {"max_positions", "11", 0, 0, {"max_positions", "11", "12", "12 patches"}}},
        {pictures,
         {"max_positions", "12", "pool", "\"first\"", {"max_positions", "13", "class token"}}},
        {pictures, {"share", "\"all\"", 0, 0, {"share", "\"all\"", "front image", "left out"}}},
        {pictures, {"features", "80", 0, 0, {"features", "80", "left out"}}},
        {utterances, {"conv_channels", "1023", 0, 0, {"conv_channels", "1023", "even"}}},
        {utterances, {"share", "\"all\"", 0, 0, {"share", "\"all\"", "\"dec\" or \"none\""}}},
        {utterances, {"features", NULL, 0, 0, {"features", "missing", "front speech"}}},
        {utterances, {"patch", "4", 0, 0, {"patch", "4", "left out"}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct bad_config *b = &cases[i].change;
        fth_config c;
        fth_err err = parse_more(cases[i].base, b->key, b->value, b->key2, b->value2, &c);
        if (b->words[0])
            assert_failed(err, FTH_BAD_CONFIG, b->words);
        else
            assert_ok(err);
    }
}

static void assert_same_config(const fth_config *a, const fth_config *b);

static void reads_fronts_and_heads(void **state) {
    (void)state;
    fth_config c, back;
    memset(&c, 0, sizeof c);
    assert_ok(fth_config_parse(base_text, strlen(base_text), "c.json", &c));
    assert_int_equal(c.front, FTH_FRONT_TEXT); /* as of every folder of before */
    assert_int_equal(c.head, FTH_HEAD_NEXT_TOKEN);
    assert_ok(parse_more(sentences, 0, 0, 0, 0, &c));
    assert_int_equal(c.head, FTH_HEAD_CLASS);
    assert_int_equal(fth_config_output_vocab(&c), 3);
    assert_int_equal(c.pool, FTH_POOL_FIRST);
    assert_ok(parse_more(utterances, 0, 0, 0, 0, &c));
    assert_int_equal(c.front, FTH_FRONT_SPEECH);
    assert_int_equal(c.features + c.conv_channels, 80 + 1024);
    assert_ok(parse_more(pictures, 0, 0, 0, 0, &c));
    assert_int_equal(fth_config_patches(&c), 12);
    assert_false(fth_config_has_cls(&c));
    assert_int_equal(fth_config_output_vocab(&c), 64);
    fth_str text = {0};
    assert_ok(fth_config_print(&c, &text));
    assert_non_null(strstr(text.text, "\"pool\": \"mean\""));
    assert_null(strstr(text.text, "src_vocab"));
    assert_ok(fth_config_parse(text.text, text.length, "again", &back));
    fth_str_fini(&text);
    assert_same_config(&c, &back);
}

static void names_key_value_and_rule(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct bad_config *b = &bad[i];
        fth_config c = {.step = 77};
        fth_err err = parse_changed(b->key, b->value, b->key2, b->value2, &c);
        assert_failed(err, FTH_BAD_CONFIG, (const char *[]){"some/config.json: ", NULL});
        assert_failed(err, FTH_BAD_CONFIG, b->words);
        assert_int_equal(c.step, 77); /* untouched on failure */
    }
}

static void refuses_what_is_not_json(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *words[3];
    } cases[] = {
        {"", {"c.json:1:"}},
        {"[]", {"c.json: ", "object"}},
        {"{\n\"arch\": \"enc\",\n\"arch\": \"dec\"}", {"c.json:3:", "duplicate"}},
        {"{\n\"heads\": 08}", {"c.json:2:"}},
        {"{\"step\": 99999999999999999999}", {"c.json:1:", "integer"}},
        {"{} {}", {"c.json:1:"}},
    };
    fth_config c;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_failed(fth_config_parse(cases[i].text, strlen(cases[i].text), "c.json", &c),
                      FTH_BAD_CONFIG, cases[i].words);
    assert_failed(fth_config_read("no/such/config.json", &c), FTH_NOT_FOUND,
                  (const char *[]){"no/such/config.json", NULL});
}

static void reads_every_key(void **state) {
    (void)state;
    fth_config c;
    assert_ok(fth_config_parse(base_text, strlen(base_text), "c.json", &c));
    assert_int_equal(c.arch, FTH_ENCDEC);
    assert_string_equal(c.method, "somenorm");
    assert_int_equal(c.n_options, 4);
    assert_string_equal(c.options[0].key, "steps");
    assert_int_equal(c.options[0].type, FTH_OPT_NUMBER);
    assert_true(c.options[0].number == 4000.0);
    assert_string_equal(c.options[1].text, "linear");
    assert_true(c.options[2].number == 0.25);
    assert_int_equal(c.options[3].type, FTH_OPT_BOOL);
    assert_true(c.options[3].number == 1.0);
    const int32_t numbers[] = {
        c.encoder_layers, c.decoder_layers, c.d_model, c.ffn_dim, c.heads, c.src_vocab,
        c.tgt_vocab,      c.max_positions,  c.bos,     c.pad,     c.eos,   c.unk};
    const int32_t expected[] = {6, 5, 512, 2048, 8, 8000, 8000, 1024, 0, 1, 2, 3};
    assert_memory_equal(numbers, expected, sizeof expected);
    assert_int_equal(c.share, FTH_SHARE_ALL);
    assert_int_equal(c.activation, FTH_GELU);
    assert_int_equal(c.positions, FTH_LEARNED);
    assert_true(c.layer_norm_eps == 1e-5);
    assert_true(c.encoder_layer_norm_eps == 1e-5);
    assert_true(c.decoder_layer_norm_eps == 1e-5);
    assert_true(c.dropout == 0.1 && c.attention_dropout == 0.0 && c.activation_dropout == 0.0);
    assert_true(c.word_dropout == 0.3);
    assert_int_equal(c.step, 12345678901);
    assert_int_equal(fth_config_output_vocab(&c), 8000);

    assert_ok(parse_changed("encoder_layer_norm_eps", "1e-6", "decoder_layer_norm_eps", "0.5", &c));
    assert_true(c.layer_norm_eps == 1e-5);
    assert_true(c.encoder_layer_norm_eps == 1e-6);
    assert_true(c.decoder_layer_norm_eps == 0.5);
    assert_ok(parse_changed("method_options", NULL, "share", "\"dec\"", &c));
    assert_int_equal(c.n_options, 0);
}

static void assert_same_config(const fth_config *a, const fth_config *b) {
    fth_str x = {0}, y = {0};
    assert_ok(fth_config_print(a, &x));
    assert_ok(fth_config_print(b, &y));
    assert_string_equal(x.text, y.text);
    assert_memory_equal(a, b, sizeof *a);
    fth_str_fini(&x);
    fth_str_fini(&y);
}

static void prints_what_it_reads(void **state) {
    char path[300];
    for (int arch = 0; arch < 3; arch++) {
        fth_config c, back;
        memset(&c, 0, sizeof c); /* padding too: configs are compared by their bytes */
        assert_ok(fth_config_parse(base_text, strlen(base_text), "c.json", &c));
        c.arch = (fth_arch)arch;
        if (c.arch == FTH_ENC) c.decoder_layers = c.tgt_vocab = 0;
        if (c.arch == FTH_DEC) c.encoder_layers = c.src_vocab = 0;
        if (c.arch != FTH_DEC) c.encoder_layer_norm_eps = 1.0 / 3.0;
        c.dropout = 0.1 + 0.2; /* 17 digits */
        fth_str text = {0};
        assert_ok(fth_config_print(&c, &text));
        assert_non_null(strstr(text.text, "0.30000000000000004"));
        assert_null(strstr(text.text, arch == FTH_DEC ? "src_vocab" : "decoder_layer_norm_eps"));
        PATH(path, *state, "config.json");
        put_bytes(path, text.text, text.length);
        assert_ok(fth_config_read(path, &back));
        assert_same_config(&c, &back);
        fth_str_fini(&text);
    }
    fth_config plain = fth_config_default();
    fth_str text = {0};
    assert_failed(fth_config_print(&plain, &text), FTH_BAD_CONFIG,
                  (const char *[]){"method", NULL});
    strcpy(plain.method, "x");
    assert_ok(fth_config_print(&plain, &text));
    assert_non_null(strstr(text.text, "\"dropout\": 0.1,\n"));
    fth_str_fini(&text);
}

static void survives_mutated_text(void **state) {
    (void)state;
    char text[sizeof base_text];
    fth_rng rng;
    int refused = 0;
    fth_rng_init(&rng, 4, 2);
    for (int round = 0; round < 20000; round++) {
        memcpy(text, base_text, sizeof text);
        for (uint64_t k = fth_rng_below(&rng, 3) + 1; k > 0; k--)
            text[fth_rng_below(&rng, sizeof text - 1)] = (char)(fth_rng_below(&rng, 96) + 32);
        fth_config c, back;
        fth_str printed = {0};
        fth_err err = fth_config_parse(text, sizeof text - 1, "fuzz.json", &c);
        if (err) {
            assert_failed(err, FTH_BAD_CONFIG, (const char *[]){"fuzz.json:", NULL});
            refused++;
        } else {
            assert_ok(fth_config_print(&c, &printed));
            assert_ok(fth_config_parse(printed.text, printed.length, "again", &back));
        }
        fth_str_fini(&printed);
    }
    assert_in_range(refused, 10000, 19900);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(names_key_value_and_rule), TEST(refuses_what_is_not_json),
        TEST(reads_every_key),          TEST(prints_what_it_reads),
        TEST(survives_mutated_text),    TEST(names_what_a_front_or_head_forbids),
        TEST(reads_fronts_and_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
