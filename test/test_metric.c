/* links: metric base */
/* Compares the scores of the golden texts with what sacreBLEU, rouge-score, jiwer and scikit-learn
 * said about them (golden/metric/make_golden.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "close.h"
#include "metric/bleu.h"
#include "metric/chrf.h"
#include "metric/labels.h"
#include "metric/rouge.h"
#include "metric/sums.h"
#include "metric/ter.h"
#include "metric/wer.h"

#define GOLDEN TEST_DIR "/golden/metric/"

static json_t *expected;

static const struct {
    const char *name, *path;
} files[] = {{"hyp1", GOLDEN "hyp1.txt"},
             {"hyp2", GOLDEN "hyp2.txt"},
             {"ref1", GOLDEN "ref1.txt"},
             {"ref2", GOLDEN "ref2.txt"},
             {"ref3", GOLDEN "ref3.txt"}};
enum { N_FILES = sizeof files / sizeof *files };
static fth_text_lines lines[N_FILES];

static int read_all(void **state) {
    json_error_t error;
    (void)state;
    expected = json_load_file(GOLDEN "expected.json", 0, &error);
    if (!expected) return fprintf(stderr, "expected.json:%d: %s\n", error.line, error.text);
    for (size_t i = 0; i < N_FILES; i++) {
        char *data;
        size_t size;
        if (fth_file_read(files[i].path, &data, &size) ||
            fth_text_lines_take(data, size, files[i].path, &lines[i]))
            return fprintf(stderr, "%s\n", fth_error_message());
    }
    return 0;
}

static int free_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N_FILES; i++) fth_text_lines_fini(&lines[i]);
    json_decref(expected);
    return 0;
}

static const fth_text_lines *lines_of(const char *name) {
    for (size_t i = 0; i < N_FILES; i++)
        if (strcmp(files[i].name, name) == 0) return &lines[i];
    fail_msg("no golden text %s", name);
    return NULL;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text) fail_msg("no text %s", key);
    return text;
}

static double number_of(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number %s", key);
    return json_number_value(value);
}

static bool flag_of(const json_t *object, const char *key) {
    return json_is_true(json_object_get(object, key));
}

static int int_of(const json_t *object, const char *key, int standard) {
    json_t *value = json_object_get(object, key);
    return value ? (int)json_integer_value(value) : standard;
}

/* The corpus of a case; ref is working space. */
static fth_text_pairs corpus_of(const json_t *test, const fth_text *ref[3]) {
    const json_t *refs = json_object_get(test, "refs"), *name;
    const fth_text_lines *hyp = lines_of(text_of(test, "hyp"));
    size_t r;
    json_array_foreach(refs, r, name) {
        const fth_text_lines *l = lines_of(json_string_value(name));
        assert_int_equal(l->n, hyp->n);
        ref[r] = l->line;
    }
    return (fth_text_pairs){hyp->line, ref, hyp->n, json_array_size(refs)};
}

/* Equal to the last digit or two of a double. */
static void assert_same(double got, double want, const char *what) {
    if (!is_close(got, want, 4e-15 * fabs(want))) fail_msg("%s: %.17g, not %.17g", what, got, want);
}

static uint32_t crc_of_rows(const double *rows, size_t n, size_t width) {
    uint32_t crc = 0;
    for (size_t i = 0; i < n * width; i++) {
        char text[40];
        int length = snprintf(text, sizeof text, "%g%c", rows[i], (i + 1) % width ? ' ' : '\n');
        crc = fth_crc32(crc, text, (size_t)length);
    }
    return crc;
}

/* The signature of the other program, with our version in it. */
static void assert_signature(const fth_str *got, const json_t *test) {
    const char *want = text_of(test, "signature"), *mark = strstr(want, "@VERSION@");
    char text[300];
    assert_non_null(mark);
    snprintf(text, sizeof text, "%.*sfathom-%s", (int)(mark - want), want, FATHOM_VERSION);
    assert_string_equal(got->text, text);
}

typedef struct options {
    fth_bleu_options bleu;
    fth_chrf_options chrf;
    fth_tercom_options ter;
} options;

static options options_of(const json_t *o) {
    options out = {.bleu = {.smooth_value = -1}};
    const char *tok = json_string_value(json_object_get(o, "tokenize"));
    const char *smooth = json_string_value(json_object_get(o, "smooth_method"));
    while (tok && strcmp(fth_tok_name(out.bleu.tokenizer), tok) != 0) out.bleu.tokenizer++;
    while (smooth && strcmp(fth_smooth_name(out.bleu.smooth), smooth) != 0) out.bleu.smooth++;
    if (json_object_get(o, "smooth_value")) out.bleu.smooth_value = number_of(o, "smooth_value");
    out.bleu.lowercase = out.chrf.lowercase = flag_of(o, "lowercase");
    out.bleu.effective_order = flag_of(o, "effective_order");
    out.chrf.char_order = int_of(o, "char_order", 6);
    out.chrf.word_order = int_of(o, "word_order", 0);
    out.chrf.beta = int_of(o, "beta", 2);
    out.chrf.whitespace = flag_of(o, "whitespace");
    out.chrf.eps_smoothing = flag_of(o, "eps_smoothing");
    out.ter = (fth_tercom_options){flag_of(o, "normalized"), flag_of(o, "no_punct"),
                                   flag_of(o, "asian_support"), flag_of(o, "case_sensitive")};
    return out;
}

/* The per-line counts of a case, to be freed. */
static double *stats_of(const json_t *test, const fth_text_pairs *c, const options *o,
                        size_t *width) {
    const char *metric = text_of(test, "metric");
    *width = FTH_BLEU_STATS;
    if (strcmp(metric, "chrf") == 0) *width = fth_chrf_width(&o->chrf);
    if (strcmp(metric, "ter") == 0) *width = FTH_TER_STATS;
    double *stats = malloc(c->n * *width * sizeof *stats);
    assert_non_null(stats);
    if (strcmp(metric, "bleu") == 0)
        assert_int_equal(fth_bleu_stats(c, &o->bleu, stats), FTH_OK);
    else if (strcmp(metric, "chrf") == 0)
        assert_int_equal(fth_chrf_stats(c, &o->chrf, stats), FTH_OK);
    else
        assert_int_equal(fth_ter_stats(c, &o->ter, stats), FTH_OK);
    return stats;
}

static void check_bleu(const json_t *test, const fth_text_pairs *c, const options *o,
                       const double *sums, fth_str *signature) {
    fth_bleu b = fth_bleu_from_stats(sums, &o->bleu), again;
    const json_t *precisions = json_object_get(test, "precisions");
    assert_same(b.score, number_of(test, "score"), "score");
    assert_same(b.bp, number_of(test, "bp"), "bp");
    assert_int_equal(b.hyp_len, (int64_t)number_of(test, "hyp_len"));
    assert_int_equal(b.ref_len, (int64_t)number_of(test, "ref_len"));
    for (size_t n = 0; n < FTH_BLEU_ORDER; n++)
        assert_same(b.precisions[n], json_number_value(json_array_get(precisions, n)), "precision");
    assert_int_equal(fth_bleu_corpus(c, &o->bleu, &again), FTH_OK);
    assert_memory_equal(&b, &again, sizeof b);
    assert_int_equal(fth_bleu_signature(&(fth_sig){.n_refs = c->n_refs}, &o->bleu, signature), 0);
}

static void matches_sacrebleu(void **state) {
    const json_t *test;
    size_t i, width;
    (void)state;
    json_array_foreach(json_object_get(expected, "sacrebleu"), i, test) {
        const fth_text *ref[3];
        const char *metric = text_of(test, "metric");
        fth_text_pairs c = corpus_of(test, ref);
        fth_sig sig = {.n_refs = c.n_refs};
        fth_str signature = {0};
        options o = options_of(json_object_get(test, "options"));
        double *stats = stats_of(test, &c, &o, &width), sums[64];
        fth_sum_rows(stats, c.n, width, sums);
        if (strcmp(metric, "bleu") == 0) {
            check_bleu(test, &c, &o, sums, &signature);
        } else if (strcmp(metric, "chrf") == 0) {
            assert_same(fth_chrf_from_stats(sums, &o.chrf), number_of(test, "score"), "chrF");
            assert_int_equal(fth_chrf_signature(&sig, &o.chrf, &signature), FTH_OK);
        } else {
            assert_same(fth_ter_from_stats(sums), number_of(test, "score"), "TER");
            assert_int_equal(fth_ter_signature(&sig, &o.ter, &signature), FTH_OK);
        }
        assert_int_equal(crc_of_rows(stats, c.n, width), (uint32_t)number_of(test, "rows_crc"));
        assert_signature(&signature, test);
        fth_str_fini(&signature);
        free(stats);
    }
    assert_true(i > 40);
}

static fth_text view(const char *text) {
    return (fth_text){text, strlen(text)};
}

static void check_tiny(const json_t *test, const fth_text_pairs *c) {
    fth_chrf_options chrf = {.char_order = 6, .beta = 2};
    fth_tercom_options ter = {0};
    double stats[24];
    char key[32];
    for (fth_smooth s = FTH_SMOOTH_EXP; s <= FTH_SMOOTH_NONE; s++)
        for (int effective = 0; effective < 2; effective++) {
            fth_bleu_options o = {.smooth = s, .smooth_value = -1, .effective_order = effective};
            fth_bleu b;
            assert_int_equal(fth_bleu_corpus(c, &o, &b), FTH_OK);
            snprintf(key, sizeof key, "bleu %s %d", fth_smooth_name(s), effective);
            assert_same(b.score, number_of(test, key), key);
        }
    assert_int_equal(fth_chrf_stats(c, &chrf, stats), FTH_OK);
    assert_same(fth_chrf_from_stats(stats, &chrf), number_of(test, "chrf 0"), "chrf");
    chrf.word_order = 2;
    assert_int_equal(fth_chrf_stats(c, &chrf, stats), FTH_OK);
    assert_same(fth_chrf_from_stats(stats, &chrf), number_of(test, "chrf 2"), "chrf++");
    assert_int_equal(fth_ter_stats(c, &ter, stats), FTH_OK);
    assert_same(fth_ter_from_stats(stats), number_of(test, "ter"), "ter");
}

/* One line only: empty sides, too few words for an order, lengths that differ wildly. */
static void matches_sacrebleu_on_tiny_corpora(void **state) {
    const json_t *test, *one;
    size_t i, r;
    (void)state;
    json_array_foreach(json_object_get(expected, "tiny"), i, test) {
        fth_text hyp = view(text_of(test, "hyp")), ref[3];
        const fth_text *refs[3] = {&ref[0], &ref[1], &ref[2]};
        json_array_foreach(json_object_get(test, "refs"), r, one) ref[r] =
            view(json_string_value(one));
        check_tiny(test, &(fth_text_pairs){&hyp, refs, 1, r});
    }
    assert_true(i > 15);
}

/* Means over thousands of fractions: the order of summation shows in the last digits. */
static void assert_near(double got, double want, const char *what) {
    if (!is_close(got, want, 1e-13)) fail_msg("%s: %.17g, not %.17g", what, got, want);
}

static void matches_rouge_score(void **state) {
    const json_t *test;
    size_t i;
    (void)state;
    json_array_foreach(json_object_get(expected, "rouge"), i, test) {
        const fth_text *ref[3];
        fth_text_pairs c = corpus_of(test, ref);
        fth_rouge_options o = {flag_of(test, "stem"), text_of(test, "newline")};
        fth_rouge got[FTH_ROUGES];
        assert_int_equal(fth_rouge_corpus(&c, &o, got), FTH_OK);
        for (fth_rouge_kind k = 0; k < FTH_ROUGES; k++) {
            const json_t *want = json_object_get(test, fth_rouge_name(k));
            assert_near(got[k].precision, number_of(want, "precision"), fth_rouge_name(k));
            assert_near(got[k].recall, number_of(want, "recall"), fth_rouge_name(k));
            assert_near(got[k].fmeasure, number_of(want, "fmeasure"), fth_rouge_name(k));
        }
    }
    assert_int_equal(i, 12);
}

static void row_of(const fth_wer *w, double row[4]) {
    row[0] = (double)w->edits.hits;
    row[1] = (double)w->edits.substitutions;
    row[2] = (double)w->edits.insertions;
    row[3] = (double)w->edits.deletions;
}

static void matches_jiwer(void **state) {
    static const char *const keys[] = {"hits", "substitutions", "insertions", "deletions"};
    const json_t *test;
    size_t i;
    (void)state;
    json_array_foreach(json_object_get(expected, "error_rates"), i, test) {
        const fth_text *ref[3];
        fth_text_pairs c = corpus_of(test, ref);
        fth_wer_options o = {.characters = strcmp(text_of(test, "metric"), "cer") == 0};
        fth_wer w;
        double row[4], *rows = malloc(4 * c.n * sizeof *rows);
        assert_non_null(rows);
        assert_int_equal(fth_wer_corpus(&c, &o, &w), FTH_OK);
        assert_same(w.score, number_of(test, "score"), "score");
        row_of(&w, row);
        for (int k = 0; k < 4; k++) assert_same(row[k], number_of(test, keys[k]), keys[k]);
        for (size_t line = 0; line < c.n; line++) {
            const fth_text *one = &ref[0][line];
            assert_int_equal(fth_wer_corpus(&(fth_text_pairs){&c.hyp[line], &one, 1, 1}, &o, &w),
                             0);
            row_of(&w, rows + 4 * line);
        }
        assert_int_equal(crc_of_rows(rows, c.n, 4), (uint32_t)number_of(test, "rows_crc"));
        free(rows);
    }
    assert_int_equal(i, 6);
}

static void matches_scikit_learn(void **state) {
    const json_t *test;
    size_t i;
    (void)state;
    json_array_foreach(json_object_get(expected, "labels"), i, test) {
        const char *hyp = text_of(test, "hyp"), *ref = text_of(test, "ref");
        size_t n = strlen(hyp);
        fth_text *h = malloc(2 * n * sizeof *h), *r = h + n;
        const fth_text *refs = r;
        fth_labels got;
        assert_non_null(h);
        for (size_t k = 0; k < n; k++) {
            h[k] = (fth_text){hyp + k, 1};
            r[k] = (fth_text){ref + k, 1};
        }
        assert_int_equal(fth_labels_corpus(&(fth_text_pairs){h, &refs, n, 1}, &got), FTH_OK);
        assert_same(got.accuracy, number_of(test, "accuracy"), "accuracy");
        assert_near(got.matthews, number_of(test, "matthews"), "matthews");
        free(h);
    }
    assert_int_equal(i, 5);
}

static double bleu_score(const double *sums, const void *o) {
    return fth_bleu_from_stats(sums, o).score;
}

static double chrf_score(const double *sums, const void *o) {
    return fth_chrf_from_stats(sums, o);
}

/* Another random generator than sacreBLEU's: the same within what 1000 resamples can tell. The mean
 * has a standard error of half_width / 2 / sqrt(1000), the ends of the interval one of about 7
 * %. */
static void bootstrap_agrees_with_sacrebleu(void **state) {
    const json_t *test;
    size_t i, width;
    (void)state;
    json_array_foreach(json_object_get(expected, "bootstrap"), i, test) {
        options o = options_of(NULL);
        bool bleu = strcmp(text_of(test, "metric"), "bleu") == 0;
        const fth_text *ref = lines_of("ref1")->line;
        fth_text_pairs a = {lines_of("hyp1")->line, &ref, (size_t)number_of(test, "n"), 1}, b = a;
        b.hyp = lines_of("hyp2")->line;
        double *stats[2] = {stats_of(test, &a, &o, &width), stats_of(test, &b, &o, &width)};
        fth_resampling r = {
            a.n,  width, bleu ? bleu_score : chrf_score, bleu ? (void *)&o.bleu : (void *)&o.chrf,
            1000, 12345};
        fth_resampled got[2], again[2], swapped[2];
        fth_str signature = {0};
        fth_sig sig = {1, 1000, 12345};
        assert_int_equal(fth_bootstrap(&r, (const double *const *)stats, 2, got), FTH_OK);
        double wide = number_of(test, "half_width"), other = number_of(test, "other_half_width");
        assert_close(got[0].mean, number_of(test, "mean"), 0.1 * wide);
        assert_close(got[0].half_width, wide, 0.2 * wide);
        assert_close(got[1].mean, number_of(test, "other_mean"), 0.1 * other);
        assert_close(got[1].half_width, other, 0.2 * other);
        double p = number_of(test, "p_value"), spread = 5 * sqrt(p * (1 - p) / 1000) + 0.002;
        assert_close(got[1].p_value, p, spread);
        assert_true(got[0].p_value == 1);
        assert_int_equal(fth_bootstrap(&r, (const double *const *)stats, 2, again), FTH_OK);
        assert_memory_equal(got, again, sizeof got);
        double *turned[2] = {stats[1], stats[0]};
        assert_int_equal(fth_bootstrap(&r, (const double *const *)turned, 2, swapped), FTH_OK);
        assert_true(swapped[1].p_value == got[1].p_value && swapped[0].mean == got[1].mean);
        double exchanged[2];
        r.resamples = 10000;
        assert_int_equal(fth_randomization(&r, (const double *const *)stats, 2, exchanged), FTH_OK);
        p = number_of(test, "p_exchanged");
        assert_close(exchanged[1], p, 5 * sqrt(p * (1 - p) / 10000) + 0.0002);
        assert_true(exchanged[0] == 1);
        assert_int_equal(bleu ? fth_bleu_signature(&sig, &o.bleu, &signature)
                              : fth_chrf_signature(&sig, &o.chrf, &signature),
                         FTH_OK);
        assert_signature(&signature, test);
        fth_str_fini(&signature);
        free(stats[0]);
        free(stats[1]);
    }
    assert_int_equal(i, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_sacrebleu),    cmocka_unit_test(matches_sacrebleu_on_tiny_corpora),
        cmocka_unit_test(matches_rouge_score),  cmocka_unit_test(matches_jiwer),
        cmocka_unit_test(matches_scikit_learn), cmocka_unit_test(bootstrap_agrees_with_sacrebleu),
    };
    return cmocka_run_group_tests(tests, read_all, free_all);
}
