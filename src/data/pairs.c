/* pairs.c: goes through the entries of pairs.yaml and adds the directions of each. */
#include "data/pairs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "base/yaml.h"

static const char *const split_names[FTH_PAIR_SPLITS] = {"train", "valid", "test"};

enum { MOST_DIRECTIONS = 10000 };

typedef struct reader {
    const char *name; /* of pairs.yaml */
    size_t folder;    /* bytes of name up to its last slash, this included */
    fth_pairs *p;
    size_t capacity;
} reader;

/* An entry by its keys; NULL: not given. */
typedef struct item {
    size_t line;
    const fth_yaml_entry *source, *target, *both, *all, *split[FTH_PAIR_SPLITS];
} item;

static fth_err bad(const reader *r, size_t line, const char *key, const char *rule) {
    return fth_fail(FTH_BAD_INPUT, "%s:%zu: %s %s", r->name, line, key, rule);
}

/* ---- names of files ---- */

/* The name with the code in the place of its star, in the folder of pairs.yaml. */
static fth_err file_name(reader *r, const char *given, const char *code, const char **out) {
    fth_str text = {0};
    const char *star = strchr(given, '*');
    const size_t before = star ? (size_t)(star - given) : strlen(given);
    fth_err err = given[0] == '/' ? FTH_OK : fth_str_add(&text, r->name, r->folder);
    if (err == FTH_OK) err = fth_str_add(&text, given, before);
    if (err == FTH_OK && star) err = fth_str_addf(&text, "%s%s", code, star + 1);
    if (err == FTH_OK && !(*out = fth_arena_strdup(&r->p->arena, text.text)))
        err = fth_no_memory("a list of pairs");
    fth_str_fini(&text);
    return err;
}

static bool has_one_star(const char *name) {
    const char *star = strchr(name, '*');
    return star && !strchr(star + 1, '*');
}

/* A pattern for all languages, or the files of two. */
static fth_err check_files(const reader *r, const fth_yaml_entry *e, bool two) {
    if (e->count == 1 && !e->is_list && !e->is_null && has_one_star(e->items[0])) return FTH_OK;
    if (two && e->is_list && e->count == 2 && e->items[0][0] && e->items[1][0] &&
        !strchr(e->items[0], '*') && !strchr(e->items[1], '*') && !strchr(e->items[0], '='))
        return FTH_OK;
    return bad(r, e->line, e->key,
               two ? "must be two files, as [train.en, train.de], or one name with a * for the "
                     "language, as train.*"
                   : "must be one name with a * for the language, as train.*");
}

/* ---- directions ---- */

/* Adds a direction; swapped: its files are given target first. */
static fth_err add(reader *r, const item *it, const char *source, const char *target,
                   bool swapped) {
    const int32_t n = r->p->languages.n;
    if (n == MOST_DIRECTIONS)
        return fth_fail(FTH_BAD_INPUT, "%s:%zu: more than %d directions", r->name, it->line,
                        MOST_DIRECTIONS);
    const fth_err err = fth_languages_add(&r->p->languages, source, target);
    if (err != FTH_OK) return fth_fail_in(err, "%s:%zu", r->name, it->line);
    if ((size_t)n == r->capacity) {
        const size_t capacity = r->capacity ? 2 * r->capacity : 16;
        fth_pair *of = realloc(r->p->of, sizeof *of * capacity);
        if (!of) return fth_no_memory("a list of pairs");
        r->p->of = of;
        r->capacity = capacity;
    }
    fth_pair *pair = &r->p->of[n];
    *pair = (fth_pair){.line = it->line};
    for (int i = 0; i < FTH_PAIR_SPLITS; i++) {
        const fth_yaml_entry *e = it->split[i];
        if (!e) continue;
        const char *one = e->items[0], *two = e->items[e->count - 1];
        FTH_TRY(file_name(r, swapped ? two : one, source, &pair->file[i][0]));
        FTH_TRY(file_name(r, swapped ? one : two, target, &pair->file[i][1]));
    }
    return FTH_OK;
}

static fth_err check_list(const reader *r, const fth_yaml_entry *e, bool two) {
    if (e->is_list && (two ? e->count == 2 : e->count >= 2)) return FTH_OK;
    return bad(r, e->line, e->key,
               two ? "must be two languages, as [en, de]"
                   : "must be two languages or more, as [de, es, fr]");
}

static fth_err add_item(reader *r, const item *it) {
    const int kinds = (it->source || it->target) + !!it->both + !!it->all;
    if (kinds != 1 || !it->source != !it->target)
        return bad(r, it->line, "an entry", "must have source and target, or both, or all");
    const fth_yaml_entry *of = it->both ? it->both : it->all;
    if (of) FTH_TRY(check_list(r, of, it->both != NULL));
    int splits = 0;
    for (int i = 0; i < FTH_PAIR_SPLITS; i++) {
        if (!it->split[i]) continue;
        splits++;
        FTH_TRY(check_files(r, it->split[i], !it->all));
    }
    if (!splits) return bad(r, it->line, "an entry", "must have the files of train, valid or test");
    if (it->source) {
        if (it->source->is_list || it->target->is_list)
            return bad(r, it->line, "source and target", "must be one language each");
        return add(r, it, it->source->items[0], it->target->items[0], false);
    }
    for (size_t i = 0; i < of->count; i++)
        for (size_t k = 0; k < of->count; k++)
            if (i != k) FTH_TRY(add(r, it, of->items[i], of->items[k], k < i));
    return FTH_OK;
}

static fth_err take_key(const reader *r, const fth_yaml_entry *e, item *it) {
    const struct {
        const char *key;
        const fth_yaml_entry **place;
    } keys[] = {{"source", &it->source}, {"target", &it->target},  {"both", &it->both},
                {"all", &it->all},       {"train", &it->split[0]}, {"valid", &it->split[1]},
                {"test", &it->split[2]}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].key, e->key) == 0) {
            *keys[i].place = e;
            return FTH_OK;
        }
    return fth_fail(FTH_BAD_INPUT,
                    "%s:%zu: '%.40s' is none of source, target, both, all, train, valid, test",
                    r->name, e->line, e->key);
}

static fth_err read_entries(reader *r, const fth_yaml_item *first) {
    for (const fth_yaml_item *i = first; i; i = i->next) {
        item it = {.line = i->line};
        for (const fth_yaml_entry *e = i->first; e; e = e->next) FTH_TRY(take_key(r, e, &it));
        FTH_TRY(add_item(r, &it));
    }
    if (!r->p->languages.n)
        return fth_fail(FTH_BAD_INPUT, "%s: has no directions; an entry is as \"- both: [en, de]\"",
                        r->name);
    return FTH_OK;
}

fth_err fth_pairs_parse(const char *name, const char *text, size_t size, fth_pairs *out) {
    const char *slash = strrchr(name, '/');
    reader r = {.name = name, .folder = slash ? (size_t)(slash - name) + 1 : 0, .p = out};
    fth_yaml_item *first = NULL;
    *out = (fth_pairs){0};
    fth_err err = fth_yaml_read_list(name, text, size, &out->arena, &first);
    if (err == FTH_OK) err = read_entries(&r, first);
    if (err != FTH_OK) fth_pairs_fini(out);
    return err;
}

/* A file may be in several directions: it must be one that can be read again. */
static fth_err check_file(const char *name, const fth_pairs *p, int32_t i, int split, int side) {
    const char *file = p->of[i].file[split][side];
    struct stat st;
    if (!file || (stat(file, &st) == 0 && S_ISREG(st.st_mode))) return FTH_OK;
    const bool there = fth_file_exists(file);
    return fth_fail(there ? FTH_BAD_INPUT : FTH_NOT_FOUND, "%s:%zu: %s of %s: %s: %s", name,
                    p->of[i].line, split_names[split], fth_languages_name(&p->languages, i).text,
                    there ? "no ordinary file" : "no such file", file);
}

static fth_err check_there(const char *name, const fth_pairs *p) {
    for (int32_t i = 0; i < p->languages.n; i++)
        for (int split = 0; split < FTH_PAIR_SPLITS; split++)
            for (int side = 0; side < 2; side++) FTH_TRY(check_file(name, p, i, split, side));
    return FTH_OK;
}

fth_err fth_pairs_read(const char *path, fth_pairs *out) {
    char *text = NULL;
    size_t size = 0;
    *out = (fth_pairs){0};
    FTH_TRY(fth_file_read(path, &text, &size));
    fth_err err = fth_pairs_parse(path, text, size, out);
    free(text);
    if (err == FTH_OK) err = check_there(path, out);
    if (err != FTH_OK) fth_pairs_fini(out);
    return err;
}

void fth_pairs_fini(fth_pairs *p) {
    fth_languages_fini(&p->languages);
    free(p->of);
    fth_arena_fini(&p->arena);
    *p = (fth_pairs){0};
}
