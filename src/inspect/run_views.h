/* run_views.h: several runs that are looked at together. */
#ifndef FTH_INSPECT_RUN_VIEWS_H
#define FTH_INSPECT_RUN_VIEWS_H

#include "inspect/run_view.h"

enum { FTH_VIEWS_MOST = 200 };

typedef struct fth_run_views {
    fth_run_view **view; /* [n] */
    int n;
} fth_run_views;

/* Folders that are not there are fine: their view says so. A file instead of a folder, a folder
 * given twice or too many of them is FTH_USAGE. */
fth_err fth_run_views_init(fth_run_views *v, const char *const *folders, int n);
void fth_run_views_fini(fth_run_views *v);

/* Reads what is new in all of them. */
fth_err fth_run_views_poll(fth_run_views *v, bool *changed);

#endif
