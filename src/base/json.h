/* json.h: what fathom needs around jansson: strict reading with a place in every message, and
 * writing in which every double reads back as itself.
 *
 * A number that is not finite is the string "nan", "inf" or "-inf" (doc/formats.md#the-run-folder).
 */
#ifndef FTH_BASE_JSON_H
#define FTH_BASE_JSON_H

#include <stddef.h>
#include <jansson.h>

#include "base/error.h"
#include "base/str.h"

/* Reads one JSON object or array; a key given twice is an error. FTH_BAD_INPUT names
 * file:line:column. The caller owns *value. */
fth_err fth_json_load(const char *path, json_t **value);

/* The same from memory; name stands for the file in messages. */
fth_err fth_json_parse(const char *name, const char *text, size_t size, json_t **value);

/* jansson's reader for what has messages of its own: an object or array, no key twice; NULL with
 * what is wrong in *e. Where memory runs out, json_error_code(e) is json_error_out_of_memory
 * (jansson alone crashes there). */
json_t *fth_json_read(const char *text, size_t size, json_error_t *e);

/* A new number, or the string for one that is not finite; NULL when out of memory. */
json_t *fth_json_number(double x);

/* Reads what fth_json_number makes; FTH_BAD_INPUT for anything else. */
fth_err fth_json_to_double(const json_t *value, double *x);

/* A value as text for a message, cut where it is long. */
typedef struct fth_json_text {
    char text[64];
} fth_json_text;
fth_json_text fth_json_shown(const json_t *value);

/* Appends value as text. indent 0: one line without blanks; otherwise an object has a line for
 * every key, indented by so many blanks. Keys keep their order. */
fth_err fth_json_write(const json_t *value, int indent, fth_str *out);

/* As json_dumps, malloc'd; NULL when out of memory. (jansson alone leaves a key out there.) */
char *fth_json_dump(const json_t *value, size_t flags);

/* Writes FOLDER/name and lets go of root, which is FTH_NO_MEMORY when it is NULL. */
fth_err fth_json_save(json_t *root, const char *folder, const char *name);

#endif
