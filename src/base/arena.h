/* arena.h: memory that is freed all at once.
 *
 * An arena hands out pieces from growing blocks; single pieces are never given back. A zeroed arena
 * is empty and may be freed. */
#ifndef FTH_BASE_ARENA_H
#define FTH_BASE_ARENA_H

#include <stddef.h>

typedef struct fth_arena {
    struct fth_arena_block *newest; /* the block pieces are cut from; the older ones hang on it */
} fth_arena;

void fth_arena_init(fth_arena *a);

/* size zeroed bytes, aligned to 16; NULL when out of memory. */
void *fth_arena_alloc(fth_arena *a, size_t size);

/* A copy of length bytes with a NUL after them; NULL when out of memory. */
char *fth_arena_strndup(fth_arena *a, const char *text, size_t length);
char *fth_arena_strdup(fth_arena *a, const char *text);

/* Frees every piece; the arena is empty afterwards and can be used again. */
void fth_arena_fini(fth_arena *a);

#endif
