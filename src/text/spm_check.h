/* spm_check.h: looks through a SentencePiece model file before the library is given it.
 *
 * SentencePiece trusts much of it, and reads outside of its memory or dies where a file was made to
 * make it so: CVE-2026-1260 and the reports after it (issues 1263, 1269 and 1272 and pull request
 * 1267 of google/sentencepiece), which versions up to 0.2.1 have in part. So every length, piece,
 * type and score is looked at here first; of the text normaliser's trie every step that any text
 * could make it take; and that what can begin at one place of a text fits the arrays that the
 * library keeps it in. */
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
