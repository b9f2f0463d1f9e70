/* log.jsonl of a run, as the page and the terminal show it; its second half comes later, as of a
 * run that goes on. */
#include <string.h>

#include "base/file.h"
#include "fuzz.h"
#include "inspect/run_view_json.h"
#include "inspect/run_views.h"
#include "watch/terminal.h"

static char folder[] = "/dev/shm/fathom-fuzz-XXXXXX", path[sizeof folder + 12];

static void put(const uint8_t *data, size_t size, const char *mode) {
    FILE *f = fopen(path, mode);
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
}

static void clean(void) {
    unlink(path);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!path[0]) {
        if (!mkdtemp(folder)) abort();
        snprintf(path, sizeof path, "%s/log.jsonl", folder);
        atexit(clean);
    }
    const char *const folders[] = {folder};
    fth_run_views v = {0};
    fth_str json = {0}, drawing = {0};
    bool changed;
    const fth_terminal terminal = {.columns = 60, .rows = 20, .quantity = ""};
    put(data, size / 2, "w");
    if (fth_run_views_init(&v, folders, 1) != FTH_OK || fth_run_views_poll(&v, &changed) != FTH_OK)
        abort();
    put(data + size / 2, size - size / 2, "a");
    if (fth_run_views_poll(&v, &changed) != FTH_OK) abort();
    if (fth_run_views_json((const fth_run_view *const *)v.view, v.n, true, &json) != FTH_OK ||
        memchr(json.text, '<', json.length) || fth_terminal_draw(&terminal, &v, &drawing) != FTH_OK)
        abort();
    fth_str_fini(&json);
    fth_str_fini(&drawing);
    fth_run_views_fini(&v);
    return 0;
}
