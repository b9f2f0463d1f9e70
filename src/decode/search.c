/* search.c: every step: take the best words of each live hypothesis, forbid and force what the
 * options say, keep the beam's best by score, and set aside those that end. */
#include "decode/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/top_words.h"
#include "decode/constraints.h"
#include "decode/mixed_list.h"
#include "decode/pick.h"

/* A token of some hypothesis; hypotheses are paths to the root. */
typedef struct node {
    int32_t parent; /* -1: the first symbol */
    int32_t token;
    float logp;
    double sum;
    int32_t depth; /* tokens behind the first symbol */
} node;

/* A live hypothesis. */
typedef struct live {
    int32_t node;
    int32_t row; /* of the newest step, -1 before the first */
    int32_t group;
    int32_t met; /* of the constraint */
} live;

/* One sentence of the batch. */
typedef struct sentence {
    live *live; /* [beam] */
    int32_t n_live;
    int32_t *finished; /* [groups] */
    fth_constraint constraint;
    int32_t max_len;
    int32_t n_prefix;
    const int32_t *prefix;
    fth_rng rng; /* sampling */
} sentence;

typedef struct search {
    fth_stepper *const *steppers;
    int n_steppers;
    int32_t vocab;
    const fth_search_spec *spec;
    const fth_search_batch *batch;
    fth_search_result *out;
    sentence *sentences; /* [n_sent] */
    node *nodes;         /* [n_nodes] */
    int32_t n_nodes, cap_nodes;
    fth_step_row *rows; /* [beam * n_sent] */
    int32_t n_rows;
    fth_best *best;            /* [n_steppers] what the devices have chosen in the newest step */
    bool chosen;               /* they do choose */
    bool all_listed;           /* no word has a probability that is not in the list at hand */
    fth_mixed_list mixed;      /* of several models */
    bool fetched;              /* all logits of the newest step are here */
    const float **logits;      /* [n_steppers] */
    int32_t n_words;           /* of the row at hand: of the device's list, or the vocabulary */
    float *logp;               /* [n_words] */
    int32_t *word;             /* [n_words] of a list */
    bool listed;               /* the row at hand is a list; else word i is i */
    float *each;               /* [n_steppers, vocab] the same of each of several models */
    const float **each_row;    /* [n_steppers] */
    fth_candidate *candidates; /* [beam, most of a row] */
    int32_t *met;           /* [beam, most of a row] tokens of the constraint that each has met */
    fth_candidate *scratch; /* [vocab] of sampling */
} search;

void fth_search_result_fini(fth_search_result *r) {
    fth_arena_fini(&r->arena);
    *r = (fth_search_result){0};
}

/* ---- hypotheses ---- */

static fth_err add_node(search *s, node n, int32_t *index) {
    if (s->n_nodes == s->cap_nodes) {
        int32_t capacity = s->cap_nodes ? s->cap_nodes * 2 : 1024;
        node *more = realloc(s->nodes, sizeof *more * (size_t)capacity);
        if (!more) return fth_no_memory("a search");
        s->nodes = more;
        s->cap_nodes = capacity;
    }
    s->nodes[s->n_nodes] = n;
    *index = s->n_nodes++;
    return FTH_OK;
}

/* Notes a hypothesis that ends with node `last`. */
static fth_err finish(search *s, int32_t i, int32_t last, int32_t met) {
    fth_arena *arena = &s->out->arena;
    const node *end = &s->nodes[last];
    fth_hypothesis *h = &s->out->found[i][s->out->count[i]];
    size_t n = (size_t)end->depth;
    h->tokens = fth_arena_alloc(arena, sizeof *h->tokens * (n + 1));
    h->logp = fth_arena_alloc(arena, sizeof *h->logp * (n + 1));
    if (!h->tokens || !h->logp) return fth_no_memory("a search");
    h->n = end->depth;
    h->sum = end->sum;
    h->met = met;
    h->score = end->sum / pow(fmax(1, end->depth), s->spec->lenpen);
    for (const node *at = end; at->parent >= 0; at = &s->nodes[at->parent]) {
        h->tokens[at->depth - 1] = at->token;
        h->logp[at->depth - 1] = at->logp;
    }
    s->out->count[i]++;
    s->out->tokens += h->n;
    return FTH_OK;
}

static int by_score(const void *a, const void *b) {
    const fth_hypothesis *x = a, *y = b;
    if (x->met != y->met) return (x->met < y->met) - (x->met > y->met);
    return (x->score < y->score) - (x->score > y->score);
}

/* ---- the words of one row ---- */

/* What must come next, -1: nothing must. */
static int32_t forced_word(const search *s, const sentence *x, int32_t last) {
    int32_t depth = s->nodes[last].depth;
    if (depth < x->n_prefix) return x->prefix[depth];
    return depth >= x->max_len ? s->spec->eos : -1;
}

/* The one word that may come, with a log-probability that can be added up. */
static void force(search *s, int32_t word, float logp) {
    s->listed = true;
    s->n_words = 1;
    s->word[0] = word;
    s->logp[0] = isfinite(logp) ? logp : -1e9f;
}

/* A sum over all words shows whether one of them is no number. */
static fth_err not_finite(void) {
    return fth_fail(FTH_FAILED,
                    "the model gives logits that are not finite; its weights are not finite, or "
                    "too large for the --precision");
}

static fth_err fetch_logits(search *s) {
    for (int m = 0; m < s->n_steppers && !s->fetched; m++)
        FTH_TRY(fth_stepper_logits(s->steppers[m], &s->logits[m]));
    s->fetched = true;
    return FTH_OK;
}

/* What the devices of several models have chosen. */
static fth_err mixed_row(search *s, int32_t row, int32_t forced) {
    fth_mixed_list *l = &s->mixed;
    float logp;
    if (forced >= 0) {
        if (!fth_mixed_list_asked(l, s->best, row, &logp)) return not_finite();
        force(s, forced, logp);
        return FTH_OK;
    }
    FTH_TRY(fetch_logits(s));
    if (!fth_mixed_list_fill(l, s->best, s->logits, s->vocab, row)) return not_finite();
    s->listed = true;
    s->all_listed = l->all && l->n <= FTH_TOP_MOST;
    s->n_words = l->n < FTH_TOP_MOST ? l->n : FTH_TOP_MOST;
    memcpy(s->word, l->word, sizeof *s->word * (size_t)s->n_words);
    memcpy(s->logp, l->logp, sizeof *s->logp * (size_t)s->n_words);
    return FTH_OK;
}

/* What the device has chosen for a row. */
static fth_err list_row(search *s, int32_t row, int32_t forced) {
    if (s->n_steppers > 1) return mixed_row(s, row, forced);
    const int32_t k = s->best->k;
    const float *y = s->best->rows + (size_t)row * (size_t)(TOP_BEST + 2 * k);
    const float *logit = y + TOP_BEST, *word = logit + k, lse = y[TOP_LSE];
    if (!isfinite(lse)) return not_finite();
    if (forced >= 0) {
        force(s, forced, y[TOP_ASKED] - lse);
        return FTH_OK;
    }
    s->listed = true;
    for (s->n_words = 0; s->n_words < k && word[s->n_words] >= 0; s->n_words++) {
        s->word[s->n_words] = (int32_t)word[s->n_words];
        s->logp[s->n_words] = logit[s->n_words] - lse;
    }
    s->all_listed = s->n_words < k;
    return FTH_OK;
}

/* Log-probabilities of all words of a row into s->logp. */
static fth_err row_logp(search *s, int32_t row) {
    size_t at = (size_t)row * (size_t)s->vocab;
    double t = s->spec->sampling ? s->spec->temperature : 1;
    if (s->n_steppers == 1)
        return fth_log_softmax(s->logits[0] + at, s->vocab, t, s->logp) ? FTH_OK : not_finite();
    for (int m = 0; m < s->n_steppers; m++) {
        float *logp = s->each + (size_t)m * (size_t)s->vocab;
        if (!fth_log_softmax(s->logits[m] + at, s->vocab, t, logp)) return not_finite();
        s->each_row[m] = logp;
    }
    fth_row_mix(s->each_row, s->n_steppers, s->vocab, s->logp);
    return FTH_OK;
}

/* All words of a row. */
static fth_err whole_row(search *s, int32_t row, int32_t forced) {
    FTH_TRY(fetch_logits(s));
    FTH_TRY(row_logp(s, row));
    s->listed = false;
    s->n_words = s->vocab;
    if (forced >= 0) force(s, forced, s->logp[forced]);
    return FTH_OK;
}

/* Where the log-probability of a word stands; NULL: not in the list. */
static float *logp_of(search *s, int32_t word) {
    if (!s->listed) return &s->logp[word];
    for (int32_t i = 0; i < s->n_words; i++)
        if (s->word[i] == word) return &s->logp[i];
    return NULL;
}

static void take_off(search *s, int32_t word, float penalty) {
    float *logp = logp_of(s, word);
    if (logp) *logp -= penalty;
}

/* Forbids every token that would end an n-gram which the hypothesis has already. */
static fth_err forbid_repeats(search *s, int32_t last) {
    int n = s->spec->no_repeat_ngram, depth = s->nodes[last].depth;
    if (n < 1 || depth < n) return FTH_OK;
    int32_t *tokens = malloc(sizeof *tokens * (size_t)depth);
    if (!tokens) return fth_no_memory("a search");
    for (int32_t at = last; s->nodes[at].parent >= 0; at = s->nodes[at].parent)
        tokens[s->nodes[at].depth - 1] = s->nodes[at].token;
    for (int i = 0; i + n <= depth; i++)
        if (memcmp(tokens + i, tokens + depth - n + 1, sizeof *tokens * (size_t)(n - 1)) == 0)
            take_off(s, tokens[i + n - 1], INFINITY);
    free(tokens);
    return FTH_OK;
}

/* What may come next, by the rules of the search, where nothing is forced. */
static fth_err apply_rules(search *s, int32_t last) {
    const fth_search_spec *o = s->spec;
    take_off(s, o->pad, INFINITY);
    take_off(s, o->bos, INFINITY);
    take_off(s, o->unk, (float)o->unkpen);
    if (s->nodes[last].depth < o->min_len) take_off(s, o->eos, INFINITY);
    return forbid_repeats(s, last);
}

/* Whether the `wanted` best that the rules leave are in the list: so many of it are as the device
 * saw them, and no word that is not in the list is better than any of it. */
static bool list_suffices(const search *s, int32_t wanted) {
    if (s->all_listed) return true;
    int32_t sure = 0;
    for (int32_t i = 0; i < s->n_words; i++)
        sure += s->logp[i] > -INFINITY && (s->word[i] != s->spec->unk || s->spec->unkpen == 0);
    return sure >= wanted;
}

/* The words that may follow live hypothesis l of a sentence, the `wanted` best among them. */
static fth_err row_words(search *s, const sentence *x, live l, int32_t wanted) {
    const int32_t forced = forced_word(s, x, l.node);
    if (s->chosen) {
        FTH_TRY(list_row(s, l.row, forced));
        if (forced >= 0) return FTH_OK;
        FTH_TRY(apply_rules(s, l.node));
        if (list_suffices(s, wanted)) return FTH_OK;
    }
    FTH_TRY(whole_row(s, l.row, forced));
    if (forced < 0) FTH_TRY(apply_rules(s, l.node));
    if (forced < 0 && l.met < x->constraint.n) take_off(s, s->spec->eos, INFINITY);
    return FTH_OK;
}

/* The same as candidates that continue hypothesis `from`. */
static int32_t row_candidates(search *s, int32_t wanted, double sum, int32_t from,
                              fth_candidate *out) {
    if (!s->listed) return fth_pick_best(s->logp, s->n_words, wanted, sum, from, out);
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_words; i++)
        if (s->logp[i] > -INFINITY)
            out[n++] = (fth_candidate){sum + s->logp[i], s->logp[i], from, s->word[i]};
    return n;
}

/* ---- one step of a sentence ---- */

/* Continues hypothesis `from` with a token, as a live one or as a finished one. */
static fth_err extend(search *s, int32_t i, live from, int32_t token, float logp, live *next,
                      int32_t *n_next) {
    int32_t index = -1;
    node n = {.parent = from.node,
              .token = token,
              .logp = logp,
              .sum = s->nodes[from.node].sum + logp,
              .depth = s->nodes[from.node].depth + 1};
    FTH_TRY(add_node(s, n, &index));
    const int32_t met = fth_constraint_step(&s->sentences[i].constraint, from.met, token);
    if (token == s->spec->eos) return finish(s, i, index, from.met);
    next[(*n_next)++] = (live){.node = index, .row = from.row, .group = from.group, .met = met};
    return FTH_OK;
}

/* The words that earlier groups of a sentence have chosen in this step. */
typedef struct chosen {
    int32_t *word; /* [n], one that was chosen twice stands there twice */
    int32_t n;
} chosen;

static void make_dearer(fth_candidate *c, int32_t n, const chosen *earlier, double cost) {
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < earlier->n; k++)
            if (earlier->word[k] == c[i].token) c[i].sum -= cost;
}

static int32_t groups_of(const fth_search_spec *spec) {
    return spec->groups > 1 ? spec->groups : 1;
}

/* The next token of the constraint, where it is not among the n candidates of live hypothesis k
 * already: 1 where it is added behind them. */
static int32_t next_of_constraint(search *s, const sentence *x, int32_t k, double sum,
                                  fth_candidate *out, int32_t n) {
    if (x->live[k].met >= x->constraint.n || s->listed) return 0;
    const int32_t token = x->constraint.token[x->live[k].met];
    const float logp = s->logp[token];
    for (int32_t i = 0; i < n; i++)
        if (out[i].token == token) return 0;
    if (!(logp > -INFINITY)) return 0;
    out[n] = (fth_candidate){sum + logp, logp, k, token};
    return 1;
}

/* The candidates as a beam with constraints takes them. */
static int32_t share_beam(search *s, const sentence *x, int32_t n, int32_t most) {
    n = fth_sort_candidates(s->candidates, n, n);
    for (int32_t c = 0; c < n; c++) {
        const fth_candidate *it = &s->candidates[c];
        s->met[c] = fth_constraint_step(&x->constraint, x->live[it->from].met, it->token);
    }
    return fth_constraint_share(s->candidates, s->met, n, most);
}

/* The step of one group, whose live hypotheses go behind the others in next. */
static fth_err group_step(search *s, int32_t i, int32_t group, chosen *earlier, live *next,
                          int32_t *n_next) {
    sentence *x = &s->sentences[i];
    const int32_t beam = s->spec->beam / groups_of(s->spec), first = *n_next;
    const int32_t kept = 2 * beam, wanted = kept + earlier->n; /* the dearer ones may fall out */
    int32_t n = 0;
    for (int32_t k = 0; k < x->n_live; k++) {
        if (x->live[k].group != group) continue;
        FTH_TRY(row_words(s, x, x->live[k], wanted));
        const double sum = s->nodes[x->live[k].node].sum;
        const int32_t more = row_candidates(s, wanted, sum, k, s->candidates + n);
        n += more + next_of_constraint(s, x, k, sum, s->candidates + n, more);
    }
    make_dearer(s->candidates, n, earlier, s->spec->diversity);
    n = x->constraint.n ? share_beam(s, x, n, kept) : fth_sort_candidates(s->candidates, n, kept);
    const int32_t before = earlier->n;
    for (int32_t c = 0; c < n && *n_next - first < beam && x->finished[group] < beam; c++) {
        const fth_candidate *it = &s->candidates[c];
        if (it->token == s->spec->eos && c >= beam)
            continue; /* an end counts among the best only */
        FTH_TRY(extend(s, i, x->live[it->from], it->token, it->logp, next, n_next));
        x->finished[group] += it->token == s->spec->eos;
        if (earlier->n - before < beam) earlier->word[earlier->n++] = it->token;
    }
    if (x->finished[group] >= beam) *n_next = first;
    return FTH_OK;
}

static fth_err beam_step(search *s, int32_t i) {
    sentence *x = &s->sentences[i];
    const int32_t beam = s->spec->beam;
    live next[beam];
    int32_t words[beam], n_next = 0;
    chosen earlier = {words, 0};
    memset(next, 0, sizeof next);
    for (int32_t g = 0; g < groups_of(s->spec); g++)
        FTH_TRY(group_step(s, i, g, &earlier, next, &n_next));
    memcpy(x->live, next, sizeof(live) * (size_t)n_next);
    x->n_live = n_next;
    return FTH_OK;
}

static fth_err sample_step(search *s, int32_t i) {
    sentence *x = &s->sentences[i];
    live next[s->spec->beam];
    memset(next, 0, sizeof next);
    int32_t n_next = 0;
    for (int32_t k = 0; k < x->n_live; k++) {
        FTH_TRY(row_words(s, x, x->live[k], 1));
        const int32_t at = fth_pick_random(s->logp, s->n_words, s->spec->topk, s->spec->topp,
                                           fth_rng_uniform(&x->rng), s->scratch);
        if (at < 0)
            continue; /* the rules leave no word: the sample ends unfinished, as in a beam */
        const int32_t token = s->listed ? s->word[at] : at;
        FTH_TRY(extend(s, i, x->live[k], token, s->logp[at], next, &n_next));
    }
    memcpy(x->live, next, sizeof(live) * (size_t)n_next);
    x->n_live = n_next;
    return FTH_OK;
}

/* ---- the batch ---- */

static fth_err start(search *s) {
    const fth_search_batch *b = s->batch;
    int32_t root = 0;
    FTH_TRY(add_node(s, (node){.parent = -1, .token = s->spec->first}, &root));
    for (int32_t i = 0; i < b->n_sent; i++) {
        sentence *x = &s->sentences[i];
        int32_t length = b->offsets ? b->offsets[i + 1] - b->offsets[i] : 0;
        if (b->prefix_offsets) {
            x->prefix = b->prefix_ids + b->prefix_offsets[i];
            x->n_prefix = b->prefix_offsets[i + 1] - b->prefix_offsets[i];
        }
        if (b->constraint_offsets)
            FTH_TRY(fth_constraint_make(b->constraint_ids + b->constraint_offsets[i],
                                        b->constraint_offsets[i + 1] - b->constraint_offsets[i],
                                        &s->out->arena, &x->constraint));
        /* without a source the text that is given counts as one */
        x->max_len = fth_search_max_len(s->spec, b->offsets ? length : x->n_prefix);
        if (!b->offsets) x->max_len += x->n_prefix;
        if (x->max_len > s->spec->max_positions - 1) x->max_len = s->spec->max_positions - 1;
        if (x->n_prefix > x->max_len) x->n_prefix = x->max_len;
        fth_rng_init(&x->rng, s->spec->seed, (uint64_t)(b->number ? b->number[i] : i));
        x->n_live = s->spec->sampling ? s->spec->beam : groups_of(s->spec);
        for (int32_t k = 0; k < x->n_live; k++)
            x->live[k] = (live){.node = root, .row = -1, .group = s->spec->sampling ? 0 : k};
    }
    for (int m = 0; m < s->n_steppers; m++)
        FTH_TRY(b->frames ? fth_stepper_begin_frames(s->steppers[m], b->n_sent, b->offsets,
                                                     b->frames, b->masked)
                          : fth_stepper_begin(s->steppers[m], b->n_sent, b->offsets, b->ids));
    return FTH_OK;
}

/* Puts the live hypotheses of all sentences into rows and runs the models. */
static fth_err advance(search *s) {
    s->n_rows = 0;
    for (int32_t i = 0; i < s->batch->n_sent; i++)
        for (int32_t k = 0; k < s->sentences[i].n_live; k++) {
            live *l = &s->sentences[i].live[k];
            s->rows[s->n_rows] = (fth_step_row){.sentence = i,
                                                .token = s->nodes[l->node].token,
                                                .parent = l->row,
                                                .asked = forced_word(s, &s->sentences[i], l->node)};
            l->row = s->n_rows++;
        }
    for (int m = 0; s->n_rows && m < s->n_steppers; m++)
        FTH_TRY(fth_stepper_step(s->steppers[m], s->rows, s->n_rows, NULL));
    s->fetched = false;
    s->chosen = s->n_rows && fth_search_top(s->spec, s->n_steppers, s->vocab);
    for (int m = 0; s->chosen && m < s->n_steppers; m++) {
        FTH_TRY(fth_stepper_best(s->steppers[m], &s->best[m]));
        s->chosen = s->best[m].k > 0;
    }
    return FTH_OK;
}

static fth_err run(search *s) {
    FTH_TRY(start(s));
    for (;;) {
        FTH_TRY(advance(s));
        if (s->n_rows == 0) break;
        for (int32_t i = 0; i < s->batch->n_sent; i++) {
            if (s->sentences[i].n_live == 0) continue;
            FTH_TRY(s->spec->sampling ? sample_step(s, i) : beam_step(s, i));
        }
    }
    for (int32_t i = 0; i < s->batch->n_sent; i++)
        qsort(s->out->found[i], (size_t)s->out->count[i], sizeof(fth_hypothesis), by_score);
    return FTH_OK;
}

static fth_err allocate(search *s) {
    size_t n = (size_t)s->batch->n_sent, beam = (size_t)s->spec->beam, vocab = (size_t)s->vocab;
    fth_search_result *out = s->out;
    out->n_sent = s->batch->n_sent;
    out->count = fth_arena_alloc(&out->arena, sizeof *out->count * (n + 1));
    out->found = fth_arena_alloc(&out->arena, sizeof *out->found * (n + 1));
    s->sentences = calloc(n + 1, sizeof *s->sentences);
    s->rows = calloc(n * beam + 1, sizeof *s->rows);
    const size_t words = vocab > FTH_TOP_MOST ? vocab : FTH_TOP_MOST;
    const size_t most = 1 + (beam * 2 > FTH_TOP_MOST ? beam * 2 : FTH_TOP_MOST); /* of a row */
    s->logp = malloc(sizeof *s->logp * words);
    s->word = malloc(sizeof *s->word * FTH_TOP_MOST);
    s->best = calloc((size_t)s->n_steppers, sizeof *s->best);
    s->each = malloc(sizeof *s->each * vocab * (size_t)s->n_steppers);
    s->each_row = calloc((size_t)s->n_steppers, sizeof *s->each_row);
    s->logits = calloc((size_t)s->n_steppers, sizeof *s->logits);
    s->candidates = malloc(sizeof *s->candidates * beam * most);
    s->met = malloc(sizeof *s->met * beam * most);
    s->scratch = malloc(sizeof *s->scratch * vocab);
    if (s->n_steppers > 1) FTH_TRY(fth_mixed_list_init(&s->mixed, s->n_steppers));
    if (!out->count || !out->found || !s->sentences || !s->rows || !s->logp || !s->word ||
        !s->best || !s->each || !s->each_row || !s->logits || !s->candidates || !s->met ||
        !s->scratch)
        return fth_no_memory("a search");
    for (size_t i = 0; i < n; i++) {
        s->sentences[i].live = fth_arena_alloc(&out->arena, sizeof(live) * beam);
        s->sentences[i].finished = fth_arena_alloc(&out->arena, sizeof(int32_t) * beam);
        out->found[i] = fth_arena_alloc(&out->arena, sizeof(fth_hypothesis) * 2 * beam);
        if (!s->sentences[i].live || !s->sentences[i].finished || !out->found[i])
            return fth_no_memory("a search");
        memset(s->sentences[i].finished, 0, sizeof(int32_t) * beam);
    }
    return FTH_OK;
}

fth_err fth_search(fth_stepper *const *steppers, int n_steppers, int32_t vocab,
                   const fth_search_spec *spec, const fth_search_batch *batch,
                   fth_search_result *out) {
    *out = (fth_search_result){0};
    search s = {.steppers = steppers,
                .n_steppers = n_steppers,
                .vocab = vocab,
                .spec = spec,
                .batch = batch,
                .out = out};
    fth_err err = allocate(&s);
    if (err == FTH_OK) err = run(&s);
    free(s.sentences);
    free(s.nodes);
    free(s.rows);
    free(s.logp);
    free(s.word);
    free(s.best);
    fth_mixed_list_fini(&s.mixed);
    free(s.each);
    free(s.each_row);
    free(s.logits);
    free(s.candidates);
    free(s.met);
    free(s.scratch);
    if (err != FTH_OK) fth_search_result_fini(out);
    return err;
}
