/* data.h: the data set of a sweep, made once. */
#ifndef FTH_SWEEP_DATA_H
#define FTH_SWEEP_DATA_H

#include "base/log.h"
#include "base/str.h"
#include "sweep/spec.h"

/* Where the data set is: the spec's data, or OUT/data. */
fth_err fth_sweep_data_path(const fth_sweep_spec *s, const char *out_dir, fth_str *path);

/* The two languages of `corpus`. */
void fth_sweep_data_pair(const fth_sweep_spec *s, char source[8], char target[8]);

/* Makes OUT/data by the verbs corpus and prepare unless it is there. OUT/data.made holds the
 * options it was made with: other ones in the spec are FTH_BAD_CONFIG. */
fth_err fth_sweep_data_make(const fth_sweep_spec *s, const char *out_dir, fth_log *log);

#endif
