/* spm_check.h: looks through a SentencePiece model file before the library is given it.
 *
 * SentencePiece trusts the table of its text normaliser (a double-array trie and a pool of
 * strings): one flipped byte there and it reads outside of its memory. Everything else in the file
 * it checks itself. So the trie is walked here first, every step that any text could make it
 * take. */
#ifndef FTH_TEXT_SPM_CHECK_H
#define FTH_TEXT_SPM_CHECK_H

#include <stddef.h>

#include "base/error.h"

typedef enum fth_spm_type {
    FTH_SPM_UNIGRAM = 1,
    FTH_SPM_BPE = 2,
    FTH_SPM_WORD = 3,
    FTH_SPM_CHAR = 4
} fth_spm_type;

typedef struct fth_spm_facts {
    fth_spm_type type;
    int has_charmap; /* the text is changed before it is cut (NFKC and such) */
    int by_words;    /* what stands between two spaces is changed and cut on its own: no rule of the
                        normaliser reaches over a space, and spaces are treated in the usual way */
} fth_spm_facts;

/* FTH_BAD_INPUT when the file is no SentencePiece model or has a normaliser that is not sound. */
fth_err fth_spm_check(const void *data, size_t size, fth_spm_facts *facts);

#endif
