/* links: data text base */
/* Questions with endings: every form of file, log-probabilities of an independent program
 * (test/golden/choices), accuracies, and files that are broken. Runs FATHOM_PROGRAM. */
#include "test_files.h"

#include <math.h>

#include "base/json.h"
#include "close.h"
#include "data/choices.h"

#define GOLDEN TEST_DIR "/golden/choices/"

/* Runs evaluate on a golden model; its JSON, and that of each question as a list. */
static json_t *evaluate(const char *folder, const char *arch, const char *device, const char *form,
                        int shots, json_t **questions) {
    char command[4096], lines[512], out[512], more[512] = "", *text = NULL;
    size_t size;
    json_t *result = NULL;
    PATH(lines, folder, "lines");
    PATH(out, folder, "out");
    if (shots) snprintf(more, sizeof more, "--shots %d --examples %s/first.jsonl", shots, folder);
    snprintf(command, sizeof command,
             FATHOM_PROGRAM " evaluate " GOLDEN "%s --choices " GOLDEN "%s.jsonl --device %s "
                            "--threads 1 --json --write-choices %s %s > %s 2> /dev/null",
             arch, form, device, lines, more, out);
    assert_int_equal(system(command), 0);
    assert_ok(fth_json_load(out, &result));
    assert_ok(fth_file_read(lines, &text, &size));
    *questions = json_array();
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        json_t *line = NULL;
        assert_ok(fth_json_parse("line", at, (size_t)(end - at), &line));
        json_array_append_new(*questions, line);
    }
    free(text);
    return result;
}

static void compare(const json_t *got, const json_t *wanted) {
    size_t i, k;
    json_t *question, *logp;
    assert_true(json_array_size(wanted) > 0);
    assert_int_equal(json_array_size(got), json_array_size(wanted));
    json_array_foreach(wanted, i, question) {
        const json_t *line = json_array_get(got, i);
        const json_t *all = json_object_get(question, "logp");
        assert_true(json_equal(json_object_get(line, "bytes"), json_object_get(question, "bytes")));
        assert_int_equal(json_array_size(json_object_get(line, "logp")), json_array_size(all));
        json_array_foreach(all, k, logp) {
            double x = NAN;
            assert_ok(fth_json_to_double(json_array_get(json_object_get(line, "logp"), k), &x));
            assert_close(x, json_number_value(logp), 2e-5 * fabs(json_number_value(logp)));
        }
    }
}

/* The share of questions whose best ending, by logp / bytes or logp, is the answer. */
static double accuracy(const json_t *questions, bool by_bytes) {
    size_t i, k, right = 0;
    json_t *line, *logp;
    json_array_foreach(questions, i, line) {
        size_t best = 0;
        double most = -INFINITY;
        json_array_foreach(json_object_get(line, "logp"), k, logp) {
            const json_t *bytes = json_array_get(json_object_get(line, "bytes"), k);
            const double x =
                json_real_value(logp) / (by_bytes ? (double)json_integer_value(bytes) : 1);
            if (x > most) best = k;
            if (x > most) most = x;
        }
        right += (json_int_t)best == json_integer_value(json_object_get(line, "answer"));
    }
    return (double)right / (double)json_array_size(questions);
}

static void check_result(const json_t *result, const json_t *questions) {
    const double n = (double)json_array_size(questions);
    const double raw = accuracy(questions, false), by_bytes = accuracy(questions, true);
    assert_int_equal(json_integer_value(json_object_get(result, "questions")), (int)n);
    assert_close(json_number_value(json_object_get(result, "accuracy")), raw, 1e-12);
    assert_close(json_number_value(json_object_get(result, "accuracy_stderr")),
                 sqrt(raw * (1 - raw) / n), 1e-12);
    assert_close(json_number_value(json_object_get(result, "accuracy_by_bytes")), by_bytes, 1e-12);
    assert_close(json_number_value(json_object_get(result, "accuracy_by_bytes_stderr")),
                 sqrt(by_bytes * (1 - by_bytes) / n), 1e-12);
    assert_true(json_integer_value(json_object_get(result, "tokens")) <=
                json_integer_value(json_object_get(result, "tokens_alone")));
}

static void every_form_has_the_values_of_the_reference(void **state) {
    json_t *expected = NULL, *wanted;
    const char *name;
    char first[512];
    static const char *const devices[] = {"cpu", "ref"};
    PATH(first, *state, "first.jsonl");
    char *text = NULL;
    size_t size;
    assert_ok(fth_file_read(GOLDEN "hellaswag.jsonl", &text, &size));
    put_bytes(first, text, strcspn(text, "\n") + 1); /* one example: nothing is left to chance */
    free(text);
    assert_ok(fth_json_load(GOLDEN "expected.json", &expected));
    assert_true(json_object_size(expected) >= 13);
    json_object_foreach(expected, name, wanted) {
        char arch[16], form[32];
        int shots;
        assert_int_equal(sscanf(name, "%15[a-z]-%31[a-z]-%d", arch, form, &shots), 3);
        for (size_t d = 0; d < 2; d++) {
            json_t *questions = NULL;
            json_t *result = evaluate(*state, arch, devices[d], form, shots, &questions);
            compare(questions, wanted);
            check_result(result, questions);
            assert_string_equal(json_string_value(json_object_get(result, "form")), form);
            json_decref(questions);
            json_decref(result);
        }
    }
    json_decref(expected);
}

static fth_err read_text(const char *folder, const char *text, const fth_choice_form *form,
                         fth_questions *q) {
    char path[512];
    PATH(path, folder, "q.jsonl");
    put_bytes(path, text, strlen(text));
    return fth_questions_read(path, form, q);
}

static void answers_are_letters_and_numbers(void **state) {
    static const struct {
        const char *line;
        int answer;
    } cases[] = {
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 1}", 1},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": \"1\"}", 1},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": \"B\"}", 1},
        {"{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": 0}", 0},
        {"{\"sentence\": \"a _ d\", \"option1\": \"b\", \"option2\": \"c\", \"answer\": \"2\"}", 1},
        {"{\"question_stem\": \"a\", \"choices\": {\"text\": [\"b\", \"c\"], \"label\": [\"A\", "
         "\"B\"]}, \"answerKey\": \"B\"}",
         1},
        {"{\"input_sentence_1\": \"a\", \"input_sentence_2\": \"a\", \"input_sentence_3\": \"a\", "
         "\"input_sentence_4\": \"a\", \"sentence_quiz1\": \"b\", \"sentence_quiz2\": \"c\", "
         "\"answer_right_ending\": 1}",
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_questions q;
        assert_ok(read_text(*state, cases[i].line, NULL, &q));
        assert_int_equal(q.n, 1);
        assert_int_equal(q.items[0].n, 2);
        assert_int_equal(q.items[0].answer, cases[i].answer);
        fth_questions_fini(&q);
    }
}

static void texts_are_joined_by_one_blank(void **state) {
    const fth_choice_form own = {"keys", "a,b.c", "d", "e", 0, false};
    fth_questions q;
    assert_ok(
        read_text(*state,
                  "{\"a\": \" x\\ny \", \"b\": {\"c\": \"z\"}, \"d\": [\" one \", \"t\\two\"], "
                  "\"e\": 0}\n\n",
                  &own, &q));
    assert_string_equal(q.items[0].choices[0].prompt, "x y z");
    assert_string_equal(q.items[0].choices[0].ending, " one");
    assert_int_equal(q.items[0].choices[0].bytes, 3);
    assert_string_equal(q.items[0].choices[1].ending, " t wo");
    fth_questions_fini(&q);
}

static void broken_files_are_refused(void **state) {
    static const struct {
        const char *text, *words[5];
    } cases[] = {
        {"\n", {"no questions"}},
        {"{\"prompt\"", {"q.jsonl:1", "column"}},
        {"[1]", {"q.jsonl:1", "no known form", "--prompt-key"}},
        {"{\"prompt\": \"a\", \"choices\": [\"b\"], \"answer\": 0}", {"choices", "two at least"}},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \" \"], \"answer\": 0}",
         {"choice 2", "no text to score"}},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 2}",
         {"'answer' is 2", "0 to 1", "2 choices"}},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": \"C\"}", {"'answer'", "C"}},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": \"1x\"}",
         {"'answer'", "1x"}},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 1.5}", {"'answer'", "1.5"}},
        {"{\"sentence\": \"no gap\", \"option1\": \"b\", \"option2\": \"c\", \"answer\": \"2\"}",
         {"sentence", "_"}},
        {"{\"sentence\": \"a _\", \"option1\": \"b\", \"option2\": \"c\", \"answer\": \"2\"}",
         {"sentence", "no text to score"}},
        {"{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": 0}\n"
         "{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": 7, \"label\": 0}",
         {"q.jsonl:2", "sol1,sol2", "7", "must be text"}},
        {"{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\", \"label\": 0}\n{\"sol1\": \"b\"}",
         {"q.jsonl:2", "goal", "missing"}},
        {"\xff", {"q.jsonl:1", "UTF-8"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_questions q;
        assert_failed(read_text(*state, cases[i].text, NULL, &q), FTH_BAD_INPUT, cases[i].words);
        assert_null(q.items);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_form_has_the_values_of_the_reference),
        TEST(answers_are_letters_and_numbers),
        TEST(texts_are_joined_by_one_blank),
        TEST(broken_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
