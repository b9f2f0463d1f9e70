/* rouge.c: shared n-grams, longest common subsequence, and the union of subsequences over sentences
 * (Lsum). */
#include "metric/rouge.h"

#include <stdlib.h>
#include <string.h>

#include "metric/align.h"
#include "metric/ngram.h"
#include "metric/porter.h"
#include "metric/spacing.h"
#include "text/unicode.h"
#include "metric/words.h"

const char *fth_rouge_name(fth_rouge_kind kind) {
    static const char *const names[] = {"rouge1", "rouge2", "rougeL", "rougeLsum"};
    return names[kind];
}

/* The tokens of a text, and where its sentences begin. */
typedef struct tokens {
    fth_word_ids ids;
    fth_word_ids
        start; /* start.id[i] is the first token of sentence i; one more entry at the end */
} tokens;

typedef struct work {
    fth_str text, spare;
    fth_vocab vocab;
    fth_ngrams ngrams;
    fth_align align;
    tokens hyp, ref;
    uint8_t *chosen, *united; /* [n_marks] tokens of a reference sentence */
    size_t n_marks;
    uint32_t *left; /* [n_left][2] how often a word may still be hit: in hyp, in ref; else 0 */
    size_t n_left;
} work;

static void work_fini(work *w) {
    fth_str_fini(&w->text);
    fth_str_fini(&w->spare);
    fth_vocab_fini(&w->vocab);
    fth_ngrams_fini(&w->ngrams);
    fth_align_fini(&w->align);
    fth_word_ids_fini(&w->hyp.ids);
    fth_word_ids_fini(&w->hyp.start);
    fth_word_ids_fini(&w->ref.ids);
    fth_word_ids_fini(&w->ref.start);
    free(w->chosen);
    free(w->united);
    free(w->left);
}

static int is_token_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static fth_err add_token(char *text, size_t length, bool stem, work *w, tokens *out) {
    uint32_t id;
    if (stem && length > 3) length = fth_porter_stem(text, length);
    FTH_TRY(fth_vocab_id(&w->vocab, (fth_text){text, length}, &id));
    return fth_word_ids_add(&out->ids, id);
}

static fth_err tokenize(fth_text t, const fth_rouge_options *o, work *w, tokens *out) {
    out->ids.n = out->start.n = 0;
    fth_str_clear(&w->text);
    if (o->newline && *o->newline) {
        fth_str lines = {0};
        fth_err err = fth_str_add(&lines, t.text, t.length);
        if (err == FTH_OK) err = fth_replace_all(o->newline, "\n", &lines, &w->spare);
        if (err == FTH_OK) err = fth_add_lower(&w->text, fth_str_view(&lines));
        fth_str_fini(&lines);
        FTH_TRY(err);
    } else {
        FTH_TRY(fth_add_lower(&w->text, t));
    }
    FTH_TRY(fth_word_ids_add(&out->start, 0));
    for (size_t i = 0, from; i < w->text.length; i++) {
        char *s = w->text.text;
        for (from = i; i < w->text.length && is_token_byte(s[i]);) i++;
        if (i > from) FTH_TRY(add_token(s + from, i - from, o->stem, w, out));
        if (i < w->text.length && s[i] == '\n')
            FTH_TRY(fth_word_ids_add(&out->start, (uint32_t)out->ids.n));
    }
    return fth_word_ids_add(&out->start, (uint32_t)out->ids.n);
}

static fth_rouge from_counts(int64_t common, size_t hyp, size_t ref) {
    fth_rouge r = {0};
    if (hyp) r.precision = (double)common / (double)hyp;
    if (ref) r.recall = (double)common / (double)ref;
    if (r.precision + r.recall > 0)
        r.fmeasure = 2 * r.precision * r.recall / (r.precision + r.recall);
    return r;
}

static fth_err ngram_scores(work *w, fth_rouge *out) {
    int64_t common[2] = {0};
    FTH_TRY(fth_ngrams_reset(&w->ngrams));
    FTH_TRY(fth_ngrams_add(&w->ngrams, FTH_IN_HYP, &w->hyp.ids, 2));
    FTH_TRY(fth_ngrams_add(&w->ngrams, FTH_IN_REF, &w->ref.ids, 2));
    fth_ngrams_match(&w->ngrams, common);
    for (int n = 0; n < 2; n++)
        out[n] = from_counts(common[n], (size_t)fth_ngram_total(w->hyp.ids.n, n + 1),
                             (size_t)fth_ngram_total(w->ref.ids.n, n + 1));
    return FTH_OK;
}

static fth_err make_room(work *w) {
    size_t n = w->ref.ids.n;
    if (n > w->n_marks) {
        free(w->chosen);
        free(w->united);
        w->n_marks = 0;
        w->chosen = malloc(n);
        w->united = malloc(n);
        if (!w->chosen || !w->united)
            return fth_fail(FTH_NO_MEMORY, "no memory for a text of %zu tokens", n);
        w->n_marks = n;
    }
    if (w->vocab.n > w->n_left) {
        size_t more = 2 * w->vocab.n;
        uint32_t *left = realloc(w->left, 2 * more * sizeof *left);
        if (!left) return fth_fail(FTH_NO_MEMORY, "no memory for %zu different words", more);
        memset(left + 2 * w->n_left, 0, 2 * (more - w->n_left) * sizeof *left);
        w->left = left;
        w->n_left = more;
    }
    return FTH_OK;
}

/* Marks in w->united the tokens of a reference sentence [from, from + n) that are in its longest
 * common subsequence with any sentence of the hypothesis. */
static fth_err unite(work *w, size_t from, size_t n) {
    memset(w->united, 0, n);
    for (size_t s = 0; s + 1 < w->hyp.start.n; s++) {
        size_t first = w->hyp.start.id[s], m = w->hyp.start.id[s + 1] - first, length;
        if (!m) continue;
        FTH_TRY(fth_align_lcs(&w->align, w->ref.ids.id + from, n, w->hyp.ids.id + first, m,
                              w->chosen, &length));
        for (size_t i = 0; i < n; i++) w->united[i] |= w->chosen[i];
    }
    return FTH_OK;
}

/* Sentence by sentence; no word is hit more often than either side has it. */
static fth_err summary_score(work *w, fth_rouge *out) {
    fth_err err = FTH_OK;
    int64_t hits = 0;
    FTH_TRY(make_room(w));
    for (size_t i = 0; i < w->hyp.ids.n; i++) w->left[2 * w->hyp.ids.id[i]]++;
    for (size_t i = 0; i < w->ref.ids.n; i++) w->left[2 * w->ref.ids.id[i] + 1]++;
    for (size_t s = 0; s + 1 < w->ref.start.n && err == FTH_OK; s++) {
        size_t from = w->ref.start.id[s], n = w->ref.start.id[s + 1] - from;
        if (!n) continue;
        err = unite(w, from, n);
        for (size_t i = 0; i < n && err == FTH_OK; i++) {
            uint32_t *left = w->left + 2 * w->ref.ids.id[from + i];
            if (!w->united[i] || !left[0] || !left[1]) continue;
            left[0]--;
            left[1]--;
            hits++;
        }
    }
    for (size_t i = 0; i < w->hyp.ids.n; i++) w->left[2 * w->hyp.ids.id[i]] = 0;
    for (size_t i = 0; i < w->ref.ids.n; i++) w->left[2 * w->ref.ids.id[i] + 1] = 0;
    *out = from_counts(hits, w->hyp.ids.n, w->ref.ids.n);
    return err;
}

static fth_err pair_scores(work *w, fth_rouge out[FTH_ROUGES]) {
    size_t length;
    FTH_TRY(ngram_scores(w, out));
    FTH_TRY(fth_align_lcs(&w->align, w->ref.ids.id, w->ref.ids.n, w->hyp.ids.id, w->hyp.ids.n, NULL,
                          &length));
    out[FTH_ROUGE_L] = from_counts((int64_t)length, w->hyp.ids.n, w->ref.ids.n);
    return summary_score(w, &out[FTH_ROUGE_LSUM]);
}

static fth_err line_scores(const fth_text_pairs *c, size_t line, const fth_rouge_options *o,
                           work *w, fth_rouge best[FTH_ROUGES]) {
    fth_rouge one[FTH_ROUGES] = {0};
    FTH_TRY(tokenize(c->hyp[line], o, w, &w->hyp));
    for (size_t r = 0; r < c->n_refs; r++) {
        FTH_TRY(tokenize(c->ref[r][line], o, w, &w->ref));
        FTH_TRY(pair_scores(w, one));
        for (int k = 0; k < FTH_ROUGES; k++)
            if (r == 0 || one[k].fmeasure > best[k].fmeasure) best[k] = one[k];
    }
    return FTH_OK;
}

fth_err fth_rouge_corpus(const fth_text_pairs *c, const fth_rouge_options *o,
                         fth_rouge out[FTH_ROUGES]) {
    work w = {0};
    fth_err err = FTH_OK;
    fth_rouge one[FTH_ROUGES] = {0};
    memset(out, 0, FTH_ROUGES * sizeof *out);
    for (size_t i = 0; i < c->n; i++) {
        FTH_TRY_OR(err, line_scores(c, i, o, &w, one), done);
        for (int k = 0; k < FTH_ROUGES; k++) {
            out[k].precision += one[k].precision;
            out[k].recall += one[k].recall;
            out[k].fmeasure += one[k].fmeasure;
        }
    }
    for (int k = 0; k < FTH_ROUGES && c->n; k++) {
        out[k].precision /= (double)c->n;
        out[k].recall /= (double)c->n;
        out[k].fmeasure /= (double)c->n;
    }
done:
    work_fini(&w);
    return err;
}

fth_err fth_rouge_signature(const fth_sig *sig, const fth_rouge_options *o, fth_str *out) {
    return fth_signature(sig, o->stem ? "case:lc|stem:yes" : "case:lc|stem:no", out);
}
