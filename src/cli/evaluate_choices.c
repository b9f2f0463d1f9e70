/* evaluate_choices.c: reads questions, has their endings scored, and says how often the model chose
 * the right one. */
#include "cli/evaluate_choices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/option_uses.h"
#include "base/philox.h"
#include "cli/choice_scores.h"

typedef struct work {
    const fth_evaluated *m;
    const fth_choices_options *o;
    fth_tokenizer *src, *tgt; /* src may be tgt */
    fth_questions questions, examples;
    const fth_question **shots; /* [o->shots] of the examples */
    fth_choice_scores scores;
    int64_t max_tokens;
    fth_log log;
} work;

/* ---- files ---- */

/* The form asked for, with the keys of the options. *out is NULL where the file shows it. */
static fth_err find_form(const fth_choices_options *o, fth_choice_form *own,
                         const fth_choice_form **out) {
    const bool keys = o->prompt_key[0] || o->choice_key[0] || o->answer_key[0] ||
                      strcmp(o->first_answer, "auto") != 0;
    *out = NULL;
    for (const fth_choice_form *f = fth_choice_forms(); f->name && !*out; f++)
        if (strcmp(f->name, strcmp(o->form, "auto") ? o->form : "plain") == 0) *out = f;
    *own = **out;
    if (!keys && strcmp(o->form, "auto") == 0) {
        *out = NULL;
        return FTH_OK;
    }
    if (o->prompt_key[0]) own->prompt = o->prompt_key;
    if (o->choice_key[0]) own->choices = o->choice_key;
    if (o->answer_key[0]) own->answer = o->answer_key;
    if (strcmp(o->first_answer, "auto") != 0) own->first = strcmp(o->first_answer, "1") == 0;
    if (keys) own->name = "keys";
    *out = own;
    return FTH_OK;
}

static fth_err read_files(work *w) {
    fth_choice_form own;
    const fth_choice_form *form;
    FTH_TRY(find_form(w->o, &own, &form));
    FTH_TRY(fth_questions_read(w->o->choices, form, &w->questions));
    if (w->o->shots == 0) return FTH_OK;
    FTH_TRY(fth_questions_read(w->o->examples, form, &w->examples));
    if (w->examples.n < w->o->shots)
        return fth_fail(FTH_BAD_INPUT, "%s: has %lld questions, fewer than --shots %lld",
                        w->o->examples, (long long)w->examples.n, (long long)w->o->shots);
    return FTH_OK;
}

/* K of the examples, the same for every question. */
static fth_err draw_shots(work *w) {
    fth_rng rng;
    fth_rng_init(&rng, (uint64_t)w->o->seed, UINT64_C(0x73686f7473));
    const size_t n = (size_t)w->examples.n, wanted = (size_t)w->o->shots;
    w->shots = calloc(n + 1, sizeof *w->shots);
    if (!w->shots) return fth_no_memory("questions");
    for (size_t i = 0; i < n; i++) w->shots[i] = &w->examples.items[i];
    for (size_t i = 0; i < wanted; i++) {
        const size_t k = i + (size_t)fth_rng_below(&rng, n - i);
        const fth_question *drawn = w->shots[k];
        w->shots[k] = w->shots[i];
        w->shots[i] = drawn;
    }
    return FTH_OK;
}

/* ---- results ---- */

/* The ending of the highest log-probability, divided by its bytes or not. The first of equals. */
static int32_t chosen(const work *w, int64_t i, bool by_bytes) {
    const fth_question *q = &w->questions.items[i];
    const fth_ending_score *s = &w->scores.endings[w->scores.first[i]];
    int32_t best = 0;
    for (int32_t k = 1; k < q->n; k++) {
        const double here = by_bytes ? s[k].logp / (double)q->choices[k].bytes : s[k].logp;
        const double there =
            by_bytes ? s[best].logp / (double)q->choices[best].bytes : s[best].logp;
        if (here > there) best = k;
    }
    return best;
}

static double accuracy(const work *w, bool by_bytes) {
    int64_t right = 0;
    for (int64_t i = 0; i < w->questions.n; i++)
        right += chosen(w, i, by_bytes) == w->questions.items[i].answer;
    return (double)right / (double)w->questions.n;
}

static double standard_error(double share, int64_t n) {
    return sqrt(share * (1 - share) / (double)n);
}

static fth_err print_question(const work *w, int64_t i, fth_str *out) {
    const fth_question *q = &w->questions.items[i];
    const fth_ending_score *s = &w->scores.endings[w->scores.first[i]];
    json_t *logp = json_array(), *bytes = json_array(), *tokens = json_array();
    for (int32_t k = 0; k < q->n; k++) {
        json_array_append_new(logp, fth_json_number(s[k].logp));
        json_array_append_new(bytes, json_integer(q->choices[k].bytes));
        json_array_append_new(tokens, json_integer(s[k].tokens));
    }
    json_t *line =
        json_pack("{s:I, s:i, s:i, s:i, s:o, s:o, s:o}", "line", (json_int_t)q->line, "answer",
                  (int)q->answer, "chosen", (int)chosen(w, i, false), "chosen_by_bytes",
                  (int)chosen(w, i, true), "logp", logp, "bytes", bytes, "tokens", tokens);
    fth_err err = line ? fth_json_write(line, 0, out) : fth_no_memory("questions");
    json_decref(line);
    return err ? err : fth_str_add(out, "\n", 1);
}

static fth_err write_questions(const work *w) {
    fth_str text = {0};
    fth_err err = FTH_OK;
    for (int64_t i = 0; i < w->questions.n && !err; i++) err = print_question(w, i, &text);
    if (!err) err = fth_file_write(w->o->write_choices, text.text, text.length);
    fth_str_fini(&text);
    return err;
}

static fth_err print_result(const work *w, bool json) {
    const int64_t n = w->questions.n;
    const double raw = accuracy(w, false), by_bytes = accuracy(w, true);
    if (!json) {
        printf("%s: %.2f %% +- %.2f raw, %.2f %% +- %.2f by bytes, over %lld questions (%s, %lld "
               "shots)\n",
               w->o->choices, 100 * raw, 100 * standard_error(raw, n), 100 * by_bytes,
               100 * standard_error(by_bytes, n), (long long)n, w->questions.form,
               (long long)w->o->shots);
        return FTH_OK;
    }
    fth_str text = {0};
    json_t *all =
        json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "choices",
                  w->o->choices, "form", w->questions.form, "questions", (json_int_t)n, "shots",
                  (json_int_t)w->o->shots, "accuracy", raw, "accuracy_stderr",
                  standard_error(raw, n), "accuracy_by_bytes", by_bytes, "accuracy_by_bytes_stderr",
                  standard_error(by_bytes, n), "tokens", (json_int_t)w->scores.rows, "tokens_alone",
                  (json_int_t)w->scores.rows_alone, "cut", (json_int_t)w->scores.cut);
    fth_err err = all ? fth_json_write(all, 0, &text) : fth_no_memory("questions");
    if (!err) printf("%s\n", text.text);
    json_decref(all);
    fth_str_fini(&text);
    return err;
}

static fth_err check(const work *w, const fth_option_group *groups, size_t n) {
    const fth_config *c = &w->m->model->config;
    if (c->arch == FTH_ENC || c->front != FTH_FRONT_TEXT)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: --choices needs a model that reads and predicts text, "
                        "of arch dec or encdec",
                        w->m->folder);
    if (c->arch == FTH_ENCDEC) FTH_TRY(fth_refuse_option(groups, n, "shots", "is for dec models"));
    if (!w->o->shots != !w->o->examples[0])
        return fth_fail(FTH_USAGE, "--shots %lld: needs --examples, and they need --shots",
                        (long long)w->o->shots);
    return FTH_OK;
}

static fth_err check_vocab(const work *w) {
    const fth_config *c = &w->m->model->config;
    if (fth_tokenizer_size(w->tgt) == c->tgt_vocab &&
        (c->arch == FTH_DEC || fth_tokenizer_size(w->src) == c->src_vocab))
        return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: its tokenizer has %d ids, the vocabulary of its model %d",
                    w->m->folder, fth_tokenizer_size(w->tgt), c->tgt_vocab);
}

static fth_err run(work *w, bool json) {
    FTH_TRY(read_files(w));
    FTH_TRY(draw_shots(w));
    FTH_TRY(fth_tokenizers_load(w->m->folder, &w->src, &w->tgt));
    FTH_TRY(check_vocab(w));
    const fth_choices_model m = {w->m->model, w->m->device, w->m->arenas, w->src, w->tgt};
    const fth_choice_task task = {.name = w->o->choices,
                                  .questions = &w->questions,
                                  .shots = w->shots,
                                  .n_shots = w->o->shots,
                                  .max_tokens = w->max_tokens,
                                  .log = &w->log};
    FTH_TRY(fth_choice_scores_make(&m, &task, &w->scores));
    if (w->scores.cut)
        fth_log_warn(&w->log,
                     "%lld texts are longer than the model's max_positions %d; they lost their "
                     "beginning",
                     (long long)w->scores.cut, w->m->model->config.max_positions);
    if (w->o->write_choices[0]) FTH_TRY(write_questions(w));
    return print_result(w, json);
}

fth_err fth_evaluate_choices(const fth_evaluated *m, const fth_choices_options *o,
                             const fth_option_group *groups, size_t n_groups, int64_t max_tokens,
                             bool json) {
    work w = {.m = m, .o = o, .max_tokens = max_tokens};
    fth_log_init(&w.log, stderr, false);
    fth_err err = check(&w, groups, n_groups);
    if (!err) err = run(&w, json);
    fth_choice_scores_fini(&w.scores);
    if (w.src != w.tgt) fth_tokenizer_free(w.src);
    fth_tokenizer_free(w.tgt);
    fth_questions_fini(&w.questions);
    fth_questions_fini(&w.examples);
    free(w.shots);
    return err;
}
