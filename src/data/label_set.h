/* label_set.h: what labels may be: names of classes, of a sample or of each of its places, or
 * numbers. */
#ifndef FTH_DATA_LABEL_SET_H
#define FTH_DATA_LABEL_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum fth_label_kind {
    FTH_LABELS_NONE,
    FTH_LABELS_CLASS,
    FTH_LABELS_NUMBER,
    FTH_LABELS_PLACES /* a class of every pixel, or of every word */
} fth_label_kind;

enum { FTH_NO_CLASS = 255 }; /* in maps: a pixel of which nothing is said */

/* Zeroed: no labels, may be freed. */
typedef struct fth_label_set {
    fth_label_kind kind;
    char **names; /* [n] classes, in the order of their numbers */
    int32_t n, capacity;
} fth_label_set;

/* Adds a class; one that is there already is fine. */
fth_err fth_label_set_add(fth_label_set *s, const char *name);
/* In the order of numbers where all names are whole numbers, else of their bytes. */
void fth_label_set_sort(fth_label_set *s);
/* The number of a class; -1: not there. */
int32_t fth_label_set_find(const fth_label_set *s, const char *name);
/* The same of a name that ends after so many bytes. */
int32_t fth_label_set_find_part(const fth_label_set *s, const char *name, size_t length);
void fth_label_set_fini(fth_label_set *s);

/* FOLDER/labels.json: {"kind": "class", "names": [...]}, the same with "places", or {"kind":
 * "number"}. A data set has it, and a model that was trained on it. Nothing is written where there
 * are no labels, and none are read where there is no file. */
fth_err fth_label_set_write(const fth_label_set *s, const char *folder);
/* FTH_BAD_INPUT with the file and the rule. */
fth_err fth_label_set_load(fth_label_set *s, const char *folder);

#endif
