/* choices.c: takes the texts of a question out of a JSON object by the paths of its form. */
#include "data/choices.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/lines.h"
#include "text/unicode.h"

/* As the files of the field have them; some of them exist in two forms. */
const fth_choice_form *fth_choice_forms(void) {
    static const fth_choice_form forms[] = {
        {"hellaswag", "ctx", "endings", "label", 0, false},
        {"piqa", "goal", "sol1,sol2", "label", 0, false},
        {"winogrande", "sentence", "option1,option2", "answer", 1, true},
        {"storycloze", "InputSentence1,InputSentence2,InputSentence3,InputSentence4",
         "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2", "AnswerRightEnding", 1, false},
        {"storycloze-hf", "input_sentence_1,input_sentence_2,input_sentence_3,input_sentence_4",
         "sentence_quiz1,sentence_quiz2", "answer_right_ending", 1, false},
        {"openbookqa", "question.stem", "question.choices.text", "answerKey", 1, false},
        {"openbookqa-hf", "question_stem", "choices.text", "answerKey", 1, false},
        {"plain", "prompt", "choices", "answer", 0, false},
        {0},
    };
    return forms;
}

enum { MOST_CHOICES = 64 };

/* The strings of a question, at most MOST_CHOICES. */
typedef struct texts {
    const char *items[MOST_CHOICES];
    int n;
} texts;

/* Where a message points. */
typedef struct place {
    const char *path;
    int64_t line;
} place;

static fth_err bad(place at, const char *key, const json_t *value, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s:%lld: '%s' is %s; %s", at.path, (long long)at.line, key,
                    value ? fth_json_shown(value).text : "missing", rule);
}

/* Adds the strings at the end of a path, which is key[0 .. length). */
static fth_err collect(place at, const char *key, const char *path, size_t length,
                       const json_t *value, texts *out) {
    const json_t *entry;
    size_t i;
    if (json_is_array(value)) {
        json_array_foreach(value, i, entry) FTH_TRY(collect(at, key, path, length, entry, out));
        return FTH_OK;
    }
    if (length) {
        const char *dot = memchr(path, '.', length);
        const size_t n = dot ? (size_t)(dot - path) : length;
        char *name = strndup(path, n);
        if (!name) return fth_fail(FTH_NO_MEMORY, "no memory for a question");
        entry = json_object_get(value, name);
        free(name);
        return collect(at, key, path + n + (dot != NULL), length - n - (dot != NULL), entry, out);
    }
    if (!json_is_string(value)) return bad(at, key, value, "must be text");
    if (out->n == MOST_CHOICES)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: '%s' has more than %d texts", at.path,
                        (long long)at.line, key, MOST_CHOICES);
    out->items[out->n++] = json_string_value(value);
    return FTH_OK;
}

/* The same for keys with commas in between. */
static fth_err collect_all(place at, const char *keys, const json_t *object, texts *out) {
    out->n = 0;
    for (const char *key = keys; *key;) {
        const size_t length = strcspn(key, ",");
        FTH_TRY(collect(at, keys, key, length, object, out));
        key += length + (key[length] == ',');
    }
    return FTH_OK;
}

/* ---- texts ---- */

static fth_text stripped(const char *text, size_t length) {
    return fth_strip((fth_text){.text = text, .length = length});
}

/* Appends a text; its line ends and tabs become blanks, as in every JSON text that is read. */
static fth_err add(fth_str *out, fth_text t) {
    const size_t from = out->length;
    FTH_TRY(fth_str_add(out, t.text, t.length));
    for (size_t i = from; i < out->length; i++)
        if (strchr("\n\r\t", out->text[i])) out->text[i] = ' ';
    return FTH_OK;
}

static fth_err keep(fth_arena *arena, const fth_str *text, const char **out) {
    *out = fth_arena_strdup(arena, text->text ? text->text : "");
    return *out ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a question");
}

/* The texts with a blank between any two of them. */
static fth_err join(const texts *parts, fth_str *out) {
    for (int i = 0; i < parts->n; i++) {
        const fth_text part = stripped(parts->items[i], strlen(parts->items[i]));
        if (out->length && part.length) FTH_TRY(fth_str_add(out, " ", 1));
        FTH_TRY(add(out, part));
    }
    return fth_str_add(out, "", 0);
}

/* prompt + " " + choice */
static fth_err make_plain(fth_arena *arena, const fth_str *prompt, const char *text,
                          fth_choice *out) {
    const fth_text ending = stripped(text, strlen(text));
    fth_str made = {0};
    fth_err err = keep(arena, prompt, &out->prompt);
    if (!err && prompt->length) err = fth_str_add(&made, " ", 1);
    if (!err) err = add(&made, ending);
    if (!err) err = keep(arena, &made, &out->ending);
    out->bytes = (int64_t)ending.length;
    fth_str_fini(&made);
    return err;
}

/* The choice in the place of the gap belongs to the prompt; the rest is the ending of all. */
static fth_err make_gap(place at, const char *key, fth_arena *arena, const fth_str *sentence,
                        const char *text, fth_choice *out) {
    const char *gap = strchr(sentence->text, '_');
    fth_str prompt = {0}, ending = {0};
    if (!gap)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: '%s' has no _, the gap that a choice fills",
                        at.path, (long long)at.line, key);
    fth_err err = fth_str_add(&prompt, sentence->text, (size_t)(gap - sentence->text));
    if (!err) err = add(&prompt, stripped(text, strlen(text)));
    if (!err) err = fth_str_add(&ending, gap + 1, strlen(gap + 1));
    if (!err) err = keep(arena, &prompt, &out->prompt);
    if (!err) err = keep(arena, &ending, &out->ending);
    out->bytes = (int64_t)ending.length - (ending.length && ending.text[0] == ' ');
    fth_str_fini(&prompt);
    fth_str_fini(&ending);
    return err;
}

/* ---- questions ---- */

/* "B", 1 or "2" as the number of a choice, counted from 0. */
static fth_err read_answer(place at, const fth_choice_form *form, const json_t *object, int32_t n,
                           int32_t *answer) {
    const json_t *value = json_object_get(object, form->answer);
    const char *text = json_string_value(value);
    long long number = -1;
    char *end = NULL;
    if (json_is_integer(value))
        number = json_integer_value(value) - form->first;
    else if (text && !text[1] && text[0] >= 'A' && text[0] <= 'Z')
        number = text[0] - 'A';
    else if (text && text[0]) {
        number = strtoll(text, &end, 10) - form->first;
        if (*end) number = -1;
    }
    if (number < 0 || number >= n) {
        char rule[96];
        snprintf(rule, sizeof rule, "must be a letter from A, or %d to %d: there are %d choices",
                 form->first, form->first + n - 1, n);
        return bad(at, form->answer, value, rule);
    }
    *answer = (int32_t)number;
    return FTH_OK;
}

static fth_err check_ending(place at, const fth_choice_form *form, const fth_choice *c, int i) {
    if (c->bytes > 0) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s:%lld: '%s': choice %d has no text to score", at.path,
                    (long long)at.line, form->gap ? form->prompt : form->choices, i + 1);
}

static fth_err read_question(place at, const fth_choice_form *form, const json_t *object,
                             fth_questions *q, fth_question *out) {
    texts parts, choices;
    fth_str prompt = {0};
    FTH_TRY(collect_all(at, form->prompt, object, &parts));
    FTH_TRY(collect_all(at, form->choices, object, &choices));
    if (choices.n < 2)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: '%s' has %d choice; there must be two at least",
                        at.path, (long long)at.line, form->choices, choices.n);
    *out = (fth_question){.n = choices.n, .line = at.line};
    FTH_TRY(read_answer(at, form, object, choices.n, &out->answer));
    fth_choice *made = fth_arena_alloc(&q->arena, (size_t)choices.n * sizeof *made);
    if (!made) return fth_fail(FTH_NO_MEMORY, "no memory for a question");
    out->choices = made;
    fth_err err = join(&parts, &prompt);
    for (int i = 0; i < choices.n && !err; i++) {
        err = form->gap ? make_gap(at, form->prompt, &q->arena, &prompt, choices.items[i], &made[i])
                        : make_plain(&q->arena, &prompt, choices.items[i], &made[i]);
        if (!err) err = check_ending(at, form, &made[i], i);
    }
    fth_str_fini(&prompt);
    return err;
}

static fth_err add_question(fth_questions *q, fth_question **out) {
    if (q->n == q->room) {
        const int64_t room = 2 * q->room + 256;
        fth_question *grown = realloc(q->items, (size_t)room * sizeof *grown);
        if (!grown) return fth_fail(FTH_NO_MEMORY, "no memory for %lld questions", (long long)room);
        q->items = grown;
        q->room = room;
    }
    *out = &q->items[q->n++];
    return FTH_OK;
}

/* The first preset whose keys the object has. */
static fth_err guess(place at, const json_t *object, const fth_choice_form **form) {
    texts unused;
    for (const fth_choice_form *f = fth_choice_forms(); f->name; f++)
        if (collect_all(at, f->prompt, object, &unused) == FTH_OK &&
            collect_all(at, f->choices, object, &unused) == FTH_OK &&
            json_object_get(object, f->answer)) {
            *form = f;
            return FTH_OK;
        }
    return fth_fail(FTH_BAD_INPUT,
                    "%s:%lld: has the keys of no known form; --prompt-key, --choice-key and "
                    "--answer-key name others",
                    at.path, (long long)at.line);
}

static fth_err read_line(place at, const char *text, size_t length, const fth_choice_form **form,
                         fth_questions *q) {
    json_error_t e;
    fth_question *question = NULL;
    json_t *object = fth_json_read(text, length, &e);
    if (!object)
        return json_error_code(&e) == json_error_out_of_memory
                   ? fth_fail(FTH_NO_MEMORY, "no memory for a question")
                   : fth_fail(FTH_BAD_INPUT, "%s:%lld: column %d: %s", at.path, (long long)at.line,
                              e.column, e.text);
    fth_err err = *form ? FTH_OK : guess(at, object, form);
    if (!err) err = add_question(q, &question);
    if (!err) err = read_question(at, *form, object, q, question);
    json_decref(object);
    return err;
}

fth_err fth_questions_read(const char *path, const fth_choice_form *form, fth_questions *out) {
    const fth_text_file file = {path, path};
    fth_lines *lines = NULL;
    const char *text = NULL;
    size_t length = 0;
    *out = (fth_questions){0};
    FTH_TRY(fth_lines_new(&file, 1, &lines));
    fth_err err = FTH_OK;
    while (!err && (err = fth_lines_next(lines, &text, &length)) == FTH_OK && text)
        if (length)
            err = read_line((place){path, fth_lines_number(lines)}, text, length, &form, out);
    if (!err && out->n == 0) err = fth_fail(FTH_BAD_INPUT, "%s: has no questions", path);
    fth_lines_free(lines);
    if (err)
        fth_questions_fini(out);
    else
        out->form = form->name;
    return err;
}

void fth_questions_fini(fth_questions *q) {
    fth_arena_fini(&q->arena);
    free(q->items);
    *q = (fth_questions){0};
}
