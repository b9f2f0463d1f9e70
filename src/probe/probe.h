/* probe.h: the analyses of doc/analyses.md. Each adds rows to a table; doc/probe.md#the-columns
 * names the columns. */
#ifndef FTH_PROBE_PROBE_H
#define FTH_PROBE_PROBE_H

#include "probe/subject.h"
#include "probe/table.h"

/* Checkpoints of one run in the order of their steps; the first is theta_0. */
typedef struct fth_series {
    char *label;
    char **folder; /* [n] model folders; folder[0] NULL: theta_0 is drawn */
    int64_t *step; /* [n] */
    int32_t n;
    uint64_t seed; /* of the drawn theta_0 */
    bool given;    /* theta_0 is a model of its own, whatever step it has */
} fth_series;

/* One of the two is set: what a single model shows, or what a series of them does. */
typedef struct fth_analysis {
    const char *name;
    const char *about;   /* one line */
    const char *columns; /* its own */
    int32_t n_numbers;
    bool has_word;
    fth_err (*model)(fth_subject *s, fth_table *out);
    fth_err (*series)(const fth_series *s, const fth_probe_spec *spec, fth_table *out);
} fth_analysis;

/* All of them, ended by a NULL name. */
const fth_analysis *fth_analyses(void);
/* FTH_USAGE names the nearest. */
fth_err fth_analysis_find(const char *name, const fth_analysis **out);

/* Adds the rows of one model folder, or of one series. */
fth_err fth_probe_model(const fth_analysis *a, const fth_probe_spec *spec, const char *folder,
                        fth_table *out);
fth_err fth_probe_series(const fth_analysis *a, const fth_probe_spec *spec, const fth_series *s,
                         fth_table *out);

/* ---- one file each ---- */

fth_err fth_probe_gradnorm(fth_subject *s, fth_table *out);
fth_err fth_probe_places(fth_subject *s, fth_table *out);
fth_err fth_probe_lninput(fth_subject *s, fth_table *out);
fth_err fth_probe_similarity(fth_subject *s, fth_table *out);
fth_err fth_probe_sparsity(fth_subject *s, fth_table *out);
fth_err fth_probe_surface(fth_subject *s, fth_table *out);
fth_err fth_probe_update(const fth_series *s, const fth_probe_spec *spec, fth_table *out);
fth_err fth_probe_trajectory(const fth_series *s, const fth_probe_spec *spec, fth_table *out);

#endif
