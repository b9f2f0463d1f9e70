/* tok_intl.c: the tokenizer of mteval-v14 in its international mode: punctuation stands alone
 * unless between digits, symbols stand alone. Digits are all numbers of Unicode (N), punctuation is
 * P, symbols are S, by the Unicode version of utf8proc. */
#include <utf8proc.h>

#include "metric/spacing.h"
#include "metric/tok.h"

enum { NO_NUMBER = 1, PUNCTUATION = 2, SYMBOL = 4 };

static unsigned intl_class(uint32_t c) {
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return 0;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return NO_NUMBER | PUNCTUATION;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return NO_NUMBER | SYMBOL;
    default: return NO_NUMBER;
    }
}

fth_err fth_tok_intl(fth_text line, fth_tok_work *w) {
    static const fth_spacing_rule rules[] = {
        {NO_NUMBER, PUNCTUATION, 0, 1, 1}, {PUNCTUATION, NO_NUMBER, 1, 1, 0}, {SYMBOL, 0, 1, 0, 1}};
    FTH_TRY(fth_str_add(&w->text, line.text, line.length));
    return fth_apply_spacing(rules, 3, intl_class, &w->text, &w->spare);
}
