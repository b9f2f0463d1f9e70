/* page.h: the page of `report` and `watch`: one HTML file that holds all it needs and asks
 * nobody. */
#ifndef FTH_INSPECT_PAGE_H
#define FTH_INSPECT_PAGE_H

#include "base/str.h"

/* Appends the page around the data (fth_run_views_json). */
fth_err fth_page(const fth_str *data, fth_str *out);

/* Appends the content security policy of the page: its own script and style and nothing else;
 * connect is "" or what it may connect to. */
fth_err fth_page_policy(const char *connect, fth_str *out);

#endif
