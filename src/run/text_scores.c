/* text_scores.c: the metrics with the options that sacreBLEU has without any. */
#include "run/text_scores.h"

#include <stdlib.h>

#include "metric/chrf.h"
#include "metric/sums.h"

fth_err fth_text_bleu(const fth_text_pairs *pairs, fth_tok tokenizer, const fth_tokenizer *pieces,
                      double *score) {
    const fth_bleu_options o = {
        .tokenizer = tokenizer, .smooth = FTH_SMOOTH_EXP, .smooth_value = -1, .pieces = pieces};
    fth_bleu result;
    FTH_TRY(fth_bleu_corpus(pairs, &o, &result));
    *score = result.score;
    return FTH_OK;
}

fth_err fth_text_chrf(const fth_text_pairs *pairs, double *score) {
    const fth_chrf_options o = {.char_order = 6, .beta = 2};
    double sums[3 * FTH_MAX_ORDER];
    const size_t width = fth_chrf_width(&o);
    double *stats = malloc(sizeof *stats * (pairs->n + 1) * width);
    if (!stats) return fth_fail(FTH_NO_MEMORY, "no memory for the counts of %zu lines", pairs->n);
    const fth_err err = fth_chrf_stats(pairs, &o, stats);
    if (err == FTH_OK) {
        fth_sum_rows(stats, pairs->n, width, sums);
        *score = fth_chrf_from_stats(sums, &o);
    }
    free(stats);
    return err;
}
