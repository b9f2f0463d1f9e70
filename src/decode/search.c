#include "decode/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
} live;

/* One sentence of the batch. */
typedef struct sentence {
    live *live; /* [beam] */
    int32_t n_live;
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
    float *logp;               /* [vocab] of one row */
    double *mixed;             /* [vocab] of several models */
    const float **logits;      /* [n_steppers] */
    fth_candidate *candidates; /* [beam * 2 * beam] */
    fth_candidate *scratch;    /* [vocab] of sampling */
} search;

int32_t fth_search_max_len(const fth_search_spec *spec, int32_t source_length) {
    double most = floor(spec->max_len_a * source_length + (double)spec->max_len_b);
    double limit = spec->max_positions - 1;
    return (int32_t)fmax(1, fmin(most, limit));
}

void fth_search_result_fini(fth_search_result *r) {
    fth_arena_fini(&r->arena);
    *r = (fth_search_result){0};
}

static fth_err no_memory(void) {
    return fth_fail(FTH_NO_MEMORY, "no memory for a search");
}

/* ---- hypotheses ---- */

static fth_err add_node(search *s, node n, int32_t *index) {
    if (s->n_nodes == s->cap_nodes) {
        int32_t capacity = s->cap_nodes ? s->cap_nodes * 2 : 1024;
        node *more = realloc(s->nodes, sizeof *more * (size_t)capacity);
        if (!more) return no_memory();
        s->nodes = more;
        s->cap_nodes = capacity;
    }
    s->nodes[s->n_nodes] = n;
    *index = s->n_nodes++;
    return FTH_OK;
}

/* Notes a hypothesis that ends with node `last`. */
static fth_err finish(search *s, int32_t i, int32_t last) {
    fth_arena *arena = &s->out->arena;
    const node *end = &s->nodes[last];
    fth_hypothesis *h = &s->out->found[i][s->out->count[i]];
    size_t n = (size_t)end->depth;
    h->tokens = fth_arena_alloc(arena, sizeof *h->tokens * (n + 1));
    h->logp = fth_arena_alloc(arena, sizeof *h->logp * (n + 1));
    if (!h->tokens || !h->logp) return no_memory();
    h->n = end->depth;
    h->sum = end->sum;
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
    double x = ((const fth_hypothesis *)a)->score, y = ((const fth_hypothesis *)b)->score;
    return (x < y) - (x > y);
}

/* ---- the scores of one row ---- */

/* Log-probabilities of a row into s->logp. */
static void row_logp(search *s, int32_t row) {
    size_t at = (size_t)row * (size_t)s->vocab;
    double t = s->spec->sampling ? s->spec->temperature : 1;
    if (s->n_steppers == 1) {
        fth_log_softmax(s->logits[0] + at, s->vocab, t, s->logp);
        return;
    }
    memset(s->mixed, 0, sizeof *s->mixed * (size_t)s->vocab);
    for (int m = 0; m < s->n_steppers; m++) {
        fth_log_softmax(s->logits[m] + at, s->vocab, t, s->logp);
        for (int32_t v = 0; v < s->vocab; v++) s->mixed[v] += exp((double)s->logp[v]);
    }
    for (int32_t v = 0; v < s->vocab; v++) s->logp[v] = (float)log(s->mixed[v] / s->n_steppers);
}

/* Forbids every token that would end an n-gram which the hypothesis has already. */
static void forbid_repeats(search *s, int32_t last) {
    int n = s->spec->no_repeat_ngram, depth = s->nodes[last].depth;
    if (n < 1 || depth < n) return;
    int32_t *tokens = malloc(sizeof *tokens * (size_t)depth);
    if (!tokens) return;
    for (int32_t at = last; s->nodes[at].parent >= 0; at = s->nodes[at].parent)
        tokens[s->nodes[at].depth - 1] = s->nodes[at].token;
    for (int i = 0; i + n <= depth; i++)
        if (memcmp(tokens + i, tokens + depth - n + 1, sizeof *tokens * (size_t)(n - 1)) == 0)
            s->logp[tokens[i + n - 1]] = -INFINITY;
    free(tokens);
}

/* What may come next, by the rules of the search. */
static void apply_rules(search *s, const sentence *x, int32_t last) {
    const fth_search_spec *o = s->spec;
    int32_t depth = s->nodes[last].depth, forced = -1;
    if (depth < x->n_prefix)
        forced = x->prefix[depth];
    else if (depth >= x->max_len)
        forced = o->eos;
    if (forced >= 0) {
        float kept = s->logp[forced];
        for (int32_t v = 0; v < s->vocab; v++) s->logp[v] = -INFINITY;
        s->logp[forced] = isfinite(kept) ? kept : -1e9f;
        return;
    }
    s->logp[o->pad] = s->logp[o->bos] = -INFINITY;
    s->logp[o->unk] -= (float)o->unkpen;
    if (depth < o->min_len) s->logp[o->eos] = -INFINITY;
    forbid_repeats(s, last);
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
    if (token == s->spec->eos) return finish(s, i, index);
    next[(*n_next)++] = (live){.node = index, .row = from.row};
    return FTH_OK;
}

static fth_err beam_step(search *s, int32_t i) {
    sentence *x = &s->sentences[i];
    int32_t beam = s->spec->beam, wanted = 2 * beam, n = 0;
    for (int32_t k = 0; k < x->n_live; k++) {
        row_logp(s, x->live[k].row);
        apply_rules(s, x, x->live[k].node);
        n += fth_pick_best(s->logp, s->vocab, wanted, s->nodes[x->live[k].node].sum, k,
                           s->candidates + n);
    }
    n = fth_sort_candidates(s->candidates, n, wanted);
    live old[beam], next[beam];
    memset(next, 0, sizeof next);
    memcpy(old, x->live, sizeof(live) * (size_t)x->n_live);
    int32_t n_next = 0;
    for (int32_t c = 0; c < n && n_next < beam && s->out->count[i] < beam; c++) {
        const fth_candidate *it = &s->candidates[c];
        if (it->token == s->spec->eos && c >= beam)
            continue; /* an end counts among the best only */
        FTH_TRY(extend(s, i, old[it->from], it->token, it->logp, next, &n_next));
    }
    if (s->out->count[i] >= beam) n_next = 0;
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
        row_logp(s, x->live[k].row);
        apply_rules(s, x, x->live[k].node);
        int32_t token = fth_pick_random(s->logp, s->vocab, s->spec->topk, s->spec->topp,
                                        fth_rng_uniform(&x->rng), s->scratch);
        FTH_TRY(extend(s, i, x->live[k], token, s->logp[token], next, &n_next));
    }
    memcpy(x->live, next, sizeof(live) * (size_t)n_next);
    x->n_live = n_next;
    return FTH_OK;
}

/* ---- the batch ---- */

static fth_err start(search *s) {
    const fth_search_batch *b = s->batch;
    int32_t root;
    FTH_TRY(add_node(s, (node){.parent = -1, .token = s->spec->first}, &root));
    for (int32_t i = 0; i < b->n_sent; i++) {
        sentence *x = &s->sentences[i];
        int32_t length = b->offsets ? b->offsets[i + 1] - b->offsets[i] : 0;
        if (b->prefix_offsets) {
            x->prefix = b->prefix_ids + b->prefix_offsets[i];
            x->n_prefix = b->prefix_offsets[i + 1] - b->prefix_offsets[i];
        }
        /* without a source the text that is given counts as one */
        x->max_len = fth_search_max_len(s->spec, b->offsets ? length : x->n_prefix);
        if (!b->offsets) x->max_len += x->n_prefix;
        if (x->max_len > s->spec->max_positions - 1) x->max_len = s->spec->max_positions - 1;
        if (x->n_prefix > x->max_len) x->n_prefix = x->max_len;
        fth_rng_init(&x->rng, s->spec->seed, (uint64_t)(b->number ? b->number[i] : i));
        x->n_live = s->spec->sampling ? s->spec->beam : 1;
        for (int32_t k = 0; k < x->n_live; k++) x->live[k] = (live){.node = root, .row = -1};
    }
    for (int m = 0; m < s->n_steppers; m++)
        FTH_TRY(fth_stepper_begin(s->steppers[m], b->n_sent, b->offsets, b->ids));
    return FTH_OK;
}

/* Puts the live hypotheses of all sentences into rows and runs the models. */
static fth_err advance(search *s) {
    s->n_rows = 0;
    for (int32_t i = 0; i < s->batch->n_sent; i++)
        for (int32_t k = 0; k < s->sentences[i].n_live; k++) {
            live *l = &s->sentences[i].live[k];
            s->rows[s->n_rows] =
                (fth_step_row){.sentence = i, .token = s->nodes[l->node].token, .parent = l->row};
            l->row = s->n_rows++;
        }
    for (int m = 0; s->n_rows && m < s->n_steppers; m++)
        FTH_TRY(fth_stepper_step(s->steppers[m], s->rows, s->n_rows, &s->logits[m]));
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
    s->logp = malloc(sizeof *s->logp * vocab);
    s->mixed = malloc(sizeof *s->mixed * vocab);
    s->logits = calloc((size_t)s->n_steppers, sizeof *s->logits);
    s->candidates = malloc(sizeof *s->candidates * 2 * beam * beam);
    s->scratch = malloc(sizeof *s->scratch * vocab);
    if (!out->count || !out->found || !s->sentences || !s->rows || !s->logp || !s->mixed ||
        !s->logits || !s->candidates || !s->scratch)
        return no_memory();
    for (size_t i = 0; i < n; i++) {
        s->sentences[i].live = fth_arena_alloc(&out->arena, sizeof(live) * beam);
        out->found[i] = fth_arena_alloc(&out->arena, sizeof(fth_hypothesis) * 2 * beam);
        if (!s->sentences[i].live || !out->found[i]) return no_memory();
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
    free(s.mixed);
    free(s.logits);
    free(s.candidates);
    free(s.scratch);
    if (err != FTH_OK) fth_search_result_fini(out);
    return err;
}
