/* yaml.h: reads the YAML that configuration files use: one flat mapping, or a list of such.
 *
 * A value is a scalar, a list of scalars, or a mapping of scalars, which is handed over as a list
 * of "key=value". Everything else (deeper nesting, aliases, a second document, a key given twice)
 * is an error that names file and line. */
#ifndef FTH_BASE_YAML_H
#define FTH_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct fth_yaml_entry {
    const char *key;
    size_t line;        /* from 1 */
    bool is_list;       /* a list or a mapping; otherwise there is exactly one item */
    bool is_null;       /* nothing after the colon, or an unquoted ~ or null */
    const char **items; /* [count] */
    size_t count;
    struct fth_yaml_entry *next;
} fth_yaml_entry;

/* Reads text[0..size); name is the file's name, for messages. *first is the first entry in the
 * order of the file, or NULL for a file without any; all memory is the arena's. */
fth_err fth_yaml_read(const char *name, const char *text, size_t size, fth_arena *arena,
                      fth_yaml_entry **first);

/* One flat mapping of a list of them. */
typedef struct fth_yaml_item {
    fth_yaml_entry *first; /* NULL: an empty mapping */
    size_t line;           /* from 1 */
    struct fth_yaml_item *next;
} fth_yaml_item;

/* The same for a list of flat mappings; NULL for a file without any. */
fth_err fth_yaml_read_list(const char *name, const char *text, size_t size, fth_arena *arena,
                           fth_yaml_item **first);

/* Appends text as a YAML scalar that reads back as the same text: plain where that is safe,
 * double-quoted otherwise. text must be valid UTF-8. */
struct fth_str;
fth_err fth_yaml_add_scalar(struct fth_str *out, const char *text);

#endif
