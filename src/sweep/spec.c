/* spec.c: reads the YAML file into factors and checks names and values against the options of
 * train. */
#include "sweep/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/yaml.h"
#include "sweep/measure.h"

bool fth_factor_varies(const fth_factor *f) {
    return f->n > 1 && !f->together;
}

/* ---- the sweep's own keys ---- */

static fth_err one_value(const fth_sweep_spec *s, const fth_yaml_entry *e, const char **out) {
    if (e->is_list || e->is_null || !e->items[0][0])
        return fth_fail(FTH_BAD_INPUT, "%s: %s: must be one value", s->where, e->key);
    *out = e->items[0];
    return FTH_OK;
}

/* "option=value" of corpus and prepare. */
static fth_err pairs(const fth_sweep_spec *s, const fth_yaml_entry *e, const char ***out, size_t *n,
                     bool *given) {
    bool good = e->is_list || e->is_null;
    for (size_t i = 0; e->is_list && i < e->count; i++) good = good && strchr(e->items[i], '=');
    if (!good)
        return fth_fail(FTH_BAD_INPUT, "%s: %s: must be options, as {vocab-size: 800}", s->where,
                        e->key);
    *out = e->items;
    *n = e->is_list ? e->count : 0;
    *given = true;
    return FTH_OK;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A value that is there twice is an error, for its runs would be one; label: of the list. */
static fth_err refuse_repeats(const fth_sweep_spec *s, const char *label, const char *const *value,
                              size_t n) {
    const char **sorted = malloc(sizeof *sorted * (n + 1));
    if (!sorted) return fth_no_memory(s->file);
    fth_err err = FTH_OK;
    if (n) memcpy(sorted, value, sizeof *sorted * n);
    qsort(sorted, n, sizeof *sorted, by_text);
    for (size_t i = 1; i < n && err == FTH_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            err =
                fth_fail(FTH_BAD_INPUT, "%s: %s: %.80s is given twice", s->where, label, sorted[i]);
    free(sorted);
    return err;
}

/* Whole numbers, as seeds and GPUs are. */
static fth_err numbers(const fth_sweep_spec *s, const fth_yaml_entry *e, const char ***out,
                       size_t *n) {
    for (size_t i = 0; i < e->count; i++) {
        size_t length = strlen(e->items[i]);
        if (length == 0 || length > 18 || strspn(e->items[i], "0123456789") != length)
            return fth_fail(FTH_BAD_INPUT,
                            "%s: %s %.40s: must be whole numbers of at least 0, as [1, 2, 3]",
                            s->where, e->key, e->items[i]);
    }
    FTH_TRY(refuse_repeats(s, e->key, e->items, e->count));
    if (e->count == 0)
        return fth_fail(FTH_BAD_INPUT, "%s: %s: must have a value", s->where, e->key);
    *out = e->items;
    *n = e->count;
    return FTH_OK;
}

/* jobs, average */
static fth_err read_count(fth_sweep_spec *s, const fth_yaml_entry *e, int64_t *out) {
    const char *text = "";
    char *end;
    FTH_TRY(one_value(s, e, &text));
    *out = strtoll(text, &end, 10);
    if (*end || *out < 1 || *out > 1024)
        return fth_fail(FTH_BAD_INPUT, "%s: %s %.40s: must be a whole number from 1 to 1024",
                        s->where, e->key, text);
    return FTH_OK;
}

/* What measures and baselines are: the rest of the file says what runs there are. */
static fth_err read_after(fth_sweep_spec *s, const fth_yaml_entry *e, bool *own) {
    bool given;
    if (strcmp(e->key, "average") == 0) return read_count(s, e, &s->average);
    if (strcmp(e->key, "generate") == 0) return pairs(s, e, &s->generate, &s->n_generate, &given);
    if (strcmp(e->key, "baseline") == 0) {
        s->baseline_where = s->where;
        return pairs(s, e, &s->baseline, &s->n_baseline, &given);
    }
    *own = strncmp(e->key, "score.", 6) == 0 || strncmp(e->key, "evaluate.", 9) == 0;
    if (!*own) return FTH_OK;
    const char **items = NULL;
    size_t n = 0;
    FTH_TRY(pairs(s, e, &items, &n, &given));
    return fth_measure_read(s, e->key, items, n);
}

/* *own says whether the key is one of the sweep's. */
static fth_err read_own(fth_sweep_spec *s, const fth_yaml_entry *e, bool *own) {
    *own = true;
    const struct {
        const char *key, **out;
    } words[] = {{"title", &s->title}, {"out", &s->out}, {"data", &s->data}, {"x", &s->x}};
    if (strcmp(e->key, "data") == 0) s->data_where = s->where;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(e->key, words[i].key) == 0) return one_value(s, e, words[i].out);
    if (strcmp(e->key, "jobs") == 0) return read_count(s, e, &s->jobs);
    if (strcmp(e->key, "seeds") == 0) return numbers(s, e, &s->seeds, &s->n_seeds);
    if (strcmp(e->key, "gpus") == 0) return numbers(s, e, &s->gpus, &s->n_gpus);
    if (strcmp(e->key, "corpus") == 0) return pairs(s, e, &s->corpus, &s->n_corpus, &s->has_corpus);
    if (strcmp(e->key, "prepare") == 0)
        return pairs(s, e, &s->prepare, &s->n_prepare, &s->has_prepare);
    return read_after(s, e, own);
}

/* ---- keys that go to train ---- */

/* "a, b" to its names; METHOD.OPTION to its two parts. */
static fth_err split_label(fth_sweep_spec *s, fth_factor *f) {
    const char *dot = strchr(f->label, '.');
    size_t most = 1;
    for (const char *p = f->label; *p; p++) most += *p == ',';
    f->option = fth_arena_alloc(&s->arena, most * sizeof *f->option);
    if (!f->option) return fth_no_memory(s->file);
    if (dot) {
        f->method = fth_arena_strndup(&s->arena, f->label, (size_t)(dot - f->label));
        f->option[f->n_options++] = dot + 1;
        if (!f->method) return fth_no_memory(s->file);
        bool good = f->method[0] && dot[1] && most == 1 && !strchr(dot + 1, '.');
        return good ? FTH_OK
                    : fth_fail(FTH_BAD_INPUT, "%s: %s: must be METHOD.OPTION", f->where, f->label);
    }
    for (const char *p = f->label; *p;) {
        p += strspn(p, " ,");
        size_t n = strcspn(p, " ,");
        if (n == 0) break;
        f->option[f->n_options] = fth_arena_strndup(&s->arena, p, n);
        if (!f->option[f->n_options++]) return fth_no_memory(s->file);
        p += n;
    }
    return FTH_OK;
}

static fth_err check_factor(const fth_sweep_spec *s, const fth_factor *f) {
    static const char *const ours[] = {"save-dir", "config", "dump-config", "help", "restore-file"};
    for (size_t i = 0; i < f->n_options; i++) {
        if (strcmp(f->option[i], "seed") == 0)
            return fth_fail(FTH_BAD_INPUT, "%s: seed: is written seeds, as seeds: [1, 2, 3]",
                            f->where);
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            if (strcmp(f->option[i], ours[k]) == 0)
                return fth_fail(FTH_BAD_INPUT, "%s: %s: is no option that a sweep can set",
                                f->where, f->option[i]);
    }
    FTH_TRY(refuse_repeats(s, f->label, f->value, f->n));
    if (f->n_options > 0 && f->n > 0) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: %s: must have a value", f->where, f->label);
}

static fth_err read_factor(fth_sweep_spec *s, const fth_yaml_entry *e) {
    fth_factor *f = &s->factor[s->n_factors++];
    *f = (fth_factor){.label = e->key,
                      .value = e->items,
                      .n = e->is_null ? 0 : e->count,
                      .where = s->where,
                      .together = strcmp(e->key, "method-option") == 0};
    FTH_TRY(split_label(s, f));
    return check_factor(s, f);
}

/* ---- the file ---- */

static fth_err set_defaults(fth_sweep_spec *s) {
    static const char *one = "1";
    const char *slash = strrchr(s->file, '/'), *base = slash ? slash + 1 : s->file;
    const char *dot = strrchr(base, '.');
    s->name = fth_arena_strndup(&s->arena, base, dot ? (size_t)(dot - base) : strlen(base));
    if (!s->name) return fth_no_memory(s->file);
    if (s->n_seeds == 0) {
        s->seeds = &one;
        s->n_seeds = 1;
    }
    if (!s->title) s->title = s->name;
    if (s->data && (s->has_corpus || s->has_prepare))
        return fth_fail(FTH_BAD_INPUT,
                        "%s: has data and also corpus or prepare; one of them makes "
                        "the data of a sweep",
                        s->file);
    if (!s->data && !s->has_corpus && !s->has_prepare)
        return fth_fail(FTH_BAD_INPUT,
                        "%s: names no data; must have data: FOLDER, or corpus: and prepare: with "
                        "the options of these verbs",
                        s->file);
    return FTH_OK;
}

static const fth_yaml_entry *find(const fth_yaml_entry *e, const char *key) {
    while (e && strcmp(e->key, key) != 0) e = e->next;
    return e;
}

/* Entries from one place, and those that count before them. */
typedef struct layer {
    const char *file;
    const char *const *set; /* instead of a file: the words of --set; lines are numbers in it */
    fth_yaml_entry *first;
    const struct layer *over;
} layer;

/* Do entries above say something else about this key? A data set takes the place of how one is
 * made. */
static bool replaced(const layer *l, const char *key) {
    bool making = strcmp(key, "corpus") == 0 || strcmp(key, "prepare") == 0;
    for (const layer *o = l->over; o; o = o->over)
        if (find(o->first, key) || (making && find(o->first, "data"))) return true;
    return false;
}

/* Where an entry stands, as messages name it. */
static fth_err find_place(fth_sweep_spec *s, const layer *l, const fth_yaml_entry *e) {
    char *where = l->set ? fth_strdup_printf("--set %.80s", l->set[e->line])
                         : fth_strdup_printf("%s:%zu", l->file, e->line);
    s->where = where ? fth_arena_strdup(&s->arena, where) : NULL;
    free(where);
    return s->where ? FTH_OK : fth_no_memory(s->file);
}

static fth_err take_entries(fth_sweep_spec *s, const layer *l) {
    for (const fth_yaml_entry *e = l->first; e; e = e->next) {
        FTH_TRY(find_place(s, l, e));
        bool own = replaced(l, e->key) || strcmp(e->key, "base") == 0;
        if (!own) FTH_TRY(read_own(s, e, &own));
        if (!own) FTH_TRY(read_factor(s, e));
    }
    return FTH_OK;
}

static fth_err read_entries(fth_sweep_spec *s, const char *file, fth_yaml_entry **first) {
    char *text = NULL;
    size_t size;
    fth_err err = fth_file_read(file, &text, &size);
    if (err == FTH_OK) err = fth_yaml_read(file, text, size, &s->arena, first);
    free(text);
    return err;
}

/* The file that `base` names, from the folder of this one on. */
static fth_err read_base(fth_sweep_spec *s, const layer *l, const char **file,
                         fth_yaml_entry **base) {
    const fth_yaml_entry *e = find(l->first, "base");
    const char *name = "", *slash = strrchr(s->file, '/');
    *base = NULL;
    if (!e) return FTH_OK;
    FTH_TRY(find_place(s, l, e));
    FTH_TRY(one_value(s, e, &name));
    int folder = slash && name[0] != '/' ? (int)(slash - s->file) + 1 : 0;
    char *path = fth_strdup_printf("%.*s%s", folder, s->file, name);
    *file = path ? fth_arena_strdup(&s->arena, path) : NULL;
    free(path);
    if (!*file) return fth_no_memory(s->file);
    FTH_TRY(read_entries(s, *file, base));
    if (!find(*base, "base")) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: base: a base has no base of its own", *file);
}

/* KEY=VALUE of the command line as the line "KEY: VALUE" of YAML. */
static fth_err read_set(fth_sweep_spec *s, const char *set, fth_yaml_entry **out) {
    const char *equals = strchr(set, '=');
    if (!equals || equals == set || strchr(set, '\n'))
        return fth_fail(FTH_USAGE,
                        "--set %.80s: must be KEY=VALUE, as lr=0.001 or \"lr=[1e-3, 2e-3]\"", set);
    if (strncmp(set, "base=", 5) == 0)
        return fth_fail(FTH_USAGE, "--set %.80s: the base of a file is the file's own", set);
    char *line = fth_strdup_printf("%.*s: %s", (int)(equals - set), set, equals + 1);
    fth_err err =
        line ? fth_yaml_read("--set", line, strlen(line), &s->arena, out) : fth_no_memory(s->file);
    free(line);
    if (err != FTH_BAD_INPUT) return err;
    const char *said = strstr(fth_error_message(), ": "); /* behind the number of the line */
    return fth_fail(FTH_USAGE, "--set %.80s%s", set, said ? said : "");
}

static fth_err read_sets(fth_sweep_spec *s, const char *const *set, size_t n,
                         fth_yaml_entry **first) {
    *first = NULL;
    for (size_t i = 0; i < n; i++) {
        fth_yaml_entry **end = first, *e = NULL;
        FTH_TRY(read_set(s, set[i], &e));
        for (; *end; end = &(*end)->next)
            if (e && strcmp((*end)->key, e->key) == 0)
                return fth_fail(FTH_USAGE, "--set %.80s: %s is set twice", set[i], e->key);
        if (e) e->line = i;
        *end = e;
    }
    return FTH_OK;
}

static fth_err read_all(fth_sweep_spec *s, const char *const *set, size_t n_set) {
    layer sets = {.set = set};
    layer file = {.file = s->file, .over = &sets};
    layer base = {.over = &file};
    size_t n = 1;
    FTH_TRY(read_sets(s, set, n_set, &sets.first));
    FTH_TRY(read_entries(s, s->file, &file.first));
    FTH_TRY(read_base(s, &file, &base.file, &base.first));
    for (const layer *l = &base; l; l = l->over)
        for (const fth_yaml_entry *e = l->first; e; e = e->next) n++;
    s->factor = fth_arena_alloc(&s->arena, n * sizeof *s->factor);
    s->measure = fth_arena_alloc(&s->arena, n * sizeof *s->measure);
    if (!s->factor || !s->measure) return fth_no_memory(s->file);
    for (const layer *l = &base; l; l = l->over) FTH_TRY(take_entries(s, l));
    FTH_TRY(fth_measure_check(s));
    return set_defaults(s);
}

fth_err fth_sweep_spec_read(fth_sweep_spec *s, const char *file, const char *const *set,
                            size_t n_set) {
    *s = (fth_sweep_spec){0};
    fth_arena_init(&s->arena);
    s->file = fth_arena_strdup(&s->arena, file);
    return s->file ? read_all(s, set, n_set) : fth_fail(FTH_NO_MEMORY, "no memory for a sweep");
}

void fth_sweep_spec_fini(fth_sweep_spec *s) {
    fth_arena_fini(&s->arena);
    *s = (fth_sweep_spec){0};
}
