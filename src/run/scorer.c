/* scorer.c: reads the text beside the validation split, translates its sources, and scores what
 * comes out. */
#include "run/scorer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "decode/generator.h"
#include "metric/wer.h"
#include "run/text_scores.h"

struct fth_scorer {
    fth_scorer_spec spec;
    fth_tokenizer *src, *tgt; /* tgt may be src */
    fth_text_lines sources;   /* none where they are recordings: */
    fth_dataset *recordings;
    fth_text_lines *refs; /* [n_refs] */
    const fth_text **ref; /* [n_refs] their lines */
    size_t n_refs, n;     /* n: sentences */
    fth_input *inputs;    /* [n] */
    fth_str *outputs;     /* [n] */
    fth_text *hyp;        /* [n] views of outputs */
    fth_ids *tags;        /* [n_parts] before the sources of each direction */
    size_t *part;         /* [n_parts + 1] first sentence of each direction */
    size_t n_parts;       /* 1: there is one language pair */
};

const char *fth_score_name(fth_score_kind kind) {
    static const char *const names[] = {"none", "bleu", "chrf", "wer", "cer"};
    return names[kind];
}

bool fth_score_is_error(fth_score_kind kind) {
    return kind == FTH_SCORE_WER || kind == FTH_SCORE_CER;
}

/* ---- opening ---- */

static fth_err read_text(const fth_folder *f, const char *part, fth_text_lines *out) {
    char *path = fth_strdup_printf("%s/valid.%s.txt", f->path, part), *data = NULL;
    size_t size = 0;
    fth_err err =
        path ? fth_file_read(path, &data, &size) : fth_no_memory("the score of a validation");
    if (err == FTH_OK) err = fth_text_lines_take(data, size, path, out);
    free(path);
    return err;
}

static int64_t further_references(const fth_folder *f) {
    const json_t *valid = json_object_get(json_object_get(f->json, "splits"), "valid");
    return json_integer_value(json_object_get(valid, "references"));
}

static fth_err read_texts(fth_scorer *s, const fth_folder *f) {
    char part[32];
    if (f->speech.rate)
        FTH_TRY(fth_folder_split(f, FTH_VALID, &s->recordings));
    else
        FTH_TRY(read_text(f, "src", &s->sources));
    s->n = s->recordings ? (size_t)s->recordings->sentences : s->sources.n;
    s->n_refs = 1 + (size_t)further_references(f);
    s->refs = calloc(s->n_refs, sizeof *s->refs);
    s->ref = calloc(s->n_refs, sizeof *s->ref);
    if (!s->refs || !s->ref) return fth_no_memory("the score of a validation");
    for (size_t i = 0; i < s->n_refs; i++) {
        snprintf(part, sizeof part, i ? "ref%zu" : "tgt", i);
        FTH_TRY(read_text(f, part, &s->refs[i]));
        if (s->refs[i].n != s->n)
            return fth_fail(FTH_BAD_INPUT, "%s/valid.%s.txt: has %zu lines, the sources %zu",
                            f->path, part, s->refs[i].n, s->n);
        s->ref[i] = s->refs[i].line;
    }
    return FTH_OK;
}

/* How many of so many sentences are translated. */
static size_t bounded(const fth_scorer *s, size_t n) {
    return s->spec.sentences > 0 && (size_t)s->spec.sentences < n ? (size_t)s->spec.sentences : n;
}

/* Moves the lines of a direction that are translated to those of the directions before. */
static void keep_lines(fth_scorer *s, size_t from, size_t n) {
    if (!s->recordings)
        memmove(s->sources.line + s->n, s->sources.line + from, n * sizeof(fth_text));
    for (size_t i = 0; i < s->n_refs; i++)
        memmove(s->refs[i].line + s->n, s->refs[i].line + from, n * sizeof(fth_text));
    s->n += n;
}

/* The first sentences of each direction; of data with one, the first of all. */
static fth_err choose_lines(fth_scorer *s, const fth_folder *f) {
    const json_t *valid = json_object_get(json_object_get(f->json, "splits"), "valid");
    const json_t *counts = json_object_get(valid, "directions");
    s->n_parts = f->languages.n ? (size_t)f->languages.n : 1;
    s->tags = calloc(s->n_parts, sizeof *s->tags);
    s->part = calloc(s->n_parts + 1, sizeof *s->part);
    if (!s->tags || !s->part) return fth_no_memory("the score of a validation");
    const size_t lines = s->n;
    size_t from = 0;
    s->n = 0;
    for (size_t k = 0; k < s->n_parts; k++) {
        const int32_t i = (int32_t)k;
        const size_t n =
            f->languages.n ? (size_t)json_integer_value(json_array_get(counts, k)) : lines;
        if (n > lines - from)
            return fth_fail(FTH_BAD_INPUT, "%s/valid.src.txt: has %zu lines, fewer than its split",
                            f->path, lines);
        keep_lines(s, from, bounded(s, n));
        from += n;
        s->part[k + 1] = s->n;
        if (f->languages.n)
            FTH_TRY(fth_languages_tag(&f->languages, s->src, fth_languages_source(&f->languages, i),
                                      fth_languages_target(&f->languages, i), &s->tags[k]));
    }
    return FTH_OK;
}

static fth_err make_lines(fth_scorer *s) {
    s->inputs = calloc(s->n + 1, sizeof *s->inputs);
    s->outputs = calloc(s->n + 1, sizeof *s->outputs);
    s->hyp = calloc(s->n + 1, sizeof *s->hyp);
    if (!s->inputs || !s->outputs || !s->hyp) return fth_no_memory("the score of a validation");
    for (size_t i = 0; i < s->n && s->recordings; i++) {
        const fth_vectors *v = s->recordings->frames;
        const int64_t frames = fth_vectors_length(v, (int64_t)i);
        if (frames < 0) return fth_vectors_damaged(v, (int64_t)i);
        s->inputs[i] = (fth_input){
            .frames = fth_vectors_at(v, (int64_t)i), .n_frames = frames, .number = (int64_t)i};
    }
    for (size_t i = 0, k = 0; i < s->n && !s->recordings; i++) {
        const fth_text *line = &s->sources.line[i];
        while (i >= s->part[k + 1]) k++;
        s->inputs[i] = (fth_input){.text = strndup(line->text, line->length),
                                   .tags = s->tags[k].n ? &s->tags[k] : NULL,
                                   .number = (int64_t)i};
        if (!s->inputs[i].text) return fth_no_memory("the score of a validation");
    }
    return FTH_OK;
}

static fth_err open_scorer(fth_scorer *s, const fth_folder *f) {
    if ((f->n_sides != 2 && !f->speech.rate) || !f->has_split[FTH_VALID])
        return fth_fail(FTH_USAGE, "--validate-score %s: %s has no validation pairs to translate",
                        fth_score_name(s->spec.kind), f->path);
    FTH_TRY(fth_folder_tokenizer(f, FTH_SOURCE, &s->src));
    s->tgt = s->src;
    if (f->separate) {
        s->tgt = NULL;
        FTH_TRY(fth_folder_tokenizer(f, FTH_TARGET, &s->tgt));
    }
    FTH_TRY(read_texts(s, f));
    FTH_TRY(choose_lines(s, f));
    return make_lines(s);
}

fth_err fth_scorer_new(const fth_scorer_spec *spec, const fth_folder *data, fth_scorer **out) {
    fth_scorer *s = calloc(1, sizeof *s);
    if (!s) return fth_no_memory("the score of a validation");
    s->spec = *spec;
    fth_err err = open_scorer(s, data);
    if (err == FTH_OK)
        *out = s;
    else
        fth_scorer_free(s);
    return err;
}

void fth_scorer_free(fth_scorer *s) {
    if (!s) return;
    for (size_t i = 0; s->inputs && i < s->n; i++) free((char *)s->inputs[i].text);
    for (size_t i = 0; s->outputs && i < s->n; i++) fth_str_fini(&s->outputs[i]);
    for (size_t i = 0; s->refs && i < s->n_refs; i++) fth_text_lines_fini(&s->refs[i]);
    for (size_t k = 0; s->tags && k < s->n_parts; k++) fth_ids_fini(&s->tags[k]);
    free(s->tags);
    free(s->part);
    fth_text_lines_fini(&s->sources);
    fth_dataset_free(s->recordings);
    if (s->tgt != s->src) fth_tokenizer_free(s->tgt);
    fth_tokenizer_free(s->src);
    free(s->inputs);
    free(s->outputs);
    free(s->refs);
    free(s->ref);
    free(s->hyp);
    free(s);
}

/* ---- scoring ---- */

static fth_err take(void *context, const fth_output *out) {
    fth_scorer *s = context;
    fth_str *text = &s->outputs[out->input->number];
    fth_str_clear(text);
    if (out->n_found == 0) return FTH_OK;
    return fth_tokenizer_decode(s->tgt, out->found[0].tokens, (size_t)out->found[0].n, text);
}

static fth_err translate(fth_scorer *s, const fth_model *model, fth_device *dev,
                         const fth_arenas *arenas) {
    /* an untrained model finds no end: so the length is bound by that of the source */
    const fth_generator_spec how = {.search = {.beam = s->spec.beam,
                                               .lenpen = 1,
                                               .max_len_a = 1.2,
                                               .max_len_b = 10,
                                               .temperature = 1},
                                    .batch = 64,
                                    .max_tokens = s->spec.max_tokens,
                                    .input = "the validation data",
                                    .src = s->src,
                                    .tgt = s->tgt};
    const fth_generator_model one = {"the model", model, arenas};
    fth_generator *g = NULL;
    FTH_TRY(fth_generator_new(&one, 1, dev, &how, &g));
    fth_err err = fth_generate(g, s->inputs, (int64_t)s->n, take, s);
    fth_generator_free(g);
    return err;
}

static fth_err error_rate(const fth_text_pairs *pairs, bool characters, double *score) {
    const fth_wer_options o = {.characters = characters};
    fth_wer result;
    FTH_TRY(fth_wer_corpus(pairs, &o, &result));
    *score = 100 * result.score;
    return FTH_OK;
}

static fth_err score_pairs(fth_score_kind kind, const fth_text_pairs *pairs, double *score) {
    if (fth_score_is_error(kind)) return error_rate(pairs, kind == FTH_SCORE_CER, score);
    return kind == FTH_SCORE_BLEU ? fth_text_bleu(pairs, FTH_TOK_13A, NULL, score)
                                  : fth_text_chrf(pairs, score);
}

fth_err fth_scorer_run(fth_scorer *s, const fth_model *model, fth_device *dev,
                       const fth_arenas *arenas, double *score) {
    FTH_TRY(translate(s, model, dev, arenas));
    for (size_t i = 0; i < s->n; i++) s->hyp[i] = fth_str_view(&s->outputs[i]);
    double sum = 0, one = 0;
    size_t parts = 0;
    for (size_t k = 0; k < s->n_parts; k++) {
        const size_t first = s->part[k], n = s->part[k + 1] - first;
        if (n == 0) continue;
        for (size_t i = 0; i < s->n_refs; i++) s->ref[i] = s->refs[i].line + first;
        const fth_text_pairs pairs = {
            .hyp = s->hyp + first, .ref = s->ref, .n = n, .n_refs = s->n_refs};
        FTH_TRY(score_pairs(s->spec.kind, &pairs, &one));
        sum += one;
        parts++;
    }
    *score = parts ? sum / (double)parts : NAN;
    return FTH_OK;
}
