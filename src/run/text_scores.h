/* text_scores.h: scores of translations by sacreBLEU's defaults, 0 to 100. */
#ifndef FTH_RUN_TEXT_SCORES_H
#define FTH_RUN_TEXT_SCORES_H

#include "metric/bleu.h"
#include "text/text.h"

/* BLEU by one way of cutting text; pieces: of FTH_TOK_SPM, else NULL. */
fth_err fth_text_bleu(const fth_text_pairs *pairs, fth_tok tokenizer, const fth_tokenizer *pieces,
                      double *score);

fth_err fth_text_chrf(const fth_text_pairs *pairs, double *score);

#endif
