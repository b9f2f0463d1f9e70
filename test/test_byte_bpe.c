/* links: data text base */
/* Byte-level BPE: the ids and the training of the tokenizers package (test/golden/byte_bpe), every
 * byte there and back, symbols, and files that are broken. */
#include "test_files.h"

#include "base/json.h"
#include "base/philox.h"
#include "data/sample.h"
#include "text/tokenizer.h"

#define GOLDEN TEST_DIR "/golden/byte_bpe/"

static void encode(const fth_tokenizer *t, const char *text, fth_ids *ids) {
    ids->n = 0;
    assert_ok(fth_tokenizer_encode(t, text, strlen(text), ids));
}

static void assert_decodes(const fth_tokenizer *t, const fth_ids *ids, const char *text) {
    fth_str out = {0};
    assert_ok(fth_tokenizer_decode(t, ids->ids, ids->n, &out));
    assert_string_equal(out.length ? out.text : "", text);
    fth_str_fini(&out);
}

static void strings_have_the_ids_of_the_package(void **state) {
    (void)state;
    fth_tokenizer *t = NULL;
    fth_word_cache cache = {0};
    fth_ids ids = {0}, cached = {0};
    json_t *all = NULL, *entry, *id;
    size_t i, k;
    assert_ok(fth_tokenizer_load(GOLDEN "vocab.json", &t));
    assert_ok(fth_word_cache_init(&cache));
    assert_ok(fth_json_load(GOLDEN "strings.json", &all));
    assert_true(json_array_size(all) > 300);
    json_array_foreach(all, i, entry) {
        const char *text = json_string_value(json_object_get(entry, "text"));
        const json_t *wanted = json_object_get(entry, "ids");
        encode(t, text, &ids);
        assert_int_equal(ids.n, json_array_size(wanted));
        json_array_foreach(wanted, k, id) assert_int_equal(ids.ids[k], json_integer_value(id));
        assert_decodes(t, &ids, text);
        for (int twice = 0; twice < 2; twice++) { /* into the cache, and out of it */
            cached.n = 0;
            assert_ok(fth_tokenizer_encode_cached(t, &cache, text, strlen(text), &cached));
            assert_int_equal(cached.n, ids.n);
            assert_memory_equal(cached.ids, ids.ids, ids.n * sizeof *ids.ids);
        }
    }
    json_decref(all);
    fth_ids_fini(&ids);
    fth_ids_fini(&cached);
    fth_word_cache_fini(&cache);
    fth_tokenizer_free(t);
}

/* Lines of text.txt, each taken apart at its end. */
typedef struct lines {
    char *text, *at;
} lines;

static fth_err next_line(void *state, const char **text, size_t *length) {
    lines *l = state;
    *text = *l->at ? l->at : NULL;
    *length = strcspn(l->at, "\n");
    l->at += *length + (*text != NULL);
    return FTH_OK;
}

static fth_err train(int32_t size, const char *symbols, char **model, size_t *bytes) {
    const fth_tokenizer_spec spec = {
        .model_type = "byte-bpe", .vocab_size = size, .user_symbols = symbols};
    lines l = {0};
    size_t n;
    assert_ok(fth_file_read(GOLDEN "text.txt", &l.text, &n));
    l.at = l.text;
    fth_err err = fth_tokenizer_train(&spec, next_line, &l, model, bytes);
    free(l.text);
    return err;
}

static fth_tokenizer *trained(int32_t size, const char *symbols) {
    char *model = NULL;
    size_t bytes;
    fth_tokenizer *t = NULL;
    assert_ok(train(size, symbols, &model, &bytes));
    assert_ok(fth_tokenizer_parse(model, bytes, "model", &t));
    free(model);
    return t;
}

static void training_gives_the_vocabulary_of_the_package(void **state) {
    (void)state;
    char *model = NULL, *theirs = NULL;
    size_t bytes, their_bytes;
    assert_ok(train(700, "", &model, &bytes));
    assert_ok(fth_tokenizer_read(GOLDEN "vocab.json", &theirs, &their_bytes));
    assert_int_equal(bytes, their_bytes);
    assert_memory_equal(model, theirs, bytes);
    free(model);
    free(theirs);
}

/* Every byte has a token, so every text comes back. */
static void nothing_is_unknown(void **state) {
    (void)state;
    fth_tokenizer *t = trained(300, "");
    const fth_special_ids special = fth_tokenizer_special(t);
    fth_ids ids = {0};
    assert_int_equal(special.bos, FTH_BOS);
    assert_int_equal(special.pad, FTH_PAD);
    assert_int_equal(special.eos, FTH_EOS);
    assert_int_equal(special.unk, FTH_UNK);
    for (uint32_t point = 1; point < 0x110000; point += point < 0x3000 ? 1 : 97) {
        fth_str text = {0};
        if (point >= 0xd800 && point <= 0xdfff) continue;
        assert_ok(fth_str_addf(&text, "a "));
        char utf8[5] = {0};
        if (point < 0x80)
            utf8[0] = (char)point;
        else if (point < 0x800)
            snprintf(utf8, sizeof utf8, "%c%c", 0xc0 | point >> 6, 0x80 | (point & 0x3f));
        else if (point < 0x10000)
            snprintf(utf8, sizeof utf8, "%c%c%c", 0xe0 | point >> 12, 0x80 | (point >> 6 & 0x3f),
                     0x80 | (point & 0x3f));
        else
            snprintf(utf8, sizeof utf8, "%c%c%c%c", 0xf0 | point >> 18, 0x80 | (point >> 12 & 0x3f),
                     0x80 | (point >> 6 & 0x3f), 0x80 | (point & 0x3f));
        assert_ok(fth_str_addf(&text, "%s1", utf8));
        encode(t, text.text, &ids);
        for (size_t i = 0; i < ids.n; i++) assert_true(ids.ids[i] > FTH_UNK);
        assert_decodes(t, &ids, text.text);
        fth_str_fini(&text);
    }
    fth_ids_fini(&ids);
    fth_tokenizer_free(t);
}

static void symbols_are_found_in_text_and_controls_are_not(void **state) {
    (void)state;
    fth_tokenizer *t = trained(400, "<mask>,<sep>,<sep>>");
    const int32_t mask = fth_tokenizer_id(t, "<mask>"), sep = fth_tokenizer_id(t, "<sep>"),
                  longer = fth_tokenizer_id(t, "<sep>>");
    fth_ids ids = {0};
    assert_true(mask > FTH_UNK && sep > mask && longer > sep);
    encode(t, "<mask><sep>><sep>", &ids);
    assert_int_equal(ids.n, 3);
    assert_int_equal(ids.ids[0], mask);
    assert_int_equal(ids.ids[1], longer);
    assert_int_equal(ids.ids[2], sep);
    encode(t, "the </s> of <s> the <unk>", &ids);
    for (size_t i = 0; i < ids.n; i++) assert_true(ids.ids[i] > longer);
    assert_decodes(t, &ids, "the </s> of <s> the <unk>");
    assert_true(fth_tokenizer_starts_word(t, fth_tokenizer_id(t, "\xc4\xa0")));
    assert_false(fth_tokenizer_starts_word(t, mask));
    fth_ids_fini(&ids);
    fth_tokenizer_free(t);
}

static void dropout_cuts_elsewhere_and_loses_nothing(void **state) {
    (void)state;
    static const char text[] = "Ten kilos of oranges cost fourteen dollars.";
    fth_tokenizer *t = trained(700, "");
    fth_ids whole = {0}, cut = {0};
    size_t more = 0;
    encode(t, text, &whole);
    for (uint64_t draw = 0; draw < 20; draw++) {
        fth_rng rng;
        fth_rng_init(&rng, 1, draw);
        cut.n = 0;
        assert_ok(fth_tokenizer_encode_dropped(t, text, strlen(text), 0.3, &rng, &cut));
        more += cut.n > whole.n;
        assert_decodes(t, &cut, text);
        fth_rng_init(&rng, 1, draw);
        cut.n = 0;
        assert_ok(fth_tokenizer_encode_dropped(t, text, strlen(text), 0, &rng, &cut));
        assert_int_equal(cut.n, whole.n);
        assert_memory_equal(cut.ids, whole.ids, whole.n * sizeof *whole.ids);
        fth_rng_init(&rng, 1, draw);
        cut.n = 0;
        assert_ok(fth_tokenizer_encode_dropped(t, text, strlen(text), 1, &rng, &cut));
        assert_int_equal(cut.n, strlen(text));
    }
    assert_true(more > 15);
    fth_ids_fini(&whole);
    fth_ids_fini(&cut);
    fth_tokenizer_free(t);
}

static void half_a_character_is_repaired(void **state) {
    (void)state;
    fth_tokenizer *t = trained(260, "");
    fth_ids ids = {0};
    encode(t, "\xc3\xa9", &ids);
    assert_int_equal(ids.n, 2);
    ids.n = 1;
    assert_decodes(t, &ids, "\xef\xbf\xbd");
    fth_ids_fini(&ids);
    fth_tokenizer_free(t);
}

static void sizes_that_cannot_be_are_refused(void **state) {
    (void)state;
    char *model = NULL;
    size_t bytes;
    assert_failed(train(259, "", &model, &bytes), FTH_USAGE,
                  (const char *const[]){"259", "260", NULL});
    assert_failed(train(100000, "", &model, &bytes), FTH_BAD_INPUT,
                  (const char *const[]){"100000", "at most", "lines", NULL});
    assert_failed(train(400, "a,,b", &model, &bytes), FTH_USAGE,
                  (const char *const[]){"a,,b", "empty", NULL});
    assert_failed(train(400, "x,x", &model, &bytes), FTH_USAGE,
                  (const char *const[]){"x,x", "twice", NULL});
    assert_null(model);
}

/* A tokenizer.json of the 256 bytes, an end symbol and one merge, with one thing changed. */
static void put_json(const char *path, const char *find, const char *replace) {
    fth_str text = {0};
    char *model = NULL, *at;
    size_t bytes;
    assert_ok(train(261, "", &model, &bytes));
    at = strstr(model, find);
    assert_non_null(at);
    assert_ok(fth_str_add(&text, model, (size_t)(at - model)));
    assert_ok(fth_str_add(&text, replace, strlen(replace)));
    assert_ok(fth_str_add(&text, at + strlen(find), strlen(at + strlen(find))));
    put_bytes(path, text.text, text.length);
    fth_str_fini(&text);
    free(model);
}

static void broken_json_is_refused(void **state) {
    static const struct {
        const char *find, *replace, *words[4];
    } cases[] = {
        {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", {"model.type", "Unigram", "BPE"}},
        {"\"ignore_merges\":false", "\"ignore_merges\":true", {"ignore_merges", "true"}},
        {"\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}", {"normalizer", "NFC"}},
        {"\"use_regex\":true", "\"use_regex\":false", {"use_regex", "false"}},
        {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
         "\"pre_tokenizer\":{\"type\":\"Split\"",
         {"pre_tokenizer", "ByteLevel"}},
        {"\"<unk>\":3", "\"<unk>\":300", {"<unk>", "300", "[0, 261)"}},
        {"\"<unk>\":3", "\"<unk>\":2", {"id 2", "<unk>", "</s>"}},
        {"\"<unk>\":3", "\"<unk>\":\"3\"", {"<unk>", "whole number"}},
        {"\"id\":3,\"content\":\"<unk>\"", "\"id\":3,\"content\":7", {"added_tokens", "content"}},
        {"\"id\":3,\"content\":\"<unk>\"", "\"id\":1,\"content\":\"x\"", {"id 1", "<pad>", "x"}},
        {"\"merges\":[\"", "\"merges\":[\"zzz ", {"merge 1", "not two tokens"}},
        {"\"merges\":[\"", "\"merges\":[\"zzz y\",\"", {"merge 1", "zzz", "vocabulary"}},
        {"\"merges\":[", "\"merges\":[[\"a\"],", {"merge 1", "two tokens"}},
        {"\"merges\":[", "\"nothing\":[", {"model.merges", "missing"}},
        {"\"vocab\":{", "\"words\":{", {"model.vocab", "missing"}},
        {"\"model\":{", "\"mode\":{", {"tokenizer.json", "beside it"}}, /* then a vocab.json */
        {"</s>", "<zz>", {"<zz>"}},
    };
    char path[512];
    PATH(path, *state, "tokenizer.json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_tokenizer *t = NULL;
        put_json(path, cases[i].find, cases[i].replace);
        fth_err err = fth_tokenizer_load(path, &t);
        if (err != FTH_BAD_INPUT && err != FTH_NOT_FOUND) fail_msg("case %zu: %d", i, (int)err);
        assert_failed(err, err, cases[i].words);
        assert_null(t);
    }
}

static void put_text(const char *path, const char *text) {
    put_bytes(path, text, strlen(text));
}

static void broken_merges_are_refused(void **state) {
    static const struct {
        const char *merges, *words[4];
    } cases[] = {{"#version: 0.2\na b c\n", {"merges.txt:2", "a b c", "two tokens"}},
                 {"#version: 0.2\n\xc4\xa0 t\nq qq\n", {"merges.txt:3", "qq", "vocabulary"}},
                 {"ab\n", {"merges.txt:1", "two tokens"}},
                 {"a \n", {"merges.txt:1", "two tokens"}},
                 {"\xff\xfe\n", {"merges.txt", "UTF-8"}}};
    char vocab[512], merges[512], *data = NULL;
    size_t size;
    fth_tokenizer *t = NULL;
    PATH(vocab, *state, "vocab.json");
    PATH(merges, *state, "merges.txt");
    assert_ok(fth_file_read(GOLDEN "vocab.json", &data, &size));
    put_bytes(vocab, data, size);
    free(data);
    assert_failed(fth_tokenizer_load(vocab, &t), FTH_NOT_FOUND,
                  (const char *const[]){"vocab.json", "merges.txt", NULL});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(merges, cases[i].merges);
        assert_failed(fth_tokenizer_load(vocab, &t), FTH_BAD_INPUT, cases[i].words);
    }
    put_text(merges, "#version: 0.2\n\xc4\xa0 t\r\n\xc4\xa0 t\n");
    assert_failed(fth_tokenizer_load(vocab, &t), FTH_BAD_INPUT,
                  (const char *const[]){"merge 2", "twice", NULL});
    put_text(vocab, "{\"a\": 0, \"b\": 2}");
    put_text(merges, "");
    assert_failed(fth_tokenizer_load(vocab, &t), FTH_BAD_INPUT,
                  (const char *const[]){"'b'", "id 2", "[0, 2)", NULL});
    put_text(vocab, "{\"</s>\": 0, \"b\": 1}");
    assert_failed(fth_tokenizer_load(vocab, &t), FTH_BAD_INPUT,
                  (const char *const[]){"byte 0x00", NULL});
    put_text(vocab, "{\"a\": 0, \"b\": 1}");
    assert_failed(fth_tokenizer_load(vocab, &t), FTH_BAD_INPUT,
                  (const char *const[]){"end of text", "<|endoftext|>", NULL});
    assert_null(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(strings_have_the_ids_of_the_package),
        TEST(training_gives_the_vocabulary_of_the_package),
        TEST(nothing_is_unknown),
        TEST(symbols_are_found_in_text_and_controls_are_not),
        TEST(dropout_cuts_elsewhere_and_loses_nothing),
        TEST(half_a_character_is_repaired),
        TEST(sizes_that_cannot_be_are_refused),
        TEST(broken_json_is_refused),
        TEST(broken_merges_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
