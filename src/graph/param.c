/* param.c: finds parameters by the hash of their name, and gives each its place in the arena when
 * it is first named. */
#include "graph/param.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

const char *fth_role_name(fth_role role) {
    static const char *const names[] = {
        "embedding",     "positions",   "output",       "query",      "key",       "value",
        "attn_out",      "ffn_in",      "ffn_out",      "query_bias", "key_bias",  "value_bias",
        "attn_out_bias", "ffn_in_bias", "ffn_out_bias", "norm_gain",  "norm_bias", "front",
        "front_bias",    "token",       "head",         "head_bias",  "extra"};
    return names[role];
}

void fth_params_init(fth_params *p) {
    memset(p, 0, sizeof *p);
    fth_arena_init(&p->arena);
}

void fth_params_fini(fth_params *p) {
    fth_arena_fini(&p->arena);
    free(p->param);
    free(p->bucket);
    memset(p, 0, sizeof *p);
}

static int32_t *slot_of(const fth_params *p, const char *name) {
    uint64_t h = fth_hash64(name, strlen(name));
    for (uint64_t i = h;; i++) {
        int32_t *slot = &p->bucket[i % (uint64_t)p->n_buckets];
        if (*slot < 0 || strcmp(p->param[*slot].name, name) == 0) return slot;
    }
}

int32_t fth_params_find(const fth_params *p, const char *name) {
    return p->n_buckets ? *slot_of(p, name) : -1;
}

static fth_err grow(fth_params *p) {
    int32_t capacity = p->capacity ? p->capacity * 2 : 128;
    fth_param *param = realloc(p->param, sizeof *param * (size_t)capacity);
    if (!param) return fth_fail(FTH_NO_MEMORY, "no memory for %d parameters", capacity);
    p->param = param;
    p->capacity = capacity;
    int32_t *bucket = malloc(sizeof *bucket * (size_t)capacity * 2);
    if (!bucket) return fth_fail(FTH_NO_MEMORY, "no memory for %d parameters", capacity);
    free(p->bucket);
    p->bucket = bucket;
    p->n_buckets = capacity * 2;
    for (int32_t i = 0; i < p->n_buckets; i++) bucket[i] = -1;
    for (int32_t i = 0; i < p->n; i++) *slot_of(p, param[i].name) = i;
    return FTH_OK;
}

fth_err fth_params_declare(fth_params *p, const fth_param *wanted, int32_t *index) {
    int32_t found = fth_params_find(p, wanted->name);
    if (found >= 0) {
        const fth_param *old = &p->param[found];
        if (old->rank != wanted->rank || fth_param_size(old) != fth_param_size(wanted))
            return fth_fail(FTH_FAILED, "parameter %s is declared twice with different shapes",
                            wanted->name);
        *index = found;
        return FTH_OK;
    }
    if (p->frozen)
        return fth_fail(FTH_FAILED, "parameter %s was not declared with the model", wanted->name);
    if (p->n == p->capacity) FTH_TRY(grow(p));
    fth_param *param = &p->param[p->n];
    *param = *wanted;
    param->name = fth_arena_strdup(&p->arena, wanted->name);
    if (!param->name) return fth_fail(FTH_NO_MEMORY, "no memory for parameter names");
    if (!wanted->adjacent)
        p->size = (p->size + FTH_PARAM_ALIGNMENT - 1) / FTH_PARAM_ALIGNMENT * FTH_PARAM_ALIGNMENT;
    param->offset = p->size;
    param->share = 1;
    p->size += fth_param_size(param);
    *slot_of(p, param->name) = p->n;
    *index = p->n++;
    return FTH_OK;
}

int32_t fth_params_from(const fth_params *p, int64_t offset) {
    int32_t low = 0, high = p->n;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (p->param[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool fth_params_frozen(const fth_params *p, int64_t begin, int64_t end) {
    int32_t i = fth_params_from(p, begin);
    if (i == p->n || p->param[i].offset != begin) return false;
    for (; i < p->n && p->param[i].offset < end; i++)
        if (p->param[i].share > 0) return false;
    return true;
}

int64_t fth_params_count(const fth_params *p) {
    int64_t n = 0;
    for (int32_t i = 0; i < p->n; i++) n += fth_param_size(&p->param[i]);
    return n;
}
