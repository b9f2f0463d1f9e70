/* language_tags.h: what a model of many languages is told before each source. */
#ifndef FTH_CLI_LANGUAGE_TAGS_H
#define FTH_CLI_LANGUAGE_TAGS_H

#include "data/languages.h"

/* The ids of the tags for --source-language and --target-language ("": not given), none for a model
 * of one pair. FTH_USAGE, with the languages that the model knows, where one is missing, unknown or
 * without effect. */
fth_err fth_language_tags(const char *model, const fth_tokenizer *t, const char *source,
                          const char *target, fth_ids *tags);

#endif
