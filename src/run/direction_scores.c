/* direction_scores.c: takes the sources of a split in their order, a few thousand at a time, and
 * scores direction by direction at the end. */
#include "run/direction_scores.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/progress.h"
#include "run/text_scores.h"

enum { AT_ONCE = 2048 }; /* sentences between two looks at the progress */

typedef struct work {
    const fth_direction_job *job;
    fth_direction_scores *s;
    fth_ids *tags; /* [n] */
    fth_input *inputs;
} work;

/* ---- opening ---- */

static fth_err read_lines(const fth_direction_job *job, const char *side, fth_text_lines *out) {
    char *path =
             fth_strdup_printf("%s/%s.%s.txt", job->data->path, fth_split_name(job->split), side),
         *data = NULL;
    size_t size = 0;
    fth_err err = path ? fth_file_read(path, &data, &size)
                       : fth_no_memory("the translations of all directions");
    if (err == FTH_OK) err = fth_text_lines_take(data, size, path, out);
    free(path);
    return err;
}

static int64_t count_of(const fth_direction_job *job, int split, int32_t direction) {
    const json_t *entry =
        json_object_get(json_object_get(job->data->json, "splits"), fth_split_name(split));
    return json_integer_value(
        json_array_get(json_object_get(entry, "directions"), (size_t)direction));
}

static fth_err check_lines(const work *w) {
    const fth_direction_scores *s = w->s;
    const size_t n = (size_t)s->line[s->n];
    if (s->sources.n == n && s->refs.n == n) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: %s.src.txt has %zu lines and %s.tgt.txt %zu; dataset.json says %zu",
                    w->job->data->path, fth_split_name(w->job->split), s->sources.n,
                    fth_split_name(w->job->split), s->refs.n, n);
}

static fth_err open_lines(work *w) {
    const fth_direction_job *job = w->job;
    const fth_languages *l = &job->data->languages;
    fth_direction_scores *s = w->s;
    const size_t n = (size_t)l->n;
    s->n = l->n;
    s->of = calloc(n, sizeof *s->of);
    s->first = calloc(n + 1, sizeof *s->first);
    s->line = calloc(n + 1, sizeof *s->line);
    w->tags = calloc(n, sizeof *w->tags);
    if (!s->of || !s->first || !s->line || !w->tags)
        return fth_no_memory("the translations of all directions");
    for (int32_t k = 0; k < s->n; k++) {
        const int64_t there = count_of(job, job->split, k),
                      most = job->sentences > 0 && job->sentences < there ? job->sentences : there;
        s->of[k].sentences = most;
        s->of[k].trained = count_of(job, FTH_TRAIN, k) > 0;
        s->first[k + 1] = s->first[k] + most;
        s->line[k + 1] = s->line[k] + there;
        FTH_TRY(fth_languages_tag(l, job->tokenizer, fth_languages_source(l, k),
                                  fth_languages_target(l, k), &w->tags[k]));
    }
    FTH_TRY(read_lines(job, "src", &s->sources));
    FTH_TRY(read_lines(job, "tgt", &s->refs));
    s->outputs = calloc((size_t)s->first[s->n] + 1, sizeof *s->outputs);
    w->inputs = calloc(AT_ONCE, sizeof *w->inputs);
    if (!s->outputs || !w->inputs) return fth_no_memory("the translations of all directions");
    return check_lines(w);
}

/* ---- translating ---- */

static fth_err take(void *context, const fth_output *out) {
    const work *w = context;
    fth_str *text = &w->s->outputs[out->input->number];
    if (out->n_found == 0) return FTH_OK;
    FTH_TRY(fth_tokenizer_decode(w->job->tokenizer, out->found[0].tokens, (size_t)out->found[0].n,
                                 text));
    for (size_t i = 0; i < text->length; i++) /* a translation is one line */
        if (text->text[i] == '\n' || text->text[i] == '\r') text->text[i] = ' ';
    return FTH_OK;
}

/* Sentences from number `from` on, as many as are taken at once. */
static fth_err translate_some(work *w, fth_generator *g, int64_t from, int64_t *n) {
    const fth_direction_scores *s = w->s;
    fth_err err = FTH_OK;
    int32_t k = 0;
    for (*n = 0; *n < AT_ONCE && from + *n < s->first[s->n] && err == FTH_OK; ++*n) {
        const int64_t i = from + *n;
        while (i >= s->first[k + 1]) k++;
        const fth_text line = s->sources.line[s->line[k] + i - s->first[k]];
        w->inputs[*n] =
            (fth_input){.text = strndup(line.text, line.length), .tags = &w->tags[k], .number = i};
        if (!w->inputs[*n].text) err = fth_no_memory("the translations of all directions");
    }
    if (err == FTH_OK) err = fth_generate(g, w->inputs, *n, take, w);
    for (int64_t i = 0; i < *n; i++) free((char *)w->inputs[i].text);
    return err;
}

static fth_err translate(work *w, fth_generator *g) {
    const int64_t all = w->s->first[w->s->n];
    fth_progress progress;
    fth_progress_init(&progress, w->job->log, fth_real_clock(), "translating", "sentences", 0, all);
    for (int64_t from = 0, n; from < all; from += n) {
        FTH_TRY(translate_some(w, g, from, &n));
        fth_progress_update(&progress, from + n, NULL);
    }
    fth_progress_end(&progress);
    return FTH_OK;
}

/* ---- scoring ---- */

static fth_err score_direction(const work *w, int32_t k) {
    fth_direction_scores *s = w->s;
    fth_direction_score *score = &s->of[k];
    const size_t n = (size_t)score->sentences;
    const bool chinese = strncmp(fth_languages_target(&w->job->data->languages, k), "zh", 2) == 0;
    const fth_text *ref = s->refs.line + s->line[k];
    fth_text *hyp = malloc(sizeof *hyp * (n + 1));
    if (!hyp) return fth_no_memory("the translations of all directions");
    for (size_t i = 0; i < n; i++) hyp[i] = fth_str_view(&s->outputs[s->first[k] + (int64_t)i]);
    const fth_text_pairs pairs = {.hyp = hyp, .ref = &ref, .n = n, .n_refs = 1};
    fth_err err = fth_text_bleu(&pairs, chinese ? FTH_TOK_ZH : FTH_TOK_13A, NULL, &score->bleu);
    if (err == FTH_OK) err = fth_text_chrf(&pairs, &score->chrf);
    if (err == FTH_OK) err = fth_text_bleu(&pairs, FTH_TOK_SPM, w->job->pieces, &score->spbleu);
    free(hyp);
    return err;
}

static fth_err run(work *w, fth_generator *g) {
    FTH_TRY(open_lines(w));
    FTH_TRY(translate(w, g));
    for (int32_t k = 0; k < w->s->n; k++)
        if (w->s->of[k].sentences) FTH_TRY(score_direction(w, k));
    return FTH_OK;
}

fth_err fth_direction_scores_run(const fth_direction_job *job, fth_generator *g,
                                 fth_direction_scores *out) {
    work w = {.job = job, .s = out};
    *out = (fth_direction_scores){0};
    if (!job->data->languages.n)
        return fth_fail(FTH_USAGE,
                        "%s: has one pair of languages; fathom prepare --pairs makes data of many",
                        job->data->path);
    const fth_err err = run(&w, g);
    for (int32_t k = 0; w.tags && k < out->n; k++) fth_ids_fini(&w.tags[k]);
    free(w.tags);
    free(w.inputs);
    if (err != FTH_OK) fth_direction_scores_fini(out);
    return err;
}

void fth_direction_scores_fini(fth_direction_scores *s) {
    for (int64_t i = 0; s->outputs && i < s->first[s->n]; i++) fth_str_fini(&s->outputs[i]);
    fth_text_lines_fini(&s->sources);
    fth_text_lines_fini(&s->refs);
    free(s->outputs);
    free(s->first);
    free(s->line);
    free(s->of);
    *s = (fth_direction_scores){0};
}

/* ---- files ---- */

static fth_err write_file(const char *folder, const char *name, const char *ending,
                          const fth_str *text) {
    char *path = fth_strdup_printf("%s/%s.%s", folder, name, ending);
    if (!path) return fth_no_memory("the translations of all directions");
    const fth_err err = fth_file_write(path, text->text ? text->text : "", text->length);
    free(path);
    return err;
}

static fth_err write_direction(const fth_direction_scores *s, const fth_languages *l, int32_t k,
                               const char *folder) {
    fth_str hyp = {0}, ref = {0};
    fth_err err = FTH_OK;
    for (int64_t i = 0; i < s->of[k].sentences && err == FTH_OK; i++) {
        const fth_text line = s->refs.line[s->line[k] + i];
        const fth_text output = fth_str_view(&s->outputs[s->first[k] + i]);
        err = fth_str_addf(&hyp, "%s\n", output.text);
        if (err == FTH_OK) err = fth_str_add(&ref, line.text, line.length);
        if (err == FTH_OK) err = fth_str_add(&ref, "\n", 1);
    }
    const fth_direction_name name = fth_languages_name(l, k);
    if (err == FTH_OK) err = write_file(folder, name.text, "hyp", &hyp);
    if (err == FTH_OK) err = write_file(folder, name.text, "ref", &ref);
    fth_str_fini(&hyp);
    fth_str_fini(&ref);
    return err;
}

fth_err fth_direction_scores_write(const fth_direction_scores *s, const fth_languages *l,
                                   const char *folder) {
    for (int32_t k = 0; k < s->n; k++)
        if (s->of[k].sentences) FTH_TRY(write_direction(s, l, k, folder));
    return FTH_OK;
}
