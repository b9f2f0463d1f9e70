/* constraints.c: a table of how many tokens of a phrase are met when the next one comes, and the
 * shares of the beam by that number. */
#include "decode/constraints.h"

#include <string.h>

fth_err fth_constraint_make(const int32_t *ids, int32_t n_ids, fth_arena *arena,
                            fth_constraint *out) {
    int32_t begin = 0;
    *out = (fth_constraint){0};
    if (n_ids == 0) return FTH_OK;
    out->token = fth_arena_alloc(arena, sizeof *out->token * (size_t)n_ids);
    out->begin = fth_arena_alloc(arena, sizeof *out->begin * (size_t)n_ids);
    if (!out->token || !out->begin) return fth_fail(FTH_NO_MEMORY, "no memory for constraints");
    for (int32_t i = 0; i < n_ids; i++) {
        if (ids[i] == FTH_PHRASE_END) {
            begin = out->n;
            continue;
        }
        out->token[out->n] = ids[i];
        out->begin[out->n++] = begin;
    }
    return FTH_OK;
}

int32_t fth_constraint_step(const fth_constraint *c, int32_t met, int32_t token) {
    if (met >= c->n) return met;
    if (token == c->token[met]) return met + 1;
    const int32_t begin = c->begin[met];
    return token == c->token[begin] ? begin + 1 : begin;
}

/* The next one in line that has met so many; n: none. */
static int32_t first_with(const int32_t *met, int32_t from, int32_t n, int32_t wanted) {
    while (from < n && met[from] != wanted) from++;
    return from;
}

/* Brings entry `at` to place `to`, and moves those in between up. */
static void bring(fth_candidate *c, int32_t *met, int32_t at, int32_t to) {
    const fth_candidate taken = c[at];
    const int32_t its = met[at];
    memmove(c + to + 1, c + to, sizeof *c * (size_t)(at - to));
    memmove(met + to + 1, met + to, sizeof *met * (size_t)(at - to));
    c[to] = taken;
    met[to] = its;
}

int32_t fth_constraint_share(fth_candidate *c, int32_t *met, int32_t n, int32_t most) {
    int32_t highest = 0, placed = 0;
    for (int32_t i = 0; i < n; i++) highest = met[i] > highest ? met[i] : highest;
    while (placed < n && placed < most)
        for (int32_t wanted = highest; wanted >= 0 && placed < most; wanted--) {
            const int32_t at = first_with(met, placed, n, wanted);
            if (at < n) bring(c, met, at, placed++);
        }
    return placed;
}
