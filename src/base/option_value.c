/* option_value.c: reads a value by its kind and checks it against its rule: bounds, choices, or a
 * list. */
#include "base/option_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

void fth_option_name(const fth_option *o, char *name /* [FTH_OPTION_NAME_SIZE] */) {
    snprintf(name, FTH_OPTION_NAME_SIZE, "%s", o->field);
    for (char *p = name; *p; p++)
        if (*p == '_') *p = '-';
}

void fth_option_clear(const fth_option *o, void *field) {
    switch (o->kind) {
    case FTH_OPTION_I64: *(int64_t *)field = 0; break;
    case FTH_OPTION_F64: *(double *)field = 0; break;
    case FTH_OPTION_BOOL: *(bool *)field = false; break;
    case FTH_OPTION_STR:
    case FTH_OPTION_CHOICE: *(const char **)field = ""; break;
    case FTH_OPTION_LIST: *(fth_list *)field = (fth_list){0}; break;
    case FTH_OPTION_SIZE: *(uint64_t *)field = 0; break;
    }
}

static fth_err add_bound(const fth_option *o, double bound, fth_str *out) {
    bool size = o->kind == FTH_OPTION_SIZE;
    return fth_str_addf(out, "%s",
                        (size ? fth_size_text((uint64_t)bound) : fth_double_text(bound)).text);
}

static fth_err add_choices(const char *choices, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "one of "));
    for (const char *p = choices; *p; p++)
        FTH_TRY(*p == '|' ? fth_str_addf(out, ", ") : fth_str_add(out, p, 1));
    return FTH_OK;
}

fth_err fth_option_add_bounds(const fth_option *o, fth_str *out) {
    const fth_option_rule *r = &o->rule;
    bool closed = r->has_low && r->has_high && !r->above_low && !r->below_high;
    if (r->choices) return add_choices(r->choices, out);
    if (r->has_low) {
        FTH_TRY(fth_str_addf(out, closed ? "from " : r->above_low ? "above " : "at least "));
        FTH_TRY(add_bound(o, r->low, out));
    }
    if (r->has_low && r->has_high) FTH_TRY(fth_str_addf(out, closed ? " to " : " and "));
    if (r->has_high) {
        if (!closed) FTH_TRY(fth_str_addf(out, r->below_high ? "below " : "at most "));
        FTH_TRY(add_bound(o, r->high, out));
    }
    return FTH_OK;
}

/* The value is not allowed: say what would be. */
static fth_err refuse(const fth_option *o) {
    static const char *const nouns[] = {
        [FTH_OPTION_I64] = "a whole number",
        [FTH_OPTION_F64] = "a number",
        [FTH_OPTION_BOOL] = "true or false",
        [FTH_OPTION_SIZE] = "a number of bytes such as 4096, 512M or 8G",
        [FTH_OPTION_CHOICE] = "",
    };
    fth_str bounds = {0};
    fth_err err = fth_option_add_bounds(o, &bounds);
    if (err) goto done;
    const char *text = bounds.length ? bounds.text : "", *link = *text ? " " : "";
    if (o->kind == FTH_OPTION_CHOICE) link = "";
    if (strncmp(text, "at ", 3) == 0) link = o->kind == FTH_OPTION_SIZE ? ", " : " of ";
    err = fth_fail(FTH_USAGE, "must be %s%s%s", nouns[o->kind], link, text);
done:
    fth_str_fini(&bounds);
    return err;
}

static bool in_bounds(const fth_option_rule *r, double x) {
    if (r->has_low && (r->above_low ? x <= r->low : x < r->low)) return false;
    if (r->has_high && (r->below_high ? x >= r->high : x > r->high)) return false;
    return true;
}

static bool read_i64(const char *text, int64_t *value) {
    if (!*text || text[strspn(text, "+-0123456789")]) return false; /* no blanks, no hexadecimal */
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    *value = x;
    return errno == 0 && !*end;
}

/* A finite decimal number that ends at *end. */
static bool read_f64(const char *text, double *value, char **end) {
    size_t length = strspn(text, "+-.0123456789eE");
    *value = strtod(text, end);
    return length && *end != text && *end <= text + length && isfinite(*value);
}

static bool read_bool(const char *text, bool *value) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2;
            return true;
        }
    return false;
}

static const char size_letters[] = "KMGT";

/* A number with K, M, G or T after it, or with KiB and so on. */
static bool read_size(const char *text, uint64_t *value) {
    char *end;
    double x;
    if (*text == '-' || !read_f64(text, &x, &end)) return false;
    const char *letter = *end ? strchr(size_letters, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    if (letter) {
        x = ldexp(x, 10 * (int)(letter - size_letters + 1));
        end++;
        if (strcmp(end, "iB") == 0) end += 2;
    }
    if (*end || !(x < 0x1p63)) return false;
    *value = (uint64_t)x;
    return (double)*value == x || letter; /* half a byte is a mistake, 1.3G is not */
}

static bool is_choice(const char *choices, const char *text) {
    size_t length = strlen(text);
    while (*choices) {
        size_t n = strcspn(choices, "|");
        if (n == length && memcmp(choices, text, n) == 0) return true;
        choices += n + (choices[n] == '|');
    }
    return false;
}

static fth_err set_text(const char **field, const char *text, fth_arena *arena) {
    if (fth_utf8_valid_prefix(text, strlen(text)) != strlen(text))
        return fth_fail(FTH_USAGE, "must be text in UTF-8");
    *field = fth_arena_strdup(arena, text);
    return *field ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for its value");
}

/* The items lie in the arena and move to a larger place when their number reaches a power of
 * two. */
static fth_err add_to_list(fth_list *list, const char *text, fth_arena *arena) {
    if ((list->count & (list->count - 1)) == 0) {
        size_t capacity = list->count ? 2 * list->count : 1;
        const char **items = fth_arena_alloc(arena, capacity * sizeof *items);
        if (!items) return fth_fail(FTH_NO_MEMORY, "no memory for its value");
        if (list->count) memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
    }
    FTH_TRY(set_text(&list->items[list->count], text, arena));
    list->count++;
    return FTH_OK;
}

fth_err fth_option_set(const fth_option *o, void *field, const char *text, fth_arena *arena) {
    int64_t i;
    uint64_t u;
    double x;
    bool b;
    char *end;
    switch (o->kind) {
    case FTH_OPTION_I64:
        if (!read_i64(text, &i) || !in_bounds(&o->rule, (double)i)) return refuse(o);
        *(int64_t *)field = i;
        return FTH_OK;
    case FTH_OPTION_F64:
        if (!read_f64(text, &x, &end) || *end || !in_bounds(&o->rule, x)) return refuse(o);
        *(double *)field = x;
        return FTH_OK;
    case FTH_OPTION_BOOL:
        if (!read_bool(text, &b)) return refuse(o);
        *(bool *)field = b;
        return FTH_OK;
    case FTH_OPTION_SIZE:
        if (!read_size(text, &u) || !in_bounds(&o->rule, (double)u)) return refuse(o);
        *(uint64_t *)field = u;
        return FTH_OK;
    case FTH_OPTION_CHOICE:
        if (!is_choice(o->rule.choices, text)) return refuse(o);
        return set_text(field, text, arena);
    case FTH_OPTION_STR: return set_text(field, text, arena);
    case FTH_OPTION_LIST: return add_to_list(field, text, arena);
    }
    return fth_fail(FTH_FAILED, "is of no known kind");
}
