/* bleu.c: counts the n-grams that hypothesis and references share, clipped, then smooths and takes
 * the geometric mean. */
#include "metric/bleu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "metric/ngram.h"
#include "metric/sums.h"
#include "metric/words.h"

const char *fth_smooth_name(fth_smooth smooth) {
    static const char *const names[] = {[FTH_SMOOTH_EXP] = "exp",
                                        [FTH_SMOOTH_FLOOR] = "floor",
                                        [FTH_SMOOTH_ADD_K] = "add-k",
                                        [FTH_SMOOTH_NONE] = "none"};
    return names[smooth];
}

typedef struct work {
    fth_tok_work tok;
    fth_vocab vocab;
    fth_ngrams ngrams;
    fth_word_ids hyp, ref;
} work;

static fth_err tokens_of(fth_text line, const fth_bleu_options *o, work *w, fth_word_ids *out) {
    fth_text tokenized;
    FTH_TRY(fth_tok_line(o->tokenizer, o->lowercase, line, &w->tok, &tokenized));
    return fth_split_words(&w->vocab, tokenized, out);
}

/* The reference length that is closest to length; of two equally close ones the shorter. */
static size_t closer(size_t length, size_t best, size_t other) {
    size_t d_best = best > length ? best - length : length - best;
    size_t d_other = other > length ? other - length : length - other;
    return d_other < d_best || (d_other == d_best && other < best) ? other : best;
}

static fth_err line_stats(const fth_text_pairs *c, size_t line, const fth_bleu_options *o, work *w,
                          double *stats) {
    int64_t matches[FTH_BLEU_ORDER] = {0};
    size_t ref_len = 0;
    FTH_TRY(tokens_of(c->hyp[line], o, w, &w->hyp));
    FTH_TRY(fth_ngrams_reset(&w->ngrams));
    FTH_TRY(fth_ngrams_add(&w->ngrams, FTH_IN_HYP, &w->hyp, FTH_BLEU_ORDER));
    for (size_t r = 0; r < c->n_refs; r++) {
        FTH_TRY(tokens_of(c->ref[r][line], o, w, &w->ref));
        FTH_TRY(fth_ngrams_add(&w->ngrams, FTH_IN_NEW_REF, &w->ref, FTH_BLEU_ORDER));
        fth_ngrams_merge_ref(&w->ngrams);
        ref_len = r ? closer(w->hyp.n, ref_len, w->ref.n) : w->ref.n;
    }
    fth_ngrams_match(&w->ngrams, matches);
    stats[0] = (double)w->hyp.n;
    stats[1] = (double)ref_len;
    for (int n = 0; n < FTH_BLEU_ORDER; n++) {
        stats[2 + n] = (double)matches[n];
        stats[2 + FTH_BLEU_ORDER + n] = (double)fth_ngram_total(w->hyp.n, n + 1);
    }
    return FTH_OK;
}

fth_err fth_bleu_stats(const fth_text_pairs *c, const fth_bleu_options *o, double *stats) {
    work w = {.tok.pieces = o->pieces};
    fth_err err = FTH_OK;
    for (size_t i = 0; i < c->n && err == FTH_OK; i++)
        err = line_stats(c, i, o, &w, stats + i * FTH_BLEU_STATS);
    fth_tok_work_fini(&w.tok);
    fth_vocab_fini(&w.vocab);
    fth_ngrams_fini(&w.ngrams);
    fth_word_ids_fini(&w.hyp);
    fth_word_ids_fini(&w.ref);
    return err;
}

static double smooth_value(const fth_bleu_options *o) {
    if (o->smooth_value >= 0) return o->smooth_value;
    return o->smooth == FTH_SMOOTH_FLOOR ? 0.1 : 1.0;
}

/* Fills the precisions and returns how many orders the mean runs over. */
static int smoothed_precisions(const double *match, const double *total, const fth_bleu_options *o,
                               double *precisions) {
    double halved = 1, value = smooth_value(o);
    int order = 0;
    for (int n = 0; n < FTH_BLEU_ORDER; n++) {
        double add = o->smooth == FTH_SMOOTH_ADD_K && n > 0 ? value : 0;
        double m = match[n] + add, t = total[n] + add;
        if (t == 0) break;
        order = n + 1;
        if (m > 0)
            precisions[n] = 100 * m / t;
        else if (o->smooth == FTH_SMOOTH_EXP)
            precisions[n] = 100 / ((halved *= 2) * t);
        else if (o->smooth == FTH_SMOOTH_FLOOR)
            precisions[n] = 100 * value / t;
    }
    return o->effective_order ? order : FTH_BLEU_ORDER;
}

fth_bleu fth_bleu_from_stats(const double *sums, const fth_bleu_options *o) {
    const double *match = sums + 2, *total = sums + 2 + FTH_BLEU_ORDER;
    fth_bleu b = {.bp = 1, .hyp_len = (int64_t)sums[0], .ref_len = (int64_t)sums[1]};
    double log_sum = 0;
    if (b.hyp_len < b.ref_len) b.bp = b.hyp_len ? exp(1 - sums[1] / sums[0]) : 0;
    if (match[0] == 0) return b; /* no longer n-gram can match either */
    int order = smoothed_precisions(match, total, o, b.precisions);
    for (int n = 0; n < order; n++)
        log_sum += b.precisions[n] > 0 ? log(b.precisions[n]) : -9999999999.0;
    b.score = b.bp * exp(log_sum / order);
    return b;
}

fth_err fth_bleu_corpus(const fth_text_pairs *c, const fth_bleu_options *o, fth_bleu *out) {
    double *stats = malloc((c->n + 1) * FTH_BLEU_STATS * sizeof *stats), sums[FTH_BLEU_STATS];
    if (!stats) return fth_fail(FTH_NO_MEMORY, "no memory for the counts of %zu lines", c->n);
    fth_err err = fth_bleu_stats(c, o, stats);
    if (err == FTH_OK) {
        fth_sum_rows(stats, c->n, FTH_BLEU_STATS, sums);
        *out = fth_bleu_from_stats(sums, o);
    }
    free(stats);
    return err;
}

fth_err fth_bleu_signature(const fth_sig *sig, const fth_bleu_options *o, fth_str *out) {
    bool has_value = o->smooth == FTH_SMOOTH_FLOOR || o->smooth == FTH_SMOOTH_ADD_K;
    char value[320] = "", model[32] = "", parts[480]; /* a double of 308 digits */
    if (o->tokenizer == FTH_TOK_SPM)
        snprintf(model, sizeof model, "-%08x", (unsigned)(o->pieces_hash >> 32));
    if (has_value) snprintf(value, sizeof value, "[%.2f]", smooth_value(o));
    snprintf(parts, sizeof parts, "case:%s|eff:%s|tok:%s%s|smooth:%s%s",
             o->lowercase ? "lc" : "mixed", o->effective_order ? "yes" : "no",
             fth_tok_name(o->tokenizer), model, fth_smooth_name(o->smooth), value);
    return fth_signature(sig, parts, out);
}
