/* language_tags.c: the options of languages against the languages.json of a model. */
#include "cli/language_tags.h"

#include <stdbool.h>
#include <string.h>

/* The target of all directions; NULL: there are several. */
static const char *only_target(const fth_languages *l) {
    for (int32_t i = 1; i < l->n; i++)
        if (l->of[i].target != l->of[0].target) return NULL;
    return fth_languages_target(l, 0);
}

static fth_err missing(const fth_languages *l, const char *model, const char *which) {
    fth_str known = {0};
    FTH_TRY(fth_languages_list(l, &known));
    const fth_err err =
        fth_fail(FTH_USAGE, "%s: needs --%s-language, one of %s", model, which, known.text);
    fth_str_fini(&known);
    return err;
}

static fth_err find(const fth_languages *l, const char *model, const fth_tokenizer *t,
                    const char *source, const char *target, fth_ids *tags) {
    const bool has_source = l->tags == FTH_TAGS_SOURCE_TARGET;
    if (!target[0]) target = only_target(l);
    if (!target) return missing(l, model, "target");
    if (has_source && !source[0]) return missing(l, model, "source");
    if (!has_source && source[0])
        return fth_fail(FTH_USAGE,
                        "--source-language %s: %s was trained without tags of the source "
                        "(--language-tags target)",
                        source, model);
    return fth_languages_tag(l, t, has_source ? source : NULL, target, tags);
}

fth_err fth_language_tags(const char *model, const fth_tokenizer *t, const char *source,
                          const char *target, fth_ids *tags) {
    fth_languages l;
    FTH_TRY(fth_languages_load(&l, model));
    fth_err err = FTH_OK;
    if (l.n)
        err = find(&l, model, t, source, target, tags);
    else if (source[0] || target[0])
        err = fth_fail(FTH_USAGE,
                       "--%s-language: %s translates between two languages, and has no tags; those "
                       "of fathom prepare --pairs have",
                       target[0] ? "target" : "source", model);
    fth_languages_fini(&l);
    return err;
}
