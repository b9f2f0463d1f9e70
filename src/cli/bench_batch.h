/* bench_batch.h: the made-up batch that bench train trains on. */
#ifndef FTH_CLI_BENCH_BATCH_H
#define FTH_CLI_BENCH_BATCH_H

#include "cli/bench.h"
#include "graph/batch_store.h"
#include "train/trainer.h"

typedef struct fth_bench_batch {
    fth_batch_store store;
    float *numbers;  /* [rows of numbers, width]; NULL: none, as these */
    float *values;   /* [sentences] */
    int32_t *masked; /* [rows of numbers] */
    int32_t *labels; /* [sentences] */
} fth_bench_batch;

/* How updates are made. */
fth_recipe fth_bench_recipe(void);

/* What a batch of the options holds, memory and early updates left open. */
fth_trainer_spec fth_bench_size(const bench_options *o, const fth_config *c);

/* Random words or pictures, and the targets that the head takes: of masked-token 15 % of the words
 * or 40 % of the patches have one. */
fth_err fth_bench_batch_init(fth_bench_batch *b, const bench_options *o, const fth_config *c);
void fth_bench_batch_fini(fth_bench_batch *b);

#endif
