/* probe.c: the list of analyses with their names and what each needs. */
#include "probe/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

static const fth_analysis analyses[] = {
    {"gradnorm", "gradient norm of each layer's parameters and of its output", "gp,ga", 2, false,
     fth_probe_gradnorm, NULL},
    {"places", "gradient norm at five places inside each layer, across its LNs", "place,value", 2,
     false, fth_probe_places, NULL},
    {"update", "how far the output has moved from that of the first model", "hidden,logits", 2,
     false, NULL, fth_probe_update},
    {"lninput", "mean norm of what enters each layer norm", "ln,value", 1, true, fth_probe_lninput,
     NULL},
    {"similarity", "mean cosine between the outputs of every two layers", "other,value", 2, false,
     fth_probe_similarity, NULL},
    {"sparsity", "share of non-zero entries after the ReLU", "nonzero_pct", 1, false,
     fth_probe_sparsity, NULL},
    {"surface", "loss on a plane of two random directions around the model", "a,b,loss", 3, false,
     fth_probe_surface, NULL},
    {"trajectory", "way of a run and the loss on the plane that it lies in", "kind,a,b,loss", 3,
     true, NULL, fth_probe_trajectory},
    {0}};

const fth_analysis *fth_analyses(void) {
    return analyses;
}

fth_err fth_analysis_find(const char *name, const fth_analysis **out) {
    const char *names[sizeof analyses / sizeof *analyses];
    int n = 0;
    for (const fth_analysis *a = analyses; a->name; a++) {
        names[n++] = a->name;
        *out = a;
        if (strcmp(a->name, name) == 0) return FTH_OK;
    }
    const char *meant = fth_nearest(name, names, (size_t)n);
    return fth_fail(FTH_USAGE,
                    "%.100s: is no analysis%s%s%s; there are gradnorm, places, update, lninput, "
                    "similarity, sparsity, surface and trajectory",
                    name, meant ? ", did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

/* The last part of a path. */
static const char *tail(const char *path) {
    const char *at = path + strlen(path);
    while (at > path && at[-1] == '/') at--;
    while (at > path && at[-1] != '/') at--;
    return at;
}

/* A model's name in figures: its folder, with a checkpoint's run before it; the newest of a run is
 * called by the run alone. malloc'd. */
static char *label_of(const char *path) {
    const char *middle = strstr(path, "/checkpoints/");
    if (!middle) return strdup(tail(path));
    char *run = strndup(path, (size_t)(middle - path)), *label = NULL;
    const char *name = tail(path);
    if (run && strcmp(name, "last") == 0) label = strdup(tail(run));
    if (run && !label) label = fth_strdup_printf("%s/%s", tail(run), name);
    free(run);
    return label;
}

fth_err fth_probe_model(const fth_analysis *a, const fth_probe_spec *spec, const char *folder,
                        fth_table *out) {
    fth_subject s;
    FTH_TRY(fth_subject_open(&s, spec, folder));
    char *label = label_of(folder);
    fth_err err = label ? fth_table_subject(out, label, &s.model.config)
                        : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK) err = a->model(&s, out);
    fth_subject_close(&s);
    free(label);
    return err == FTH_USAGE ? fth_fail_in(err, "%s", folder) : err;
}

fth_err fth_probe_series(const fth_analysis *a, const fth_probe_spec *spec, const fth_series *s,
                         fth_table *out) {
    return a->series(s, spec, out);
}
