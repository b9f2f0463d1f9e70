/* prepare_pairs.c: the files of the splits by direction, the tags as ids, and warnings about what
 * a direction lacks. */
#include "data/prepare_pairs.h"

#include <stdlib.h>
#include <string.h>

enum { FEW_SENTENCES = 100, MOST_NAMED = 8 };

/* ---- files ---- */

fth_err fth_pairs_texts(const fth_pairs *pairs, fth_arena *arena,
                        fth_text_spec text[FTH_N_SPLITS]) {
    const size_t n = (size_t)pairs->languages.n;
    for (int split = 0; split < FTH_N_SPLITS; split++) {
        fth_text_file *files[2] = {fth_arena_alloc(arena, n * sizeof **files),
                                   fth_arena_alloc(arena, n * sizeof **files)};
        int32_t *directions = fth_arena_alloc(arena, n * sizeof *directions);
        size_t count = 0;
        if (!files[0] || !files[1] || !directions)
            return fth_no_memory("the files of many directions");
        for (size_t i = 0; i < n; i++) {
            const char *const *file = pairs->of[i].file[split];
            if (!file[0]) continue;
            for (int s = 0; s < 2; s++) files[s][count] = (fth_text_file){file[s], file[s]};
            directions[count++] = (int32_t)i;
        }
        text[split] = (fth_text_spec){.kind = count ? FTH_TEXT_DIRECTIONS : FTH_TEXT_NONE,
                                      .files = {files[0], files[1]},
                                      .n_files = {count, count},
                                      .directions = directions};
    }
    return FTH_OK;
}

/* Names of directions, the first few of them. */
typedef struct names {
    fth_str text;
    int64_t n;
} names;

static void add_name(names *list, const fth_languages *l, int32_t direction) {
    if (list->n++ < MOST_NAMED)
        fth_str_addf(&list->text, "%s%s", list->n > 1 ? ", " : "",
                     fth_languages_name(l, direction).text);
    else if (list->n == MOST_NAMED + 1)
        fth_str_addf(&list->text, " ...");
}

static void say_names(names *list, fth_log *log, const char *split, const char *what) {
    if (list->n && list->text.text)
        fth_log_warn(log, "%s: %lld direction%s %s: %s", split, (long long)list->n,
                     list->n > 1 ? "s" : "", what, list->text.text);
    fth_str_fini(&list->text);
}

void fth_pairs_warn_missing(const fth_pairs *pairs, fth_log *log) {
    static const char *const lacks[] = {"without training text (zero-shot)",
                                        "without a file, not validated",
                                        "without a file, not tested"};
    for (int split = 0; split < FTH_N_SPLITS; split++) {
        names missing = {0};
        for (int32_t i = 0; i < pairs->languages.n; i++)
            if (!pairs->of[i].file[split][0]) add_name(&missing, &pairs->languages, i);
        say_names(&missing, log, fth_split_name(split), lacks[split]);
    }
}

/* ---- tags ---- */

fth_err fth_tagging_init(fth_tagging *g, const fth_languages *l, const fth_tokenizer *t) {
    *g = (fth_tagging){.n = l->n};
    if (!l->n) return FTH_OK;
    g->tags = calloc((size_t)l->n, sizeof *g->tags);
    g->written = calloc((size_t)l->n, sizeof *g->written);
    g->is_tag = calloc((size_t)fth_tokenizer_size(t), sizeof *g->is_tag);
    if (!g->tags || !g->written || !g->is_tag) return fth_no_memory("the files of many directions");
    for (int32_t i = 0; i < l->n; i++) {
        fth_ids all = {0}; /* of source and target, whatever the tags are */
        const fth_languages both = {
            .tags = FTH_TAGS_SOURCE_TARGET, .codes = l->codes, .n_codes = l->n_codes};
        const char *source = fth_languages_source(l, i), *target = fth_languages_target(l, i);
        FTH_TRY(fth_languages_tag(l, t, source, target, &g->tags[i]));
        const fth_err err = fth_languages_tag(&both, t, source, target, &all);
        for (size_t k = 0; k < all.n; k++) g->is_tag[all.ids[k]] = 1;
        fth_ids_fini(&all);
        FTH_TRY(err);
    }
    return FTH_OK;
}

void fth_tagging_fini(fth_tagging *g) {
    for (int32_t i = 0; g->tags && i < g->n; i++) fth_ids_fini(&g->tags[i]);
    free(g->tags);
    free(g->is_tag);
    free(g->written);
    *g = (fth_tagging){0};
}

/* ---- what was written ---- */

fth_err fth_tagging_describe(const fth_tagging *g, const fth_languages *l,
                             const fth_text_spec *text, const char *split, fth_log *log,
                             json_t *entry) {
    if (!g->n) return FTH_OK;
    json_t *counts = json_array();
    for (int32_t i = 0; i < g->n; i++)
        json_array_append_new(counts, json_integer((json_int_t)g->written[i]));
    if (json_object_set_new(entry, "directions", counts) != 0)
        return fth_no_memory("the files of many directions");
    names few = {0}, none = {0};
    for (size_t k = 0; k < text->n_files[0]; k++) {
        const int32_t i = text->directions[k];
        if (g->written[i] == 0)
            add_name(&none, l, i);
        else if (g->written[i] < FEW_SENTENCES)
            add_name(&few, l, i);
    }
    say_names(&none, log, split, "with files that hold no pair");
    if (strcmp(split, "train") == 0)
        say_names(&few, log, split, "with fewer than 100 sentences, too few to learn from");
    fth_str_fini(&few.text);
    return FTH_OK;
}
