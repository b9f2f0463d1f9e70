/* record.h: OUT/sweep.json: what the runs in a folder are a sweep of.
 *
 * The same folder may grow (more seeds, more values), but it is not the folder of another sweep:
 * tables of other runs would take the place of those of the ones that were made. */
#ifndef FTH_SWEEP_RECORD_H
#define FTH_SWEEP_RECORD_H

#include "sweep/spec.h"

/* FTH_BAD_INPUT, with the key that differs, when out_dir is that of another sweep: runs that it has
 * are not in the grid or, with `same`, some of the grid are not among them. A folder without a
 * record is fine. */
fth_err fth_sweep_record_check(const fth_sweep_spec *s, const fth_sweep_grid *g,
                               const char *out_dir, bool same);
fth_err fth_sweep_record_write(const fth_sweep_spec *s, const fth_sweep_grid *g,
                               const char *out_dir, const char *const *set, size_t n_set);

/* The command that made a folder: its file and the words of --set. */
typedef struct fth_sweep_origin {
    const char *file, **set; /* [n_set] */
    size_t n_set;
    fth_arena arena;
} fth_sweep_origin;
fth_err fth_sweep_origin_read(const char *out_dir, fth_sweep_origin *out);
void fth_sweep_origin_fini(fth_sweep_origin *o);

#endif
