/* scorer.h: a score of the validation data while training: its sources, text or recordings, are
 * translated with the parameters as they are, and compared with the text beside the data set
 * (data/split_text.h). */
#ifndef FTH_RUN_SCORER_H
#define FTH_RUN_SCORER_H

#include "backend/arenas.h"
#include "data/folder.h"
#include "model/model.h"

typedef enum fth_score_kind {
    FTH_SCORE_NONE,
    FTH_SCORE_BLEU,
    FTH_SCORE_CHRF,
    FTH_SCORE_WER,
    FTH_SCORE_CER
} fth_score_kind;

/* "bleu", "chrf", "wer", "cer": its key in the log. */
const char *fth_score_name(fth_score_kind kind);

/* Is less better? */
bool fth_score_is_error(fth_score_kind kind);

typedef struct fth_scorer_spec {
    fth_score_kind kind;
    int32_t beam;
    int64_t sentences; /* the first ones of the validation data, of each direction; 0: all */
    int32_t max_tokens;
} fth_scorer_spec;

typedef struct fth_scorer fth_scorer;

/* The folder may be closed afterwards. FTH_USAGE for data without pairs or without a validation
 * split. */
fth_err fth_scorer_new(const fth_scorer_spec *spec, const fth_folder *data, fth_scorer **out);
void fth_scorer_free(fth_scorer *s);

/* In percent, by sacreBLEU's defaults, or error rates by jiwer's; of many directions the mean. The
 * programs that generate are made anew, since they may keep what they have packed of the
 * parameters. */
fth_err fth_scorer_run(fth_scorer *s, const fth_model *model, fth_device *dev,
                       const fth_arenas *arenas, double *score);

#endif
