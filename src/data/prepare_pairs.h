/* prepare_pairs.h: what prepare does beside, when there are many directions. */
#ifndef FTH_DATA_PREPARE_PAIRS_H
#define FTH_DATA_PREPARE_PAIRS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "data/folder.h"
#include "data/pairs.h"
#include "data/records.h"

/* The texts of each split; lists come from the arena. */
fth_err fth_pairs_texts(const fth_pairs *pairs, fth_arena *arena, fth_text_spec text[FTH_N_SPLITS]);

/* Says which directions lack a split that others have. */
void fth_pairs_warn_missing(const fth_pairs *pairs, fth_log *log);

/* The tags of every direction, by one tokenizer. Zeroed: none, may be freed. */
typedef struct fth_tagging {
    fth_ids *tags;    /* [n] before the source of each direction */
    uint8_t *is_tag;  /* [vocab] */
    int64_t *written; /* [n] sentences of the split at hand */
    int32_t n;
} fth_tagging;

fth_err fth_tagging_init(fth_tagging *g, const fth_languages *l, const fth_tokenizer *t);
void fth_tagging_fini(fth_tagging *g);

/* Writes the numbers of a split's sentences into its entry of dataset.json, and says where a
 * direction that has files has few or none; nothing where there are no directions. */
fth_err fth_tagging_describe(const fth_tagging *g, const fth_languages *l,
                             const fth_text_spec *text, const char *split, fth_log *log,
                             json_t *entry);

#endif
