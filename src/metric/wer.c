/* wer.c: edit distance over words or characters, divided by the length of the references. */
#include "metric/wer.h"

#include <utf8proc.h>

#include "text/unicode.h"
#include "metric/words.h"

typedef struct work {
    fth_str lower, plain;
    fth_vocab vocab;
    fth_align align;
    fth_word_ids hyp, ref;
} work;

/* The length in bytes of the separator at t.text[i]: a space, or a run of white space. */
static size_t separator(fth_text t, size_t i) {
    size_t from = i, n, spaces = 0;
    int blank = t.text[i] == ' ';
    for (; i < t.length && fth_is_space(fth_code_point(t.text + i, &n)); i += n) spaces++;
    return blank || spaces > 1 ? i - from : 0;
}

static fth_err jiwer_words(fth_vocab *v, fth_text t, fth_word_ids *out) {
    size_t word = 0, n;
    uint32_t id;
    out->n = 0;
    for (size_t i = 0; i <= t.length; i += n) {
        size_t gap = i < t.length ? separator(t, i) : 0;
        if ((gap || i == t.length) && i > word) {
            FTH_TRY(fth_vocab_id(v, (fth_text){t.text + word, i - word}, &id));
            FTH_TRY(fth_word_ids_add(out, id));
        }
        if (i == t.length) break;
        fth_code_point(t.text + i, &n);
        if (gap) n = gap, word = i + gap;
    }
    return FTH_OK;
}

static bool is_mark(uint32_t c) {
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_SO;
}

/* Is there a character of a word at i? */
static bool is_letter(fth_text t, size_t i) {
    size_t n;
    if (i >= t.length) return false;
    const uint32_t c = fth_code_point(t.text + i, &n);
    return !is_mark(c) && !fth_is_space(c);
}

/* The line with spaces for punctuation, single ones between words; apostrophes are one
 * character. */
static fth_err make_plain(fth_text line, fth_str *out) {
    size_t n;
    bool letter = false; /* before i */
    fth_str spaced = {0};
    fth_err err = FTH_OK;
    for (size_t i = 0; i < line.length && err == FTH_OK; i += n) {
        const uint32_t c = fth_code_point(line.text + i, &n);
        const bool apostrophe = (c == '\'' || c == 0x2019) && letter && is_letter(line, i + n);
        letter = is_letter(line, i);
        err = fth_add_code_point(&spaced, apostrophe ? '\'' : is_mark(c) ? ' ' : c);
    }
    fth_str_clear(out);
    if (err == FTH_OK) err = fth_add_joined(out, fth_str_view(&spaced));
    fth_str_fini(&spaced);
    return err;
}

static fth_err symbols_of(fth_text line, const fth_wer_options *o, work *w, fth_word_ids *out) {
    if (o->normalize) {
        FTH_TRY(make_plain(line, &w->plain));
        line = fth_str_view(&w->plain);
    }
    if (o->lowercase || o->normalize) {
        fth_str_clear(&w->lower);
        FTH_TRY(fth_add_lower(&w->lower, line));
        line = fth_str_view(&w->lower);
    }
    line = fth_strip(line);
    return o->characters ? fth_code_points(line, out) : jiwer_words(&w->vocab, line, out);
}

fth_err fth_wer_corpus(const fth_text_pairs *c, const fth_wer_options *o, fth_wer *out) {
    work w = {0};
    fth_err err = FTH_OK;
    fth_edits *e = &out->edits;
    *out = (fth_wer){0};
    for (size_t i = 0; i < c->n; i++) {
        FTH_TRY_OR(err, symbols_of(c->hyp[i], o, &w, &w.hyp), done);
        FTH_TRY_OR(err, symbols_of(c->ref[0][i], o, &w, &w.ref), done);
        FTH_TRY_OR(err, fth_align_edits(&w.align, w.ref.id, w.ref.n, w.hyp.id, w.hyp.n, e), done);
    }
    int64_t errors = e->substitutions + e->deletions + e->insertions;
    int64_t ref_len = e->hits + e->substitutions + e->deletions;
    out->score = ref_len ? (double)errors / (double)ref_len : (double)e->insertions;
done:
    fth_str_fini(&w.lower);
    fth_str_fini(&w.plain);
    fth_vocab_fini(&w.vocab);
    fth_align_fini(&w.align);
    fth_word_ids_fini(&w.hyp);
    fth_word_ids_fini(&w.ref);
    return err;
}

fth_err fth_wer_signature(const fth_sig *sig, const fth_wer_options *o, fth_str *out) {
    return fth_signature(sig,
                         o->normalize   ? "case:lc|norm:yes"
                         : o->lowercase ? "case:lc"
                                        : "case:mixed",
                         out);
}
