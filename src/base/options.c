/* options.c: defaults, then the --config file, then the command line in its order; what is left
 * over are the arguments. */
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/foreign_options.h"
#include "base/option_pages.h"
#include "base/option_value.h"
#include "base/yaml.h"

/* One option and where its value lies. */
typedef struct place {
    const fth_option *option; /* NULL: no such option */
    void *field;
    bool *set;
    const char **typed;
} place;

/* One option of the command line, to be applied after the files. */
typedef struct assignment {
    place at;
    const char *flag; /* as it was written, without a value: --heads */
    size_t flag_length;
    const char *text;
} assignment;

typedef struct command_line {
    fth_option_group *groups;
    size_t n_groups;
    fth_parsed *parsed;
    assignment *assignments; /* [n_assignments] */
    size_t n_assignments;
    const char **files; /* [n_files] of --config */
    size_t n_files;
    bool help, dump;
    const char *page; /* --help=FORMAT */
} command_line;

static place place_of(const fth_option_group *g, size_t i) {
    return (place){&g->table[i], (char *)g->values + g->table[i].offset, &g->set[i], &g->typed[i]};
}

static place find(const fth_option_group *groups, size_t n, const char *name, size_t length) {
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            char own[FTH_OPTION_NAME_SIZE];
            fth_option_name(&groups[g].table[i], own);
            if (strlen(own) == length && memcmp(own, name, length) == 0)
                return place_of(&groups[g], i);
        }
    return (place){0};
}

fth_option_resume fth_option_on_resume(const fth_option_group *groups, size_t n, const char *name,
                                       size_t length) {
    for (size_t g = 0; g < n; g++) {
        const fth_option *o = find(&groups[g], 1, name, length).option;
        if (o) return o->rule.resume ? o->rule.resume : groups[g].resume;
    }
    return FTH_RESUME_UNSTATED;
}

/* Fails with "WHERE: unknown WHAT" and the name that may have been meant, with dashes before it; on
 * the command line a few more names are known. */
static fth_err fail_unknown(const command_line *c, fth_err code, const char *where,
                            const char *what, const char *name, const char *dashes) {
    static const char *const extra[] = {"config", "dump-config", "help"};
    size_t n_extra = *dashes ? sizeof extra / sizeof *extra : 0, n = 0, count = n_extra;
    for (size_t g = 0; g < c->n_groups; g++) count += c->groups[g].count;
    const char **names = fth_arena_alloc(&c->parsed->arena, count * sizeof *names);
    if (!names) return fth_no_memory("the options");
    for (size_t g = 0; g < c->n_groups; g++)
        for (size_t i = 0; i < c->groups[g].count; i++) {
            char *own = fth_arena_alloc(&c->parsed->arena, FTH_OPTION_NAME_SIZE);
            if (!own) return fth_no_memory("the options");
            fth_option_name(&c->groups[g].table[i], own);
            names[n++] = own;
        }
    for (size_t i = 0; i < n_extra; i++) names[n++] = extra[i];
    const fth_option_hint *hint = fth_option_hint_for(name, names, n);
    if (hint)
        return fth_fail(code, "%s: unknown %s; did you mean %s%s%s?", where, what, dashes,
                        hint->option, hint->rest);
    const char *meant = fth_nearest(name, names, n);
    if (!meant) return fth_fail(code, "%s: unknown %s", where, what);
    return fth_fail(code, "%s: unknown %s; did you mean %s%s?", where, what, dashes, meant);
}

/* Sets every option to its default. */
static fth_err set_defaults(const command_line *c) {
    for (size_t g = 0; g < c->n_groups; g++)
        for (size_t i = 0; i < c->groups[g].count; i++) {
            place p = place_of(&c->groups[g], i);
            const char *text = p.option->standard;
            char name[FTH_OPTION_NAME_SIZE];
            fth_option_name(p.option, name);
            if (find(c->groups, c->n_groups, name, strlen(name)).field != p.field)
                return fth_fail(FTH_FAILED, "--%s is in the tables of options twice", name);
            fth_option_clear(p.option, p.field);
            if (!*text && p.option->kind != FTH_OPTION_STR) continue;
            if (fth_option_set(p.option, p.field, text, &c->parsed->arena) != FTH_OK)
                return fth_fail_in(FTH_FAILED, "default \"%s\" of %s", text, p.option->field);
        }
    return FTH_OK;
}

/* Stores the value of an option that takes one; a switch has its value in itself. */
static fth_err take_option(command_line *c, const char *word, const char *next, bool *took_next) {
    size_t length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    place p = find(c->groups, c->n_groups, word + 2, length - 2);
    /* a verb may have a --config of its own, which is then no file of options */
    bool is_config = !p.option && length == 8 && memcmp(word, "--config", 8) == 0;
    if (!p.option && !is_config && strncmp(word, "--no-", 5) == 0) {
        p = find(c->groups, c->n_groups, word + 5, length - 5);
        if (p.option && p.option->kind != FTH_OPTION_BOOL) p.option = NULL;
        if (p.option && value)
            return fth_fail(FTH_USAGE, "%.*s: takes no value", (int)length, word);
        value = "false";
    }
    if (!p.option && !is_config) {
        char *flag = fth_arena_strndup(&c->parsed->arena, word, length);
        return flag ? fail_unknown(c, FTH_USAGE, flag, "option", flag + 2, "--")
                    : fth_no_memory("the options");
    }
    if (p.option && p.option->kind == FTH_OPTION_BOOL && !value) value = "true";
    if (!value && (!next || strncmp(next, "--", 2) == 0))
        return fth_fail(FTH_USAGE, "%s: needs a value", word);
    *took_next = !value;
    if (!value) value = next;
    if (is_config)
        c->files[c->n_files++] = value;
    else
        c->assignments[c->n_assignments++] = (assignment){p, word, length, value};
    return FTH_OK;
}

/* Sorts the words of the command line into options, files and the rest. */
static fth_err take_words(command_line *c, int argc, char *const *argv) {
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        bool took_next = false;
        if (only_arguments || word[0] != '-' || !word[1])
            c->parsed->positionals[c->parsed->n_positionals++] = word;
        else if (strcmp(word, "--") == 0)
            only_arguments = true;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            c->help = true;
        else if (strncmp(word, "--help=", 7) == 0)
            c->page = word + 7;
        else if (strcmp(word, "--dump-config") == 0)
            c->dump = true;
        else if (word[1] != '-')
            return fth_fail(FTH_USAGE, "%s: unknown option; options begin with --", word);
        else
            FTH_TRY(take_option(c, word, i + 1 < argc ? argv[i + 1] : NULL, &took_next));
        i += took_next;
    }
    return FTH_OK;
}

static fth_err apply_entry(const command_line *c, const char *path, const fth_yaml_entry *e) {
    place p = find(c->groups, c->n_groups, e->key, strlen(e->key));
    if (!p.option) {
        char *where = fth_strdup_printf("%s:%zu: %s", path, e->line, e->key);
        if (!where) return fth_no_memory("the options");
        fth_err err = fail_unknown(c, FTH_BAD_INPUT, where, "key", e->key, "");
        free(where);
        return err;
    }
    if (e->is_null)
        return fth_fail(FTH_BAD_INPUT, "%s:%zu: %s: has no value", path, e->line, e->key);
    if (e->is_list && p.option->kind != FTH_OPTION_LIST)
        return fth_fail(FTH_BAD_INPUT, "%s:%zu: %s: must be a single value, not a list", path,
                        e->line, e->key);
    fth_option_clear(p.option, p.field);
    for (size_t i = 0; i < e->count; i++) {
        fth_err err = fth_option_set(p.option, p.field, e->items[i], &c->parsed->arena);
        if (err)
            return fth_fail_in(err == FTH_USAGE ? FTH_BAD_INPUT : err, "%s:%zu: %s %.100s", path,
                               e->line, e->key, e->items[i]);
    }
    *p.set = true;
    return FTH_OK;
}

static fth_err apply_file(const command_line *c, const char *path) {
    char *text = NULL;
    size_t size;
    fth_yaml_entry *entry;
    FTH_TRY(fth_file_read(path, &text, &size));
    fth_err err = fth_yaml_read(path, text, size, &c->parsed->arena, &entry);
    for (; !err && entry; entry = entry->next) err = apply_entry(c, path, entry);
    free(text);
    return err;
}

static fth_err apply_assignments(const command_line *c) {
    for (size_t i = 0; i < c->n_assignments; i++) { /* lists of the files are replaced */
        const place *p = &c->assignments[i].at;
        if (p->option->kind == FTH_OPTION_LIST) fth_option_clear(p->option, p->field);
    }
    for (size_t i = 0; i < c->n_assignments; i++) {
        const assignment *a = &c->assignments[i];
        fth_err err = fth_option_set(a->at.option, a->at.field, a->text, &c->parsed->arena);
        if (err) return fth_fail_in(err, "%.*s %.100s", (int)a->flag_length, a->flag, a->text);
        *a->at.set = true;
        *a->at.typed = a->text;
    }
    return FTH_OK;
}

static fth_err check_arguments(const fth_usage *u, const fth_parsed *parsed) {
    size_t n = parsed->n_positionals;
    if (u->most >= 0 && n > (size_t)u->most)
        return fth_fail(FTH_USAGE, "%.200s: unexpected argument; usage: %s %s%s[options]",
                        parsed->positionals[u->most], u->command, u->arguments,
                        *u->arguments ? " " : "");
    if (n < (size_t)u->least)
        return fth_fail(FTH_USAGE, "an argument is missing; usage: %s %s [options]", u->command,
                        u->arguments);
    return FTH_OK;
}

static fth_err make_room(command_line *c, size_t argc) {
    fth_arena *arena = &c->parsed->arena;
    c->parsed->positionals = fth_arena_alloc(arena, argc * sizeof(char *));
    c->assignments = fth_arena_alloc(arena, argc * sizeof *c->assignments);
    c->files = fth_arena_alloc(arena, argc * sizeof *c->files);
    if (!c->parsed->positionals || !c->assignments || !c->files)
        return fth_no_memory("the options");
    for (size_t g = 0; g < c->n_groups; g++) {
        c->groups[g].set = fth_arena_alloc(arena, c->groups[g].count * sizeof(bool));
        c->groups[g].typed = fth_arena_alloc(arena, c->groups[g].count * sizeof(char *));
        if (!c->groups[g].set || !c->groups[g].typed) return fth_no_memory("the options");
    }
    return FTH_OK;
}

fth_err fth_options_parse(const fth_usage *usage, fth_option_group *groups, size_t n, int argc,
                          char *const *argv, fth_parsed *parsed) {
    command_line c = {.groups = groups, .n_groups = n, .parsed = parsed};
    *parsed = (fth_parsed){0};
    FTH_TRY(make_room(&c, (size_t)argc));
    FTH_TRY(set_defaults(&c));
    FTH_TRY(take_words(&c, argc, argv));
    if (c.help) return fth_options_help(usage, groups, n, &parsed->output);
    if (c.page) return fth_options_page(c.page, usage, groups, n, &parsed->output);
    for (size_t i = 0; i < c.n_files; i++) FTH_TRY(apply_file(&c, c.files[i]));
    FTH_TRY(apply_assignments(&c));
    if (c.dump) return fth_options_dump(groups, n, &parsed->output);
    return check_arguments(usage, parsed);
}

void fth_parsed_fini(fth_parsed *parsed) {
    fth_str_fini(&parsed->output);
    fth_arena_fini(&parsed->arena);
    *parsed = (fth_parsed){0};
}

/* The group of the field, NULL: none has it; *at: its place there. */
static const fth_option_group *group_of(const fth_option_group *groups, size_t n, const char *field,
                                        size_t *at) {
    for (size_t g = 0; g < n; g++)
        for (*at = 0; *at < groups[g].count; ++*at)
            if (strcmp(groups[g].table[*at].field, field) == 0) return &groups[g];
    return NULL;
}

bool fth_option_was_set(const fth_option_group *groups, size_t n, const char *field) {
    size_t i;
    const fth_option_group *g = group_of(groups, n, field, &i);
    return g && g->set && g->set[i];
}

static void mark(const fth_option_group *groups, size_t n, const char *field, bool given) {
    size_t i;
    const fth_option_group *g = group_of(groups, n, field, &i);
    if (g && g->set) g->set[i] = given;
}

void fth_option_give(const fth_option_group *groups, size_t n, const char *field) {
    mark(groups, n, field, true);
}

void fth_option_forget(const fth_option_group *groups, size_t n, const char *field) {
    mark(groups, n, field, false);
}

const char *fth_option_typed(const fth_option_group *groups, size_t n, const char *field) {
    size_t i;
    const fth_option_group *g = group_of(groups, n, field, &i);
    return g && g->typed ? g->typed[i] : NULL;
}
