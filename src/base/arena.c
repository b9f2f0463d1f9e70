/* arena.c: blocks of growing size; a piece is taken from the newest one, aligned for any type. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct fth_arena_block {
    struct fth_arena_block *older;
    size_t used, size;         /* of bytes */
    alignas(16) char bytes[1]; /* [size] */
} fth_arena_block;

#define FIRST_BLOCK  ((size_t)4096)
#define LARGEST_STEP ((size_t)1 << 20)

void fth_arena_init(fth_arena *a) {
    *a = (fth_arena){0};
}

/* Blocks double up to a megabyte, so that few are made and little is wasted. */
static fth_arena_block *add_block(fth_arena *a, size_t at_least) {
    size_t size = a->newest ? 2 * a->newest->size : FIRST_BLOCK;
    if (size > LARGEST_STEP) size = LARGEST_STEP;
    if (size < at_least) size = at_least;
    fth_arena_block *block = calloc(1, sizeof *block + size);
    if (!block) return NULL;
    block->size = size;
    block->older = a->newest;
    a->newest = block;
    return block;
}

void *fth_arena_alloc(fth_arena *a, size_t size) {
    if (size > SIZE_MAX / 2) return NULL;
    size = size ? (size + 15) & ~(size_t)15 : 16; /* two pieces never share an address */
    fth_arena_block *block = a->newest;
    if (!block || block->size - block->used < size) block = add_block(a, size);
    if (!block) return NULL;
    void *piece = block->bytes + block->used;
    block->used += size;
    return piece;
}

char *fth_arena_strndup(fth_arena *a, const char *text, size_t length) {
    if (length > SIZE_MAX / 4) return NULL;
    char *copy = fth_arena_alloc(a, length + 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}

char *fth_arena_strdup(fth_arena *a, const char *text) {
    return fth_arena_strndup(a, text, strlen(text));
}

void fth_arena_fini(fth_arena *a) {
    while (a->newest) {
        fth_arena_block *older = a->newest->older;
        free(a->newest);
        a->newest = older;
    }
}
