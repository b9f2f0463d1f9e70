/* tok_char.c: each character that is not white space is a token. */
#include "metric/tok.h"
#include "text/unicode.h"

fth_err fth_tok_char(fth_text line, fth_tok_work *w) {
    for (size_t i = 0, n; i < line.length; i += n) {
        fth_code_point(line.text + i, &n);
        if (i) FTH_TRY(fth_str_add(&w->text, " ", 1));
        FTH_TRY(fth_str_add(&w->text, line.text + i, n));
    }
    return FTH_OK;
}
