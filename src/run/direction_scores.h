/* direction_scores.h: translates a split of data of many languages and scores every direction. */
#ifndef FTH_RUN_DIRECTION_SCORES_H
#define FTH_RUN_DIRECTION_SCORES_H

#include "base/log.h"
#include "data/folder.h"
#include "decode/generator.h"
#include "text/text.h"

/* One direction. */
typedef struct fth_direction_score {
    int64_t sentences; /* 0: it has none in this split, and no scores */
    bool trained;      /* it has training sentences; otherwise it is zero-shot */
    double bleu, chrf, spbleu;
} fth_direction_score;

/* What is translated, and how. */
typedef struct fth_direction_job {
    const fth_folder *data;
    int split;
    int64_t sentences;           /* of each direction the first so many; 0: all */
    const fth_tokenizer *pieces; /* what spBLEU is counted in */
    const fth_tokenizer *tokenizer;
    fth_log *log;
} fth_direction_job;

/* All of it. Zeroed: empty, may be freed. */
typedef struct fth_direction_scores {
    fth_direction_score *of; /* [n] by the numbers of the data set's directions */
    int32_t n;
    fth_text_lines sources, refs;
    fth_str *outputs; /* [sentences] translations, direction after direction */
    int64_t *first;   /* [n + 1] in outputs */
    int64_t *line;    /* [n + 1] in sources and refs */
} fth_direction_scores;

/* The generator has the model. FTH_USAGE for data of one pair. */
fth_err fth_direction_scores_run(const fth_direction_job *job, fth_generator *g,
                                 fth_direction_scores *out);

/* FOLDER/en-de.hyp and en-de.ref, lines that belong together. */
fth_err fth_direction_scores_write(const fth_direction_scores *s, const fth_languages *l,
                                   const char *folder);
void fth_direction_scores_fini(fth_direction_scores *s);

#endif
