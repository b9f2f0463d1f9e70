/* tokenizer.h: how a line is cut into the tokens that BLEU and TER count.
 *
 * A tokenizer puts white space into a line; the tokens are what stands between white space. */
#ifndef FTH_METRIC_TOK_H
#define FTH_METRIC_TOK_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "text/text.h"
#include "text/tokenizer.h"

typedef enum fth_tok {
    FTH_TOK_13A,
    FTH_TOK_INTL,
    FTH_TOK_CHAR,
    FTH_TOK_NONE,
    FTH_TOK_ZH,
    FTH_TOK_SPM
} fth_tok;

/* Working space of a tokenizer; zeroed it is ready. */
typedef struct fth_tok_work {
    fth_str text, spare, lower;
    const fth_tokenizer *pieces; /* of FTH_TOK_SPM */
} fth_tok_work;

void fth_tok_work_fini(fth_tok_work *w);

/* 13a, intl, char, none, zh, spm: the name on the command line and in the signature. */
const char *fth_tok_name(fth_tok kind);

/* A BLEU line: lower case where wanted, white space at the end cut off, then tokenized.
 * *out borrows from the working space or from the line. */
fth_err fth_tok_line(fth_tok kind, bool lowercase, fth_text line, fth_tok_work *w, fth_text *out);

/* Each leaves its result in w->text. */
fth_err fth_tok_13a(fth_text line, fth_tok_work *w);
fth_err fth_tok_intl(fth_text line, fth_tok_work *w);
fth_err fth_tok_char(fth_text line, fth_tok_work *w);
fth_err fth_tok_zh(fth_text line, fth_tok_work *w);
fth_err fth_tok_spm(fth_text line, fth_tok_work *w);

/* A model for fth_tok_spm, and the hash of its file. */
fth_err fth_tok_spm_load(const char *path, fth_tokenizer **out, uint64_t *hash);

/* Tercom's tokenizer, with sacreBLEU's options for TER. */
typedef struct fth_tercom_options {
    bool normalized, no_punct, asian_support, case_sensitive;
} fth_tercom_options;
fth_err fth_tok_tercom(fth_text line, const fth_tercom_options *o, fth_tok_work *w, fth_text *out);

#endif
