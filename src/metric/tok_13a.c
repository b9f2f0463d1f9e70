/* tok_13a.c: the tokenizer of mteval-v13a, WMT's old evaluation script. */
#include "metric/spacing.h"
#include "metric/tok.h"

fth_err fth_tok_13a(fth_text line, fth_tok_work *w) {
    FTH_TRY(fth_str_add(&w->text, " ", 1));
    FTH_TRY(fth_str_add(&w->text, line.text, line.length));
    FTH_TRY(fth_str_add(&w->text, " ", 1));
    FTH_TRY(fth_replace_all("<skipped>", "", &w->text, &w->spare));
    FTH_TRY(fth_replace_all("-\n", "", &w->text, &w->spare));
    FTH_TRY(fth_replace_all("\n", " ", &w->text, &w->spare));
    FTH_TRY(fth_replace_entities(&w->text, &w->spare));
    FTH_TRY(fth_space_signs(&w->text, &w->spare));
    return fth_space_stops_and_dashes(&w->text, &w->spare);
}
