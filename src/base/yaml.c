/* yaml.c: walks libyaml's events; whatever is not a flat mapping, or a list of them where a list is
 * asked for, is refused with its line. */
#include "base/yaml.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/str.h"

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the newest event */
    bool has_event;
    const char *name;
    fth_arena *arena;
} reader;

static size_t event_line(const reader *r) {
    return r->event.start_mark.line + 1;
}

static fth_err syntax_error(const reader *r) {
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) return fth_no_memory(r->name);
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_READER_ERROR)
        return fth_fail(FTH_BAD_INPUT, "%s: byte %zu: not a YAML file: %s", r->name,
                        p->problem_offset + 1, problem);
    return fth_fail(FTH_BAD_INPUT, "%s:%zu: not YAML: %s%s%s", r->name, p->problem_mark.line + 1,
                    problem, p->context ? " " : "", p->context ? p->context : "");
}

/* Moves to the next event. */
static fth_err advance(reader *r) {
    if (r->has_event) yaml_event_delete(&r->event);
    r->has_event = false;
    if (!yaml_parser_parse(&r->parser, &r->event)) return syntax_error(r);
    r->has_event = true;
    return FTH_OK;
}

/* The text of the scalar at hand, copied. */
static fth_err scalar_text(reader *r, const char **text) {
    const char *value = (const char *)r->event.data.scalar.value;
    size_t length = r->event.data.scalar.length;
    if (memchr(value, '\0', length))
        return fth_fail(FTH_BAD_INPUT, "%s:%zu: text must not contain a NUL", r->name,
                        event_line(r));
    *text = fth_arena_strndup(r->arena, value, length);
    return *text ? FTH_OK : fth_no_memory(r->name);
}

static bool scalar_is_null(const reader *r) {
    const char *text = (const char *)r->event.data.scalar.value;
    return r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0);
}

/* Appends to an entry's items, which grow by doubling. */
static fth_err add_item(reader *r, fth_yaml_entry *e, const char *item) {
    if ((e->count & (e->count - 1)) == 0) { /* 0 or a power of two: full */
        size_t capacity = e->count ? 2 * e->count : 1;
        const char **items = fth_arena_alloc(r->arena, capacity * sizeof *items);
        if (!items) return fth_no_memory(r->name);
        if (e->count) memcpy(items, e->items, e->count * sizeof *items);
        e->items = items;
    }
    e->items[e->count++] = item;
    return FTH_OK;
}

static fth_err want_scalar(const reader *r, const fth_yaml_entry *e) {
    if (r->event.type == YAML_SCALAR_EVENT) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s:%zu: %s: its parts must be single values", r->name,
                    event_line(r), e->key);
}

static fth_err read_sequence(reader *r, fth_yaml_entry *e) {
    e->is_list = true;
    for (;;) {
        const char *item;
        FTH_TRY(advance(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT) return FTH_OK;
        FTH_TRY(want_scalar(r, e));
        FTH_TRY(scalar_text(r, &item));
        FTH_TRY(add_item(r, e, item));
    }
}

/* Fails when one of the pairs so far has this key. */
static fth_err check_new(const reader *r, const fth_yaml_entry *e, const char *key) {
    size_t length = strlen(key);
    for (size_t i = 0; i < e->count; i++)
        if (strncmp(e->items[i], key, length) == 0 && e->items[i][length] == '=')
            return fth_fail(FTH_BAD_INPUT, "%s:%zu: %s: %s is given twice", r->name, event_line(r),
                            e->key, key);
    return FTH_OK;
}

static fth_err read_inner_mapping(reader *r, fth_yaml_entry *e) {
    e->is_list = true;
    for (;;) {
        const char *key, *value;
        FTH_TRY(advance(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) return FTH_OK;
        FTH_TRY(want_scalar(r, e));
        FTH_TRY(scalar_text(r, &key));
        FTH_TRY(check_new(r, e, key));
        FTH_TRY(advance(r));
        FTH_TRY(want_scalar(r, e));
        FTH_TRY(scalar_text(r, &value));
        size_t length = strlen(key) + 1 + strlen(value);
        char *pair = fth_arena_alloc(r->arena, length + 1);
        if (!pair) return fth_no_memory(r->name);
        snprintf(pair, length + 1, "%s=%s", key, value);
        FTH_TRY(add_item(r, e, pair));
    }
}

static fth_err read_value(reader *r, fth_yaml_entry *e) {
    const char *text;
    FTH_TRY(advance(r));
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        e->is_null = scalar_is_null(r);
        FTH_TRY(scalar_text(r, &text));
        return add_item(r, e, text);
    case YAML_SEQUENCE_START_EVENT: return read_sequence(r, e);
    case YAML_MAPPING_START_EVENT: return read_inner_mapping(r, e);
    default:
        return fth_fail(FTH_BAD_INPUT, "%s:%zu: %s: aliases are not supported", r->name,
                        event_line(r), e->key);
    }
}

/* The key at hand as a new entry at the end of the chain. */
static fth_err new_entry(reader *r, fth_yaml_entry **first, fth_yaml_entry **entry) {
    const char *key;
    if (r->event.type != YAML_SCALAR_EVENT)
        return fth_fail(FTH_BAD_INPUT, "%s:%zu: a key must be a word", r->name, event_line(r));
    FTH_TRY(scalar_text(r, &key));
    fth_yaml_entry **end = first;
    for (; *end; end = &(*end)->next)
        if (strcmp((*end)->key, key) == 0)
            return fth_fail(FTH_BAD_INPUT, "%s:%zu: %s: given twice, first in line %zu", r->name,
                            event_line(r), key, (*end)->line);
    *entry = *end = fth_arena_alloc(r->arena, sizeof **end);
    if (!*end) return fth_no_memory(r->name);
    (*end)->key = key;
    (*end)->line = event_line(r);
    return FTH_OK;
}

/* The lines of the mapping at hand. */
static fth_err read_mapping(reader *r, fth_yaml_entry **first) {
    for (;;) {
        fth_yaml_entry *entry;
        FTH_TRY(advance(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) return FTH_OK;
        FTH_TRY(new_entry(r, first, &entry));
        FTH_TRY(read_value(r, entry));
    }
}

static fth_err read_items(reader *r, fth_yaml_item **first) {
    for (fth_yaml_item **end = first;; end = &(*end)->next) {
        FTH_TRY(advance(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT) return FTH_OK;
        if (r->event.type != YAML_MAPPING_START_EVENT)
            return fth_fail(
                FTH_BAD_INPUT,
                "%s:%zu: an item of the list must hold lines of the form \"key: value\"", r->name,
                event_line(r));
        *end = fth_arena_alloc(r->arena, sizeof **end);
        if (!*end) return fth_no_memory(r->name);
        **end = (fth_yaml_item){.line = event_line(r)};
        FTH_TRY(read_mapping(r, &(*end)->first));
    }
}

/* What a document may hold: a mapping, or a list of them. */
typedef struct content {
    fth_yaml_entry **mapping;
    fth_yaml_item **list; /* NULL: a mapping is wanted */
} content;

static fth_err read_document(reader *r, const content *c) {
    if (r->event.type == YAML_SCALAR_EVENT && scalar_is_null(r)) return advance(r);
    if (r->event.type != (c->list ? YAML_SEQUENCE_START_EVENT : YAML_MAPPING_START_EVENT))
        return fth_fail(FTH_BAD_INPUT, "%s:%zu: must hold %s of the form \"%skey: value\"", r->name,
                        event_line(r), c->list ? "a list" : "lines", c->list ? "- " : "");
    FTH_TRY(c->list ? read_items(r, c->list) : read_mapping(r, c->mapping));
    return advance(r);
}

static fth_err read_stream(reader *r, const content *c) {
    FTH_TRY(advance(r)); /* the start of the stream */
    FTH_TRY(advance(r));
    if (r->event.type == YAML_STREAM_END_EVENT) return FTH_OK;
    FTH_TRY(advance(r)); /* after the start of the document */
    FTH_TRY(read_document(r, c));
    FTH_TRY(advance(r)); /* after its end */
    if (r->event.type == YAML_STREAM_END_EVENT) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s:%zu: must hold one YAML document, not several", r->name,
                    event_line(r));
}

static fth_err read_text(const char *name, const char *text, size_t size, fth_arena *arena,
                         const content *c) {
    reader r = {.name = name, .arena = arena};
    if (!yaml_parser_initialize(&r.parser)) return fth_no_memory(r.name);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, size);
    fth_err err = read_stream(&r, c);
    if (r.has_event) yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return err;
}

fth_err fth_yaml_read(const char *name, const char *text, size_t size, fth_arena *arena,
                      fth_yaml_entry **first) {
    *first = NULL;
    return read_text(name, text, size, arena, &(content){.mapping = first});
}

fth_err fth_yaml_read_list(const char *name, const char *text, size_t size, fth_arena *arena,
                           fth_yaml_item **first) {
    *first = NULL;
    return read_text(name, text, size, arena, &(content){.list = first});
}

/* Plain words are left as they are, unless some reader of YAML takes them for something else. */
static bool safe_as_plain(const char *text) {
    static const char *const special[] = {"true", "false", "yes", "no", "on",
                                          "off",  "null",  "y",   "n"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_";
    if (!*text || !strchr(letters, *text)) return false;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strcasecmp(text, special[i]) == 0) return false;
    for (; *text; text++)
        if (!strchr(letters, *text) && !strchr("0123456789.-+=", *text)) return false;
    return true;
}

/* Decodes the character at *p and moves past it. The text is valid UTF-8. */
static uint32_t next_character(const unsigned char **p) {
    uint32_t c = *(*p)++;
    int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
    if (more) c &= 0x3Fu >> more;
    while (more--) c = c << 6 | (*(*p)++ & 0x3Fu);
    return c;
}

/* Characters that YAML forbids, or takes for an end of line, must be written as escapes. */
static bool needs_escape(uint32_t c) {
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 || c == 0xFEFF ||
           c == 0xFFFE || c == 0xFFFF;
}

fth_err fth_yaml_add_scalar(fth_str *out, const char *text) {
    if (safe_as_plain(text)) return fth_str_add(out, text, strlen(text));
    const unsigned char *p = (const unsigned char *)text;
    FTH_TRY(fth_str_add(out, "\"", 1));
    while (*p) {
        const unsigned char *start = p;
        uint32_t c = next_character(&p);
        if (c == '"' || c == '\\')
            FTH_TRY(fth_str_addf(out, "\\%c", (int)c));
        else if (needs_escape(c))
            FTH_TRY(fth_str_addf(out, "\\u%04x", (unsigned)c));
        else
            FTH_TRY(fth_str_add(out, (const char *)start, (size_t)(p - start)));
    }
    return fth_str_add(out, "\"", 1);
}
