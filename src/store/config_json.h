/* config.h: reads and writes config.json, the description of a model (doc/formats.md#configjson).
 */
#ifndef FTH_STORE_CONFIG_JSON_H
#define FTH_STORE_CONFIG_JSON_H

#include <stddef.h>

#include "base/config.h"
#include "base/str.h"

/* Reads and validates a config.json. FTH_BAD_CONFIG names the file, the key, the value and the
 * rule. The method and its options are not judged: that is the method's to do. */
fth_err fth_config_read(const char *path, fth_config *out);

/* The same from text; path is used in messages only. */
fth_err fth_config_parse(const char *text, size_t length, const char *path, fth_config *out);

/* Appends the JSON text of a valid config. Reading it gives the same config. */
fth_err fth_config_print(const fth_config *c, fth_str *out);

/* *key: the first, in the order of the file, in which two valid configs differ; step does not
 * count. NULL: they describe the same model. */
fth_err fth_config_difference(const fth_config *a, const fth_config *b, const char **key);

/* FTH_BAD_CONFIG where they differ, step aside: "heads is 2 in WHERE, now it is 4". */
fth_err fth_config_expect(const fth_config *was, const char *where, const fth_config *now);

#endif
