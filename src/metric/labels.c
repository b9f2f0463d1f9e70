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

fth_err fth_labels_corpus(const fth_pairs *c, fth_labels *out) {
    fth_err err = FTH_OK;
    fth_vocab vocab = {0};
    size_t *t = calloc(4 * c->n + 2, sizeof *t); /* [2 n] classes of the references, ... */
    size_t *p = t ? t + 2 * c->n : NULL;         /* ... of the hypotheses */
    *out = (fth_labels){.n = c->n};
    if (!t) return fth_fail(FTH_NO_MEMORY, "no memory for %zu labels", c->n);
    for (size_t i = 0; i < c->n; i++) {
        uint32_t ref, hyp;
        FTH_TRY_OR(err, fth_vocab_id(&vocab, fth_strip(c->ref[0][i]), &ref), done);
        FTH_TRY_OR(err, fth_vocab_id(&vocab, fth_strip(c->hyp[i]), &hyp), done);
        t[ref]++;
        p[hyp]++;
        out->correct += ref == hyp;
    }
    if (c->n) out->accuracy = (double)out->correct / (double)c->n;
    out->matthews = correlation((double)c->n, (double)out->correct, t, p, vocab.n);
done:
    free(t);
    fth_vocab_fini(&vocab);
    return err;
}
