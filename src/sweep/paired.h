/* paired.h: is the difference between a row and its baseline chance? */
#ifndef FTH_SWEEP_PAIRED_H
#define FTH_SWEEP_PAIRED_H

#include "sweep/result.h"

/* Fills in p of every row that has a baseline, another row with the values of `baseline` that
 * agrees with it in all else, by approximate randomisation (`fathom score --paired`). The outputs
 * of all seeds that both have stand one after the other in the test. What is made lies in
 * OUT/paired and is not made again. */
fth_err fth_sweep_paired(fth_sweep_results *r, const char *out_dir);

#endif
