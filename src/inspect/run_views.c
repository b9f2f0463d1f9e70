/* run_views.c: opens and polls a list of folders. */
#include "inspect/run_views.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static fth_err check_folder(const char *const *folders, int at) {
    struct stat st;
    const char *folder = folders[at];
    if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode))
        return fth_fail(FTH_USAGE, "%s: must be a run folder, not a file", folder);
    for (int i = 0; i < at; i++)
        if (strcmp(folders[i], folder) == 0)
            return fth_fail(FTH_USAGE, "%s: is given twice", folder);
    return FTH_OK;
}

fth_err fth_run_views_init(fth_run_views *v, const char *const *folders, int n) {
    *v = (fth_run_views){0};
    if (n > FTH_VIEWS_MOST)
        return fth_fail(FTH_USAGE, "%d run folders: must be at most %d", n, FTH_VIEWS_MOST);
    v->view = calloc((size_t)n, sizeof *v->view);
    fth_err err = v->view ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for %d runs", n);
    for (int i = 0; i < n && err == FTH_OK; i++) {
        err = check_folder(folders, i);
        if (err != FTH_OK) break;
        v->view[i] = calloc(1, sizeof **v->view);
        err = v->view[i] ? fth_run_view_init(v->view[i], folders[i])
                         : fth_fail(FTH_NO_MEMORY, "no memory for a run");
        v->n = i + 1;
    }
    if (err != FTH_OK) fth_run_views_fini(v);
    return err;
}

void fth_run_views_fini(fth_run_views *v) {
    for (int i = 0; v->view && i < v->n; i++) {
        if (v->view[i]) fth_run_view_fini(v->view[i]);
        free(v->view[i]);
    }
    free(v->view);
    *v = (fth_run_views){0};
}

fth_err fth_run_views_poll(fth_run_views *v, bool *changed) {
    *changed = false;
    for (int i = 0; i < v->n; i++) {
        bool one;
        FTH_TRY(fth_run_view_poll(v->view[i], &one));
        *changed = *changed || one;
    }
    return FTH_OK;
}
