/* ids.h: a list of token ids that grows. */
#ifndef FTH_TEXT_IDS_H
#define FTH_TEXT_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A zeroed list is empty and may be freed. */
typedef struct fth_ids {
    int32_t *ids; /* [capacity], the first n count */
    size_t n, capacity;
} fth_ids;

/* Makes room for more ids after the n there are; does not change n. */
fth_err fth_ids_reserve(fth_ids *list, size_t more);
void fth_ids_fini(fth_ids *list);

#endif
