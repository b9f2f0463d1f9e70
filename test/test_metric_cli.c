/* links: metric base */
/* fathom score as a user runs it: FATHOM_PROGRAM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "score_program.h"

#define GOLDEN TEST_DIR "/golden/metric/"

/* Runs a command of the shell in the folder. */
static void pack(const char *command) {
    char *line = fth_strdup_printf("cd %s && %s", folder, command);
    assert_non_null(line);
    assert_int_equal(system(line), 0);
    free(line);
}

/* The flags of a golden case: {"word_order": 2, "lowercase": true} -> --word-order 2
 * --lowercase. */
static void add_flags(fth_str *out, json_t *options) {
    const char *key;
    json_t *value;
    json_object_foreach(options, key, value) {
        if (json_is_false(value)) continue;
        assert_int_equal(fth_str_addf(out, " --%s", key), FTH_OK);
        for (char *c = out->text + out->length - strlen(key); *c; c++)
            if (*c == '_') *c = '-';
        if (json_is_string(value))
            assert_int_equal(fth_str_addf(out, " %s", json_string_value(value)), FTH_OK);
        else if (json_is_number(value))
            assert_int_equal(fth_str_addf(out, " %g", json_number_value(value)), FTH_OK);
    }
}

static void add_case(fth_str *out, json_t *test) {
    json_t *ref;
    size_t r;
    fth_str_clear(out);
    assert_int_equal(fth_str_addf(out, "%s --hyp " GOLDEN "%s.txt",
                                  json_string_value(json_object_get(test, "metric")),
                                  json_string_value(json_object_get(test, "hyp"))),
                     FTH_OK);
    json_array_foreach(json_object_get(test, "refs"), r, ref)
        assert_int_equal(fth_str_addf(out, " --ref " GOLDEN "%s.txt", json_string_value(ref)), 0);
    add_flags(out, json_object_get(test, "options"));
}

/* The line that sacreBLEU printed, with our version in it. */
static void assert_line(const char *got, const char *want) {
    const char *mark = strstr(want, "@VERSION@");
    assert_non_null(mark);
    char *line = fth_strdup_printf("%.*sfathom-" FATHOM_VERSION "%s\n", (int)(mark - want), want,
                                   mark + strlen("@VERSION@"));
    assert_non_null(line);
    assert_string_equal(got, line);
    free(line);
}

static void prints_the_lines_of_sacrebleu(void **state) {
    json_t *expected = json_load_file(GOLDEN "expected.json", 0, NULL), *test;
    fth_str arguments = {0}, out = {0};
    size_t i, ran = 0;
    (void)state;
    assert_non_null(expected);
    json_array_foreach(json_object_get(expected, "sacrebleu"), i, test) {
        const char *line = json_string_value(json_object_get(test, "line"));
        const char *score = strstr(line, " = ") + 3;
        add_case(&arguments, test);
        if (strcspn(score, " ") - strcspn(score, ".") > 2) /* this one was printed with 4 digits */
            assert_int_equal(fth_str_addf(&arguments, " --width 4"), FTH_OK);
        assert_int_equal(run(arguments.text, &out), 0);
        assert_line(out.text, line);
        ran++;
    }
    assert_true(ran > 40);
    fth_str_fini(&arguments);
    fth_str_fini(&out);
    json_decref(expected);
}

static double number_at(const json_t *object, const char *key, const char *inner) {
    json_t *value = json_object_get(object, key);
    if (inner) value = json_object_get(value, inner);
    if (!json_is_number(value)) fail_msg("no number %s", key);
    return json_number_value(value);
}

static json_t *json_of(const char *arguments) {
    fth_str out = {0};
    assert_int_equal(run(arguments, &out), 0);
    json_t *object = json_loads(out.text, 0, NULL);
    if (!json_is_object(object)) fail_msg("no JSON object: %s", out.text);
    fth_str_fini(&out);
    return object;
}

static void prints_json(void **state) {
    (void)state;
    put_text("hyp", "the cat sat on a mat\nyes\n");
    put_text("ref", "the cat sat on the mat\nno\n");
    json_t *o = json_of("bleu --ref ref --hyp hyp --json");
    assert_true(number_at(o, "score", NULL) > 40 && number_at(o, "score", NULL) < 60);
    assert_int_equal(json_array_size(json_object_get(o, "precisions")), 4);
    assert_true(number_at(o, "hyp_len", NULL) == 7 && number_at(o, "ref_len", NULL) == 7);
    assert_true(number_at(o, "bp", NULL) == 1);
    assert_string_equal(
        json_string_value(json_object_get(o, "signature")),
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:fathom-" FATHOM_VERSION);
    json_decref(o);
    o = json_of("bleu --ref ref --hyp hyp --json --smooth-method floor --smooth-value 1e300");
    const char *long_one = json_string_value(json_object_get(o, "signature"));
    assert_non_null(strstr(long_one, ".00]|version:fathom-"));
    json_decref(o);
    o = json_of("wer --ref ref --hyp hyp --json");
    assert_true(number_at(o, "score", NULL) == 2.0 / 7 && number_at(o, "hits", NULL) == 5);
    assert_true(number_at(o, "substitutions", NULL) == 2 && number_at(o, "insertions", NULL) == 0);
    assert_true(number_at(o, "deletions", NULL) == 0);
    json_decref(o);
    o = json_of("rouge --stem --ref ref --hyp hyp --json");
    assert_true(number_at(o, "rouge1", "fmeasure") == 5.0 / 12);
    assert_true(number_at(o, "rouge2", "recall") == 3.0 / 10);
    assert_true(number_at(o, "rougeL", "precision") == 5.0 / 12);
    assert_true(number_at(o, "rougeLsum", "precision") == 5.0 / 12);
    json_decref(o);
    o = json_of("accuracy --ref ref --json < hyp");
    assert_true(number_at(o, "score", NULL) == 0 && number_at(o, "total", NULL) == 2);
    json_decref(o);
    o = json_of("chrf --word-order 2 --ref ref --hyp ref --hyp hyp --paired --resamples 50 --json");
    json_t *second = json_array_get(json_object_get(o, "systems"), 1);
    assert_true(number_at(json_array_get(json_object_get(o, "systems"), 0), "score", NULL) == 100);
    assert_true(number_at(second, "p_value", NULL) > 0);
    assert_true(number_at(second, "p_exchanged", NULL) > 0);
    assert_true(number_at(second, "confidence_var", NULL) >= 0);
    json_decref(o);
}

static void prints_lines(void **state) {
    static const struct {
        const char *arguments, *begins, *ends;
    } cases[] = {
        {"multi-bleu --ref hyp < hyp",
         "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:none|version:",
         " = 100.0 100.0/100.0/100.0/100.0 (BP = 1.000 ratio = 1.000 hyp_len = 7 ref_len = 7)\n"},
        {"cer --ref hyp --hyp hyp", "CER|nrefs:1|case:mixed|version:fathom-",
         " = 0.0000 (hits = 23 substitutions = 0 insertions = 0 deletions = 0)\n"},
        {"chrf --ref hyp --hyp - --width 2 < hyp", "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|",
         " = 100.00\n"},
        {"ter --ref hyp --hyp hyp --hyp ref --paired --resamples 40 --seed 7",
         "TER|nrefs:1|bs:40|seed:7|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:fathom-",
         ")\n"},
        {"rouge --ref hyp --hyp hyp", "ROUGE|nrefs:1|case:lc|stem:no|version:fathom-",
         " = 1.0000/0.5000/1.0000/1.0000 (rouge1/rouge2/rougeL/rougeLsum)\n"},
        {"matthews --ref labels --hyp labels", "MATTHEWS|nrefs:1|", " = 1.0000 (3 of 3 correct)\n"},
    };
    fth_str out = {0};
    (void)state;
    put_text("hyp", "the cat sat on a mat\nyes\n");
    put_text("ref", "the cat sat on the mat\nno\n");
    put_text("labels", "a\nb\na\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run(cases[i].arguments, &out), 0);
        size_t n = strlen(cases[i].ends);
        assert_memory_equal(out.text, cases[i].begins, strlen(cases[i].begins));
        assert_true(out.length > n);
        assert_string_equal(out.text + out.length - n, cases[i].ends);
    }
    fth_str_fini(&out);
}

static void says_what_is_wrong(void **state) {
    static const struct {
        const char *arguments, *message;
    } cases[] = {
        {"", "METRIC"},
        {"blue --ref two --hyp two", "blue: unknown metric (did you mean bleu?); there are bleu, "},
        {"bleu --hyp two", "--ref FILE is missing"},
        {"bleu --ref two --hyp three", "two has 2 lines, but three has 3; all must have as many"},
        {"chrf --ref two --hyp two --hyp three", "three has 3 lines, but two has 2;"},
        {"bleu --ref two --ref three --hyp two", "three has 3 lines, but two has 2;"},
        {"bleu --ref two --hyp missing", "missing: "},
        {"bleu --ref missing < two", "missing: "},
        {"ter --ref two --hyp bad", "bad:2: byte 0xff is not UTF-8"},
        {"ter --ref two < bad", "standard input:2: byte 0xff is not UTF-8"},
        {"bleu --ref empty --hyp empty", "empty has no lines to score"},
        {"bleu --ref two --hyp cut.gz", "cut.gz: the compressed file is cut short"},
        {"bleu --ref . --hyp two", ".: a folder, not a text file"},
        {"wer --ref two --ref two --hyp two", "--ref: wer takes one file of references, not 2"},
        {"bleu --ref - < two", "standard input can be read once, not 2 times"},
        {"bleu --ref two --hyp two --paired", "--paired: takes two or more --hyp"},
        {"chrf --ref two --hyp two --stem", "--stem: chrf does not use it, only rouge"},
        {"rouge --ref two --hyp two --confidence",
         "--confidence: rouge does not use it, only bleu, multi-bleu, chrf and ter"},
        {"bleu --ref two --hyp two --tokenize 14a", "14a"},
        {"bleu --ref two --hyp two --smooth-value 3",
         "--smooth-value 3: needs --smooth-method floor"},
        {"bleu --ref two --hyp two --seed 3", "--seed 3: needs --confidence or --paired"},
        {"bleu --ref two --hyp two --resamples 30",
         "--resamples 30: needs --confidence or --paired"},
        {"chrf --ref two --hyp two --char-order 0", "--char-order"},
    };
    fth_str out = {0};
    (void)state;
    put_text("two", "a b\nc d\n");
    put_text("three", "a b\nc d\n\n");
    put_text("bad", "a b\nc \xff\n");
    put_text("empty", "");
    pack("gzip -c two | head -c 20 >cut.gz");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (run(cases[i].arguments, &out) != 2) fail_msg("%s: not refused", cases[i].arguments);
        if (!strstr(out.text, cases[i].message)) fail_msg("%s: %s", cases[i].arguments, out.text);
        assert_memory_equal(out.text, "fathom: ", 8);
        assert_ptr_equal(strchr(out.text, '\n'), out.text + out.length - 1); /* one line */
    }
    fth_str_fini(&out);
}

static void reads_compressed_text(void **state) {
    static const char *const same[] = {"chrf --ref ref.gz --hyp hyp.gz", "chrf --ref ref <hyp.gz",
                                       "chrf --ref - --hyp hyp <ref.gz"};
    fth_str plain = {0}, out = {0};
    (void)state;
    put_text("ref", "the cat sat\non the mat\n");
    put_text("hyp", "the cat sat\non a mat\n");
    pack("gzip -kf ref hyp");
    assert_int_equal(run("chrf --ref ref --hyp hyp", &plain), 0);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_int_equal(run(same[i], &out), 0);
        assert_string_equal(out.text, plain.text);
    }
    fth_str_fini(&plain);
    fth_str_fini(&out);
}

/* Twenty thousand lines take a moment, not minutes: nothing grows with the square of the lines. The
 * scores are those of sacreBLEU, rouge-score and jiwer. */
static void scores_many_lines(void **state) {
    static const struct {
        const char *arguments, *score;
    } cases[] = {{"bleu", " = 2.1631 83.7/45.9/20.5/0.0 "},
                 {"chrf --word-order 2", " = 66.2076\n"},
                 {"ter", " = 32.9171\n"},
                 {"rouge --stem", " = 0.8227/0.5050/0.7318/0.7318 "},
                 {"cer", " = 0.3452 "}};
    fth_str hyp = {0}, ref = {0}, out = {0};
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        assert_int_equal(fth_str_addf(&ref, "line %u says that the %u cats of house %u sleep .\n",
                                      i, i % 7, i % 1000),
                         FTH_OK);
        assert_int_equal(fth_str_addf(&hyp, "line %u says the %u cats sleep of house %u today .\n",
                                      i, i % 7, i % 999),
                         FTH_OK);
    }
    put_text("many.hyp", hyp.text);
    put_text("many.ref", ref.text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[100];
        snprintf(arguments, sizeof arguments, "%s --ref many.ref --hyp many.hyp --width 4",
                 cases[i].arguments);
        alarm(120);
        assert_int_equal(run(arguments, &out), 0);
        alarm(0);
        if (!strstr(out.text, cases[i].score)) fail_msg("not%s: %s", cases[i].score, out.text);
    }
    fth_str_fini(&hyp);
    fth_str_fini(&ref);
    fth_str_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(prints_the_lines_of_sacrebleu),
                                       cmocka_unit_test(prints_json),
                                       cmocka_unit_test(prints_lines),
                                       cmocka_unit_test(says_what_is_wrong),
                                       cmocka_unit_test(reads_compressed_text),
                                       cmocka_unit_test(scores_many_lines)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
