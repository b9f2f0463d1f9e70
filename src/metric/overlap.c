/* overlap.c: counts places by class: in the reference, in the hypothesis, in both; intersection
 * over union from these. */
#include "metric/overlap.h"

#include <math.h>
#include <stdlib.h>

/* The numbers of a line, one after the other. */
typedef struct reader {
    const char *at, *end;
    const char *name;
    size_t line;
    int64_t least; /* -1 in references, 0 in hypotheses */
} reader;

static reader reader_of(fth_text t, const char *name, size_t line, int64_t least) {
    return (reader){t.text, t.text + t.length, name, line, least};
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* Makes *out the next number; *more is false at the end of the line. */
static fth_err next(reader *r, int64_t *out, bool *more) {
    while (r->at < r->end && is_blank(*r->at)) r->at++;
    *more = r->at < r->end;
    if (!*more) return FTH_OK;
    const char *word = r->at;
    const bool minus = *r->at == '-';
    int64_t value = 0;
    r->at += minus;
    const char *digits = r->at;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (value < FTH_OVERLAP_CLASSES) value = 10 * value + (*r->at - '0');
    const bool number = r->at > digits && (r->at == r->end || is_blank(*r->at));
    if (minus) value = -value;
    if (number && value >= r->least && value < FTH_OVERLAP_CLASSES) return *out = value, FTH_OK;
    while (r->at < r->end && !is_blank(*r->at)) r->at++;
    const int length = (int)(r->at - word < 40 ? r->at - word : 40);
    return fth_fail(FTH_BAD_INPUT, "%s:%zu: \"%.*s\" must be the number of a class, %lld to %d",
                    r->name, r->line, length, word, (long long)r->least, FTH_OVERLAP_CLASSES - 1);
}

static fth_err grow(fth_overlap *o, int64_t class) {
    const size_t n = (size_t) class + 1;
    if (n <= o->n) return FTH_OK;
    fth_overlap_class *more = realloc(o->of, n * sizeof *more);
    if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for %zu classes", n);
    o->of = more;
    for (; o->n < n; o->n++) o->of[o->n] = (fth_overlap_class){0};
    return FTH_OK;
}

static fth_err add_picture(fth_overlap *o, reader ref, reader hyp) {
    for (int64_t place = 1;; place++) {
        int64_t r = 0, h = 0;
        bool more, too;
        FTH_TRY(next(&ref, &r, &more));
        FTH_TRY(next(&hyp, &h, &too));
        if (more != too)
            return fth_fail(FTH_BAD_INPUT, "%s:%zu: %lld numbers, but %s has %s", hyp.name,
                            hyp.line, (long long)place - !too, ref.name, more ? "more" : "fewer");
        if (!more) return FTH_OK;
        if (r < 0) continue;
        FTH_TRY(grow(o, r > h ? r : h));
        o->of[r].ref++;
        o->of[h].hyp++;
        o->of[r].both += r == h;
    }
}

double fth_overlap_of(const fth_overlap *o, size_t class) {
    const fth_overlap_class *c = &o->of[class];
    const int64_t either = c->ref + c->hyp - c->both;
    return either ? (double)c->both / (double)either : (double)NAN;
}

fth_err fth_overlap_corpus(const fth_text_pairs *c, const char *const names[2], fth_overlap *out) {
    double sum = 0;
    int64_t classes = 0;
    for (size_t i = 0; i < c->n; i++)
        FTH_TRY(add_picture(out, reader_of(c->ref[0][i], names[0], i + 1, -1),
                            reader_of(c->hyp[i], names[1], i + 1, 0)));
    for (size_t k = 0; k < out->n; k++) {
        const double one = fth_overlap_of(out, k);
        if (isnan(one)) continue;
        sum += one;
        classes++;
    }
    out->mean = classes ? sum / (double)classes : (double)NAN;
    return FTH_OK;
}

void fth_overlap_fini(fth_overlap *o) {
    free(o->of);
    *o = (fth_overlap){0};
}
