/* method.c: the list of methods.def, the search in it, and the options of a method with their
 * defaults filled in. */
#include "method/method.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

const fth_method *const *fth_methods(void) {
    static const fth_method *const all[] = {
#define METHOD(name) &fth_method_##name,
#include "method/methods.def"
#undef METHOD
        NULL};
    return all;
}

const fth_method *fth_method_find(const char *id) {
    for (const fth_method *const *m = fth_methods(); *m; m++)
        if (strcmp((*m)->id, id) == 0) return *m;
    return NULL;
}

const fth_method *fth_method_plain(fth_norm_place norm) {
    const fth_method *const *m = fth_methods();
    while (!(*m)->plain || (*m)->norm != norm) m++;
    return *m;
}

static fth_err unknown_method(const char *id) {
    const char *ids[64];
    int n = 0;
    for (const fth_method *const *m = fth_methods(); *m && n < 64; m++) ids[n++] = (*m)->id;
    const char *nearest = fth_nearest(id, ids, n);
    return fth_fail(FTH_BAD_CONFIG, "method \"%s\" does not exist%s%s%s (fathom methods lists all)",
                    id, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                    nearest ? "\"?" : "");
}

static const fth_option_spec *find_spec(const fth_method *m, const char *key) {
    for (const fth_option_spec *o = m->options; o && o->key; o++)
        if (strcmp(o->key, key) == 0) return o;
    return NULL;
}

static fth_err unknown_option(const fth_method *m, const char *key) {
    const char *keys[16];
    size_t n = 0;
    for (const fth_option_spec *o = m->options; o && o->key && n < 16; o++) keys[n++] = o->key;
    if (n == 0)
        return fth_fail(FTH_BAD_CONFIG, "method_options: \"%s\": method %s takes no options", key,
                        m->id);
    const char *nearest = fth_nearest(key, keys, n);
    return fth_fail(
        FTH_BAD_CONFIG,
        "method_options: \"%s\" is not an option of method %s%s%s%s (fathom methods %s lists all)",
        key, m->id, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
        nearest ? "\"?" : "", m->id);
}

static bool is_word_of(const char *words, const char *word) {
    size_t length = strchr(word, '|') ? 0 : strlen(word); /* the list itself is none of its words */
    for (const char *at = words; length && (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == '|') && (at[length] == '|' || !at[length])) return true;
    return false;
}

/* "linear|exp" as "one of linear, exp". */
static void list_kinds(const char *kind, char *out, size_t size) {
    int n = snprintf(out, size, "%s", strchr(kind, '|') ? "one of " : "");
    for (; *kind && (size_t)n + 3 < size; kind++) {
        if (*kind == '|')
            n += snprintf(out + n, size - (size_t)n, ", ");
        else
            n += snprintf(out + n, size - (size_t)n, "%c", *kind);
    }
}

static fth_err check_option(const fth_method *m, const fth_method_option *o) {
    const fth_option_spec *spec = find_spec(m, o->key);
    if (!spec) return unknown_option(m, o->key);
    bool number = strcmp(spec->kind, "number") == 0 || strncmp(spec->kind, "number|", 7) == 0;
    if (o->type == FTH_OPT_NUMBER && number) {
        if (o->number >= spec->min && o->number <= spec->max) return FTH_OK;
        return fth_fail(FTH_BAD_CONFIG, "method_options: %s %g must be from %g to %g", o->key,
                        o->number, spec->min, spec->max);
    }
    if (o->type == FTH_OPT_BOOL && strcmp(spec->kind, "bool") == 0) return FTH_OK;
    if (o->type == FTH_OPT_STRING && is_word_of(spec->kind, o->text) &&
        strcmp(o->text, "number") != 0 && strcmp(o->text, "bool") != 0)
        return FTH_OK;
    char given[80];
    if (o->type == FTH_OPT_STRING)
        snprintf(given, sizeof given, "\"%s\"", o->text);
    else if (o->type == FTH_OPT_BOOL)
        snprintf(given, sizeof given, o->number != 0 ? "true" : "false");
    else
        snprintf(given, sizeof given, "%g", o->number);
    char kinds[96];
    list_kinds(spec->kind, kinds, sizeof kinds);
    return fth_fail(FTH_BAD_CONFIG, "method_options: %s of method %s is %s, must be %s", o->key,
                    m->id, given, kinds);
}

fth_err fth_method_resolve(const fth_config *config, fth_method_state *out) {
    const fth_method *m = fth_method_find(config->method);
    if (!m) return unknown_method(config->method);
    *out = (fth_method_state){.method = m, .config = config};
    for (int i = 0; i < config->n_options; i++) FTH_TRY(check_option(m, &config->options[i]));
    return m->resolve ? m->resolve(out) : FTH_OK;
}

static const fth_method_option *given_option(const fth_method_state *state, const char *key) {
    for (int i = 0; i < state->config->n_options; i++)
        if (strcmp(state->config->options[i].key, key) == 0) return &state->config->options[i];
    return NULL;
}

bool fth_option_given(const fth_method_state *state, const char *key) {
    return given_option(state, key) != NULL;
}

double fth_option_number(const fth_method_state *state, const char *key) {
    const fth_method_option *o = given_option(state, key);
    if (o) return o->number;
    const char *text = find_spec(state->method, key)->fallback;
    return strcmp(text, "true") == 0 ? 1 : strtod(text, NULL);
}

const char *fth_option_text(const fth_method_state *state, const char *key) {
    const fth_method_option *o = given_option(state, key);
    if (o) return o->type == FTH_OPT_STRING ? o->text : "";
    return find_spec(state->method, key)->fallback;
}

void fth_method_step(const fth_method_state *state, int64_t t, double slots[FTH_STEP_SLOTS]) {
    for (int i = 0; i < FTH_STEP_SLOTS; i++) slots[i] = 1;
    if (state->method->step) state->method->step(state, t, slots);
}

const char *fth_method_warning(const fth_method_state *state) {
    return state->method->warn ? state->method->warn(state) : NULL;
}

static bool takes_steps(const fth_method *m) {
    for (const fth_option_spec *o = m->options; o && o->key; o++)
        if (strcmp(o->key, "steps") == 0) return m->step != NULL;
    return false;
}

fth_ramp fth_method_ramp(const fth_method_state *state) {
    fth_ramp ramp = {0};
    if (!takes_steps(state->method)) return ramp;
    ramp.updates = (int64_t)fth_option_number(state, "steps");
    for (int role = 0; role <= (int)FTH_ROLE_EXTRA && state->method->lr_scale; role++)
        ramp.rate_follows |= fth_role_is_branch((fth_role)role) &&
                             state->method->lr_scale(state, (fth_role)role, 1) < 1;
    return ramp;
}
