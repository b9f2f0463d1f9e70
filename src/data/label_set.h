/* label_set.h: what labels may be: names of classes, or numbers. */
#ifndef FTH_DATA_LABEL_SET_H
#define FTH_DATA_LABEL_SET_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

typedef enum fth_label_kind { FTH_LABELS_NONE, FTH_LABELS_CLASS, FTH_LABELS_NUMBER } fth_label_kind;

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
void fth_label_set_fini(fth_label_set *s);

/* dataset.json's "labels": {"kind": "class", "names": [...]} or {"kind": "number"}; NULL when out
 * of memory. */
json_t *fth_label_set_json(const fth_label_set *s);
/* FTH_BAD_INPUT with the rule; path: for messages. NULL: no labels. */
fth_err fth_label_set_read(fth_label_set *s, const json_t *json, const char *path);

#endif
