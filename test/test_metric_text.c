/* links: metric base */
/* The parts below the scores: lines of files, white space, lower case, tokenizers, stems,
 * alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "metric/align.h"
#include "metric/ngram.h"
#include "metric/porter.h"
#include "metric/tok.h"
#include "text/unicode.h"
#include "metric/words.h"

#define GOLDEN TEST_DIR "/golden/metric/"

static json_t *expected;

static int read_expected(void **state) {
    json_error_t error;
    (void)state;
    expected = json_load_file(GOLDEN "expected.json", 0, &error);
    return expected ? 0 : fprintf(stderr, "expected.json:%d: %s\n", error.line, error.text);
}

static int free_expected(void **state) {
    (void)state;
    json_decref(expected);
    return 0;
}

static uint32_t crc_in(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return (uint32_t)json_integer_value(value);
}

static size_t size_in(const json_t *object, const char *key) {
    return (size_t)json_integer_value(json_object_get(object, key));
}

/* ---- lines of files */

static fth_err read_text(const char *text, size_t length, fth_text_lines *out) {
    char *data = malloc(length + 1);
    assert_non_null(data);
    memcpy(data, text, length);
    return fth_text_lines_take(data, length, "some.txt", out);
}

static void cuts_files_into_lines(void **state) {
    static const struct {
        const char *text;
        size_t length, n;
        const char *lines[4];
    } cases[] = {
        {"", 0, 0, {0}},
        {"\n", 1, 1, {""}},
        {"a", 1, 1, {"a"}},
        {"a\nb", 3, 2, {"a", "b"}},
        {"a\nb\n", 4, 2, {"a", "b"}},
        {"a\n\nb\n\n", 6, 4, {"a", "", "b", ""}},
        {"a\r\nb\r\n", 6, 2, {"a", "b"}},
        {"a\rb\n", 4, 1, {"a\rb"}}, /* CR alone ends no line */
        {" a \t\x0b\x1c\n b\xc2\xa0\xe3\x80\x80\n", 15, 2, {" a", " b"}}, /* but is cut off */
        {"\xc2\x85\n\xe2\x80\xa8x\n", 8, 2, {"", "\xe2\x80\xa8x"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_text_lines t;
        assert_int_equal(read_text(cases[i].text, cases[i].length, &t), FTH_OK);
        assert_int_equal(t.n, cases[i].n);
        for (size_t k = 0; k < t.n; k++) {
            assert_int_equal(t.line[k].length, strlen(cases[i].lines[k]));
            assert_memory_equal(t.line[k].text, cases[i].lines[k], t.line[k].length);
        }
        fth_text_lines_fini(&t);
    }
}

static void names_the_line_that_is_not_utf8(void **state) {
    fth_text_lines t;
    (void)state;
    assert_int_equal(read_text("a\nb\n\xc3(\n", 7, &t), FTH_BAD_INPUT);
    assert_non_null(strstr(fth_error_message(), ":3: byte 0xc3 is not UTF-8"));
    fth_text_lines_fini(&t);
    assert_int_equal(read_text("\xed\xa0\x80", 3, &t), FTH_BAD_INPUT); /* half a surrogate pair */
    fth_text_lines_fini(&t);
}

/* ---- characters */

static void known_code_points(uint32_t *known, size_t *n) {
    const json_t *range;
    size_t i;
    *n = 0;
    json_array_foreach(json_object_get(json_object_get(expected, "unicode"), "ranges"), i, range) {
        uint32_t first = (uint32_t)json_integer_value(json_array_get(range, 0));
        uint32_t last = (uint32_t)json_integer_value(json_array_get(range, 1));
        for (uint32_t c = first; c <= last; c++) known[(*n)++] = c;
    }
}

/* Appends what, with the character c for the sign %, in lower case and followed by end. */
static void add_case(fth_str *out, const char *what, uint32_t c, const char *end) {
    fth_str text = {0};
    for (; *what; what++)
        assert_int_equal(*what == '%' ? fth_add_code_point(&text, c) : fth_str_add(&text, what, 1),
                         0);
    assert_int_equal(fth_add_lower(out, fth_str_view(&text)), FTH_OK);
    assert_int_equal(fth_str_add(out, end, 1), FTH_OK);
    fth_str_fini(&text);
}

/* All characters that Python 3.11 knows, alone and beside a capital sigma. */
static void lower_case_is_pythons(void **state) {
    const json_t *unicode = json_object_get(expected, "unicode");
    uint32_t *known = malloc(0x110000 * sizeof *known), crc = 0;
    size_t n;
    fth_str line = {0};
    (void)state;
    assert_non_null(known);
    known_code_points(known, &n);
    assert_true(n > 200000);
    for (size_t i = 0; i < n; i++) {
        fth_str_clear(&line);
        add_case(&line, "%", known[i], " ");
        add_case(&line, "A%\xce\xa3", known[i], " ");
        add_case(&line, "A\xce\xa3%A", known[i], "\n");
        crc = fth_crc32(crc, line.text, line.length);
    }
    assert_int_equal(crc, crc_in(unicode, "lower"));
    fth_str_fini(&line);
    free(known);
}

static fth_text view(const char *text) {
    return (fth_text){text, strlen(text)};
}

static void strips_and_joins(void **state) {
    fth_str out = {0};
    fth_text t = fth_strip(view("\xe3\x80\x80 \t a \xc2\xa0 b\x1f\r\n"));
    (void)state;
    assert_int_equal(t.length, 6);
    assert_memory_equal(t.text, "a \xc2\xa0 b", 6);
    assert_int_equal(fth_strip(view(" \t")).length, 0);
    assert_int_equal(fth_add_joined(&out, view("  a\t\tb \xe2\x80\x83 c ")), FTH_OK);
    assert_string_equal(out.text, "a b c");
    fth_str_fini(&out);
}

/* ---- tokenizers */

static uint32_t crc_of_tokens(fth_tok kind) {
    static const char *const names[] = {GOLDEN "hyp1.txt", GOLDEN "ref1.txt"};
    uint32_t crc = 0;
    fth_tok_work w = {0};
    fth_str joined = {0};
    for (size_t f = 0; f < 2; f++) {
        fth_text_lines t;
        char *data;
        size_t size;
        assert_int_equal(fth_file_read(names[f], &data, &size), FTH_OK);
        assert_int_equal(fth_text_lines_take(data, size, names[f], &t), FTH_OK);
        for (size_t i = 0; i < t.n; i++) {
            fth_text tokens;
            fth_str_clear(&joined);
            assert_int_equal(fth_tok_line(kind, false, t.line[i], &w, &tokens), FTH_OK);
            assert_int_equal(fth_add_joined(&joined, tokens), FTH_OK);
            assert_int_equal(fth_str_add(&joined, "\n", 1), FTH_OK);
            crc = fth_crc32(crc, joined.text, joined.length);
        }
        fth_text_lines_fini(&t);
    }
    fth_tok_work_fini(&w);
    fth_str_fini(&joined);
    return crc;
}

static void tokenizers_are_sacrebleus(void **state) {
    const json_t *crcs = json_object_get(expected, "tokenized_crc");
    (void)state;
    for (fth_tok kind = FTH_TOK_13A; kind <= FTH_TOK_ZH; kind++)
        assert_int_equal(crc_of_tokens(kind), crc_in(crcs, fth_tok_name(kind)));
}

static void tokenizes_by_example(void **state) {
    static const struct {
        fth_tok kind;
        const char *line, *tokens;
    } cases[] = {
        {FTH_TOK_13A, "Hello, world!", "Hello , world !"},
        {FTH_TOK_13A, "1,234.5 is 5.", "1,234.5 is 5 ."},
        {FTH_TOK_13A, "a-b 3-4 don't", "a-b 3 - 4 don't"},
        {FTH_TOK_13A, "a<skipped>b &amp;lt; &amp;quot;", "ab < & quot ;"},
        {FTH_TOK_13A, "", ""},
        {FTH_TOK_INTL, "5.\xe2\x80\x93x 1\xe2\x82\xac 5.", "5 . \xe2\x80\x93 x 1 \xe2\x82\xac 5."},
        {FTH_TOK_CHAR, "a b\xc3\xa4", "a b \xc3\xa4"},
        {FTH_TOK_NONE, "a  b.", "a b."},
        {FTH_TOK_ZH, "\xe6\x88\x91\xe4\xbb\xac go.", "\xe6\x88\x91 \xe4\xbb\xac go ."},
    };
    fth_tok_work w = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_text tokens;
        fth_str joined = {0};
        assert_int_equal(fth_tok_line(cases[i].kind, false, view(cases[i].line), &w, &tokens), 0);
        assert_int_equal(fth_add_joined(&joined, tokens), FTH_OK);
        assert_string_equal(fth_str_view(&joined).text, cases[i].tokens);
        fth_str_fini(&joined);
    }
    fth_tok_work_fini(&w);
}

/* ---- stems */

static uint32_t add_stem(uint32_t crc, const char *base, const char *end) {
    char word[64];
    size_t n = (size_t)snprintf(word, sizeof word, "%s%s", base, end);
    size_t stem = fth_porter_stem(word, n);
    assert_true(stem <= n);
    word[stem] = '\n';
    return fth_crc32(crc, word, stem + 1);
}

static void stems_are_nltks(void **state) {
    static const char *const pairs[][2] = {
        {"caresses", "caress"},     {"dies", "die"},
        {"flies", "fli"},           {"died", "die"},
        {"spied", "spi"},           {"enjoy", "enjoy"},
        {"happy", "happi"},         {"hopping", "hop"},
        {"filing", "file"},         {"falling", "fall"},
        {"skies", "sky"},           {"news", "news"},
        {"relational", "relat"},    {"geology", "geolog"},
        {"generally", "gener"},     {"abed", "abe"},
        {"controlling", "control"}, {"yyyy", "yyyi"},
    };
    const json_t *porter = json_object_get(expected, "porter"), *base, *end;
    size_t i, k;
    uint32_t crc = 0;
    (void)state;
    json_array_foreach(json_object_get(porter, "bases"), i, base)
        json_array_foreach(json_object_get(porter, "ends"), k, end) crc =
            add_stem(crc, json_string_value(base), json_string_value(end));
    json_array_foreach(json_object_get(porter, "others"), i, base) crc =
        add_stem(crc, json_string_value(base), "");
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        char word[32];
        strcpy(word, pairs[p][0]);
        word[fth_porter_stem(word, strlen(word))] = '\0';
        assert_string_equal(word, pairs[p][1]);
    }
    assert_int_equal(crc, crc_in(porter, "stems_crc"));
}

/* ---- alignment */

static uint32_t lcg_below(uint64_t *state, uint64_t n) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % n);
}

/* The sequences that make_golden.py compared. Returns the length of hyp. */
static size_t make_sequences(const json_t *test, uint32_t *ref, uint32_t *hyp) {
    uint64_t lcg = size_in(test, "seed"), alphabet = size_in(test, "alphabet");
    size_t n = size_in(test, "n"), m = n;
    for (size_t i = 0; i < n; i++) ref[i] = lcg_below(&lcg, alphabet);
    memcpy(hyp, ref, n * sizeof *hyp);
    for (size_t edits = size_in(test, "edits"); edits--;) {
        uint32_t what = lcg_below(&lcg, 3);
        if (what == 0) {
            size_t at = lcg_below(&lcg, m + 1);
            memmove(hyp + at + 1, hyp + at, (m++ - at) * sizeof *hyp);
            hyp[at] = lcg_below(&lcg, alphabet);
        } else if (m && what == 1) {
            size_t at = lcg_below(&lcg, m);
            memmove(hyp + at, hyp + at + 1, (--m - at) * sizeof *hyp);
        } else if (m) {
            uint32_t symbol = lcg_below(&lcg, alphabet);
            hyp[lcg_below(&lcg, m)] = symbol;
        }
    }
    return m;
}

static void check_lcs(fth_align *w, const json_t *test, const uint32_t *ref, const uint32_t *hyp) {
    const json_t *want = json_object_get(test, "lcs");
    size_t n = size_in(test, "n"), m = size_in(test, "m"), length, alone, found = 0;
    uint8_t *chosen = malloc(n);
    assert_non_null(chosen);
    assert_int_equal(fth_align_lcs(w, ref, n, hyp, m, chosen, &length), FTH_OK);
    assert_int_equal(fth_align_lcs(w, ref, n, hyp, m, NULL, &alone), FTH_OK);
    assert_int_equal(length, json_array_size(want));
    assert_int_equal(length, alone);
    for (size_t i = 0; i < n; i++)
        if (chosen[i]) assert_int_equal(i, json_integer_value(json_array_get(want, found++)));
    assert_int_equal(found, length);
    free(chosen);
}

static void alignments_are_rapidfuzzs(void **state) {
    fth_align w = {0};
    const json_t *test;
    size_t i;
    (void)state;
    json_array_foreach(json_object_get(expected, "align"), i, test) {
        size_t n = size_in(test, "n"), room = n + size_in(test, "edits") + 1;
        uint32_t *ref = malloc(2 * room * sizeof *ref), *hyp = ref + room;
        fth_edits got = {0};
        assert_non_null(ref);
        size_t m = make_sequences(test, ref, hyp);
        assert_int_equal(m, size_in(test, "m"));
        assert_int_equal(fth_align_edits(&w, ref, n, hyp, m, &got), FTH_OK);
        assert_int_equal(got.hits, size_in(test, "hits"));
        assert_int_equal(got.substitutions, size_in(test, "substitutions"));
        assert_int_equal(got.insertions, size_in(test, "insertions"));
        assert_int_equal(got.deletions, size_in(test, "deletions"));
        if (json_object_get(test, "lcs")) check_lcs(&w, test, ref, hyp);
        free(ref);
    }
    assert_true(i > 10);
    fth_align_fini(&w);
}

static void counts_ngrams(void **state) {
    uint32_t a[] = {7, 7, 7, 9}, b[] = {7, 7, 9, 9, 7}, c[] = {9, 7, 7, 7};
    const fth_word_ids hyp = {a, 4, 4}, ref = {b, 5, 5}, other = {c, 4, 4};
    fth_ngrams g = {0};
    (void)state;
    for (int round = 0; round < 3; round++) { /* what an older round counted is forgotten */
        int64_t matches[4] = {0};
        assert_int_equal(fth_ngrams_reset(&g), FTH_OK);
        assert_int_equal(fth_ngrams_add(&g, FTH_IN_HYP, &hyp, 4), FTH_OK);
        assert_int_equal(fth_ngrams_add(&g, FTH_IN_NEW_REF, &ref, 4), FTH_OK);
        fth_ngrams_merge_ref(&g);
        fth_ngrams_match(&g, matches); /* 7 7 7 9; 77 79; 779 */
        assert_true(matches[0] == 4 && matches[1] == 2 && matches[2] == 1 && matches[3] == 0);
        assert_int_equal(fth_ngrams_add(&g, FTH_IN_NEW_REF, &other, 4), FTH_OK);
        fth_ngrams_merge_ref(&g);
        memset(matches, 0, sizeof matches);
        fth_ngrams_match(&g, matches); /* 7 7 7 9; 77 77 79; 777 779 */
        assert_true(matches[0] == 4 && matches[1] == 3 && matches[2] == 2 && matches[3] == 0);
    }
    assert_int_equal(fth_ngram_total(3, 4), 0);
    assert_int_equal(fth_ngram_total(4, 4), 1);
    fth_ngrams_fini(&g);
}

/* A line with more different n-grams than the table has room for at first. */
static void counts_many_ngrams(void **state) {
    fth_word_ids long_line = {0};
    fth_ngrams g = {0};
    int64_t matches[3] = {0};
    (void)state;
    for (uint32_t i = 0; i < 30000; i++)
        assert_int_equal(fth_word_ids_add(&long_line, i * 977), FTH_OK);
    assert_int_equal(fth_ngrams_reset(&g), FTH_OK);
    assert_int_equal(fth_ngrams_add(&g, FTH_IN_HYP, &long_line, 3), FTH_OK);
    assert_int_equal(fth_ngrams_add(&g, FTH_IN_REF, &long_line, 3), FTH_OK);
    fth_ngrams_match(&g, matches);
    for (int n = 0; n < 3; n++) assert_int_equal(matches[n], 30000 - n);
    fth_ngrams_fini(&g);
    fth_word_ids_fini(&long_line);
}

static void gives_equal_words_equal_ids(void **state) {
    fth_vocab v = {0};
    uint32_t id, again;
    char word[16];
    (void)state;
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 5000; i++) { /* the table grows several times */
            int n = snprintf(word, sizeof word, "w%u", i);
            assert_int_equal(fth_vocab_id(&v, (fth_text){word, (size_t)n}, &id), FTH_OK);
            assert_int_equal(id, i);
        }
    assert_int_equal(fth_vocab_id(&v, (fth_text){"a\0b", 3}, &id), FTH_OK);
    assert_int_equal(fth_vocab_id(&v, (fth_text){"a\0c", 3}, &again), FTH_OK);
    assert_int_not_equal(id, again);
    fth_vocab_fini(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_files_into_lines),
        cmocka_unit_test(names_the_line_that_is_not_utf8),
        cmocka_unit_test(lower_case_is_pythons),
        cmocka_unit_test(strips_and_joins),
        cmocka_unit_test(tokenizers_are_sacrebleus),
        cmocka_unit_test(tokenizes_by_example),
        cmocka_unit_test(stems_are_nltks),
        cmocka_unit_test(alignments_are_rapidfuzzs),
        cmocka_unit_test(counts_ngrams),
        cmocka_unit_test(counts_many_ngrams),
        cmocka_unit_test(gives_equal_words_equal_ids),
    };
    return cmocka_run_group_tests(tests, read_expected, free_expected);
}
