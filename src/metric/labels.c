/* labels.c: counts lines by class: accuracy, Matthews' correlation for any number of classes,
 * F1. */
#include "metric/labels.h"

#include <math.h>
#include <stdlib.h>

#include "text/unicode.h"
#include "metric/words.h"

/* R_K = (n correct - sum t p) / sqrt((n^2 - sum p^2) (n^2 - sum t^2)), with t and p the number of
 * lines that reference and hypothesis give to a class. */
static double correlation(double n, double correct, const size_t *t, const size_t *p,
                          size_t classes) {
    double tp = 0, tt = 0, pp = 0;
    for (size_t k = 0; k < classes; k++) {
        tp += (double)t[k] * (double)p[k];
        tt += (double)t[k] * (double)t[k];
        pp += (double)p[k] * (double)p[k];
    }
    double spread = (n * n - pp) * (n * n - tt);
    return spread > 0 ? (n * correct - tp) / sqrt(spread) : 0;
}

/* Lines by class. Zeroed it is empty. */
typedef struct counts {
    fth_vocab vocab;
    size_t *memory;
    size_t *ref, *hyp, *both; /* [vocab.n] lines where the reference, the hypothesis, both say it */
    size_t correct;
} counts;

static void counts_fini(counts *k) {
    free(k->memory);
    fth_vocab_fini(&k->vocab);
}

/* The class `first` gets the number 0. */
static fth_err count(const fth_text_pairs *c, fth_text first, counts *k) {
    const size_t most = 2 * c->n + 1;
    uint32_t ref, hyp;
    k->memory = calloc(3 * most, sizeof *k->memory);
    if (!k->memory) return fth_fail(FTH_NO_MEMORY, "no memory for %zu labels", c->n);
    k->ref = k->memory;
    k->hyp = k->ref + most;
    k->both = k->hyp + most;
    if (first.text) FTH_TRY(fth_vocab_id(&k->vocab, fth_strip(first), &ref));
    for (size_t i = 0; i < c->n; i++) {
        FTH_TRY(fth_vocab_id(&k->vocab, fth_strip(c->ref[0][i]), &ref));
        FTH_TRY(fth_vocab_id(&k->vocab, fth_strip(c->hyp[i]), &hyp));
        k->ref[ref]++;
        k->hyp[hyp]++;
        k->both[ref] += ref == hyp;
        k->correct += ref == hyp;
    }
    return FTH_OK;
}

fth_err fth_labels_corpus(const fth_text_pairs *c, fth_labels *out) {
    counts k = {0};
    fth_err err = count(c, (fth_text){0}, &k);
    *out = (fth_labels){.n = c->n, .correct = k.correct};
    if (c->n) out->accuracy = (double)k.correct / (double)c->n;
    if (err == FTH_OK)
        out->matthews = correlation((double)c->n, (double)k.correct, k.ref, k.hyp, k.vocab.n);
    counts_fini(&k);
    return err;
}

/* 2 tp / (2 tp + fp + fn) of a class; NaN where neither side has it. */
static double f1_of(const counts *k, size_t class) {
    const size_t all = k->ref[class] + k->hyp[class];
    return all ? 2 * (double)k->both[class] / (double)all : (double)NAN;
}

static double mean_f1(const counts *k) {
    double sum = 0;
    for (size_t class = 0; class < k->vocab.n; class ++) sum += f1_of(k, class);
    return sum / (double)k->vocab.n;
}

fth_err fth_f1_corpus(const fth_text_pairs *c, fth_f1_average average, fth_text positive,
                      double *out) {
    counts k = {0};
    fth_err err = count(c, average == FTH_F1_BINARY ? positive : (fth_text){0}, &k);
    if (err == FTH_OK)
        *out = average == FTH_F1_BINARY  ? f1_of(&k, 0)
               : average == FTH_F1_MACRO ? mean_f1(&k)
                                         : (double)k.correct / (double)c->n;
    counts_fini(&k);
    return err;
}
