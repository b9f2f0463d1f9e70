/* links: data base */
/* Data of many languages: pairs.yaml and languages.json against what cannot be, shares by
 * temperature, epochs that give every sentence its turn, and the text of a vocabulary. */
#include "test_files.h"

#include <math.h>
#include <stdbool.h>

#include "data/batcher.h"
#include "data/direction_draw.h"
#include "data/language_sample.h"
#include "data/pairs.h"

static const fth_data_side SIDE = {.vocab = 50, .special = {0, 1, 2, 3}};

/* ---- pairs.yaml ---- */

static void reads_pairs(void **state) {
    static const char text[] = "- source: en\n  target: de\n  train: [a.en, /b.de]\n"
                               "- both: [en, pt-br]\n  train: [x, y]\n  test: t.*.gz\n"
                               "- all: [de, es, fr]\n  test: test.*\n";
    fth_pairs p;
    (void)state;
    assert_ok(fth_pairs_parse("some/pairs.yaml", text, strlen(text), &p));
    assert_int_equal(p.languages.n, 1 + 2 + 6);
    assert_int_equal(p.languages.n_codes, 5);
    assert_string_equal(p.of[0].file[0][0], "some/a.en");
    assert_string_equal(p.of[0].file[0][1], "/b.de");
    assert_null(p.of[0].file[2][0]);
    const int32_t to = fth_languages_direction(&p.languages, "en", "pt-br"),
                  from = fth_languages_direction(&p.languages, "pt-br", "en"),
                  zero = fth_languages_direction(&p.languages, "fr", "es");
    assert_string_equal(p.of[to].file[0][0], "some/x");
    assert_string_equal(p.of[to].file[0][1], "some/y");
    assert_string_equal(p.of[from].file[0][0], "some/y");
    assert_string_equal(p.of[from].file[0][1], "some/x");
    assert_string_equal(p.of[from].file[2][0], "some/t.pt-br.gz");
    assert_string_equal(p.of[zero].file[2][1], "some/test.es");
    assert_null(p.of[zero].file[0][0]);
    assert_string_equal(fth_languages_name(&p.languages, zero).text, "fr-es");
    fth_pairs_fini(&p);
}

static void refuses_pairs(void **state) {
    static const struct {
        const char *text, *words[3];
    } cases[] = {
        {"", {"p.yaml: has no directions"}},
        {"both: [en, de]\n", {"p.yaml:1:", "must hold a list"}},
        {"- en\n", {"p.yaml:1:", "must hold lines"}},
        {"- both: [en, de]\n", {"p.yaml:1:", "train, valid or test"}},
        {"- both: [en, de]\n  train: a.*\n  dev: b.*\n", {"p.yaml:3:", "'dev' is none of"}},
        {"- both: [en]\n  train: a.*\n", {"p.yaml:1: both", "two languages"}},
        {"- both: [en, de, fr]\n  train: a.*\n", {"p.yaml:1: both", "two languages"}},
        {"- all: en\n  train: a.*\n", {"p.yaml:1: all", "two languages or more"}},
        {"- all: [en, de]\n  train: [a, b]\n", {"p.yaml:2: train", "with a *"}},
        {"- both: [en, de]\n  train: a\n", {"p.yaml:2: train", "two files"}},
        {"- both: [en, de]\n  train: [a]\n", {"p.yaml:2: train", "two files"}},
        {"- both: [en, de]\n  train: [a, b, c]\n", {"p.yaml:2: train", "two files"}},
        {"- both: [en, de]\n  train: a.*.*\n", {"p.yaml:2: train", "two files"}},
        {"- both: [en, de]\n  train:\n", {"p.yaml:2: train", "two files"}},
        {"- source: en\n  train: a.*\n", {"p.yaml:1:", "source and target, or both"}},
        {"- source: en\n  target: de\n  both: [en, fr]\n  train: a.*\n", {"p.yaml:1:"}},
        {"- source: [en, de]\n  target: fr\n  train: a.*\n", {"p.yaml:1:", "one language each"}},
        {"- both: [en, en]\n  train: a.*\n", {"p.yaml:1: direction en-en", "one language"}},
        {"- both: [en, de]\n  train: a.*\n- source: de\n  target: en\n  test: b.*\n",
         {"p.yaml:3: direction de-en", "given twice"}},
        {"- both: [en, \"d e\"]\n  train: a.*\n", {"p.yaml:1:", "'d e'", "letters"}},
        {"- both: [en, abcdefghijklmnopqrstuvwxyz]\n  train: a.*\n", {"p.yaml:1:", "1 to 23"}},
        {"- both: [en, \"\"]\n  train: a.*\n", {"p.yaml:1:", "letters"}},
        {"- both: [en, de]\n  both: [en, fr]\n  train: a.*\n", {"p.yaml:2:", "given twice"}},
        {"- both: [en, de\n", {"p.yaml:", "not YAML"}},
        {"- both: [en, de]\n  train: a.*\n--- x\n", {"p.yaml:3:"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *words[4] = {cases[i].words[0], cases[i].words[1], cases[i].words[2], NULL};
        fth_pairs p;
        assert_failed(fth_pairs_parse("p.yaml", cases[i].text, strlen(cases[i].text), &p),
                      FTH_BAD_INPUT, words);
        assert_null(p.of);
        fth_pairs_fini(&p);
    }
}

static void names_missing_files(void **state) {
    char path[512], there[512];
    fth_pairs p;
    PATH(path, *state, "pairs.yaml");
    PATH(there, *state, "a.en");
    put_bytes(path, "- both: [en, de]\n  train: a.*\n", 30);
    put_bytes(there, "x\n", 2);
    assert_failed(
        fth_pairs_read(path, &p), FTH_NOT_FOUND,
        (const char *[]){"pairs.yaml:1:", "train of en-de", "no such file", "a.de", NULL});
    PATH(there, *state, "a.de");
    assert_ok(fth_make_dirs(there));
    assert_failed(fth_pairs_read(path, &p), FTH_BAD_INPUT,
                  (const char *[]){"no ordinary file", "a.de", NULL});
    PATH(path, *state, "none.yaml");
    assert_failed(fth_pairs_read(path, &p), FTH_NOT_FOUND, (const char *[]){"none.yaml", NULL});
}

/* ---- languages.json ---- */

static void keeps_languages(void **state) {
    fth_languages a = {.tags = FTH_TAGS_SOURCE_TARGET, .temperature = 2.5}, b;
    assert_ok(fth_languages_add(&a, "en", "de"));
    assert_ok(fth_languages_add(&a, "de", "fr"));
    assert_ok(fth_languages_write(&a, *state));
    assert_ok(fth_languages_load(&b, *state));
    assert_int_equal(b.tags, FTH_TAGS_SOURCE_TARGET);
    assert_true(b.temperature == 2.5);
    assert_int_equal(b.n, 2);
    assert_string_equal(fth_languages_name(&b, 1).text, "de-fr");
    fth_languages_fini(&a);
    fth_languages_fini(&b);
}

#define GOOD "\"format\": \"fathom-languages\", \"version\": 1, "

static void refuses_languages(void **state) {
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"{", "l.json"},
        {"[]", "'format'"},
        {"{\"format\": \"x\"}", "'format'"},
        {"{\"format\": \"fathom-languages\", \"version\": 2}", "'version'"},
        {"{" GOOD "\"tags\": 1}", "'tags'"},
        {"{" GOOD "\"tags\": \"both\"}", "'tags'"},
        {"{" GOOD "\"tags\": \"target\"}", "'temperature'"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": 0.5}", "'temperature'"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": \"nan\"}", "'temperature'"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": 1}", "'directions'"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": 1, \"directions\": []}", "'directions'"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": 1, \"directions\": [[\"en\"]]}",
         "[source, target]"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": 1, \"directions\": [[\"en\", 1]]}",
         "[source, target]"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": 1, \"directions\": [[\"en\", \"en\"]]}",
         "one language"},
        {"{" GOOD "\"tags\": \"target\", \"temperature\": 1, \"directions\": [[\"en\", \"de\"], "
         "[\"en\", \"de\"]]}",
         "given twice"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_languages l;
        assert_failed(fth_languages_parse(&l, "l.json", cases[i].text, strlen(cases[i].text)),
                      FTH_BAD_INPUT, (const char *[]){cases[i].word, NULL});
    }
}

/* ---- epochs ---- */

/* A set of directions of these sizes; token 4 + k says the direction of a sentence. */
static fth_dataset *make_set(const char *folder, const int64_t *sizes, int32_t n) {
    char path[512];
    fth_dataset_writer *w = NULL;
    fth_dataset *d = NULL;
    PATH(path, folder, "set.fds");
    assert_ok(fth_dataset_writer_new(path, 2, (fth_data_side[]){SIDE, SIDE}, &w));
    for (int32_t k = 0; k < n; k++)
        for (int64_t i = 0; i < sizes[k]; i++) {
            const int32_t ids[] = {4 + k, 4 + k, 4 + k};
            const size_t lengths[2] = {1 + (size_t)i % 3, 1 + (size_t)i % 2}, zero[2] = {0, 0};
            assert_ok(
                fth_dataset_writer_add(w, (const int32_t *const[]){ids, ids}, lengths, zero, zero));
        }
    assert_ok(fth_dataset_writer_finish(w));
    fth_dataset_writer_free(w);
    assert_ok(fth_dataset_open(path, &d));
    d->direction_first = calloc((size_t)n + 1, sizeof *d->direction_first);
    assert_non_null(d->direction_first);
    for (int32_t k = 0; k < n; k++) d->direction_first[k + 1] = d->direction_first[k] + sizes[k];
    d->n_directions = n;
    d->temperature = 5;
    return d;
}

static void draws_by_temperature(void **state) {
    static const int64_t sizes[] = {1000, 0, 100, 7};
    fth_dataset *d = make_set(*state, sizes, 4);
    fth_direction_draw draw;
    assert_ok(fth_direction_draw_init(&draw, d, 5, 1));
    double total = pow(1000, 0.2) + pow(100, 0.2) + pow(7, 0.2);
    for (int32_t k = 0; k < 4; k++) {
        const double share = sizes[k] ? pow((double)sizes[k], 0.2) / total * 1107 : 0;
        assert_true(fabs((double)(draw.items[k + 1] - draw.items[k]) - share) <= 0.5);
    }
    /* after any number of epochs the sentences of a direction differ by one turn at most */
    int32_t *turns = calloc(1107, sizeof *turns);
    for (int64_t epoch = 1; epoch <= 5; epoch++) {
        for (int64_t i = 0; i < fth_direction_draw_items(&draw); i++) {
            const int64_t s = fth_direction_draw_at(&draw, epoch, i);
            assert_in_range(s, 0, 1106);
            turns[s]++;
        }
        for (int32_t k = 0; k < 4; k++) {
            int32_t low = INT32_MAX, high = 0;
            for (int64_t s = d->direction_first[k]; s < d->direction_first[k + 1]; s++) {
                if (turns[s] < low) low = turns[s];
                if (turns[s] > high) high = turns[s];
            }
            assert_true(sizes[k] == 0 || high - low <= 1);
        }
    }
    free(turns);
    fth_direction_draw_fini(&draw);
    /* as they are: no draw */
    assert_ok(fth_direction_draw_init(&draw, d, 1, 1));
    assert_int_equal(draw.n, 0);
    fth_dataset_free(d);
}

static int64_t batch_directions(const fth_packed *p, int64_t counts[4]) {
    for (int32_t i = 0; i < p->n_sent; i++) counts[p->src[p->src_offsets[i]] - 4]++;
    return p->n_sent;
}

static void resumes_an_epoch(void **state) {
    static const int64_t sizes[] = {900, 60, 40};
    fth_dataset *d = make_set(*state, sizes, 3);
    const fth_batch_options o = {.max_tokens = 64, .window = 200, .seed = 3};
    fth_batcher *a = NULL, *b = NULL;
    fth_packed p = {0}, q = {0};
    fth_position at[60];
    int64_t counts[4] = {0};
    assert_ok(fth_packed_init(&p, 64));
    assert_ok(fth_packed_init(&q, 64));
    assert_ok(fth_batcher_new(d, &o, &a));
    for (int i = 0; i < 60; i++) {
        assert_ok(fth_batcher_next(a, &p));
        at[i] = p.position;
    }
    assert_ok(fth_batcher_seek(a, at[0]));
    while (assert_ok(fth_batcher_next(a, &p)), p.position.epoch == 1) batch_directions(&p, counts);
    double total = pow(900, 0.2) + pow(60, 0.2) + pow(40, 0.2);
    for (int k = 0; k < 3; k++)
        assert_true(fabs((double)counts[k] - pow((double)sizes[k], 0.2) / total * 1000) <= 0.5);
    /* a second batcher that goes straight to a position has the same batches */
    for (int i = 0; i < 60; i += 7) {
        assert_ok(fth_batcher_seek(a, at[i]));
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_batcher_seek(b, at[i]));
        for (int k = 0; k < 30; k++) {
            assert_ok(fth_batcher_next(a, &p));
            assert_ok(fth_batcher_next(b, &q));
            assert_int_equal(p.n_sent, q.n_sent);
            assert_memory_equal(p.sentences, q.sentences, sizeof *p.sentences * (size_t)p.n_sent);
            assert_memory_equal(p.src, q.src, sizeof *p.src * (size_t)p.src_rows);
        }
        fth_batcher_free(b);
    }
    fth_batcher_free(a);
    fth_packed_fini(&p);
    fth_packed_fini(&q);
    fth_dataset_free(d);
}

/* In order, every sentence comes once, whatever the temperature. */
static void keeps_the_order_of_evaluation(void **state) {
    static const int64_t sizes[] = {90, 6, 4};
    fth_dataset *d = make_set(*state, sizes, 3);
    const fth_batch_options o = {.max_tokens = 64, .in_order = 1};
    fth_batcher *b = NULL;
    fth_packed p = {0};
    int64_t next = 0;
    assert_ok(fth_packed_init(&p, 64));
    assert_ok(fth_batcher_new(d, &o, &b));
    while (assert_ok(fth_batcher_next(b, &p)), p.n_sent)
        for (int32_t i = 0; i < p.n_sent; i++) assert_int_equal(p.sentences[i], next++);
    assert_int_equal(next, 100);
    const fth_dataset part = fth_dataset_part(d, 90, 6);
    fth_batcher_free(b);
    assert_ok(fth_batcher_new(&part, &o, &b));
    assert_ok(fth_batcher_next(b, &p));
    assert_int_equal(p.n_sent, 6);
    assert_int_equal(p.src[0], 5);
    fth_batcher_free(b);
    fth_packed_fini(&p);
    fth_dataset_free(d);
}

/* ---- the text of a vocabulary ---- */

static void put_lines(const char *folder, const char *name, char letter, int lines) {
    char path[512];
    char text[40 * 2000];
    size_t n = 0;
    for (int i = 0; i < lines; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%c%c%c number %04d\n", letter, letter,
                              letter, i);
    PATH(path, folder, name);
    put_bytes(path, text, n);
}

static void samples_by_temperature(void **state) {
    char name[3][512];
    static const char letters[] = "xyz";
    static const int lines[] = {2000, 200, 20};
    fth_languages l = {.temperature = 2};
    assert_ok(fth_languages_add(&l, "x", "y"));
    assert_ok(fth_languages_add(&l, "y", "x"));
    assert_ok(fth_languages_add(&l, "x", "z"));
    for (int i = 0; i < 3; i++) {
        put_lines(*state, (char[]){letters[i], 0}, letters[i], lines[i]);
        PATH(name[i], *state, ((char[]){letters[i], 0}));
    }
    const fth_text_file src[] = {{name[0], "x"}, {name[1], "y"}, {name[0], "x"}},
                        tgt[] = {{name[1], "y"}, {name[0], "x"}, {name[2], "z"}};
    const int32_t directions[] = {0, 1, 2};
    const fth_text_spec text = {.kind = FTH_TEXT_DIRECTIONS,
                                .files = {src, tgt},
                                .n_files = {3, 3},
                                .directions = directions};
    const double total = sqrt(2000) + sqrt(200) + sqrt(20);
    for (int small = 0; small < 2; small++) {
        const uint64_t budget = small ? 8000 : 1 << 20;
        fth_language_sample s;
        double counts[3] = {0}, all = 0;
        const char *line;
        size_t length;
        assert_ok(fth_language_sample_read(&s, &l, &text, budget, 1000));
        for (int i = 0; i < 3; i++) assert_int_equal(s.lines[i], lines[i]); /* each file once */
        while (assert_ok(fth_language_sample_next(&s, &line, &length)), line) {
            counts[line[0] - 'x'] += (double)length;
            all += (double)length;
        }
        for (int i = 0; i < 3; i++)
            assert_true(fabs(counts[i] / all - sqrt(lines[i]) / total) < 0.05);
        if (small) assert_true(all < 1.1 * 8000);
        fth_language_sample_fini(&s);
    }
    fth_languages_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_pairs),           TEST(refuses_pairs),
        TEST(names_missing_files),   TEST(keeps_languages),
        TEST(refuses_languages),     TEST(draws_by_temperature),
        TEST(resumes_an_epoch),      TEST(keeps_the_order_of_evaluation),
        TEST(samples_by_temperature)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
