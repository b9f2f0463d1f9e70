/* ids.c: grows by doubling. */
#include "text/ids.h"

#include <stdlib.h>

fth_err fth_ids_reserve(fth_ids *list, size_t more) {
    if (more <= list->capacity - list->n) return FTH_OK;
    size_t capacity = 2 * list->capacity + more;
    int32_t *ids = realloc(list->ids, capacity * sizeof *ids);
    if (!ids) return fth_fail(FTH_NO_MEMORY, "no memory for %zu token ids", capacity);
    list->ids = ids;
    list->capacity = capacity;
    return FTH_OK;
}

void fth_ids_fini(fth_ids *list) {
    free(list->ids);
    *list = (fth_ids){0};
}
