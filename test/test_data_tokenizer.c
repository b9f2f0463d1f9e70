/* links: data base */
/* Tokenizers: every kind, round trips, bounds, determinism, and model files that are damaged. */
#include "test_files.h"

#include <math.h>

#include "base/philox.h"
#include "base/protobuf.h"
#include "text/spm_check.h"
#include "text/tokenizer.h"
#include "data/sample.h"

static const char *const LINES[] = {
    "the cat sat on the mat .",
    "a dog and a cat ran over the hill",
    "The quick brown fox jumps.",
    "Stra\xc3\x9f"
    "e und Fl\xc3\xbcsse, Gr\xc3\xbc\xc3\x9f"
    "e!",
    "one two three four five six",
    "seven eight nine ten eleven twelve",
    "the cats and the dogs are running",
    "il est vingt heures trente",
    "the <unk> sat on <unk> <unk> .",
    "",
};
enum { N_LINES = sizeof LINES / sizeof *LINES };

static fth_err next_line(void *state, const char **text, size_t *length) {
    int *at = state;
    *text = *at < N_LINES * 20 ? LINES[*at % N_LINES] : NULL;
    *length = *text ? strlen(*text) : 0;
    ++*at;
    return FTH_OK;
}

static fth_err train(const fth_tokenizer_spec *spec, char **model, size_t *size) {
    int at = 0;
    return fth_tokenizer_train(spec, next_line, &at, model, size);
}

static fth_tokenizer *make(const char *type, int32_t size, int bytes, const char *symbols) {
    fth_tokenizer_spec spec = {type, size, 1.0, bytes, symbols, NULL};
    char *model = NULL;
    size_t model_size = 0;
    fth_tokenizer *t = NULL;
    assert_ok(train(&spec, &model, &model_size));
    assert_ok(fth_tokenizer_parse(model, model_size, "model", &t));
    free(model);
    return t;
}

static void assert_round_trip(const fth_tokenizer *t, const char *text) {
    fth_ids ids = {0};
    fth_str out = {0};
    assert_ok(fth_tokenizer_encode(t, text, strlen(text), &ids));
    for (size_t i = 0; i < ids.n; i++) assert_in_range(ids.ids[i], 3, fth_tokenizer_size(t) - 1);
    assert_ok(fth_tokenizer_decode(t, ids.ids, ids.n, &out));
    assert_string_equal(out.length ? out.text : "", text);
    fth_ids_fini(&ids);
    fth_str_fini(&out);
}

static void every_kind_round_trips(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int32_t size;
        int bytes;
        const char *symbols;
    } cases[] = {{"bpe", 100, 0, ""}, {"unigram", 70, 0, NULL},
                 {"bpe", 400, 1, ""}, {"bpe", 100, 0, "<sep>,<ctx>"},
                 {"word", 0, 0, ""},  {"char", 0, 0, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_tokenizer *t = make(cases[i].type, cases[i].size, cases[i].bytes, cases[i].symbols);
        fth_special_ids special = fth_tokenizer_special(t);
        if (cases[i].size) assert_int_equal(fth_tokenizer_size(t), cases[i].size);
        assert_int_equal(special.bos, 0);
        assert_int_equal(special.pad, 1);
        assert_int_equal(special.eos, 2);
        assert_int_equal(special.unk, 3);
        assert_string_equal(fth_tokenizer_piece(t, 2), "</s>");
        for (int k = 0; k < N_LINES - 2; k++) assert_round_trip(t, LINES[k]);
        assert_round_trip(t, "");
        fth_tokenizer_free(t);
    }
}

static void pieces_and_ids(void **state) {
    (void)state;
    fth_tokenizer *t = make("bpe", 100, 0, "<sep>");
    for (int32_t id = 0; id < 100; id++)
        assert_int_equal(fth_tokenizer_id(t, fth_tokenizer_piece(t, id)), id);
    assert_int_equal(fth_tokenizer_id(t, "no such piece"), -1);
    assert_int_equal(fth_tokenizer_id(t, "<unk>"), 3);
    assert_int_equal(fth_tokenizer_id(t, "<sep>"), 4);
    assert_string_equal(fth_tokenizer_piece(t, -1), "");
    assert_string_equal(fth_tokenizer_piece(t, 100), "");
    fth_tokenizer_free(t);
}

static void symbols_stay_whole(void **state) {
    (void)state;
    fth_tokenizer *t = make("bpe", 100, 0, "<sep>");
    fth_ids ids = {0};
    int found = 0;
    assert_ok(fth_tokenizer_encode(t, "a<sep>b", 7, &ids));
    for (size_t i = 0; i < ids.n; i++) found += ids.ids[i] == 4;
    assert_int_equal(found, 1);
    fth_ids_fini(&ids);
    fth_tokenizer_free(t);
}

static void bytes_instead_of_unknown(void **state) {
    (void)state;
    const char *text = "the \xe2\x98\x83 cat"; /* a snowman, which no line has */
    for (int bytes = 0; bytes < 2; bytes++) {
        fth_tokenizer *t = make("bpe", bytes ? 400 : 200, bytes, "");
        if (bytes) assert_round_trip(t, text);
        fth_ids ids = {0};
        int unknown = 0;
        assert_ok(fth_tokenizer_encode(t, text, strlen(text), &ids));
        for (size_t i = 0; i < ids.n; i++) unknown += ids.ids[i] == 3;
        assert_int_equal(unknown, !bytes);
        fth_ids_fini(&ids);
        fth_tokenizer_free(t);
    }
}

/* Word level: every word is one id, unknown words next to each other are not joined. */
static void words_are_counted_one_by_one(void **state) {
    (void)state;
    fth_tokenizer *t = make("word", 0, 0, "");
    fth_ids ids = {0};
    const char *text = " the <unk> zebra zebra  cat\t. ";
    assert_ok(fth_tokenizer_encode(t, text, strlen(text), &ids));
    assert_int_equal(ids.n, 6);
    for (int i = 1; i < 4; i++) assert_int_equal(ids.ids[i], 3);
    assert_string_equal(fth_tokenizer_piece(t, ids.ids[4]), "\xe2\x96\x81"
                                                            "cat");
    fth_ids_fini(&ids);
    fth_tokenizer_free(t);
}

static void characters_keep_their_spaces(void **state) {
    (void)state;
    fth_tokenizer *t = make("char", 0, 0, "");
    fth_ids ids = {0};
    assert_ok(fth_tokenizer_encode(t, "  a  b ", 7, &ids));
    assert_int_equal(ids.n, 7);
    fth_ids_fini(&ids);
    assert_round_trip(t, "  a  b ");
    fth_tokenizer_free(t);
}

/* A line of random words, some of them strange, with runs of spaces. */
static size_t strange_line(fth_rng *rng, char *line, size_t room) {
    static const char *const words[] = {
        "the",
        "cat",
        "running",
        "Gr\xc3\xbc\xc3\x9f"
        "e!",
        "zebra-crossing",
        "\xe2\x98\x83",
        "a\xe2\x98\x83\xe2\x98\x84",
        "\xe2\x96\x81",
        "\xe2\x96\x81the",
        "\xef\xbc\xa1\xef\xbd\x82",
        "\xc2\xbd",
        "e\xcc\x81",
        "\xcc\x81",
        "\xe3\x80\x80",
        "a\xe3\x80\x80"
        "b",
        "\xe2\x80\x8b",
        "\xc2\xa0x\xc2\xa0",
        "\t",
        "a\tb",
        "<sep>",
        "x<sep>y",
        "<unk>",
        "\xc2\xa8",
        "</s>",
        "ooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo"};
    size_t used = 0;
    for (uint64_t n = fth_rng_below(rng, 12); n; n--)
        used += (size_t)snprintf(line + used, room - used, "%s%s",
                                 words[fth_rng_below(rng, sizeof words / sizeof *words)],
                                 &"   "[fth_rng_below(rng, 4)]);
    return used;
}

/* The cache changes no id, whatever the model and the text. */
static void cached_is_the_same(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int32_t size;
        int bytes;
        const char *symbols, *normalization;
    } cases[] = {{"bpe", 120, 0, "", NULL},
                 {"bpe", 400, 1, "<sep>", NULL},
                 {"bpe", 120, 0, "<sep>", "identity"},
                 {"bpe", 120, 0, "the cat,<sep>", NULL},
                 {"unigram", 70, 0, "<sep>", NULL},
                 {"word", 0, 0, "", NULL},
                 {"char", 0, 0, "", NULL}};
    char line[2048];
    fth_rng rng;
    fth_rng_init(&rng, 8, 0);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fth_tokenizer_spec spec = {cases[c].type,  cases[c].size,    1.0,
                                   cases[c].bytes, cases[c].symbols, cases[c].normalization};
        fth_word_cache cache = {0};
        fth_tokenizer *t = NULL;
        char *model = NULL;
        size_t size;
        assert_ok(train(&spec, &model, &size));
        assert_ok(fth_tokenizer_parse(model, size, "model", &t));
        assert_ok(fth_word_cache_init(&cache));
        for (int i = 0; i < 500; i++) {
            size_t length = strange_line(&rng, line, sizeof line);
            fth_ids plain = {0}, cached = {0};
            assert_ok(fth_tokenizer_encode(t, line, length, &plain));
            assert_ok(fth_tokenizer_encode_cached(t, &cache, line, length, &cached));
            int same =
                plain.n == cached.n && (!plain.n || !memcmp(plain.ids, cached.ids, 4 * plain.n));
            if (!same) fail_msg("case %zu: '%s': %zu and %zu ids", c, line, plain.n, cached.n);
            fth_ids_fini(&plain);
            fth_ids_fini(&cached);
        }
        fth_word_cache_fini(&cache);
        fth_tokenizer_free(t);
        free(model);
    }
}

static void special_ids_give_no_text(void **state) {
    (void)state;
    fth_tokenizer *t = make("bpe", 100, 0, "");
    int32_t ids[] = {0, 1, 2};
    fth_str out = {0};
    assert_ok(fth_tokenizer_decode(t, ids, 3, &out));
    assert_int_equal(out.length, 0);
    for (int i = 0; i < 3; i++) {
        int32_t bad = (const int32_t[]){-1, 100, INT32_MAX}[i];
        assert_failed(fth_tokenizer_decode(t, &bad, 1, &out), FTH_BAD_INPUT,
                      (const char *[]){"token id", "[0, 100)", NULL});
    }
    fth_str_fini(&out);
    fth_tokenizer_free(t);
}

static void the_same_text_gives_the_same_model(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        fth_tokenizer_spec spec = {kind ? "unigram" : "bpe", 70, 1.0, 0, "", NULL};
        char *model[2];
        size_t size[2];
        for (int i = 0; i < 2; i++) assert_ok(train(&spec, &model[i], &size[i]));
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(model[0], model[1], size[0]);
        free(model[0]);
        free(model[1]);
    }
}

static void impossible_sizes_name_the_bound(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int32_t size;
        double coverage;
        const char *symbols;
        fth_err code;
        const char *words[4];
    } cases[] = {{"bpe", 5000, 1, "", FTH_BAD_INPUT, {"vocab-size 5000", "larger", "at most "}},
                 {"unigram", 5000, 1, "", FTH_BAD_INPUT, {"vocab-size 5000", "larger", "at most "}},
                 {"word", 5000, 1, "", FTH_BAD_INPUT, {"vocab-size 5000", "larger", "at most "}},
                 {"bpe", 20, 1, "", FTH_BAD_INPUT, {"vocab-size 20", "smaller", "at least "}},
                 {"unigram", 20, 1, "", FTH_BAD_INPUT, {"vocab-size 20", "smaller", "at least "}},
                 {"bpe", 0, 1, "", FTH_USAGE, {"vocab-size 0"}},
                 {"bpe", -5, 1, "", FTH_USAGE, {"vocab-size -5"}},
                 {"bpe", 4, 1, "", FTH_USAGE, {"vocab-size 4", "special symbols"}},
                 {"word", 1, 1, "", FTH_USAGE, {"vocab-size 1", "special symbols"}},
                 {"bpe", 400, 1, "a,,b", FTH_USAGE, {"user-symbols 'a,,b'", "empty"}},
                 {"bpe", 100, 0, "", FTH_USAGE, {"character-coverage 0"}},
                 {"bpe", 100, 1.5, "", FTH_USAGE, {"character-coverage 1.5"}},
                 {"bpe", 100, 1, "<a>,<a>", FTH_USAGE, {"user-symbols", "<a>,<a>"}},
                 {"syllable", 100, 1, "", FTH_USAGE, {"model-type", "syllable"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_tokenizer_spec spec = {cases[i].type,    cases[i].size, cases[i].coverage, 0,
                                   cases[i].symbols, NULL};
        char *model = NULL;
        size_t size = 0;
        assert_failed(train(&spec, &model, &size), cases[i].code, cases[i].words);
        assert_null(model);
    }
}

static int bound_in_message(void) {
    const char *at = strstr(fth_error_message(), "at most ");
    assert_non_null(at);
    return atoi(at + strlen("at most "));
}

/* The bound in the message is one that works, and the next size is not. */
static void the_bound_is_true(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        fth_tokenizer_spec spec = {kind ? "unigram" : "bpe", 5000, 1.0, 0, "", NULL};
        char *model = NULL;
        size_t size;
        assert_int_equal(train(&spec, &model, &size), FTH_BAD_INPUT);
        spec.vocab_size = bound_in_message();
        assert_ok(train(&spec, &model, &size));
        free(model);
        model = NULL;
        spec.vocab_size++;
        assert_int_equal(train(&spec, &model, &size), FTH_BAD_INPUT);
    }
}

static fth_err failing_line(void *state, const char **text, size_t *length) {
    int *at = state;
    *text = "some line of text";
    *length = strlen(*text);
    return ++*at < 5 ? FTH_OK : fth_fail(FTH_IO, "line %d cannot be read", *at);
}

static fth_err no_line(void *state, const char **text, size_t *length) {
    (void)state;
    *text = NULL;
    *length = 0;
    return FTH_OK;
}

static void errors_of_the_reader_come_through(void **state) {
    (void)state;
    fth_tokenizer_spec spec = {"bpe", 100, 1.0, 0, "", NULL};
    char *model = NULL;
    size_t size;
    int at = 0;
    assert_failed(fth_tokenizer_train(&spec, failing_line, &at, &model, &size), FTH_IO,
                  (const char *[]){"line 5 cannot be read", NULL});
    assert_failed(fth_tokenizer_train(&spec, no_line, NULL, &model, &size), FTH_BAD_INPUT,
                  (const char *[]){"no text", NULL});
}

static void loading_files(void **state) {
    char path[512];
    fth_tokenizer *t = NULL;
    fth_tokenizer_spec spec = {"bpe", 100, 1.0, 0, "", NULL};
    char *model = NULL;
    size_t size;
    PATH(path, *state, "t.model");
    assert_failed(fth_tokenizer_load(path, &t), FTH_NOT_FOUND, (const char *[]){"t.model", NULL});
    put_bytes(path, "", 0);
    assert_failed(fth_tokenizer_load(path, &t), FTH_BAD_INPUT, (const char *[]){"t.model", NULL});
    put_bytes(path, "This is text.\n", 14);
    assert_failed(fth_tokenizer_load(path, &t), FTH_BAD_INPUT, (const char *[]){"t.model", NULL});
    assert_ok(train(&spec, &model, &size));
    put_bytes(path, model, size);
    assert_ok(fth_tokenizer_load(path, &t));
    assert_int_equal(fth_tokenizer_size(t), 100);
    fth_tokenizer_free(t);
    free(model);
}

/* Uses whatever could be loaded: all ids, and text that reaches into the normaliser's table. */
static void use(const fth_tokenizer *t) {
    static const char *const texts[] = {
        "the cat", "", " \xef\xbc\xa1\xef\xbd\x82\xef\xbd\x83 \xc2\xbd \xe2\x80\xa6 \xe3\x8c\x80",
        "Stra\xc3\x9f"
        "e \xf0\x9f\x98\x80 <unk> </s>",
        "e\xcc\x81 \xe2\x84\xab \xef\xac\x81"};
    fth_ids ids = {0};
    fth_str out = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        fth_tokenizer_encode(t, texts[i], strlen(texts[i]), &ids);
    fth_tokenizer_decode(t, ids.ids, ids.n, &out);
    for (int32_t id = 0; id < fth_tokenizer_size(t); id++) {
        fth_tokenizer_decode(t, &id, 1, &out);
        fth_tokenizer_id(t, fth_tokenizer_piece(t, id));
    }
    fth_ids_fini(&ids);
    fth_str_fini(&out);
}

/* Cuts and flipped bytes, everywhere in the file and often in its normaliser: an error, or a
 * tokenizer that can be used. */
static void damaged_models(void **state) {
    (void)state;
    static const char *const types[] = {"bpe", "unigram", "word", "char"};
    fth_rng rng;
    fth_rng_init(&rng, 4, 0);
    for (size_t kind = 0; kind < 4; kind++) {
        int32_t sizes[] = {100, 70, 0, 0};
        fth_tokenizer_spec spec = {types[kind], sizes[kind], 1.0,
                                   0,           "",          kind < 2 ? NULL : "identity"};
        char *model = NULL;
        size_t size;
        int loaded = 0, refused = 0;
        assert_ok(train(&spec, &model, &size));
        for (int round = 0; round < 400; round++) {
            char *copy = malloc(size);
            size_t n = size, region = round % 2 && size > 6000 ? 6000 : size;
            memcpy(copy, model, size);
            if (round % 4 == 0) n = (size_t)fth_rng_below(&rng, size);
            for (uint64_t k = fth_rng_below(&rng, 4); round % 4 && k < 4; k++) {
                size_t at = (size_t)fth_rng_below(&rng, region);
                copy[at] = (char)fth_rng_u32(&rng);
            }
            fth_tokenizer *t = NULL;
            fth_err err = fth_tokenizer_parse(copy, n, "model", &t);
            if (err) assert_int_equal(err, FTH_BAD_INPUT);
            if (!err) use(t);
            loaded += !err;
            refused += err != FTH_OK;
            fth_tokenizer_free(t);
            free(copy);
        }
        assert_true(loaded > 20 && refused > 20); /* both ways were tried */
        free(model);
    }
}

/* SentencePiece dies of a word of more than 65,535 characters: that is an error here. */
/* A message in a model file that comes once more is merged: its fields count from then on. */
static void spaces_as_suffixes_keep_lines_whole(void **state) {
    (void)state;
    static const char as_suffix[] = {0x12, 3, (char)0xc0, 1, 1}; /* trainer_spec {24: true} */
    char *model;
    size_t size;
    fth_spm_facts facts;
    assert_ok(fth_file_read(TEST_DIR "/old/0.1.0/data/tokenizer.model", &model, &size));
    assert_ok(fth_spm_check(model, size, &facts));
    assert_int_equal(facts.type, FTH_SPM_BPE);
    assert_true(facts.by_words);
    model = realloc(model, size + sizeof as_suffix);
    memcpy(model + size, as_suffix, sizeof as_suffix);
    assert_ok(fth_spm_check(model, size + sizeof as_suffix, &facts));
    assert_false(facts.by_words);
    free(model);
}

/* ---- files made to make SentencePiece read outside of its memory ---- */

/* Adds a piece to a model. */
static void add_piece(fth_pb *model, const void *text, size_t size, float score, int type) {
    fth_pb piece = {0};
    fth_pb_bytes(&piece, 1, text, size);
    fth_pb_float(&piece, 2, score);
    fth_pb_int(&piece, 3, type);
    fth_pb_message(model, 1, &piece);
    fth_pb_fini(&piece);
}

/* A model with what a case adds to it is refused, with this word. */
static void refused(fth_pb *model, const char *word) {
    fth_tokenizer *t = NULL;
    assert_int_equal(model->err, FTH_OK);
    assert_failed(fth_tokenizer_parse(model->text.text, model->text.length, "model", &t),
                  FTH_BAD_INPUT, (const char *[]){"model", word, NULL});
    fth_pb_fini(model);
}

static fth_pb small_model(void) {
    fth_pb m = {0};
    add_piece(&m, "<unk>", 5, 0, 2);
    add_piece(&m, "</s>", 4, 0, 3);
    add_piece(&m, "a", 1, -1, 1);
    return m;
}

/* A normaliser with a trie of so many units, which is then refused. */
static void refused_trie(const uint32_t *units, uint32_t n) {
    fth_pb m = small_model(), normalizer = {0}, map = {0};
    const uint32_t bytes = n * 4;
    assert_int_equal(fth_str_add(&map.text, (const char *)&bytes, 4), FTH_OK);
    assert_int_equal(fth_str_add(&map.text, (const char *)units, bytes), FTH_OK);
    assert_int_equal(fth_str_add(&map.text, "x", 2), FTH_OK);
    fth_pb_message(&normalizer, 2, &map);
    fth_pb_message(&m, 3, &normalizer);
    fth_pb_fini(&map);
    fth_pb_fini(&normalizer);
    refused(&m, "normaliser");
}

static void crafted_pieces(void **state) {
    (void)state;
    char *text = malloc(200000);
    assert_non_null(text);
    memset(text, 'x', 200000);
    fth_pb m = small_model();
    fth_tokenizer *t = NULL;
    assert_ok(
        fth_tokenizer_parse(m.text.text, m.text.length, "model", &t)); /* without an addition */
    fth_tokenizer_free(t);
    add_piece(&m, text, 200000, -1, 1);
    refused(&m, "piece 3 has more than 4096 bytes");
    m = small_model();
    add_piece(&m, "a\0b", 3, -1, 1);
    refused(&m, "piece 3 has a NUL byte");
    m = small_model();
    add_piece(&m, "", 0, -1, 1);
    refused(&m, "piece 3 is empty");
    m = small_model();
    add_piece(&m, "b", 1, NAN, 1);
    refused(&m, "piece 3 has a score that is not finite");
    m = small_model();
    add_piece(&m, "b", 1, -1, 9);
    refused(&m, "piece 3 has no known type");
    m = small_model();
    add_piece(&m, "<0xZZ>", 6, -1, 6);
    refused(&m, "piece 3 is of the type of bytes");
    m = small_model();
    for (size_t n = 1; n <= 65; n++) add_piece(&m, text, n, 0, 4);
    refused(&m, "more than 64 of its own symbols");
    m = small_model();
    fth_pb_begin(&m, 1, 1000); /* a piece that is longer than the file */
    refused(&m, "cut short");
    free(text);
}

static void crafted_normalisers(void **state) {
    (void)state;
    static uint32_t units[1024];
    units[0] = 1u << 31 | 0x3ffu << 10; /* a root that leads out of the trie, marked as a value */
    refused_trie(units, 256);
    memset(units, 0, sizeof units);
    units[0] = 256u << 10 | 'x'; /* a step that leads out of it */
    refused_trie(units, 256);
    /* every step by 'x' leads to a value and back to where it was: texts of x have as many */
    memset(units, 0, sizeof units);
    units['x'] = 'x' | 1u << 8 | (uint32_t)'x' << 10;
    units[0] = 0;
    refused_trie(units, 256);
}

static void a_dying_trainer(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the trainer runs in this process there (base/child_process.c) */
#endif
    (void)state;
    enum { LENGTH = 70000 };
    fth_tokenizer_spec spec = {"bpe", 40, 1.0, 0, NULL, NULL};
    fth_sample sample = {.budget = 1 << 20};
    char *model = NULL, *word = malloc(LENGTH);
    size_t size = 0;
    assert_non_null(word);
    for (int i = 0; i < LENGTH; i++) word[i] = (char)('a' + i % 7);
    assert_ok(fth_sample_add(&sample, word, LENGTH));
    assert_int_equal(fth_tokenizer_train(&spec, fth_sample_next, &sample, &model, &size),
                     FTH_FAILED);
    assert_non_null(strstr(fth_error_message(), "the tokenizer's training by SentencePiece: "));
    assert_null(model);
    fth_sample_fini(&sample);
    free(word);
}

/* "ab abcde" with at most 3 characters of a word; an e with an accent is one of two bytes. */
static void long_words_are_cut(void **state) {
    (void)state;
    static const char *const parts[] = {"ab abc",  "de", "x yz", "", "\xc3\xa9\xc3\xa9\xc3\xa9",
                                        "\xc3\xa9"};
    fth_sample sample = {.budget = 1 << 20};
    const char *text;
    size_t length;
    int64_t cut = 0;
    assert_ok(fth_sample_add_cut(&sample, "ab abcde", 8, 3, &cut));
    assert_ok(fth_sample_add_cut(&sample, "x yz", 4, 3, &cut));
    assert_ok(fth_sample_add_cut(&sample, "", 0, 3, &cut));
    assert_int_equal(cut, 1);
    assert_ok(fth_sample_add_cut(&sample, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 8, 3, &cut));
    assert_int_equal(cut, 2);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_ok(fth_sample_next(&sample, &text, &length));
        assert_non_null(text);
        assert_int_equal(length, strlen(parts[i]));
        assert_memory_equal(text, parts[i], length);
    }
    assert_ok(fth_sample_next(&sample, &text, &length));
    assert_null(text);
    fth_sample_fini(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_kind_round_trips),
        TEST(pieces_and_ids),
        TEST(symbols_stay_whole),
        TEST(bytes_instead_of_unknown),
        TEST(words_are_counted_one_by_one),
        TEST(characters_keep_their_spaces),
        TEST(cached_is_the_same),
        TEST(special_ids_give_no_text),
        TEST(the_same_text_gives_the_same_model),
        TEST(impossible_sizes_name_the_bound),
        TEST(the_bound_is_true),
        TEST(errors_of_the_reader_come_through),
        TEST(loading_files),
        TEST(damaged_models),
        TEST(crafted_pieces),
        TEST(crafted_normalisers),
        TEST(spaces_as_suffixes_keep_lines_whole),
        TEST(a_dying_trainer),
        TEST(long_words_are_cut),
    };
    return cmocka_run_group_tests_name("data: tokenizer", tests, NULL, NULL);
}
