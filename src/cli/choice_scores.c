/* choice_scores.c: questions to tokens, and batches of them through one stepper. */
#include "cli/choice_scores.h"

#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "decode/sequences.h"
#include "text/ids.h"

enum { MOST_ROWS = 512 /* of a step */ };

/* An ending with what is before it, as tokens. */
typedef struct scored {
    size_t at; /* where its tokens begin in work.ids: prompt and ending (dec), target (encdec) */
    int32_t n, from;  /* tokens from .. n - 1 are the ending */
    size_t source_at; /* encdec */
    int32_t source_n; /* 0: the source of the ending before it */
    double logp;
} scored;

/* A question and its endings. */
typedef struct asked {
    size_t first; /* of work.scored */
    int32_t n;
    int64_t length; /* tokens of the longest ending with its prompt */
} asked;

typedef struct work {
    const fth_choices_model *m;
    const fth_choice_task *task;
    const fth_config *config;
    fth_ids ids;    /* of all endings */
    fth_ids shots;  /* the first symbol and the examples, before every question */
    scored *scored; /* [n_scored] */
    size_t n_scored;
    asked *asked;  /* [questions] */
    asked **order; /* [questions] the longest first */
    int64_t *ends; /* [n_batches] of order */
    int64_t n_batches;
    fth_stepper *stepper;
    fth_stepper_spec plan;
    fth_choice_scores *out;
} work;

/* ---- tokens ---- */

static fth_err add_id(fth_ids *ids, int32_t id) {
    FTH_TRY(fth_ids_reserve(ids, 1));
    ids->ids[ids->n++] = id;
    return FTH_OK;
}

static fth_err encode_joined(const fth_tokenizer *t, const fth_choice *c, fth_ids *out) {
    char *text = fth_strdup_printf("%s%s", c->prompt, c->ending);
    fth_err err =
        text ? fth_tokenizer_encode(t, text, strlen(text), out) : fth_no_memory("questions");
    free(text);
    return err;
}

/* Examples with their right endings, each with an end symbol after it, as lines of the text that a
 * language model is trained on. The first symbol is what such a text begins after. */
static fth_err make_head(work *w) {
    const fth_choice_task *t = w->task;
    const bool dec = w->config->arch == FTH_DEC;
    FTH_TRY(add_id(&w->shots, dec ? w->config->eos : w->config->bos));
    for (int64_t i = 0; i < t->n_shots; i++) {
        FTH_TRY(encode_joined(w->m->tgt, &t->shots[i]->choices[t->shots[i]->answer], &w->shots));
        FTH_TRY(add_id(&w->shots, w->config->eos));
    }
    return FTH_OK;
}

/* Prompt and ending as one text: a tokenizer may cut it elsewhere than between the two, and what is
 * scored begins where the prompt alone is no longer the same. */
static fth_err encode_dec(work *w, const fth_choice *c, scored *out) {
    fth_ids prompt = {0};
    const size_t at = w->ids.n;
    fth_err err = fth_tokenizer_encode(w->m->tgt, c->prompt, strlen(c->prompt), &prompt);
    if (!err) err = encode_joined(w->m->tgt, c, &w->ids);
    const size_t n = w->ids.n - at;
    size_t same = 0;
    while (!err && same < n && same < prompt.n && w->ids.ids[at + same] == prompt.ids[same]) same++;
    *out = (scored){.at = at, .n = (int32_t)n, .from = (int32_t)same};
    fth_ids_fini(&prompt);
    return err;
}

/* The prompt is the source, and the ending with its end symbol the target. */
static fth_err encode_encdec(work *w, const fth_choice *c, const fth_choice *before, scored *out) {
    *out = (scored){.source_at = w->ids.n};
    if (!before || strcmp(before->prompt, c->prompt) != 0) {
        FTH_TRY(fth_tokenizer_encode(w->m->src, c->prompt, strlen(c->prompt), &w->ids));
        FTH_TRY(add_id(&w->ids, w->config->eos));
        out->source_n = (int32_t)(w->ids.n - out->source_at);
    }
    out->at = w->ids.n;
    FTH_TRY(fth_tokenizer_encode(w->m->tgt, c->ending, strlen(c->ending), &w->ids));
    FTH_TRY(add_id(&w->ids, w->config->eos));
    out->n = (int32_t)(w->ids.n - out->at);
    return FTH_OK;
}

/* What is longer than the model takes loses its beginning, never its ending. */
static fth_err cut_to_fit(work *w, const fth_question *q, scored *s) {
    const int32_t most = w->config->max_positions;
    const int32_t room = most + 1 - (int32_t)w->shots.n; /* the last token is not read */
    const int32_t over = s->n - room, ending = s->n - s->from;
    if (s->source_n > most) {
        s->source_at += (size_t)(s->source_n - most);
        s->source_n = most;
        w->out->cut++;
    }
    if (over <= 0) return FTH_OK;
    if (over > s->from)
        return fth_fail(FTH_BAD_INPUT,
                        "%s:%lld: an ending of %d tokens with %zu tokens of examples before it: "
                        "the model has max_positions %d",
                        w->task->name, (long long)q->line, ending, w->shots.n - 1, most);
    s->at += (size_t)over;
    s->n -= over;
    s->from -= over;
    w->out->cut++;
    return FTH_OK;
}

static fth_err encode_question(work *w, const fth_question *q, asked *a) {
    const bool encdec = w->config->arch == FTH_ENCDEC;
    *a = (asked){.first = w->n_scored, .n = q->n};
    for (int32_t i = 0; i < q->n; i++) {
        scored *s = &w->scored[w->n_scored++];
        FTH_TRY(encdec ? encode_encdec(w, &q->choices[i], i ? &q->choices[i - 1] : NULL, s)
                       : encode_dec(w, &q->choices[i], s));
        FTH_TRY(cut_to_fit(w, q, s));
        if (s->n == s->from)
            return fth_fail(FTH_BAD_INPUT, "%s:%lld: the tokenizer makes no token of ending %d",
                            w->task->name, (long long)q->line, i + 1);
        if (s->n + s->source_n > a->length) a->length = s->n + s->source_n;
    }
    return FTH_OK;
}

static int longer_first(const void *a, const void *b) {
    const asked *x = *(asked *const *)a, *y = *(asked *const *)b;
    if (x->length != y->length) return x->length < y->length ? 1 : -1;
    return (x > y) - (x < y);
}

static fth_err encode_all(work *w) {
    const size_t n = (size_t)w->task->questions->n;
    size_t endings = 0;
    for (size_t i = 0; i < n; i++) endings += (size_t)w->task->questions->items[i].n;
    w->scored = calloc(endings, sizeof *w->scored);
    w->asked = calloc(n, sizeof *w->asked);
    w->order = calloc(n, sizeof *w->order);
    w->ends = calloc(n, sizeof *w->ends);
    if (!w->scored || !w->asked || !w->order || !w->ends) return fth_no_memory("questions");
    FTH_TRY(make_head(w));
    for (size_t i = 0; i < n; i++) {
        w->order[i] = &w->asked[i];
        FTH_TRY(encode_question(w, &w->task->questions->items[i], &w->asked[i]));
    }
    qsort(w->order, n, sizeof *w->order, longer_first);
    return FTH_OK;
}

/* ---- batches ---- */

/* The sequences of some questions, and their sources. */
typedef struct batch {
    fth_sequence *sequences; /* [n] */
    int32_t n, n_sources;
    int32_t *tokens;  /* of all sequences */
    int32_t *offsets; /* [n_sources + 1] */
    int32_t *sources; /* encdec: of all sources */
} batch;

static void batch_fini(batch *b) {
    free(b->sequences);
    free(b->tokens);
    free(b->offsets);
    free(b->sources);
    *b = (batch){0};
}

static fth_err batch_init(const work *w, int64_t first, int64_t end, batch *b) {
    size_t n = 0, tokens = 0, sources = 0;
    for (int64_t i = first; i < end; i++)
        for (int32_t k = 0; k < w->order[i]->n; k++, n++) {
            const scored *s = &w->scored[w->order[i]->first + (size_t)k];
            tokens += w->shots.n + (size_t)s->n;
            sources += (size_t)s->source_n;
        }
    b->sequences = calloc(n, sizeof *b->sequences);
    b->tokens = malloc(tokens * sizeof *b->tokens);
    b->offsets = calloc(n + 1, sizeof *b->offsets);
    b->sources = malloc((sources + 1) * sizeof *b->sources);
    return b->sequences && b->tokens && b->offsets && b->sources ? FTH_OK
                                                                 : fth_no_memory("questions");
}

/* Sorted, with the place of each in which to leave its result. */
static fth_err make_batch(const work *w, int64_t first, int64_t end, batch *b, scored **to) {
    FTH_TRY(batch_init(w, first, end, b));
    int32_t *at = b->tokens;
    const size_t head = w->shots.n;
    for (int64_t i = first; i < end; i++)
        for (int32_t k = 0; k < w->order[i]->n; k++) {
            scored *s = &w->scored[w->order[i]->first + (size_t)k];
            if (s->source_n) {
                int32_t *o = &b->offsets[b->n_sources++];
                memcpy(b->sources + o[0], w->ids.ids + s->source_at,
                       (size_t)s->source_n * sizeof *b->sources);
                o[1] = o[0] + s->source_n;
            }
            memcpy(at, w->shots.ids, head * sizeof *at);
            memcpy(at + head, w->ids.ids + s->at, (size_t)s->n * sizeof *at);
            b->sequences[b->n] = (fth_sequence){.source = b->n_sources ? b->n_sources - 1 : 0,
                                                .ids = at,
                                                .n = (int32_t)head + s->n,
                                                .from = (int32_t)head + s->from,
                                                .number = b->n};
            if (to) to[b->n] = s;
            b->n++;
            at += head + (size_t)s->n;
        }
    return FTH_OK;
}

static int32_t larger(int32_t a, int64_t b) {
    return b > a ? (int32_t)b : a;
}

/* How large the batch is with one more question; its size goes into the plan where it fits. */
static fth_err try_batch(work *w, int64_t first, int64_t end, bool *fits) {
    batch b = {0};
    fth_err err = make_batch(w, first, end, &b, NULL);
    if (!err) {
        fth_sequences_sort(b.sequences, b.n);
        const fth_sequences_size size = fth_sequences_measure(b.sequences, b.n);
        *fits = end == first + 1 || (size.tokens <= w->task->max_tokens && size.rows <= MOST_ROWS);
        if (*fits) {
            fth_stepper_spec *p = &w->plan;
            p->rows = larger(p->rows, size.rows);
            p->length = larger(p->length, size.length);
            p->slots = larger(p->slots, size.tokens);
            p->sentences = larger(p->sentences, b.n_sources ? b.n_sources : 1);
            p->src_tokens = larger(p->src_tokens, b.offsets[b.n_sources]);
        }
    }
    batch_fini(&b);
    return err;
}

/* Batches of questions of like length, each as large as fits. Their growth is doubled and then
 * halved, so that sizes are measured few times. */
static fth_err plan_batches(work *w) {
    const int64_t n = w->task->questions->n;
    for (int64_t first = 0; first < n;) {
        int64_t end = first + 1;
        bool fits;
        FTH_TRY(try_batch(w, first, end, &fits));
        for (int64_t step = 1; step > 0;) {
            const int64_t next = end + step <= n ? end + step : n;
            fits = false;
            if (next > end) FTH_TRY(try_batch(w, first, next, &fits));
            if (fits) end = next;
            step = fits ? 2 * step : step / 2;
        }
        w->ends[w->n_batches++] = first = end;
    }
    return FTH_OK;
}

static fth_err score_batch(work *w, int64_t first, int64_t end) {
    const int32_t vocab = fth_config_output_vocab(w->config);
    batch b = {0};
    size_t most = 0;
    for (int64_t i = first; i < end; i++) most += (size_t)w->order[i]->n;
    scored **to = calloc(most, sizeof *to);
    fth_err err = to ? make_batch(w, first, end, &b, to) : fth_no_memory("questions");
    if (!err) {
        fth_sequences_sort(b.sequences, b.n);
        w->out->rows += fth_sequences_measure(b.sequences, b.n).tokens;
        err = fth_stepper_begin(w->stepper, b.n_sources ? b.n_sources : 1,
                                b.n_sources ? b.offsets : NULL, b.sources);
    }
    if (!err) err = fth_sequences_score(w->stepper, vocab, b.sequences, b.n);
    for (int32_t i = 0; i < b.n && !err; i++) {
        to[b.sequences[i].number]->logp = b.sequences[i].logp;
        w->out->rows_alone += b.sequences[i].n - 1;
    }
    free(to);
    batch_fini(&b);
    return err;
}

static fth_err score_all(work *w) {
    fth_progress progress;
    const int32_t vocab = fth_config_output_vocab(w->config);
    w->plan.top = vocab > FTH_TOP_VOCAB ? 0 : 1;
    FTH_TRY(fth_stepper_new(w->m->model, w->m->device, w->m->arenas, &w->plan, &w->stepper));
    fth_progress_init(&progress, w->task->log, fth_real_clock(), "choices", "questions", 0,
                      w->task->questions->n);
    for (int64_t i = 0, first = 0; i < w->n_batches; first = w->ends[i++]) {
        FTH_TRY(score_batch(w, first, w->ends[i]));
        fth_progress_update(&progress, w->ends[i], NULL);
    }
    fth_progress_end(&progress);
    return FTH_OK;
}

/* ---- the result ---- */

static fth_err keep_scores(work *w) {
    fth_choice_scores *out = w->out;
    out->endings = calloc(w->n_scored, sizeof *out->endings);
    out->first = calloc((size_t)w->task->questions->n, sizeof *out->first);
    if (!out->endings || !out->first) return fth_no_memory("questions");
    for (size_t i = 0; i < w->n_scored; i++)
        out->endings[i] = (fth_ending_score){.logp = w->scored[i].logp,
                                             .tokens = w->scored[i].n - w->scored[i].from};
    for (int64_t i = 0; i < w->task->questions->n; i++) out->first[i] = w->asked[i].first;
    return FTH_OK;
}

fth_err fth_choice_scores_make(const fth_choices_model *m, const fth_choice_task *task,
                               fth_choice_scores *out) {
    work w = {.m = m, .task = task, .config = &m->model->config, .out = out};
    *out = (fth_choice_scores){0};
    fth_err err = encode_all(&w);
    if (!err) err = plan_batches(&w);
    if (!err) err = score_all(&w);
    if (!err) err = keep_scores(&w);
    fth_stepper_free(w.stepper);
    fth_ids_fini(&w.ids);
    fth_ids_fini(&w.shots);
    free(w.scored);
    free(w.asked);
    free(w.order);
    free(w.ends);
    if (err) fth_choice_scores_fini(out);
    return err;
}

void fth_choice_scores_fini(fth_choice_scores *s) {
    free(s->endings);
    free(s->first);
    *s = (fth_choice_scores){0};
}
