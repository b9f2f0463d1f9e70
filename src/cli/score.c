/* score.c: fathom score: what hypotheses are worth against references. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/option_uses.h"
#include "cli/verb.h"
#include "text/inflate.h"
#include "metric/bleu.h"
#include "metric/chrf.h"
#include "metric/correlation.h"
#include "metric/labels.h"
#include "metric/overlap.h"
#include "metric/rouge.h"
#include "metric/sums.h"
#include "metric/ter.h"
#include "metric/wer.h"

#define SCORE_OPTIONS(X)                                                                           \
    X(LIST, ref, "", FTH_SHOWN_AS("FILE"), "references, one a line; several files: several each")  \
    X(LIST, hyp, "", FTH_SHOWN_AS("FILE"),                                                         \
      "hypotheses, one a line; none: standard input; several files: several systems")              \
    X(BOOL, json, "false", FTH_ANY, "print one JSON object, numbers unrounded")                    \
    X(I64, width, "", FTH_RANGE(0, 17),                                                            \
      "digits after the point; default: 1, or 4 for scores between 0 and 1")                       \
    X(BOOL, lowercase, "false", FTH_ANY, "ignore case (bleu, multi-bleu, chrf, wer, cer)")         \
    X(BOOL, normalize, "false", FTH_ANY,                                                           \
      "compare words as they are spoken: without case and punctuation (wer, cer)")                 \
    X(BOOL, confidence, "false", FTH_ANY,                                                          \
      "add a 95 % confidence interval by resampling the lines (bleu, multi-bleu, chrf, ter)")      \
    X(BOOL, paired, "false", FTH_ANY,                                                              \
      "compare each further --hyp with the first by the paired bootstrap and by approximate "      \
      "randomisation; implies --confidence")                                                       \
    X(I64, resamples, "1000", FTH_RANGE(2, 1000000),                                               \
      "how many resamples, and ten times as many exchanges by randomisation")                      \
    X(I64, seed, "12345", FTH_MIN(0), "what the resamples are drawn with")
FTH_OPTIONS(score_options, "score (text: plain, .gz or .zst)", SCORE_OPTIONS)

#define BLEU_OPTIONS(X)                                                                            \
    X(CHOICE, tokenize, "13a", FTH_CHOICES("13a|intl|char|none|zh|spm"),                           \
      "how bleu cuts text into tokens; spm: pieces, which makes spBLEU")                           \
    X(STR, spm_model, "", FTH_SHOWN_AS("FILE"), "the SentencePiece model of --tokenize spm")       \
    X(CHOICE, smooth_method, "", FTH_CHOICES("exp|floor|add-k|none"),                              \
      "for orders without a match; default: exp, or none for multi-bleu")                          \
    X(F64, smooth_value, "", FTH_MIN(0), "for floor and add-k; default: 0.1 and 1")                \
    X(BOOL, effective_order, "false", FTH_ANY, "leave out orders that the lines are too short for")
FTH_OPTIONS(bleu_flags, "bleu, multi-bleu", BLEU_OPTIONS)

#define CHRF_OPTIONS(X)                                                                            \
    X(I64, char_order, "6", FTH_RANGE(1, FTH_MAX_ORDER), "longest character n-grams")              \
    X(I64, word_order, "0", FTH_RANGE(0, FTH_MAX_ORDER), "longest word n-grams; 2 makes chrF++")   \
    X(I64, beta, "2", FTH_RANGE(0, 1000), "recall counts so many times as much as precision")      \
    X(BOOL, whitespace, "false", FTH_ANY, "white space counts as characters")                      \
    X(BOOL, eps_smoothing, "false", FTH_ANY, "the mean of the F-scores of all orders")
FTH_OPTIONS(chrf_flags, "chrf", CHRF_OPTIONS)

#define TER_OPTIONS(X)                                                                             \
    X(BOOL, normalized, "false", FTH_ANY, "split punctuation from words")                          \
    X(BOOL, no_punct, "false", FTH_ANY, "remove punctuation")                                      \
    X(BOOL, asian_support, "false", FTH_ANY, "the same for Asian characters and punctuation")      \
    X(BOOL, case_sensitive, "false", FTH_ANY, "respect case")
FTH_OPTIONS(ter_flags, "ter", TER_OPTIONS)

#define ROUGE_OPTIONS(X)                                                                           \
    X(BOOL, stem, "false", FTH_ANY, "compare stems of words of more than three letters")           \
    X(STR, newline, "", FTH_ANY, "text that ends a sentence inside a line, for rougeLsum: <q>")
FTH_OPTIONS(rouge_flags, "rouge", ROUGE_OPTIONS)

#define F1_OPTIONS(X)                                                                              \
    X(CHOICE, average, "binary", FTH_CHOICES("binary|macro|micro"),                                \
      "f1 of one class, the mean over all classes, or that of all counts together")                \
    X(STR, positive, "1", FTH_SHOWN_AS("LABEL"), "the class of --average binary")
FTH_OPTIONS(f1_flags, "f1", F1_OPTIONS)

typedef struct flags {
    score_options score;
    bleu_flags bleu;
    chrf_flags chrf;
    ter_flags ter;
    rouge_flags rouge;
    f1_flags f1;
    fth_option_group groups[6];
} flags;

enum { N_GROUPS = 6 };

/* What one system got; which fields count depends on the metric. */
typedef struct result {
    double score;
    fth_bleu bleu;
    fth_rouge rouge[FTH_ROUGES];
    fth_wer wer;
    fth_labels labels;
    fth_overlap overlap;
    fth_resampled sampled;
    double p_exchanged; /* by randomisation */
    double *stats;      /* [n][width] of a metric that can be resampled */
} result;

/* The options of all metrics, and what is compared. */
typedef struct scoring {
    const flags *flags;
    const struct metric *metric;
    fth_bleu_options bleu;
    fth_tokenizer *pieces; /* of --tokenize spm */
    fth_chrf_options chrf;
    fth_tercom_options ter;
    fth_rouge_options rouge;
    fth_wer_options wer;
    fth_sig sig;
    fth_str signature;
    fth_text_lines *refs, *hyps; /* [n_refs], [n_hyps] */
    const fth_text **ref;        /* [n_refs] their lines */
    result *results;             /* [n_hyps] */
    size_t n_refs, n_hyps, n;
} scoring;

typedef struct metric {
    const char *name;
    bool many_refs;
    /* Metrics that are a function of summed counts have these four, the others have compute. */
    size_t (*width)(const scoring *s);
    fth_err (*stats)(const scoring *s, const fth_text_pairs *c, double *stats);
    double (*from_stats)(const double *sums, const void *scoring);
    fth_err (*compute)(const scoring *s, const fth_text_pairs *c, result *r);
    fth_err (*sign)(const scoring *s, fth_str *out);
    fth_err (*line)(const scoring *s, const result *r, fth_str *out); /* after the score */
    int (*fields)(const scoring *s, const result *r, json_t *out);
} metric;

static bool is(const scoring *s, const char *name) {
    return strcmp(s->metric->name, name) == 0;
}

static const char *hyp_path(const scoring *s, size_t i) {
    return s->flags->score.hyp.count ? s->flags->score.hyp.items[i] : "-";
}

static const char *name_of(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static const char *hyp_name(const scoring *s, size_t i) {
    return name_of(hyp_path(s, i));
}

static const char *ref_name(const scoring *s) {
    return name_of(s->flags->score.ref.items[0]);
}

/* Says why a score is nan. */
static void warn_undefined(const scoring *s, const result *r, const char *why) {
    fprintf(stderr, "warning: %s of %s is not defined: %s\n", s->metric->name,
            hyp_name(s, (size_t)(r - s->results)), why);
}

static int put(json_t *object, const char *key, double value) {
    return json_object_set_new(object, key, fth_json_number(value));
}

static int put_count(json_t *object, const char *key, int64_t value) {
    return json_object_set_new(object, key, json_integer(value));
}

/* ---- bleu, multi-bleu */

static size_t bleu_width(const scoring *s) {
    (void)s;
    return FTH_BLEU_STATS;
}

static fth_err bleu_stats(const scoring *s, const fth_text_pairs *c, double *stats) {
    return fth_bleu_stats(c, &s->bleu, stats);
}

static double bleu_from_stats(const double *sums, const void *s) {
    return fth_bleu_from_stats(sums, &((const scoring *)s)->bleu).score;
}

static fth_err bleu_sign(const scoring *s, fth_str *out) {
    return fth_bleu_signature(&s->sig, &s->bleu, out);
}

static fth_err bleu_line(const scoring *s, const result *r, fth_str *out) {
    const fth_bleu *b = &r->bleu;
    double ratio = b->ref_len ? (double)b->hyp_len / (double)b->ref_len : 0;
    (void)s;
    return fth_str_addf(out,
                        " %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = "
                        "%lld)",
                        b->precisions[0], b->precisions[1], b->precisions[2], b->precisions[3],
                        b->bp, ratio, (long long)b->hyp_len, (long long)b->ref_len);
}

static int bleu_fields(const scoring *s, const result *r, json_t *out) {
    json_t *precisions = json_array();
    int failed = 0;
    (void)s;
    for (int n = 0; n < FTH_BLEU_ORDER; n++)
        failed |= json_array_append_new(precisions, fth_json_number(r->bleu.precisions[n]));
    failed |= json_object_set_new(out, "precisions", precisions);
    return failed | put(out, "bp", r->bleu.bp) | put_count(out, "hyp_len", r->bleu.hyp_len) |
           put_count(out, "ref_len", r->bleu.ref_len);
}

/* ---- chrf */

static size_t chrf_width(const scoring *s) {
    return fth_chrf_width(&s->chrf);
}

static fth_err chrf_stats(const scoring *s, const fth_text_pairs *c, double *stats) {
    return fth_chrf_stats(c, &s->chrf, stats);
}

static double chrf_from_stats(const double *sums, const void *s) {
    return fth_chrf_from_stats(sums, &((const scoring *)s)->chrf);
}

static fth_err chrf_sign(const scoring *s, fth_str *out) {
    return fth_chrf_signature(&s->sig, &s->chrf, out);
}

/* ---- ter */

static size_t ter_width(const scoring *s) {
    (void)s;
    return FTH_TER_STATS;
}

static fth_err ter_stats(const scoring *s, const fth_text_pairs *c, double *stats) {
    return fth_ter_stats(c, &s->ter, stats);
}

static double ter_from_stats(const double *sums, const void *s) {
    (void)s;
    return fth_ter_from_stats(sums);
}

static fth_err ter_sign(const scoring *s, fth_str *out) {
    return fth_ter_signature(&s->sig, &s->ter, out);
}

/* ---- rouge */

static fth_err rouge_compute(const scoring *s, const fth_text_pairs *c, result *r) {
    FTH_TRY(fth_rouge_corpus(c, &s->rouge, r->rouge));
    r->score = r->rouge[FTH_ROUGE_1].fmeasure;
    return FTH_OK;
}

static fth_err rouge_sign(const scoring *s, fth_str *out) {
    return fth_rouge_signature(&s->sig, &s->rouge, out);
}

static int rouge_fields(const scoring *s, const result *r, json_t *out) {
    int failed = 0;
    (void)s;
    for (fth_rouge_kind k = 0; k < FTH_ROUGES; k++) {
        json_t *one = json_object();
        failed |= put(one, "precision", r->rouge[k].precision) |
                  put(one, "recall", r->rouge[k].recall) |
                  put(one, "fmeasure", r->rouge[k].fmeasure) |
                  json_object_set_new(out, fth_rouge_name(k), one);
    }
    return failed;
}

/* ---- wer, cer */

static fth_err wer_compute(const scoring *s, const fth_text_pairs *c, result *r) {
    FTH_TRY(fth_wer_corpus(c, &s->wer, &r->wer));
    r->score = r->wer.score;
    return FTH_OK;
}

static fth_err wer_sign(const scoring *s, fth_str *out) {
    return fth_wer_signature(&s->sig, &s->wer, out);
}

static fth_err wer_line(const scoring *s, const result *r, fth_str *out) {
    const fth_edits *e = &r->wer.edits;
    (void)s;
    return fth_str_addf(out,
                        " (hits = %lld substitutions = %lld insertions = %lld deletions = %lld)",
                        (long long)e->hits, (long long)e->substitutions, (long long)e->insertions,
                        (long long)e->deletions);
}

static int wer_fields(const scoring *s, const result *r, json_t *out) {
    const fth_edits *e = &r->wer.edits;
    (void)s;
    return put_count(out, "hits", e->hits) | put_count(out, "substitutions", e->substitutions) |
           put_count(out, "insertions", e->insertions) | put_count(out, "deletions", e->deletions);
}

/* ---- accuracy, matthews */

static fth_err labels_compute(const scoring *s, const fth_text_pairs *c, result *r) {
    FTH_TRY(fth_labels_corpus(c, &r->labels));
    r->score = is(s, "accuracy") ? r->labels.accuracy : r->labels.matthews;
    return FTH_OK;
}

static fth_err labels_sign(const scoring *s, fth_str *out) {
    return fth_signature(&s->sig, "case:mixed", out);
}

static fth_err labels_line(const scoring *s, const result *r, fth_str *out) {
    (void)s;
    return fth_str_addf(out, " (%zu of %zu correct)", r->labels.correct, r->labels.n);
}

static int labels_fields(const scoring *s, const result *r, json_t *out) {
    (void)s;
    return put_count(out, "correct", (int64_t)r->labels.correct) |
           put_count(out, "total", (int64_t)r->labels.n);
}

/* ---- f1, pearson, spearman, miou */

static fth_err f1_compute(const scoring *s, const fth_text_pairs *c, result *r) {
    const f1_flags *f = &s->flags->f1;
    const fth_f1_average average = strcmp(f->average, "macro") == 0   ? FTH_F1_MACRO
                                   : strcmp(f->average, "micro") == 0 ? FTH_F1_MICRO
                                                                      : FTH_F1_BINARY;
    const fth_text positive = {f->positive, strlen(f->positive)};
    FTH_TRY(fth_f1_corpus(c, average, positive, &r->score));
    if (isnan(r->score))
        warn_undefined(s, r, "no line of either file is the positive class (--positive)");
    return FTH_OK;
}

static fth_err correlation_compute(const scoring *s, const fth_text_pairs *c, result *r) {
    const char *const names[] = {ref_name(s), hyp_name(s, (size_t)(r - s->results))};
    FTH_TRY(
        fth_correlation_corpus(c, is(s, "pearson") ? FTH_PEARSON : FTH_SPEARMAN, names, &r->score));
    if (isnan(r->score))
        warn_undefined(s, r, c->n < 2 ? "two lines or more are needed" : "a column is constant");
    return FTH_OK;
}

static fth_err overlap_compute(const scoring *s, const fth_text_pairs *c, result *r) {
    const char *const names[] = {ref_name(s), hyp_name(s, (size_t)(r - s->results))};
    FTH_TRY(fth_overlap_corpus(c, names, &r->overlap));
    r->score = r->overlap.mean;
    if (isnan(r->score)) warn_undefined(s, r, "no place has a class");
    return FTH_OK;
}

static int overlap_fields(const scoring *s, const result *r, json_t *out) {
    json_t *iou = json_object();
    int failed = !iou;
    (void)s;
    for (size_t k = 0; k < r->overlap.n; k++) {
        char name[24];
        const double one = fth_overlap_of(&r->overlap, k);
        snprintf(name, sizeof name, "%zu", k);
        if (!isnan(one)) failed |= put(iou, name, one);
    }
    return failed | json_object_set_new(out, "iou", iou);
}

static const metric metrics[] = {
    {"bleu", true, bleu_width, bleu_stats, bleu_from_stats, NULL, bleu_sign, bleu_line,
     bleu_fields},
    {"multi-bleu", true, bleu_width, bleu_stats, bleu_from_stats, NULL, bleu_sign, bleu_line,
     bleu_fields},
    {"chrf", true, chrf_width, chrf_stats, chrf_from_stats, NULL, chrf_sign, NULL, NULL},
    {"ter", true, ter_width, ter_stats, ter_from_stats, NULL, ter_sign, NULL, NULL},
    {"rouge", true, NULL, NULL, NULL, rouge_compute, rouge_sign, NULL, rouge_fields},
    {"wer", false, NULL, NULL, NULL, wer_compute, wer_sign, wer_line, wer_fields},
    {"cer", false, NULL, NULL, NULL, wer_compute, wer_sign, wer_line, wer_fields},
    {"accuracy", false, NULL, NULL, NULL, labels_compute, labels_sign, labels_line, labels_fields},
    {"matthews", false, NULL, NULL, NULL, labels_compute, labels_sign, labels_line, labels_fields},
    {"f1", false, NULL, NULL, NULL, f1_compute, labels_sign, NULL, NULL},
    {"pearson", false, NULL, NULL, NULL, correlation_compute, labels_sign, NULL, NULL},
    {"spearman", false, NULL, NULL, NULL, correlation_compute, labels_sign, NULL, NULL},
    {"miou", false, NULL, NULL, NULL, overlap_compute, labels_sign, NULL, overlap_fields},
};

enum { N_METRICS = sizeof metrics / sizeof *metrics };

static fth_err find_metric(const char *name, const metric **out) {
    const char *names[N_METRICS];
    if (strcmp(name, "mcc") == 0) name = "matthews"; /* a second name */
    for (size_t i = 0; i < N_METRICS; i++) {
        names[i] = metrics[i].name;
        if (strcmp(name, names[i]) == 0) return *out = &metrics[i], FTH_OK;
    }
    const char *meant = fth_nearest(name, names, N_METRICS);
    return fth_fail(FTH_USAGE,
                    "%.100s: unknown metric%s%s%s; there are bleu, multi-bleu, chrf, ter, "
                    "rouge, wer, cer, accuracy, matthews (mcc), f1, pearson, spearman and miou",
                    name, meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
}

/* An option that the metric does not look at, or that means something only beside another. */
static fth_err check_options(const flags *f, const metric *m) {
    static const fth_option_use uses[] = {{"lowercase", " bleu multi-bleu chrf wer cer "},
                                          {"normalize", " wer cer "},
                                          {"confidence", " bleu multi-bleu chrf ter "},
                                          {"paired", " bleu multi-bleu chrf ter "},
                                          {"tokenize", " bleu "},
                                          {"spm_model", " bleu "},
                                          {"smooth_method", " bleu multi-bleu "},
                                          {"smooth_value", " bleu multi-bleu "},
                                          {"effective_order", " bleu multi-bleu "},
                                          {"char_order", " chrf "},
                                          {"word_order", " chrf "},
                                          {"beta", " chrf "},
                                          {"whitespace", " chrf "},
                                          {"eps_smoothing", " chrf "},
                                          {"normalized", " ter "},
                                          {"no_punct", " ter "},
                                          {"asian_support", " ter "},
                                          {"case_sensitive", " ter "},
                                          {"stem", " rouge "},
                                          {"average", " f1 "},
                                          {"positive", " f1 "},
                                          {"newline", " rouge "}};
    FTH_TRY(fth_check_uses(f->groups, N_GROUPS, uses, sizeof uses / sizeof *uses, m->name));
    if (strcmp(f->f1.average, "binary") != 0)
        FTH_TRY(fth_refuse_option(f->groups, N_GROUPS, "positive", "needs --average binary"));
    if (strcmp(f->bleu.tokenize, "spm") != 0)
        FTH_TRY(fth_refuse_option(f->groups, N_GROUPS, "spm_model", "needs --tokenize spm"));
    else if (!f->bleu.spm_model[0])
        return fth_fail(FTH_USAGE, "--tokenize spm: needs --spm-model FILE");
    const char *smooth = f->bleu.smooth_method;
    if (strcmp(smooth, "floor") != 0 && strcmp(smooth, "add-k") != 0)
        FTH_TRY(fth_refuse_option(f->groups, N_GROUPS, "smooth_value",
                                  "needs --smooth-method floor or add-k"));
    if (f->score.confidence || f->score.paired) return FTH_OK;
    static const char *const resampling[] = {"seed", "resamples", NULL};
    return fth_refuse_options(f->groups, N_GROUPS, resampling, "needs --confidence or --paired");
}

static void take_options(scoring *s, const flags *f) {
    bool multi = is(s, "multi-bleu"), own_value;
    const char *smooth = f->bleu.smooth_method[0] ? f->bleu.smooth_method : multi ? "none" : "exp";
    const char *tok = multi ? "none" : f->bleu.tokenize;
    own_value = fth_option_was_set(f->groups, N_GROUPS, "smooth_value");
    s->bleu.smooth_value = own_value ? f->bleu.smooth_value : -1;
    s->bleu.lowercase = f->score.lowercase;
    s->bleu.effective_order = f->bleu.effective_order;
    while (strcmp(fth_tok_name(s->bleu.tokenizer), tok) != 0) s->bleu.tokenizer++;
    while (strcmp(fth_smooth_name(s->bleu.smooth), smooth) != 0) s->bleu.smooth++;
    s->chrf =
        (fth_chrf_options){(int)f->chrf.char_order, (int)f->chrf.word_order, (int)f->chrf.beta,
                           f->score.lowercase,      f->chrf.whitespace,      f->chrf.eps_smoothing};
    s->ter = (fth_tercom_options){f->ter.normalized, f->ter.no_punct, f->ter.asian_support,
                                  f->ter.case_sensitive};
    s->rouge = (fth_rouge_options){f->rouge.stem, f->rouge.newline};
    s->wer = (fth_wer_options){is(s, "cer"), f->score.lowercase, f->score.normalize};
    s->sig = (fth_sig){f->score.ref.count, 0, (uint64_t)f->score.seed};
    if (f->score.confidence || f->score.paired) s->sig.resamples = (size_t)f->score.resamples;
}

static fth_err read_text(const char *path, fth_text_lines *out) {
    char *data;
    size_t size;
    FTH_TRY(fth_inflate_all(path, name_of(path), &data, &size));
    return fth_text_lines_take(data, size, name_of(path), out);
}

static fth_err check_request(const scoring *s) {
    const score_options *o = &s->flags->score;
    size_t from_stdin = o->hyp.count == 0;
    for (size_t i = 0; i < o->hyp.count; i++) from_stdin += strcmp(o->hyp.items[i], "-") == 0;
    for (size_t i = 0; i < o->ref.count; i++) from_stdin += strcmp(o->ref.items[i], "-") == 0;
    if (o->ref.count == 0) return fth_fail(FTH_USAGE, "--ref FILE is missing");
    if (o->ref.count > 1 && !s->metric->many_refs)
        return fth_fail(FTH_USAGE, "--ref: %s takes one file of references, not %zu",
                        s->metric->name, o->ref.count);
    if (from_stdin > 1)
        return fth_fail(FTH_USAGE, "standard input can be read once, not %zu times", from_stdin);
    if (o->paired && o->hyp.count < 2)
        return fth_fail(FTH_USAGE, "--paired: takes two or more --hyp, the first is the baseline");
    return FTH_OK;
}

static fth_err read_all(scoring *s) {
    const score_options *o = &s->flags->score;
    s->n_refs = o->ref.count;
    s->n_hyps = o->hyp.count ? o->hyp.count : 1;
    s->refs = calloc(s->n_refs, sizeof *s->refs);
    s->hyps = calloc(s->n_hyps, sizeof *s->hyps);
    s->ref = calloc(s->n_refs, sizeof *s->ref);
    s->results = calloc(s->n_hyps, sizeof *s->results);
    if (!s->refs || !s->hyps || !s->ref || !s->results)
        return fth_fail(FTH_NO_MEMORY, "no memory for %zu files", s->n_refs + s->n_hyps);
    for (size_t i = 0; i < s->n_hyps; i++) FTH_TRY(read_text(hyp_path(s, i), &s->hyps[i]));
    for (size_t i = 0; i < s->n_refs; i++) {
        FTH_TRY(read_text(o->ref.items[i], &s->refs[i]));
        s->ref[i] = s->refs[i].line;
    }
    s->n = s->hyps[0].n;
    for (size_t i = 0; i < s->n_hyps; i++)
        if (s->hyps[i].n != s->n)
            return fth_fail(FTH_BAD_INPUT,
                            "%s has %zu lines, but %s has %zu; all must have as many",
                            hyp_name(s, i), s->hyps[i].n, hyp_name(s, 0), s->n);
    for (size_t i = 0; i < s->n_refs; i++)
        if (s->refs[i].n != s->n)
            return fth_fail(FTH_BAD_INPUT,
                            "%s has %zu lines, but %s has %zu; all must have as many",
                            o->ref.items[i], s->refs[i].n, hyp_name(s, 0), s->n);
    if (s->n == 0) return fth_fail(FTH_BAD_INPUT, "%s has no lines to score", hyp_name(s, 0));
    return FTH_OK;
}

static fth_err score_system(scoring *s, size_t i) {
    const metric *m = s->metric;
    fth_text_pairs c = {s->hyps[i].line, s->ref, s->n, s->n_refs};
    result *r = &s->results[i];
    if (m->compute) return m->compute(s, &c, r);
    size_t width = m->width(s);
    double sums[6 * FTH_MAX_ORDER];
    r->stats = malloc(s->n * width * sizeof *r->stats);
    if (!r->stats) return fth_fail(FTH_NO_MEMORY, "no memory for the counts of %zu lines", s->n);
    FTH_TRY(m->stats(s, &c, r->stats));
    fth_sum_rows(r->stats, s->n, width, sums);
    r->score = m->from_stats(sums, s);
    if (m->stats == bleu_stats) r->bleu = fth_bleu_from_stats(sums, &s->bleu);
    return FTH_OK;
}

static fth_err resample(scoring *s) {
    const metric *m = s->metric;
    fth_resampling how = {s->n, m->width(s), m->from_stats, s, s->sig.resamples, s->sig.seed};
    const double **stats = calloc(s->n_hyps, sizeof *stats);
    fth_resampled *out = calloc(s->n_hyps, sizeof *out);
    double *p = calloc(s->n_hyps, sizeof *p);
    fth_err err = stats && out && p ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory to resample");
    for (size_t i = 0; !err && i < s->n_hyps; i++) stats[i] = s->results[i].stats;
    if (!err) err = fth_bootstrap(&how, stats, s->n_hyps, out);
    how.resamples *= 10;
    if (!err && s->flags->score.paired) err = fth_randomization(&how, stats, s->n_hyps, p);
    for (size_t i = 0; !err && i < s->n_hyps; i++) {
        s->results[i].sampled = out[i];
        s->results[i].p_exchanged = p[i];
    }
    free(stats);
    free(out);
    free(p);
    return err;
}

static fth_err add_name(const scoring *s, fth_str *out) {
    if (s->metric->stats == bleu_stats) return fth_str_addf(out, "BLEU");
    if (is(s, "chrf")) {
        FTH_TRY(fth_str_addf(out, "chrF%d", s->chrf.beta));
        for (int i = 0; i < s->chrf.word_order; i++) FTH_TRY(fth_str_add(out, "+", 1));
        return FTH_OK;
    }
    for (const char *c = s->metric->name; *c; c++)
        FTH_TRY(fth_str_addf(out, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c));
    return FTH_OK;
}

/* NAME|SIGNATURE = SCORE (mean +- half of the interval) DETAILS, as sacreBLEU prints it. */
static fth_err add_line(const scoring *s, size_t i, fth_str *out) {
    const result *r = &s->results[i];
    bool own_width = fth_option_was_set(s->flags->groups, N_GROUPS, "width");
    int width = own_width ? (int)s->flags->score.width : s->metric->compute ? 4 : 1;
    FTH_TRY(add_name(s, out));
    FTH_TRY(fth_str_addf(out, "|%s = ", s->signature.text));
    if (is(s, "rouge"))
        FTH_TRY(fth_str_addf(out, "%.*f/%.*f/%.*f/%.*f (rouge1/rouge2/rougeL/rougeLsum)", width,
                             r->rouge[0].fmeasure, width, r->rouge[1].fmeasure, width,
                             r->rouge[2].fmeasure, width, r->rouge[3].fmeasure));
    else
        FTH_TRY(fth_str_addf(out, "%.*f", width, r->score));
    if (s->sig.resamples)
        FTH_TRY(fth_str_addf(out, " (μ = %.*f ± %.*f)", width, r->sampled.mean, width,
                             r->sampled.half_width));
    if (s->metric->line) FTH_TRY(s->metric->line(s, r, out));
    if (s->n_hyps > 1) FTH_TRY(fth_str_addf(out, " %s", hyp_name(s, i)));
    if (s->flags->score.paired)
        FTH_TRY(i == 0
                    ? fth_str_addf(out, " (baseline)")
                    : fth_str_addf(out, " (p = %.4f, by randomisation %.4f)%s", r->sampled.p_value,
                                   r->p_exchanged, r->sampled.p_value <= 0.05 ? "*" : ""));
    return fth_str_add(out, "\n", 1);
}

static json_t *object_of(const scoring *s, size_t i) {
    const result *r = &s->results[i];
    json_t *o = json_object();
    int failed = !o;
    if (s->n_hyps > 1) failed |= json_object_set_new(o, "hyp", json_string(hyp_name(s, i)));
    if (!is(s, "rouge")) failed |= put(o, "score", r->score);
    failed |= json_object_set_new(o, "signature", json_string(s->signature.text));
    if (s->metric->fields) failed |= s->metric->fields(s, r, o);
    if (s->sig.resamples)
        failed |= put(o, "confidence_mean", r->sampled.mean) |
                  put(o, "confidence_var", r->sampled.half_width);
    if (s->flags->score.paired && i)
        failed |= put(o, "p_value", r->sampled.p_value) | put(o, "p_exchanged", r->p_exchanged);
    if (!failed) return o;
    json_decref(o);
    return NULL;
}

static fth_err add_json(const scoring *s, fth_str *out) {
    json_t *all = s->n_hyps > 1 ? json_object() : object_of(s, 0), *systems;
    int failed = !all;
    if (all && s->n_hyps > 1) {
        failed |= json_object_set_new(all, "systems", systems = json_array());
        for (size_t i = 0; i < s->n_hyps; i++)
            failed |= json_array_append_new(systems, object_of(s, i));
    }
    fth_err err = failed ? fth_fail(FTH_NO_MEMORY, "no memory for a JSON object") : FTH_OK;
    if (!err) err = fth_json_write(all, 0, out);
    if (!err) err = fth_str_add(out, "\n", 1);
    json_decref(all);
    return err;
}

static fth_err score_all(scoring *s) {
    fth_str out = {0};
    fth_err err = FTH_OK;
    FTH_TRY(read_all(s));
    for (size_t i = 0; i < s->n_hyps; i++) FTH_TRY(score_system(s, i));
    if (s->sig.resamples) FTH_TRY(resample(s));
    FTH_TRY(s->metric->sign(s, &s->signature));
    if (s->flags->score.json) err = add_json(s, &out);
    for (size_t i = 0; !err && !s->flags->score.json && i < s->n_hyps; i++)
        err = add_line(s, i, &out);
    if (!err) fwrite(out.text, 1, out.length, stdout);
    fth_str_fini(&out);
    return err;
}

static void scoring_fini(scoring *s) {
    for (size_t i = 0; s->refs && i < s->n_refs; i++) fth_text_lines_fini(&s->refs[i]);
    for (size_t i = 0; s->hyps && i < s->n_hyps; i++) fth_text_lines_fini(&s->hyps[i]);
    for (size_t i = 0; s->results && i < s->n_hyps; i++) {
        free(s->results[i].stats);
        fth_overlap_fini(&s->results[i].overlap);
    }
    free(s->refs);
    free(s->hyps);
    free(s->ref);
    free(s->results);
    fth_tokenizer_free(s->pieces);
    fth_str_fini(&s->signature);
}

static fth_err run(const flags *f, const char *name) {
    scoring s = {.flags = f};
    fth_err err;
    FTH_TRY_OR(err, find_metric(name, &s.metric), done);
    FTH_TRY_OR(err, check_options(f, s.metric), done);
    FTH_TRY_OR(err, check_request(&s), done);
    take_options(&s, f);
    if (s.bleu.tokenizer == FTH_TOK_SPM)
        FTH_TRY_OR(err, fth_tok_spm_load(f->bleu.spm_model, &s.pieces, &s.bleu.pieces_hash), done);
    s.bleu.pieces = s.pieces;
    err = score_all(&s);
done:
    scoring_fini(&s);
    return err;
}

fth_err fth_verb_score(int argc, char **argv) {
    flags f;
    const fth_option_group groups[N_GROUPS] = {
        score_options_group(&f.score), bleu_flags_group(&f.bleu),   chrf_flags_group(&f.chrf),
        ter_flags_group(&f.ter),       rouge_flags_group(&f.rouge), f1_flags_group(&f.f1)};
    const fth_usage usage = {"fathom score", "METRIC --ref FILE [--ref FILE ...] [--hyp FILE ...]",
                             "Scores hypotheses against references, line by line. METRIC is bleu, "
                             "multi-bleu (bleu of text "
                             "that is tokenized already), chrf, ter, rouge, wer, cer, accuracy, "
                             "matthews (mcc), f1, pearson, spearman or miou. The numbers are those "
                             "of sacreBLEU, rouge-score, jiwer, scikit-learn and SciPy.",
                             1, 1};
    fth_parsed parsed;
    bool done;
    memcpy(f.groups, groups, sizeof groups);
    fth_err err = fth_verb_options(&usage, f.groups, N_GROUPS, argc, argv, &parsed, &done);
    if (!err && !done) err = run(&f, parsed.positionals[0]);
    fth_parsed_fini(&parsed);
    return err;
}
