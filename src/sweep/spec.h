/* spec.h: the file that describes a sweep (doc/sweep.md), and the runs that it stands for.
 *
 * Every key is an option of `train`; a list of values is an axis of the grid. METHOD.OPTION is an
 * option of a method and counts for its runs only; "a, b" sets two options together. seeds, data,
 * corpus, prepare, out, jobs, gpus, title, x, average, generate, score.NAME, evaluate.NAME,
 * baseline and base (a file whose keys are taken unless this one has them) are the sweep's own. */
#ifndef FTH_SWEEP_SPEC_H
#define FTH_SWEEP_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* One key of the file that goes to `train`. */
typedef struct fth_factor {
    const char *label;   /* as it is written in the file */
    const char *method;  /* METHOD of METHOD.OPTION; NULL: an option of train */
    const char **option; /* [n_options] names without dashes; of a method: one */
    size_t n_options;
    const char **value; /* [n] */
    size_t n;
    bool together;     /* method-option: all values are given at once */
    const char *where; /* "FILE:LINE", or "--set KEY=VALUE" */
} fth_factor;

/* What is measured of each trained model, a column of the tables: score.NAME, the output for a text
 * scored by `fathom score`, or evaluate.NAME, what `fathom evaluate` prints. */
typedef struct fth_measure {
    const char *name;
    const char *metric;  /* of score; NULL: evaluate */
    const char *input;   /* what is translated; NULL: the test text of `corpus` */
    const char *field;   /* of the verb's JSON, as "score" or "rougeL.fmeasure" */
    const char **option; /* [n_options] "option=value" for the verb, the references among them */
    size_t n_options;
    const char *where;
} fth_measure;

typedef struct fth_sweep_spec {
    const char *file, *name; /* name: of the file, without folder and ending */
    const char *where;       /* what is being read, as a factor has it */
    const char *title, *out, *data, *x;
    const char *data_where;
    int64_t jobs;               /* 0: not given */
    const char **seeds, **gpus; /* [n_seeds], [n_gpus] */
    size_t n_seeds, n_gpus;
    const char **corpus, **prepare; /* "option=value" */
    size_t n_corpus, n_prepare;
    bool has_corpus, has_prepare;
    int64_t average; /* the model is the mean of so many checkpoints; 0: the best one */
    const char **generate, **baseline; /* "option=value" for generate; "label=value" of its rows */
    size_t n_generate, n_baseline;
    const char *baseline_where;
    fth_measure *measure; /* [n_measures] */
    size_t n_measures;
    fth_factor *factor; /* [n_factors] */
    size_t n_factors;
    fth_arena arena; /* owns all of it */
} fth_sweep_spec;

/* Reads the file. set: [n_set] "KEY=VALUE", which count where the file says otherwise. FTH_USAGE,
 * FTH_BAD_INPUT, FTH_NOT_FOUND: named with its line. */
fth_err fth_sweep_spec_read(fth_sweep_spec *s, const char *file, const char *const *set,
                            size_t n_set);
void fth_sweep_spec_fini(fth_sweep_spec *s);

/* One run of the grid. */
typedef struct fth_sweep_run {
    const char *name;   /* of its folder: what varies, and a hash of all that it is told */
    const char **words; /* [n_words] "--option=value" for train, without data and --save-dir */
    size_t n_words;
    int32_t *choice; /* [n_factors] which value; -1: does not count for this run */
    const char *seed;
    size_t row; /* runs that differ in the seed alone have the same row */
} fth_sweep_run;

typedef struct fth_sweep_grid {
    fth_sweep_run *run; /* [n] */
    size_t n, rows;
    fth_arena arena;
} fth_sweep_grid;

/* How many runs there are; DBL-exact up to 2^53, and never wrong about being too many. */
double fth_sweep_size(const fth_sweep_spec *s, const char *default_method);

/* Makes the list of runs. FTH_USAGE when there are more than most, with their number. */
fth_err fth_sweep_grid_make(const fth_sweep_spec *s, const char *default_method, int64_t most,
                            fth_sweep_grid *out);
void fth_sweep_grid_fini(fth_sweep_grid *g);

/* Does a factor have several values? Then it is an axis, a column of the table. */
bool fth_factor_varies(const fth_factor *f);

#endif
