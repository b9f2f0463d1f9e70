/* ter.c: cuts lines as tercom does, finds the shifts and edits of each reference, and keeps the
 * fewest. */
#include "metric/ter.h"

#include <stdio.h>

#include "metric/ter_shift.h"
#include "text/unicode.h"
#include "metric/words.h"

typedef struct work {
    fth_tok_work tok;
    fth_str once;
    fth_vocab vocab;
    fth_word_ids hyp, ref;
    fth_ter_work shift;
} work;

static fth_err hyp_words(fth_text line, const fth_tercom_options *o, work *w) {
    fth_text t;
    FTH_TRY(fth_tok_tercom(line, o, &w->tok, &t));
    return fth_split_words(&w->vocab, t, &w->hyp);
}

/* sacreBLEU tokenizes references twice. That changes a line now and then: "it's<TAB>" becomes two
 * words only when the tab has become a space. */
static fth_err ref_words(fth_text line, const fth_tercom_options *o, work *w) {
    fth_text t;
    FTH_TRY(fth_tok_tercom(line, o, &w->tok, &t));
    if (o->normalized) {
        fth_str_clear(&w->once);
        FTH_TRY(fth_add_joined(&w->once, t));
        FTH_TRY(fth_tok_tercom(fth_str_view(&w->once), o, &w->tok, &t));
    }
    return fth_split_words(&w->vocab, t, &w->ref);
}

static fth_err line_stats(const fth_text_pairs *c, size_t line, const fth_tercom_options *o,
                          work *w, double *stats) {
    size_t edits, least = 0, ref_len = 0;
    FTH_TRY(hyp_words(c->hyp[line], o, w));
    for (size_t r = 0; r < c->n_refs; r++) {
        FTH_TRY(ref_words(c->ref[r][line], o, w));
        FTH_TRY(fth_ter_edits(&w->shift, &w->hyp, &w->ref, &edits));
        if (r == 0 || edits < least) least = edits;
        ref_len += w->ref.n;
    }
    stats[0] = (double)least;
    stats[1] = (double)ref_len / (double)c->n_refs;
    return FTH_OK;
}

fth_err fth_ter_stats(const fth_text_pairs *c, const fth_tercom_options *o, double *stats) {
    work w = {0};
    fth_err err = FTH_OK;
    for (size_t i = 0; i < c->n && err == FTH_OK; i++)
        err = line_stats(c, i, o, &w, stats + i * FTH_TER_STATS);
    fth_tok_work_fini(&w.tok);
    fth_str_fini(&w.once);
    fth_vocab_fini(&w.vocab);
    fth_word_ids_fini(&w.hyp);
    fth_word_ids_fini(&w.ref);
    fth_ter_work_fini(&w.shift);
    return err;
}

double fth_ter_from_stats(const double *sums) {
    if (sums[1] > 0) return 100 * (sums[0] / sums[1]);
    return sums[0] > 0 ? 100 : 0;
}

static const char *yes_no(bool b) {
    return b ? "yes" : "no";
}

fth_err fth_ter_signature(const fth_sig *sig, const fth_tercom_options *o, fth_str *out) {
    char parts[128];
    snprintf(parts, sizeof parts, "case:%s|tok:tercom|norm:%s|punct:%s|asian:%s",
             o->case_sensitive ? "mixed" : "lc", yes_no(o->normalized), yes_no(!o->no_punct),
             yes_no(o->asian_support));
    return fth_signature(sig, parts, out);
}
