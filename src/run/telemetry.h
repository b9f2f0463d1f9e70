/* telemetry.h: what happens in every sub-layer while a model trains (doc/telemetry.md). A watched
 * update runs a second program: the trainer's own with watch operations in between, in the memory
 * of the trainer's. It computes the same bits. The last rows are kept, for the day that the run
 * fails. */
#ifndef FTH_RUN_TELEMETRY_H
#define FTH_RUN_TELEMETRY_H

#include "run/run_log.h"
#include "train/trainer.h"

typedef enum fth_quantity {
#define QUANTITY(id, name, text) FTH_Q_##id,
#include "run/quantities.def"
#undef QUANTITY
    FTH_N_QUANTITIES
} fth_quantity;
const char *fth_quantity_name(fth_quantity q);

enum { FTH_TELEMETRY_ROWS = 64 }; /* rows that are kept */

/* One watched update. */
typedef struct fth_telemetry_row {
    int64_t update;
    fth_update what;
    double
        encoder_cosine; /* mean between positions of a sentence; NAN: no encoder below a decoder */
    float *value;       /* [FTH_N_QUANTITIES, sub-layers]: the encoder's, then the decoder's */
} fth_telemetry_row;

typedef struct fth_telemetry fth_telemetry;

/* The trainer is borrowed and must not move; spec is that of fth_trainer_init. */
fth_err fth_telemetry_new(fth_trainer *trainer, const fth_trainer_spec *spec, fth_telemetry **out);
void fth_telemetry_free(fth_telemetry *w);

/* fth_trainer_update, watched. Adds a row. */
fth_err fth_telemetry_update_from(fth_telemetry *w, int64_t update, const fth_batches *batches,
                                  fth_update *out);
fth_err fth_telemetry_update(fth_telemetry *w, int64_t update, const fth_batch *const *batches,
                             int n_batches, fth_update *out);

/* Sub-layers of a stack, bottom to top, and of both. */
int32_t fth_sublayers(const fth_config *c, fth_stack stack);
int32_t fth_telemetry_sublayers(const fth_telemetry *w);

/* Rows that are there, and row i of them, 0 the newest. */
int32_t fth_telemetry_rows(const fth_telemetry *w);
const fth_telemetry_row *fth_telemetry_row_at(const fth_telemetry *w, int32_t i);
/* The very first row, which is kept for good; NULL: there is none. */
const fth_telemetry_row *fth_telemetry_first(const fth_telemetry *w);
/* Whether sub-layer i (counted as in a row) has the quantity. */
bool fth_telemetry_has(const fth_telemetry *w, fth_quantity q, int32_t i);

/* Squared gradient norm of the parameters that belong to no sub-layer, in the newest row. */
double fth_telemetry_rest(const fth_telemetry *w);

/* Bytes on the device beside the trainer's. */
int64_t fth_telemetry_bytes(const fth_telemetry *w);

/* Numbers of a quantity of a stack as JSON, null where it does not exist. NULL: no memory. */
json_t *fth_telemetry_values(const fth_telemetry *w, const fth_telemetry_row *row, fth_quantity q,
                             fth_stack stack);

/* Writes the newest row: a `layers` line for each stack and quantity. */
fth_err fth_telemetry_log(const fth_telemetry *w, fth_run_log *log);

#endif
