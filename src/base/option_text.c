/* The texts that a table of options gives: --help and the dump. */
#include <string.h>

#include "base/number.h"
#include "base/option_value.h"
#include "base/yaml.h"

enum { WIDTH = 100, LARGEST_COLUMN = 34 };

static const void *field_of(const fth_option_group *g, size_t i) {
    return (const char *)g->values + g->table[i].offset;
}

/* A number or choice without a default has no value until it is set. */
static bool has_value(const fth_option_group *g, size_t i) {
    switch (g->table[i].kind) {
    case FTH_OPTION_BOOL:
    case FTH_OPTION_STR:
    case FTH_OPTION_LIST: return true;
    default: return *g->table[i].standard || (g->set && g->set[i]);
    }
}

static fth_err dump_list(const fth_list *list, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "["));
    for (size_t i = 0; i < list->count; i++) {
        if (i) FTH_TRY(fth_str_addf(out, ", "));
        FTH_TRY(fth_yaml_add_scalar(out, list->items[i]));
    }
    return fth_str_addf(out, "]");
}

static fth_err dump_value(fth_option_kind kind, const void *field, fth_str *out) {
    switch (kind) {
    case FTH_OPTION_I64: return fth_str_addf(out, "%lld", (long long)*(const int64_t *)field);
    case FTH_OPTION_F64:
        return fth_str_addf(out, "%s", fth_double_text(*(const double *)field).text);
    case FTH_OPTION_SIZE:
        return fth_str_addf(out, "%s", fth_size_text(*(const uint64_t *)field).text);
    case FTH_OPTION_BOOL: return fth_str_addf(out, *(const bool *)field ? "true" : "false");
    case FTH_OPTION_LIST: return dump_list(field, out);
    case FTH_OPTION_STR:
    case FTH_OPTION_CHOICE: break;
    }
    return fth_yaml_add_scalar(out, *(const char *const *)field);
}

fth_err fth_options_dump(const fth_option_group *groups, size_t n, fth_str *out) {
    for (size_t g = 0; g < n; g++) {
        FTH_TRY(fth_str_addf(out, "%s# %s\n", g ? "\n" : "", groups[g].title));
        for (size_t i = 0; i < groups[g].count; i++) {
            char name[FTH_OPTION_NAME_SIZE];
            fth_option_name(&groups[g].table[i], name);
            if (!has_value(&groups[g], i)) {
                FTH_TRY(fth_str_addf(out, "# %s: not set\n", name));
                continue;
            }
            FTH_TRY(fth_str_addf(out, "%s: ", name));
            FTH_TRY(dump_value(groups[g].table[i].kind, field_of(&groups[g], i), out));
            FTH_TRY(fth_str_addf(out, "\n"));
        }
    }
    return FTH_OK;
}

/* The word that stands for the value: "--lr NUMBER". A long list of choices goes to the text. */
const char *fth_option_word(const fth_option *o) {
    static const char *const words[] = {
        [FTH_OPTION_I64] = "N",    [FTH_OPTION_F64] = "X",       [FTH_OPTION_BOOL] = NULL,
        [FTH_OPTION_STR] = "TEXT", [FTH_OPTION_CHOICE] = "WORD", [FTH_OPTION_LIST] = "TEXT",
        [FTH_OPTION_SIZE] = "SIZE"};
    if (o->rule.shown_as) return o->rule.shown_as;
    if (o->kind == FTH_OPTION_CHOICE && strlen(o->rule.choices) <= 20) return o->rule.choices;
    return words[o->kind];
}

static fth_err add_flag(const fth_option *o, fth_str *out) {
    char name[FTH_OPTION_NAME_SIZE];
    const char *word = fth_option_word(o);
    fth_option_name(o, name);
    return fth_str_addf(out, "  --%s%s%s%s", o->kind == FTH_OPTION_BOOL ? "[no-]" : "", name,
                        word ? " " : "", word ? word : "");
}

/* What the option does, its bounds or choices where the flag does not show them, its default: that
 * of the table, or what the help has to say about it. */
fth_err fth_option_about(const fth_option *o, fth_str *out) {
    static const char mark[] = "; default: ";
    const fth_option_rule *r = &o->rule;
    const char *words = strstr(o->help, mark);
    FTH_TRY(fth_str_add(out, o->help, words ? (size_t)(words - o->help) : strlen(o->help)));
    if (r->has_low || r->has_high || (r->choices && fth_option_word(o) != r->choices)) {
        FTH_TRY(fth_str_addf(out, "; "));
        FTH_TRY(fth_option_add_bounds(o, out));
    }
    if (o->kind == FTH_OPTION_LIST) FTH_TRY(fth_str_addf(out, "; may be repeated"));
    if (o->kind == FTH_OPTION_BOOL)
        return fth_str_addf(out, " (default %s)", strcmp(o->standard, "true") == 0 ? "on" : "off");
    if (words) return fth_str_addf(out, " (default: %s)", words + sizeof mark - 1);
    return fth_str_addf(out, " (%s%s)", *o->standard ? "default " : "no default", o->standard);
}

/* The length of what stays on one line: a word, or a short remark in parentheses with the sign
 * behind it. */
static size_t piece_length(const char *text) {
    size_t remark = *text == '(' ? strcspn(text, ")") + 1 : 0;
    if (!remark || remark > 30 || !text[remark - 1]) return strcspn(text, " ");
    return remark + strcspn(text + remark, " ");
}

/* Appends text from column on, broken at blanks. at is the column reached so far. */
static fth_err add_wrapped(const char *text, size_t column, size_t at, fth_str *out) {
    bool first = true; /* the first word of a line stands wherever it must */
    if (at && at + 2 > column) {
        FTH_TRY(fth_str_addf(out, "\n"));
        at = 0;
    }
    FTH_TRY(fth_str_addf(out, "%*s", (int)(column - at), ""));
    at = column;
    while (*text) {
        size_t length = piece_length(text);
        if (!first && at + 1 + length > WIDTH) {
            FTH_TRY(fth_str_addf(out, "\n%*s", (int)column, ""));
            at = column;
            first = true;
        }
        FTH_TRY(fth_str_addf(out, "%s%.*s", first ? "" : " ", (int)length, text));
        at += length + !first;
        first = false;
        text += length;
        text += strspn(text, " ");
    }
    return fth_str_addf(out, "\n");
}

static fth_err add_line(const char *flag, const char *about, size_t column, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "%s", flag));
    return add_wrapped(about, column, strlen(flag), out);
}

static fth_err add_option(const fth_option *o, size_t column, fth_str *out) {
    fth_str flag = {0}, about = {0};
    fth_err err;
    FTH_TRY_OR(err, add_flag(o, &flag), done);
    FTH_TRY_OR(err, fth_option_about(o, &about), done);
    err = add_line(flag.text, about.text, column, out);
done:
    fth_str_fini(&flag);
    fth_str_fini(&about);
    return err;
}

/* Where the explanations begin: after the longest flag that is not too long. */
static fth_err choose_column(const fth_option_group *groups, size_t n, size_t *column) {
    fth_str flag = {0};
    fth_err err = FTH_OK;
    *column = strlen("  --dump-config") + 2;
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            fth_str_clear(&flag);
            FTH_TRY_OR(err, add_flag(&groups[g].table[i], &flag), done);
            if (flag.length + 2 > *column && flag.length + 2 <= LARGEST_COLUMN)
                *column = flag.length + 2;
        }
done:
    fth_str_fini(&flag);
    return err;
}

fth_err fth_options_help(const fth_usage *usage, const fth_option_group *groups, size_t n,
                         fth_str *out) {
    size_t column;
    FTH_TRY(choose_column(groups, n, &column));
    FTH_TRY(fth_str_addf(out, "usage: %s %s%s[options]\n\n", usage->command, usage->arguments,
                         *usage->arguments ? " " : ""));
    FTH_TRY(add_wrapped(usage->summary, 0, 0, out));
    for (size_t g = 0; g < n; g++) {
        FTH_TRY(fth_str_addf(out, "\n%s:\n", groups[g].title));
        for (size_t i = 0; i < groups[g].count; i++)
            FTH_TRY(add_option(&groups[g].table[i], column, out));
    }
    bool own_config = false;
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            own_config |= strcmp(groups[g].table[i].field, "config") == 0;
    FTH_TRY(fth_str_addf(out, "\ngeneral:\n"));
    if (!own_config)
        FTH_TRY(add_line("  --config FILE",
                         "read options from a YAML file, \"max-tokens: 4096\" for --max-tokens "
                         "4096; later files win over earlier ones, the command line over all",
                         column, out));
    FTH_TRY(
        add_line("  --dump-config", "print the resulting options as YAML and exit", column, out));
    return add_line("  --help", "print this text and exit", column, out);
}
