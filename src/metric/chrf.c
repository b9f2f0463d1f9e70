/* chrf.c: counts shared character n-grams up to order 6 and word n-grams up to 2, and takes the
 * F-score of their mean precision and recall. */
#include "metric/chrf.h"

#include <stdio.h>
#include <string.h>

#include "text/unicode.h"
#include "metric/words.h"

/* The characters and the words of one line. */
typedef struct symbols {
    fth_word_ids chars, words;
} symbols;

typedef struct work {
    fth_str lower;
    fth_vocab vocab;
    fth_ngrams chars, words;
    symbols hyp, ref;
} work;

static fth_err add_word(work *w, const char *text, size_t length, fth_word_ids *out) {
    uint32_t id;
    FTH_TRY(fth_vocab_id(&w->vocab, (fth_text){text, length}, &id));
    return fth_word_ids_add(out, id);
}

static int ascii_punctuation(char c) {
    return c > 0x20 && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
}

/* A word of more than one character loses a sign at its end or else one at its beginning. */
static fth_err add_split_word(work *w, const char *text, size_t length, fth_word_ids *out) {
    size_t first;
    fth_code_point(text, &first);
    if (first < length && ascii_punctuation(text[length - 1])) {
        FTH_TRY(add_word(w, text, length - 1, out));
        return add_word(w, text + length - 1, 1, out);
    }
    if (first < length && ascii_punctuation(text[0])) {
        FTH_TRY(add_word(w, text, 1, out));
        return add_word(w, text + 1, length - 1, out);
    }
    return add_word(w, text, length, out);
}

static fth_err chrf_words(work *w, fth_text t, fth_word_ids *out) {
    size_t word = 0, n = 0;
    out->n = 0;
    for (size_t i = 0;; i += n) {
        int space = i == t.length || fth_is_space(fth_code_point(t.text + i, &n));
        if (space && i > word) FTH_TRY(add_split_word(w, t.text + word, i - word, out));
        if (i == t.length) return FTH_OK;
        if (space) word = i + n;
    }
}

static fth_err symbols_of(fth_text line, const fth_chrf_options *o, work *w, symbols *out) {
    if (o->lowercase) {
        fth_str_clear(&w->lower);
        FTH_TRY(fth_add_lower(&w->lower, line));
        line = fth_str_view(&w->lower);
    }
    FTH_TRY(o->whitespace ? fth_code_points(line, &out->chars)
                          : fth_dense_code_points(line, &out->chars));
    return o->word_order ? chrf_words(w, line, &out->words) : FTH_OK;
}

/* Fills [order][hyp, ref, common]. An order that the reference has none of counts for nobody. */
static void fill(const fth_ngrams *g, size_t hyp, size_t ref, int max_order, double *stats) {
    int64_t matches[FTH_MAX_ORDER] = {0};
    fth_ngrams_match(g, matches);
    for (int n = 0; n < max_order; n++) {
        int64_t in_ref = fth_ngram_total(ref, n + 1);
        stats[3 * n] = in_ref ? (double)fth_ngram_total(hyp, n + 1) : 0;
        stats[3 * n + 1] = (double)in_ref;
        stats[3 * n + 2] = (double)matches[n];
    }
}

/* Counts the reference that w->ref holds and compares it with the hypothesis. */
static fth_err compare(const fth_chrf_options *o, work *w, double *stats) {
    fth_ngrams_clear(&w->chars, FTH_IN_REF);
    FTH_TRY(fth_ngrams_add(&w->chars, FTH_IN_REF, &w->ref.chars, o->char_order));
    fill(&w->chars, w->hyp.chars.n, w->ref.chars.n, o->char_order, stats);
    if (!o->word_order) return FTH_OK;
    fth_ngrams_clear(&w->words, FTH_IN_REF);
    FTH_TRY(fth_ngrams_add(&w->words, FTH_IN_REF, &w->ref.words, o->word_order));
    fill(&w->words, w->hyp.words.n, w->ref.words.n, o->word_order, stats + 3 * o->char_order);
    return FTH_OK;
}

static fth_err line_stats(const fth_text_pairs *c, size_t line, const fth_chrf_options *o, work *w,
                          double *stats) {
    double one[6 * FTH_MAX_ORDER], best = -1;
    FTH_TRY(symbols_of(c->hyp[line], o, w, &w->hyp));
    FTH_TRY(fth_ngrams_reset(&w->chars));
    FTH_TRY(fth_ngrams_add(&w->chars, FTH_IN_HYP, &w->hyp.chars, o->char_order));
    if (o->word_order) {
        FTH_TRY(fth_ngrams_reset(&w->words));
        FTH_TRY(fth_ngrams_add(&w->words, FTH_IN_HYP, &w->hyp.words, o->word_order));
    }
    for (size_t r = 0; r < c->n_refs; r++) {
        FTH_TRY(symbols_of(c->ref[r][line], o, w, &w->ref));
        FTH_TRY(compare(o, w, one));
        double score = fth_chrf_from_stats(one, o);
        if (score <= best) continue;
        best = score;
        memcpy(stats, one, fth_chrf_width(o) * sizeof *stats);
    }
    return FTH_OK;
}

fth_err fth_chrf_stats(const fth_text_pairs *c, const fth_chrf_options *o, double *stats) {
    work w = {0};
    fth_err err = FTH_OK;
    for (size_t i = 0; i < c->n && err == FTH_OK; i++)
        err = line_stats(c, i, o, &w, stats + i * fth_chrf_width(o));
    fth_str_fini(&w.lower);
    fth_vocab_fini(&w.vocab);
    fth_ngrams_fini(&w.chars);
    fth_ngrams_fini(&w.words);
    fth_word_ids_fini(&w.hyp.chars);
    fth_word_ids_fini(&w.hyp.words);
    fth_word_ids_fini(&w.ref.chars);
    fth_word_ids_fini(&w.ref.words);
    return err;
}

double fth_chrf_from_stats(const double *sums, const fth_chrf_options *o) {
    const double eps = 1e-16, factor = (double)o->beta * o->beta;
    double precision = 0, recall = 0, f_sum = 0;
    int orders = o->char_order + o->word_order, seen = 0;
    for (int n = 0; n < orders; n++) {
        double hyp = sums[3 * n], ref = sums[3 * n + 1], common = sums[3 * n + 2];
        double p = hyp > 0 ? common / hyp : eps, r = ref > 0 ? common / ref : eps;
        double denominator = factor * p + r;
        f_sum += denominator > 0 ? (1 + factor) * p * r / denominator : eps;
        if (hyp > 0 && ref > 0) {
            precision += p;
            recall += r;
            seen++;
        }
    }
    if (o->eps_smoothing) return 100 * f_sum / orders;
    if (precision + recall == 0) return 0; /* no order was seen, or nothing matched */
    precision /= seen;
    recall /= seen;
    return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

fth_err fth_chrf_signature(const fth_sig *sig, const fth_chrf_options *o, fth_str *out) {
    char parts[128];
    snprintf(parts, sizeof parts, "case:%s|eff:%s|nc:%d|nw:%d|space:%s",
             o->lowercase ? "lc" : "mixed", o->eps_smoothing ? "no" : "yes", o->char_order,
             o->word_order, o->whitespace ? "yes" : "no");
    return fth_signature(sig, parts, out);
}
