/* tok.c: the tokenisers of BLEU by their names. */
#include "metric/tok.h"

#include "text/unicode.h"

static const struct {
    const char *name;
    fth_err (*run)(fth_text line, fth_tok_work *w); /* NULL: the line itself */
} tokenizers[] = {
    [FTH_TOK_13A] = {"13a", fth_tok_13a},    [FTH_TOK_INTL] = {"intl", fth_tok_intl},
    [FTH_TOK_CHAR] = {"char", fth_tok_char}, [FTH_TOK_NONE] = {"none", NULL},
    [FTH_TOK_ZH] = {"zh", fth_tok_zh},       [FTH_TOK_SPM] = {"spm", fth_tok_spm},
};

const char *fth_tok_name(fth_tok kind) {
    return tokenizers[kind].name;
}

void fth_tok_work_fini(fth_tok_work *w) {
    fth_str_fini(&w->text);
    fth_str_fini(&w->spare);
    fth_str_fini(&w->lower);
}

fth_err fth_tok_line(fth_tok kind, bool lowercase, fth_text line, fth_tok_work *w, fth_text *out) {
    if (lowercase) {
        fth_str_clear(&w->lower);
        FTH_TRY(fth_add_lower(&w->lower, line));
        line = fth_str_view(&w->lower);
    }
    line = fth_strip_end(line);
    if (tokenizers[kind].run) {
        fth_str_clear(&w->text);
        FTH_TRY(tokenizers[kind].run(line, w));
        line = fth_str_view(&w->text);
    }
    *out = line;
    return FTH_OK;
}
