/* languages.h: the directions that a data set holds, or that a model was trained on.
 *
 *     FOLDER/languages.json  {"format": "fathom-languages", "version": 1, "tags": "target",
 *                             "temperature": 5, "directions": [["en", "de"], ["de", "en"]]}
 *
 * A sentence of direction en-de has the tag __de__ before its source (tags "target"), or __en__ and
 * __de__ ("source-target"): pieces of the tokenizer of their own, as fairseq writes them. */
#ifndef FTH_DATA_LANGUAGES_H
#define FTH_DATA_LANGUAGES_H

#include <stdint.h>

#include "base/error.h"
#include "text/ids.h"
#include "text/tokenizer.h"

typedef enum fth_tags { FTH_TAGS_TARGET, FTH_TAGS_SOURCE_TARGET } fth_tags;

enum { FTH_LANGUAGE_CODE = 24, FTH_LANGUAGE_TAG = FTH_LANGUAGE_CODE + 4 }; /* bytes, NUL included */

/* Both are numbers of languages. */
typedef struct fth_direction {
    int32_t source, target;
} fth_direction;

/* Zeroed: one language pair without tags, may be freed. */
typedef struct fth_languages {
    fth_tags tags;
    double temperature; /* that directions are drawn with in training, 1 or more */
    char **codes;       /* [n_codes] in the order in which they came */
    fth_direction *of;  /* [n] the directions */
    int32_t n_codes, n;
} fth_languages;

/* "target" or "source-target". */
const char *fth_tags_name(fth_tags tags);

/* Whether text can be a language's code: letters, digits, - and _, at most 23. */
int fth_language_is_code(const char *text);

/* Adds a direction; FTH_BAD_INPUT when it is there already, or from a language to itself. */
fth_err fth_languages_add(fth_languages *l, const char *source, const char *target);

/* The number of a language, of a direction; -1: there is none. */
int32_t fth_languages_code(const fth_languages *l, const char *code);
int32_t fth_languages_direction(const fth_languages *l, const char *source, const char *target);

/* "en-de". */
typedef struct fth_direction_name {
    char text[2 * FTH_LANGUAGE_CODE];
} fth_direction_name;
fth_direction_name fth_languages_name(const fth_languages *l, int32_t direction);

/* The codes of a direction. */
const char *fth_languages_source(const fth_languages *l, int32_t direction);
const char *fth_languages_target(const fth_languages *l, int32_t direction);

/* Appends every code, with ", " between. */
fth_err fth_languages_list(const fth_languages *l, fth_str *out);

/* Appends the tags as pieces with commas between, for a tokenizer that is to be trained. */
fth_err fth_languages_pieces(const fth_languages *l, fth_str *out);

/* Appends the ids of what stands before a source. source may be NULL where the tags do not have it.
 * FTH_BAD_INPUT where the tokenizer has no such piece, FTH_USAGE where the language is not among
 * these. */
fth_err fth_languages_tag(const fth_languages *l, const fth_tokenizer *t, const char *source,
                          const char *target, fth_ids *out);

/* Nothing is written where there are no directions, and none are read where there is no file. */
fth_err fth_languages_write(const fth_languages *l, const char *folder);
/* FTH_BAD_INPUT with the file and the rule. */
fth_err fth_languages_load(fth_languages *l, const char *folder);
/* The same from memory; name stands for the file in messages. */
fth_err fth_languages_parse(fth_languages *l, const char *name, const char *text, size_t size);
void fth_languages_fini(fth_languages *l);

#endif
