/* option_uses.c: compares what the command line set with what a verb's parts use, and names the
 * parts that would use it. */
#include "base/option_uses.h"

#include <stdio.h>
#include <string.h>

#include "base/option_value.h"

/* "--seed 7"; a switch has no value to show. */
static fth_err refuse(const fth_option *o, const char *typed, const char *rule) {
    char name[FTH_OPTION_NAME_SIZE];
    fth_option_name(o, name);
    if (o->kind == FTH_OPTION_BOOL) return fth_fail(FTH_USAGE, "--%s: %s", name, rule);
    return fth_fail(FTH_USAGE, "--%s %.100s: %s", name, typed, rule);
}

fth_err fth_refuse_option(const fth_option_group *groups, size_t n, const char *field,
                          const char *rule) {
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            if (groups[g].typed[i] && strcmp(groups[g].table[i].field, field) == 0)
                return refuse(&groups[g].table[i], groups[g].typed[i], rule);
    return FTH_OK;
}

fth_err fth_refuse_options(const fth_option_group *groups, size_t n, const char *const *fields,
                           const char *rule) {
    for (; *fields; fields++) FTH_TRY(fth_refuse_option(groups, n, *fields, rule));
    return FTH_OK;
}

fth_err fth_refuse_group(const fth_option_group *group, const char *rule) {
    for (size_t i = 0; i < group->count; i++)
        if (group->typed[i]) return refuse(&group->table[i], group->typed[i], rule);
    return FTH_OK;
}

/* " a b c " as "a, b and c". */
static void list_parts(const char *parts, char *out, size_t size) {
    size_t used = 0;
    for (const char *at = parts + 1, *end; (end = strchr(at, ' ')); at = end + 1) {
        const char *between = at == parts + 1 ? "" : end[1] ? ", " : " and ";
        const int n = snprintf(out + used, size - used, "%s%.*s", between, (int)(end - at), at);
        if (n < 0 || (size_t)n >= size - used) return;
        used += (size_t)n;
    }
}

fth_err fth_check_uses(const fth_option_group *groups, size_t n, const fth_option_use *uses,
                       size_t n_uses, const char *part) {
    char word[32], list[120] = "", rule[200];
    snprintf(word, sizeof word, " %s ", part);
    for (size_t i = 0; i < n_uses; i++) {
        const char *parts = uses[i].parts;
        if (strstr(parts, word)) continue;
        list_parts(parts, list, sizeof list);
        snprintf(rule, sizeof rule, "%s does not use it, only %s", part, list);
        FTH_TRY(fth_refuse_option(groups, n, uses[i].field, rule));
    }
    return FTH_OK;
}
