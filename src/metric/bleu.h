/* bleu.h: BLEU (Papineni et al., 2002) of a corpus, equal to sacreBLEU 2.
 *
 *     BLEU = bp * exp(mean over n = 1..4 of log p_n),   bp = min(1, exp(1 - ref_len / hyp_len))
 *
 * p_n is the share of the hypothesis' n-grams that the references have, each counted at most as
 * often as in the reference that has it most often; ref_len is the sum of the lengths of the
 * references that are closest in length. The counts of the lines are summed first. */
#ifndef FTH_METRIC_BLEU_H
#define FTH_METRIC_BLEU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "metric/signature.h"
#include "text/text.h"
#include "metric/tok.h"

enum { FTH_BLEU_ORDER = 4, FTH_BLEU_STATS = 2 + 2 * FTH_BLEU_ORDER };

/* What is done about orders without a match. */
typedef enum fth_smooth {
    FTH_SMOOTH_EXP,   /* the k-th such order counts 1 / 2^k matches */
    FTH_SMOOTH_FLOOR, /* it counts value matches */
    FTH_SMOOTH_ADD_K, /* value is added to the matches and the totals of orders above 1 */
    FTH_SMOOTH_NONE
} fth_smooth;

typedef struct fth_bleu_options {
    fth_tok tokenizer;
    fth_smooth smooth;
    double smooth_value; /* for floor and add-k; < 0: their defaults, 0.1 and 1 */
    bool lowercase;
    bool effective_order;        /* leave out orders that the hypothesis is too short for */
    const fth_tokenizer *pieces; /* of FTH_TOK_SPM */
    uint64_t pieces_hash;        /* of that model's file, for the signature */
} fth_bleu_options;

typedef struct fth_bleu {
    double score;                      /* 0 .. 100 */
    double precisions[FTH_BLEU_ORDER]; /* 0 .. 100 */
    double bp;
    int64_t hyp_len, ref_len; /* tokens */
} fth_bleu;

const char *fth_smooth_name(fth_smooth smooth);

/* The counts of each line: hyp_len, ref_len, 4 matches, 4 totals. They may be summed. */
fth_err fth_bleu_stats(const fth_text_pairs *c, const fth_bleu_options *o,
                       double *stats /* [c->n][FTH_BLEU_STATS] */);

/* BLEU from summed counts. */
fth_bleu fth_bleu_from_stats(const double *sums /* [FTH_BLEU_STATS] */, const fth_bleu_options *o);

/* Both at once. */
fth_err fth_bleu_corpus(const fth_text_pairs *c, const fth_bleu_options *o, fth_bleu *out);

fth_err fth_bleu_signature(const fth_sig *sig, const fth_bleu_options *o, fth_str *out);

#endif
