/* grid.c: from factors to runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "sweep/spec.h"

typedef struct maker {
    const fth_sweep_spec *spec;
    fth_sweep_grid *grid;
    const fth_factor *methods; /* the factor "method", or NULL */
    const char *default_method;
} maker;

static const fth_factor *find_methods(const fth_sweep_spec *s) {
    for (size_t i = 0; i < s->n_factors; i++)
        if (!s->factor[i].method && s->factor[i].n_options == 1 &&
            strcmp(s->factor[i].option[0], "method") == 0)
            return &s->factor[i];
    return NULL;
}

/* How many values a factor has for the runs of a method. */
static size_t size_of(const maker *m, const fth_factor *f, const char *method) {
    if (f == m->methods || f->together) return 1;
    return !f->method || strcmp(f->method, method) == 0 ? f->n : 1;
}

static const char *method_at(const maker *m, size_t i) {
    return m->methods ? m->methods->value[i] : m->default_method;
}

double fth_sweep_size(const fth_sweep_spec *s, const char *default_method) {
    maker m = {.spec = s, .methods = find_methods(s), .default_method = default_method};
    double total = 0;
    for (size_t i = 0; i < (m.methods ? m.methods->n : 1); i++) {
        double n = (double)s->n_seeds;
        for (size_t f = 0; f < s->n_factors; f++)
            n *= (double)size_of(&m, &s->factor[f], method_at(&m, i));
        total += n;
    }
    return total;
}

/* ---- what a run is told ---- */

static fth_err add_word(fth_arena *a, fth_sweep_run *r, const char *text) {
    r->words[r->n_words] = fth_arena_strdup(a, text);
    return r->words[r->n_words++] ? FTH_OK : fth_no_memory("the runs of a sweep");
}

/* In one word, for a switch takes none behind it. */
static fth_err add_option(fth_arena *a, fth_sweep_run *r, const char *option, const char *value,
                          size_t length) {
    char *word = fth_strdup_printf("--%s=%.*s", option, (int)length, value);
    fth_err err = word ? add_word(a, r, word) : fth_no_memory("the runs of a sweep");
    free(word);
    return err;
}

/* "10/20" for two options gives each its own, anything else goes to all. */
static fth_err add_options(fth_arena *a, fth_sweep_run *r, const fth_factor *f, const char *value) {
    size_t parts = 1;
    for (const char *p = value; *p; p++) parts += *p == '/';
    bool each = f->n_options > 1 && parts == f->n_options;
    for (size_t i = 0; i < f->n_options; i++) {
        size_t n = each ? strcspn(value, "/") : strlen(value);
        FTH_TRY(add_option(a, r, f->option[i], value, n));
        if (each) value += n + (value[n] == '/');
    }
    return FTH_OK;
}

static fth_err add_factor(maker *m, fth_sweep_run *r, size_t at) {
    const fth_factor *f = &m->spec->factor[at];
    fth_arena *a = &m->grid->arena;
    if (r->choice[at] < 0) return FTH_OK;
    for (size_t i = 0; f->together && i < f->n; i++)
        FTH_TRY(add_option(a, r, f->option[0], f->value[i], strlen(f->value[i])));
    if (f->together) return FTH_OK;
    const char *value = f->value[r->choice[at]];
    if (!f->method) return add_options(a, r, f, value);
    char *pair = fth_strdup_printf("%s=%s", f->option[0], value);
    fth_err err = pair ? add_option(a, r, "method-option", pair, strlen(pair))
                       : fth_no_memory("the runs of a sweep");
    free(pair);
    return err;
}

static bool is_option(const char *word, size_t length, const char *name) {
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

/* Options that say how a run is made and not what it is: another machine may go on with it. As an
 * axis of the grid they count all the same. */
static bool is_how(const fth_sweep_spec *s, const char *word) {
    static const char *const how[] = {"threads",      "device",    "memory-budget",        "quiet",
                                      "log-interval", "keep-last", "save-interval-updates"};
    word += 2; /* the dashes */
    const size_t length = strcspn(word, "=");
    for (size_t i = 0; i < s->n_factors; i++)
        for (size_t k = 0; k < s->factor[i].n_options; k++)
            if (fth_factor_varies(&s->factor[i]) && is_option(word, length, s->factor[i].option[k]))
                return false;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        if (is_option(word, length, how[i])) return true;
    return false;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A hash of all that makes the run, whatever the order of the lines in the file. */
static fth_err hash_run(const fth_sweep_spec *s, const fth_sweep_run *r, uint32_t *out) {
    size_t n = 0;
    char **lines = calloc(r->n_words + 1, sizeof *lines);
    fth_str all = {0};
    fth_err err = lines ? FTH_OK : fth_no_memory("the runs of a sweep");
    for (size_t i = 0; i < r->n_words && err == FTH_OK; i++) {
        const char *word = r->words[i];
        const size_t flag = strcspn(word, "=");
        if (is_how(s, word)) continue;
        lines[n] = fth_strdup_printf("%.*s %s\n", (int)flag, word, word + flag + 1);
        if (!lines[n++]) err = fth_no_memory("the runs of a sweep");
    }
    if (err == FTH_OK) qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n && err == FTH_OK; i++) err = fth_str_addf(&all, "%s", lines[i]);
    if (err == FTH_OK) err = fth_str_addf(&all, "data %s\n", s->data ? s->data : "");
    for (size_t i = 0; i < s->n_corpus && err == FTH_OK; i++)
        err = fth_str_addf(&all, "corpus %s\n", s->corpus[i]);
    for (size_t i = 0; i < s->n_prepare && err == FTH_OK; i++)
        err = fth_str_addf(&all, "prepare %s\n", s->prepare[i]);
    if (err == FTH_OK) *out = (uint32_t)fth_hash64(all.text, all.length);
    for (size_t i = 0; lines && i < n; i++) free(lines[i]);
    free(lines);
    fth_str_fini(&all);
    return err;
}

/* What varies as a name for a folder: letters that no shell or file system minds. */
static fth_err name_run(maker *m, fth_sweep_run *r) {
    fth_str name = {0};
    uint32_t hash = 0;
    fth_err err = hash_run(m->spec, r, &hash);
    for (size_t i = 0; i < m->spec->n_factors && err == FTH_OK; i++) {
        const fth_factor *f = &m->spec->factor[i];
        if (!fth_factor_varies(f) || r->choice[i] < 0) continue;
        err = fth_str_addf(&name, "%s=%s_", f->option[0], f->value[r->choice[i]]);
    }
    if (err == FTH_OK) err = fth_str_addf(&name, "seed=%s", r->seed);
    if (err == FTH_OK) {
        for (char *p = name.text; *p; p++)
            if (!((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
                  (*p >= 'A' && *p <= 'Z') || strchr("=.+-_", *p)))
                *p = '-';
        char *whole = fth_strdup_printf("%.*s-%08x", 120, name.text, hash);
        r->name = whole ? fth_arena_strdup(&m->grid->arena, whole) : NULL;
        if (!r->name) err = fth_no_memory("the runs of a sweep");
        free(whole);
    }
    fth_str_fini(&name);
    return err;
}

/* ---- all runs ---- */

static fth_err add_run(maker *m, const int32_t *choice, const char *seed, size_t row) {
    const fth_sweep_spec *s = m->spec;
    fth_arena *a = &m->grid->arena;
    size_t most = 1; /* the seed */
    for (size_t i = 0; i < s->n_factors; i++)
        most += s->factor[i].together ? s->factor[i].n : s->factor[i].n_options;
    fth_sweep_run *r = &m->grid->run[m->grid->n++];
    *r = (fth_sweep_run){.seed = seed, .row = row};
    r->words = fth_arena_alloc(a, most * sizeof *r->words);
    r->choice = fth_arena_alloc(a, (s->n_factors + 1) * sizeof *r->choice);
    if (!r->words || !r->choice) return fth_no_memory("the runs of a sweep");
    memcpy(r->choice, choice, s->n_factors * sizeof *choice);
    for (size_t i = 0; i < s->n_factors; i++) FTH_TRY(add_factor(m, r, i));
    FTH_TRY(add_option(a, r, "seed", seed, strlen(seed)));
    return name_run(m, r);
}

/* Moves choice to the next place of the grid of a method; false after the last. */
static bool next_choice(const maker *m, const char *method, int32_t *choice) {
    for (size_t i = m->spec->n_factors; i-- > 0;) {
        size_t n = size_of(m, &m->spec->factor[i], method);
        if (choice[i] < 0 || n < 2) continue;
        if ((size_t)++choice[i] < n) return true;
        choice[i] = 0;
    }
    return false;
}

static fth_err add_method(maker *m, size_t which, int32_t *choice) {
    const fth_sweep_spec *s = m->spec;
    const char *method = method_at(m, which);
    for (size_t i = 0; i < s->n_factors; i++) {
        const fth_factor *f = &s->factor[i];
        choice[i] = f->method && strcmp(f->method, method) != 0 ? -1 : 0;
        if (f == m->methods) choice[i] = (int32_t)which;
    }
    do {
        for (size_t k = 0; k < s->n_seeds; k++)
            FTH_TRY(add_run(m, choice, s->seeds[k], m->grid->rows));
        m->grid->rows++;
    } while (next_choice(m, method, choice));
    return FTH_OK;
}

/* An option of a method that no run has would be left out in silence. */
static fth_err check_methods(const maker *m) {
    for (size_t i = 0; i < m->spec->n_factors; i++) {
        const fth_factor *f = &m->spec->factor[i];
        bool used = !f->method;
        for (size_t k = 0; k < (m->methods ? m->methods->n : 1) && !used; k++)
            used = strcmp(f->method, method_at(m, k)) == 0;
        if (!used)
            return fth_fail(FTH_BAD_INPUT, "%s: %s: no run has the method %s", f->where, f->label,
                            f->method);
    }
    return FTH_OK;
}

fth_err fth_sweep_grid_make(const fth_sweep_spec *s, const char *default_method, int64_t most,
                            fth_sweep_grid *out) {
    *out = (fth_sweep_grid){0};
    fth_arena_init(&out->arena);
    double size = fth_sweep_size(s, default_method);
    if (size > (double)most)
        return fth_fail(FTH_USAGE,
                        "%s: its grid has %.0f runs, must be at most %lld (--limit); take values "
                        "out, or make several sweeps",
                        s->file, size, (long long)most);
    maker m = {s, out, find_methods(s), default_method};
    FTH_TRY(check_methods(&m));
    out->run = fth_arena_alloc(&out->arena, (size_t)size * sizeof *out->run);
    int32_t *choice = calloc(s->n_factors + 1, sizeof *choice);
    fth_err err = out->run && choice ? FTH_OK : fth_no_memory("the runs of a sweep");
    for (size_t i = 0; i < (m.methods ? m.methods->n : 1) && err == FTH_OK; i++)
        err = add_method(&m, i, choice);
    free(choice);
    return err;
}

void fth_sweep_grid_fini(fth_sweep_grid *g) {
    fth_arena_fini(&g->arena);
    *g = (fth_sweep_grid){0};
}
