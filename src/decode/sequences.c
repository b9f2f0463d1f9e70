/* sequences.c: row t of a sequence reads token t and is asked for token t + 1, so sequences share
 * it while they agree up to there. Sorted sequences that agree are neighbours. */
#include "decode/sequences.h"

#include <math.h>
#include <stdlib.h>

#include "backend/top_words.h"
#include "decode/pick.h"

static int compare(const void *a, const void *b) {
    const fth_sequence *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    const int32_t n = x->n < y->n ? x->n : y->n;
    for (int32_t i = 0; i < n; i++)
        if (x->ids[i] != y->ids[i]) return x->ids[i] < y->ids[i] ? -1 : 1;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

void fth_sequences_sort(fth_sequence *s, int32_t n) {
    qsort(s, (size_t)n, sizeof *s, compare);
}

/* Tokens that two neighbours have in common at their beginning. */
static int32_t common(const fth_sequence *a, const fth_sequence *b) {
    int32_t i = 0;
    if (a->source != b->source) return 0;
    while (i < a->n && i < b->n && a->ids[i] == b->ids[i]) i++;
    return i;
}

/* For each sequence the tokens in common with the one before it. NULL when out of memory. */
static int32_t *shared_with_last(const fth_sequence *s, int32_t n) {
    int32_t *shared = calloc((size_t)n + 1, sizeof *shared);
    for (int32_t i = 1; shared && i < n; i++) shared[i] = common(&s[i - 1], &s[i]);
    return shared;
}

fth_sequences_size fth_sequences_measure(const fth_sequence *s, int32_t n) {
    fth_sequences_size size = {0};
    for (int32_t i = 0; i < n; i++) {
        const int32_t shared = i ? common(&s[i - 1], &s[i]) : 0;
        /* its own rows are those that ask for a token that the one before has not */
        size.tokens += s[i].n - (shared > 1 ? shared : 1);
        if (s[i].n - 1 > size.length) size.length = s[i].n - 1;
    }
    size.rows = n;
    return size;
}

/* A scoring on its way. */
typedef struct scoring {
    fth_stepper *stepper;
    int32_t vocab, n;
    fth_sequence *s;    /* [n] */
    int32_t *shared;    /* [n] */
    int32_t *row;       /* [n] of the newest step */
    fth_step_row *rows; /* [n] of a step */
    float *logp;        /* [vocab] */
} scoring;

/* The rows of step t; 0: no sequence is left. */
static int32_t make_rows(scoring *k, int32_t t) {
    int32_t n = 0, agree = 0; /* agree: tokens in common with the newest row's sequence */
    for (int32_t i = 0; i < k->n; i++) {
        if (k->shared[i] < agree) agree = k->shared[i];
        if (k->s[i].n < t + 2) continue;
        if (n == 0 || agree < t + 2)
            k->rows[n++] = (fth_step_row){.sentence = k->s[i].source,
                                          .token = k->s[i].ids[t],
                                          .parent = t ? k->row[i] : -1,
                                          .asked = k->s[i].ids[t + 1]};
        k->row[i] = n - 1;
        agree = INT32_MAX;
    }
    return n;
}

/* The log-probability of the word that row r asks for. */
static fth_err row_logp(scoring *k, const fth_best *best, int32_t r, double *logp) {
    bool finite;
    if (best->k > 0) {
        const float *y = best->rows + (size_t)r * (size_t)(TOP_BEST + 2 * best->k);
        *logp = (double)y[TOP_ASKED] - (double)y[TOP_LSE];
        finite = isfinite(y[TOP_LSE]);
    } else {
        const float *logits;
        FTH_TRY(fth_stepper_logits(k->stepper, &logits));
        finite = fth_log_softmax(logits + (size_t)r * (size_t)k->vocab, k->vocab, 1, k->logp);
        *logp = k->logp[k->rows[r].asked];
    }
    if (!finite)
        return fth_fail(FTH_FAILED,
                        "the model gives logits that are not finite; its weights are not finite, "
                        "or too large for the --precision");
    return FTH_OK;
}

static fth_err run_steps(scoring *k) {
    for (int32_t t = 0;; t++) {
        fth_best best;
        const int32_t n = make_rows(k, t);
        if (n == 0) return FTH_OK;
        FTH_TRY(fth_stepper_step(k->stepper, k->rows, n, NULL));
        FTH_TRY(fth_stepper_best(k->stepper, &best));
        int32_t known = -1;
        double logp = 0;
        for (int32_t i = 0; i < k->n; i++) {
            if (k->s[i].n < t + 2 || t + 1 < k->s[i].from) continue;
            if (k->row[i] != known) FTH_TRY(row_logp(k, &best, k->row[i], &logp));
            known = k->row[i];
            k->s[i].logp += logp;
        }
    }
}

fth_err fth_sequences_score(fth_stepper *stepper, int32_t vocab, fth_sequence *s, int32_t n) {
    scoring k = {.stepper = stepper, .vocab = vocab, .n = n, .s = s};
    for (int32_t i = 0; i < n; i++) s[i].logp = 0;
    k.shared = shared_with_last(s, n);
    k.row = calloc((size_t)n + 1, sizeof *k.row);
    k.rows = calloc((size_t)n + 1, sizeof *k.rows);
    k.logp = malloc((size_t)vocab * sizeof *k.logp);
    fth_err err = k.shared && k.row && k.rows && k.logp
                      ? run_steps(&k)
                      : fth_fail(FTH_NO_MEMORY, "no memory to score sequences");
    free(k.shared);
    free(k.row);
    free(k.rows);
    free(k.logp);
    return err;
}
