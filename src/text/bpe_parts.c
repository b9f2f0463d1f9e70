/* bpe_parts.c: a vocabulary put together from files: tokens by id, roles by name, merges by
 * words. */
#include "text/bpe_parts.h"

#include <stdlib.h>
#include <string.h>

fth_err fth_bpe_parts_init(fth_bpe_parts *p, size_t n, size_t n_merges) {
    *p = (fth_bpe_parts){.n = (int32_t)n, .special = {-1, -1, -1, -1}};
    p->names = calloc(n + 1, sizeof *p->names);
    p->uses = calloc(n + 1, sizeof *p->uses);
    p->merges = malloc((n_merges + 1) * sizeof *p->merges);
    return p->names && p->uses && p->merges ? FTH_OK
                                            : fth_fail(FTH_NO_MEMORY, "no memory for a vocabulary");
}

void fth_bpe_parts_fini(fth_bpe_parts *p) {
    free(p->names);
    free(p->uses);
    free(p->merges);
    *p = (fth_bpe_parts){0};
}

fth_err fth_bpe_parts_put(fth_bpe_parts *p, const char *file, const char *token, int64_t id) {
    if (id < 0 || id >= p->n)
        return fth_fail(FTH_BAD_INPUT, "%s: token '%.60s' has id %lld, not in [0, %d)", file, token,
                        (long long)id, p->n);
    if (p->names[id] && strcmp(p->names[id], token) != 0)
        return fth_fail(FTH_BAD_INPUT, "%s: id %lld is that of '%.60s' and of '%.60s'", file,
                        (long long)id, p->names[id], token);
    p->names[id] = token;
    return FTH_OK;
}

/* The names that vocabularies give to the ends of texts and such. */
static const struct role {
    const char *token;
    size_t field; /* of fth_special_ids */
} roles[] = {
    {"<s>", offsetof(fth_special_ids, bos)},
    {"<bos>", offsetof(fth_special_ids, bos)},
    {"<|startoftext|>", offsetof(fth_special_ids, bos)},
    {"<pad>", offsetof(fth_special_ids, pad)},
    {"<|pad|>", offsetof(fth_special_ids, pad)},
    {"</s>", offsetof(fth_special_ids, eos)},
    {"<eos>", offsetof(fth_special_ids, eos)},
    {"<|endoftext|>", offsetof(fth_special_ids, eos)},
    {"<unk>", offsetof(fth_special_ids, unk)},
};

bool fth_bpe_parts_give_role(fth_bpe_parts *p, int32_t id) {
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(roles[i].token, p->names[id]) != 0) continue;
        int32_t *role = (int32_t *)((char *)&p->special + roles[i].field);
        if (*role < 0) *role = id;
        p->uses[id] = FTH_BPE_CONTROL;
        return true;
    }
    return false;
}

/* The id of a part of a merge. */
static fth_err find(const json_t *vocab, const char *where, const char *token, int32_t *id) {
    const json_t *value = json_object_get(vocab, token);
    if (!value)
        return fth_fail(FTH_BAD_INPUT, "%s: '%.60s' is not in the vocabulary", where, token);
    *id = (int32_t)json_integer_value(value); /* fth_bpe_parts_put saw it */
    return FTH_OK;
}

fth_err fth_bpe_parts_merge(fth_bpe_parts *p, const char *where, const json_t *vocab,
                            const char *left, const char *right) {
    int32_t *m = p->merges[p->n_merges];
    FTH_TRY(find(vocab, where, left, &m[0]));
    FTH_TRY(find(vocab, where, right, &m[1]));
    char *made = fth_strdup_printf("%s%s", left, right);
    fth_err err = made ? find(vocab, where, made, &m[2])
                       : fth_fail(FTH_NO_MEMORY, "no memory for a vocabulary");
    free(made);
    if (!err) p->n_merges++;
    return err;
}

fth_err fth_bpe_parts_merge_pair(fth_bpe_parts *p, const char *where, const json_t *vocab,
                                 char *pair) {
    char *blank = strchr(pair, ' ');
    if (!blank || blank == pair || !blank[1] || strchr(blank + 1, ' '))
        return fth_fail(FTH_BAD_INPUT, "%s: '%.60s' is not two tokens with a blank in between",
                        where, pair);
    *blank = 0;
    return fth_bpe_parts_merge(p, where, vocab, pair, blank + 1);
}

fth_err fth_bpe_parts_vocab(fth_bpe_parts *p, const char *file, json_t *vocab) {
    const char *token;
    json_t *id;
    json_object_foreach(vocab, token, id) {
        if (!json_is_integer(id))
            return fth_fail(FTH_BAD_INPUT, "%s: token '%.60s' has id %s, not a whole number", file,
                            token, fth_json_shown(id).text);
        FTH_TRY(fth_bpe_parts_put(p, file, token, json_integer_value(id)));
    }
    return FTH_OK;
}

fth_err fth_bpe_parts_check(const fth_bpe_parts *p, const char *file) {
    for (int32_t i = 0; i < p->n; i++)
        if (!p->names[i])
            return fth_fail(FTH_BAD_INPUT, "%s: no token has id %d, and there are %d", file, i,
                            p->n);
    return FTH_OK;
}
