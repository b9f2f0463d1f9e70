/* bpe_parts.h: all that a byte-level vocabulary is made of, put together from files. */
#ifndef FTH_TEXT_BPE_PARTS_H
#define FTH_TEXT_BPE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "text/tokenizer.h"

/* What an id is for. */
typedef enum fth_bpe_use {
    FTH_BPE_TEXT,    /* bytes of text */
    FTH_BPE_CONTROL, /* begin, pad, end ...: never made from text */
    FTH_BPE_SYMBOL   /* found in text as it is written, before anything is cut */
} fth_bpe_use;

/* Zeroed: empty, may be freed. */
typedef struct fth_bpe_parts {
    const char **names; /* [n] tokens as files write them, borrowed; NULL: not there yet */
    uint8_t *uses;      /* [n] fth_bpe_use */
    int32_t n;
    int32_t (*merges)[3]; /* [n_merges] left, right, made; the first is the most urgent */
    int32_t n_merges;
    fth_special_ids special; /* -1: there is none */
    bool blank_before;       /* a text that does not begin with a blank gets one */
} fth_bpe_parts;

/* Room for n tokens and as many merges, none there yet. FTH_NO_MEMORY. */
fth_err fth_bpe_parts_init(fth_bpe_parts *p, size_t n, size_t n_merges);
void fth_bpe_parts_fini(fth_bpe_parts *p);

/* Notes the token of an id. FTH_BAD_INPUT when another has it, or it is not in [0, n). */
fth_err fth_bpe_parts_put(fth_bpe_parts *p, const char *file, const char *token, int64_t id);

/* The same for an object of tokens and ids, which must stay. */
fth_err fth_bpe_parts_vocab(fth_bpe_parts *p, const char *file, json_t *vocab);

/* Makes a token the begin, pad, end or unknown one where its name is that of one, <s> or
 * <|endoftext|> say; false: it is none. */
bool fth_bpe_parts_give_role(fth_bpe_parts *p, int32_t id);

/* Appends the merge of two tokens of vocab, which fth_bpe_parts_vocab saw. where begins a message.
 * pair: "left right", which is changed. */
fth_err fth_bpe_parts_merge(fth_bpe_parts *p, const char *where, const json_t *vocab,
                            const char *left, const char *right);
fth_err fth_bpe_parts_merge_pair(fth_bpe_parts *p, const char *where, const json_t *vocab,
                                 char *pair);

/* Every id has its token. */
fth_err fth_bpe_parts_check(const fth_bpe_parts *p, const char *file);

#endif
