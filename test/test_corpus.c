/* links: corpus base */
/* The generator of the built-in corpus: splits, translations that are functions, same bytes from
 * the same seed, files that appear whole, bad input. The grammar is in test_corpus_grammar.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/utf8.h"
#include "corpus/corpus.h"
#include "corpus/sentence.h"

enum { DRAWS = 200000, TABLE = 1 << 20 };
#if defined(__SANITIZE_ADDRESS__)
enum { PART = 8 }; /* one in so many: the first of those that the build for use draws */
#else
enum { PART = 1 };
#endif

static const fth_corpus_language *const languages[] = {&fth_english, &fth_german, &fth_french,
                                                       &fth_spanish};

static fth_corpus *corpus_of(const char *pair, uint64_t seed, const char *level) {
    fth_corpus *c;
    assert_int_equal(fth_corpus_new(&c, pair, seed, level), FTH_OK);
    return c;
}

/* ---- every direction is a function ---- */

/* From the hash of a text to the hash of its translation; key 0 marks a free place. */
typedef struct map {
    uint64_t (*entry)[2]; /* [TABLE] */
} map;

/* 1 when the text is new or has the same translation as before. */
static int map_agrees(map *m, uint64_t text, uint64_t translation) {
    for (size_t i = (size_t)text & (TABLE - 1);; i = (i + 1) & (TABLE - 1)) {
        if (!m->entry[i][0]) {
            m->entry[i][0] = text;
            m->entry[i][1] = translation;
            return 1;
        }
        if (m->entry[i][0] == text) return m->entry[i][1] == translation;
    }
}

/* Equal texts in one language must be equal in all the others; it is enough to compare each
 * language with the next, in both directions, in a ring. */
static void check_functions(fth_corpus_level level, int draws) {
    map maps[FTH_LANGUAGES][2];
    fth_rng rng;
    fth_rng_init(&rng, 99, 7);
    for (int k = 0; k < FTH_LANGUAGES; k++)
        for (int back = 0; back < 2; back++)
            assert_non_null(maps[k][back].entry = calloc(TABLE, sizeof *maps[k][back].entry));
    for (int n = 0; n < draws; n++) {
        fth_corpus_meaning m = fth_meaning_draw(&rng, level);
        fth_corpus_words w[FTH_LANGUAGES];
        uint64_t hash[FTH_LANGUAGES];
        for (int k = 0; k < FTH_LANGUAGES; k++) {
            assert_int_equal(fth_meaning_say(&w[k], languages[k], &m), FTH_OK);
            hash[k] = fth_hash64(w[k].text, w[k].length);
        }
        for (int k = 0; k < FTH_LANGUAGES; k++) {
            int next = (k + 1) % FTH_LANGUAGES;
            if (!map_agrees(&maps[k][0], hash[k], hash[next]))
                fail_msg("\"%s\" is \"%s\" and something else", w[k].text, w[next].text);
            if (!map_agrees(&maps[k][1], hash[next], hash[k]))
                fail_msg("\"%s\" is \"%s\" and something else", w[next].text, w[k].text);
        }
    }
    for (int k = 0; k < FTH_LANGUAGES; k++)
        for (int back = 0; back < 2; back++) free(maps[k][back].entry);
}

static void test_translation_is_a_function(void **state) {
    (void)state;
    check_functions(FTH_LEVEL_FULL, DRAWS / PART);
    check_functions(FTH_LEVEL_SIMPLE, DRAWS / 4 / PART);
}

/* ---- the shape of phrases ---- */

static int words_in(const char *text) {
    int words = 1;
    for (; *text; text++) words += *text == ' ';
    return words;
}

static void check_shape(const fth_corpus_words *w) {
    const char *text = w->text;
    assert_int_equal(fth_utf8_valid_prefix(text, w->length), w->length);
    assert_true(w->length > 0 && w->length == strlen(text));
    if (strstr(text, "  ") || strchr(" ,.", text[0]) || text[w->length - 1] == ' ' ||
        strpbrk(text, "{}~\t\n") || words_in(text) > 20)
        fail_msg("\"%s\" is no phrase", text);
    int sentence = strchr(".?", text[w->length - 1]) != NULL;
    if (sentence && text[0] >= 'a' && text[0] <= 'z') fail_msg("\"%s\" has no capital", text);
}

/* Every frame comes, and every phrase of every language is well formed. */
static void test_phrases_are_well_formed(void **state) {
    (void)state;
    int seen[FTH_FRAMES] = {0}, words = 0;
    fth_rng rng;
    fth_rng_init(&rng, 5, 5);
    for (int n = 0; n < DRAWS / 4; n++) {
        fth_corpus_meaning m = fth_meaning_draw(&rng, FTH_LEVEL_FULL);
        fth_corpus_words w;
        seen[m.frame]++;
        for (int k = 0; k < FTH_LANGUAGES; k++) {
            assert_int_equal(fth_meaning_say(&w, languages[k], &m), FTH_OK);
            check_shape(&w);
            if (k == FTH_EN) words += words_in(w.text);
        }
    }
    for (int i = 0; i < FTH_FRAMES; i++) assert_true(seen[i] > 100);
    assert_in_range(words / (DRAWS / 4), 4, 8);
}

/* ---- splits ---- */

static int put(map *m, const char *text, uint64_t split) {
    return map_agrees(m, fth_hash64(text, strlen(text)), split);
}

/* Neither side of a phrase is in two splits, whatever the seed. */
static void check_disjoint(const char *pair, const char *level, int draws) {
    map side[2];
    const char *text[2];
    for (int i = 0; i < 2; i++)
        assert_non_null(side[i].entry = calloc(TABLE, sizeof *side[i].entry));
    for (uint64_t seed = 1; seed <= 2; seed++) {
        fth_corpus *c = corpus_of(pair, seed, level);
        for (int n = 0; n < draws; n++) {
            fth_corpus_split split = n % FTH_CORPUS_SPLITS;
            assert_int_equal(fth_corpus_next(c, split, &text[0], &text[1]), FTH_OK);
            for (int i = 0; i < 2; i++)
                if (!put(&side[i], text[i], split)) fail_msg("\"%s\" is in two splits", text[i]);
        }
        fth_corpus_free(c);
    }
    for (int i = 0; i < 2; i++) free(side[i].entry);
}

static void test_splits_are_disjoint(void **state) {
    (void)state;
    check_disjoint("en-de", "full", 60000 / PART);
    check_disjoint("fr-es", "simple", 60000 / PART);
}

/* The split of a phrase is the same for all pairs. */
static void test_splits_agree_between_pairs(void **state) {
    (void)state;
    fth_corpus *a = corpus_of("en-de", 3, "full"), *b = corpus_of("fr-en", 3, "full");
    for (int n = 0; n < 1000; n++) {
        const char *en, *de, *fr, *en_again;
        fth_corpus_split split = n % FTH_CORPUS_SPLITS;
        assert_int_equal(fth_corpus_next(a, split, &en, &de), FTH_OK);
        assert_int_equal(fth_corpus_next(b, split, &fr, &en_again), FTH_OK);
        assert_string_equal(en, en_again);
    }
    fth_corpus_free(a);
    fth_corpus_free(b);
}

/* ---- seeds ---- */

static uint64_t fingerprint(const char *pair, uint64_t seed, const char *level) {
    fth_corpus *c = corpus_of(pair, seed, level);
    fth_str all = {0};
    for (int n = 0; n < 3000; n++) {
        const char *source, *target;
        assert_int_equal(fth_corpus_next_even(c, n % FTH_CORPUS_SPLITS, &source, &target), FTH_OK);
        assert_int_equal(fth_str_addf(&all, "%s\t%s\n", source, target), FTH_OK);
    }
    uint64_t hash = fth_hash64(all.text, all.length);
    fth_str_fini(&all);
    fth_corpus_free(c);
    return hash;
}

/* These numbers change when a word or a rule changes, and for no other reason. */
static void test_same_seed_same_bytes(void **state) {
    (void)state;
    assert_int_equal(fingerprint("en-de", 1, "full"), fingerprint("en-de", 1, "full"));
    assert_int_not_equal(fingerprint("en-de", 1, "full"), fingerprint("en-de", 2, "full"));
    assert_int_not_equal(fingerprint("en-de", 1, "full"), fingerprint("en-de", 1, "simple"));
    assert_int_equal(fingerprint("en-de", 1, "full"), UINT64_C(0xdddffd0e14d36bff));
    assert_int_equal(fingerprint("fr-es", 7, "simple"), UINT64_C(0x8d0dae9dcf11ed05));
}

/* What train gives does not depend on how much was asked of valid. */
static void test_splits_are_streams_of_their_own(void **state) {
    (void)state;
    fth_corpus *a = corpus_of("de-es", 4, "full"), *b = corpus_of("de-es", 4, "full");
    const char *source, *target, *source_b, *target_b;
    for (int n = 0; n < 50; n++)
        assert_int_equal(fth_corpus_next_new(b, FTH_CORPUS_VALID, &source, &target), FTH_OK);
    for (int n = 0; n < 50; n++) {
        assert_int_equal(fth_corpus_next(a, FTH_CORPUS_TRAIN, &source, &target), FTH_OK);
        assert_int_equal(fth_corpus_next(b, FTH_CORPUS_TRAIN, &source_b, &target_b), FTH_OK);
        assert_string_equal(source, source_b);
        assert_string_equal(target, target_b);
    }
    fth_corpus_free(a);
    fth_corpus_free(b);
}

/* ---- running out ---- */

/* As many different phrases as promised; then new says so, and even begins again. */
static void check_room(const char *level, fth_corpus_split split) {
    fth_corpus *c = corpus_of("en-es", 1, level);
    map seen;
    assert_non_null(seen.entry = calloc(TABLE, sizeof *seen.entry));
    const char *source, *target;
    size_t room = fth_corpus_room(c, split);
    for (size_t n = 0; n < room; n++) {
        assert_int_equal(fth_corpus_next_new(c, split, &source, &target), FTH_OK);
        if (!put(&seen, source, n)) fail_msg("\"%s\" came twice", source);
    }
    assert_int_equal(fth_corpus_next_new(c, split, &source, &target), FTH_BAD_INPUT);
    int again = 0;
    for (size_t n = 0; n < 1000; n++) {
        assert_int_equal(fth_corpus_next_even(c, split, &source, &target), FTH_OK);
        again += !put(&seen, source, room + n);
    }
    assert_true(again > 500);
    free(seen.entry);
    fth_corpus_free(c);
}

static void test_room(void **state) {
    (void)state;
    check_room("simple", FTH_CORPUS_TRAIN);
    check_room("simple", FTH_CORPUS_VALID);
    check_room("simple", FTH_CORPUS_TEST);
}

/* ---- files ---- */

static char *in_folder(const char *folder, const char *name) {
    char *path = fth_strdup_printf("%s/%s", folder, name);
    assert_non_null(path);
    return path;
}

static size_t lines_of(const char *folder, const char *name) {
    char *path = in_folder(folder, name), *data;
    size_t size, lines = 0;
    assert_int_equal(fth_file_read(path, &data, &size), FTH_OK);
    for (size_t i = 0; i < size; i++) lines += data[i] == '\n';
    free(data);
    free(path);
    return lines;
}

static char *temp_folder(void) {
    char *folder = strdup("/tmp/fathom-corpus-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static void test_files(void **state) {
    (void)state;
    char *folder = temp_folder(), *out = in_folder(folder, "new/corpus");
    const int64_t count[] = {300, 20, 0}, more[] = {7, 7, 7};
    fth_corpus *c = corpus_of("fr-de", 1, "full");
    assert_int_equal(fth_corpus_write(c, out, count, false, NULL), FTH_OK);
    assert_int_equal(lines_of(out, "train.fr"), 300);
    assert_int_equal(lines_of(out, "train.de"), 300);
    assert_int_equal(lines_of(out, "valid.fr"), 20);
    assert_int_equal(lines_of(out, "valid.de"), 20);
    assert_int_equal(lines_of(out, "test.fr"), 0);
    assert_int_equal(lines_of(out, "test.de"), 0);
    assert_int_equal(fth_corpus_write(c, out, more, false, NULL), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "train.fr is there already (--force replaces it)"));
    assert_int_equal(lines_of(out, "train.fr"), 300);
    assert_int_equal(fth_corpus_write(c, out, more, true, NULL), FTH_OK);
    assert_int_equal(lines_of(out, "train.fr"), 7);
    for (const char *const *name = (const char *const[]){"train.fr", "train.de", "valid.fr",
                                                         "valid.de", "test.fr", "test.de", NULL};
         *name; name++) {
        char *path = in_folder(out, *name);
        assert_int_equal(unlink(path), 0);
        free(path);
    }
    assert_int_equal(rmdir(out), 0); /* nothing else was left in it */
    assert_int_equal(fth_remove_tree(folder), FTH_OK);
    fth_corpus_free(c);
    free(out);
    free(folder);
}

/* More than there is, or less than nothing: an error, and not even the folder is made. */
static void test_counts(void **state) {
    (void)state;
    char *folder = temp_folder(), *out = in_folder(folder, "corpus");
    const int64_t too_many[] = {10, 5, 5001}, negative[] = {1, -1, 1};
    fth_corpus *c = corpus_of("en-fr", 1, "simple");
    assert_int_equal(fth_corpus_write(c, out, too_many, false, NULL), FTH_USAGE);
    assert_string_equal(fth_error_message(),
                        "corpus: 5001 test phrases: this level has 5000 different ones");
    assert_int_equal(fth_corpus_write(c, out, negative, false, NULL), FTH_USAGE);
    assert_string_equal(fth_error_message(),
                        "corpus: -1 valid phrases: the number must be 0 or more");
    assert_false(fth_file_exists(out));
    assert_int_equal(fth_remove_tree(folder), FTH_OK);
    fth_corpus_free(c);
    free(out);
    free(folder);
}

static void test_folder_that_cannot_be(void **state) {
    (void)state;
    char *folder = temp_folder(), *file = in_folder(folder, "file"), *out = in_folder(file, "x");
    const int64_t count[] = {1, 1, 1};
    fth_corpus *c = corpus_of("en-fr", 1, "full");
    assert_int_equal(fth_file_write(file, "x", 1), FTH_OK);
    assert_int_not_equal(fth_corpus_write(c, out, count, true, NULL), FTH_OK);
    assert_non_null(strstr(fth_error_message(), file));
    assert_int_equal(fth_remove_tree(folder), FTH_OK);
    fth_corpus_free(c);
    free(out);
    free(file);
    free(folder);
}

/* ---- bad input ---- */

static void test_bad_pairs(void **state) {
    (void)state;
    static const struct {
        const char *pair, *level, *says;
    } rows[] = {
        {"", "full", "pair \"\" is not two of en, de, fr, es with a dash (en-de)"},
        {"ende", "full", "pair \"ende\" is not two of"},
        {"en-it", "full", "pair \"en-it\": there is no language \"it\", only en, de, fr and es"},
        {"xx-en", "full", "there is no language \"xx\""},
        {"-en", "full", "there is no language \"\""},
        {"en-", "full", "there is no language \"\""},
        {"en-de-fr", "full", "there is no language \"de-fr\""},
        {"EN-de", "full", "there is no language \"EN\""},
        {"es-es", "full", "pair \"es-es\": the two languages must differ"},
        {"en-de", "hard", "level \"hard\" is not one of simple, full"},
        {"en-de", "", "level \"\" is not one of simple, full"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_corpus *c = (fth_corpus *)&rows;
        assert_int_equal(fth_corpus_new(&c, rows[i].pair, 1, rows[i].level), FTH_USAGE);
        assert_null(c);
        if (!strstr(fth_error_message(), rows[i].says)) fail_msg("said: %s", fth_error_message());
    }
    fth_corpus_free(NULL);
}

static void test_all_pairs(void **state) {
    (void)state;
    for (int i = 0; i < FTH_LANGUAGES; i++)
        for (int k = 0; k < FTH_LANGUAGES; k++) {
            if (i == k) continue;
            char pair[] = {languages[i]->code[0], languages[i]->code[1], '-',
                           languages[k]->code[0], languages[k]->code[1], 0};
            const char *source, *target;
            fth_corpus *c = corpus_of(pair, 1, "full");
            assert_string_equal(fth_corpus_code_of(c, 0), languages[i]->code);
            assert_string_equal(fth_corpus_code_of(c, 1), languages[k]->code);
            assert_int_equal(fth_corpus_next(c, FTH_CORPUS_TRAIN, &source, &target), FTH_OK);
            fth_corpus_free(c);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_translation_is_a_function),
        cmocka_unit_test(test_phrases_are_well_formed),
        cmocka_unit_test(test_splits_are_disjoint),
        cmocka_unit_test(test_splits_agree_between_pairs),
        cmocka_unit_test(test_same_seed_same_bytes),
        cmocka_unit_test(test_splits_are_streams_of_their_own),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_folder_that_cannot_be),
        cmocka_unit_test(test_bad_pairs),
        cmocka_unit_test(test_all_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
