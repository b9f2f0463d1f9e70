#include "run/resume_options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "store/checkpoint.h"

/* Options that may change when a run goes on; all others must be as they were. */
static bool may_change(const char *line) {
    static const char *const free_keys[] = {"max-update:",
                                            "max-epoch:",
                                            "patience:",
                                            "save-interval-updates:",
                                            "validate-interval-updates:",
                                            "keep-last:",
                                            "log-interval:",
                                            "threads:",
                                            "memory-budget:",
                                            "telemetry:",
                                            "judge-after:",
                                            "stop-time-hours:",
                                            "save-dir:",
                                            "quiet:",
                                            "device:"};
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++)
        if (strncmp(line, free_keys[i], strlen(free_keys[i])) == 0) return true;
    return line[0] == '#';
}

/* Compares the options of the run with those it was begun with, line by line. */
static fth_err compare_options(const char *path, const char *old, const char *new) {
    while (*old || *new) {
        size_t n = strcspn(old, "\n"), m = strcspn(new, "\n");
        if ((n != m || memcmp(old, new, n) != 0) && !(may_change(old) && may_change(new)))
            return fth_fail(FTH_BAD_CONFIG,
                            "%s: the run was begun with \"%.*s\", now it is \"%.*s\"; use another "
                            "--save-dir, or the old options to go on",
                            path, (int)n, old, (int)m, new);
        old += n + (old[n] == '\n');
        new += m + (new[m] == '\n');
    }
    return FTH_OK;
}

/* Without a checkpoint there is nothing to go on from: what a call left that was refused, say for its
 * --restore-file, holds nobody to its options. */
static fth_err has_begun(const char *checkpoints, bool *begun) {
    int64_t *updates = NULL;
    size_t n = 0;
    fth_err err = fth_checkpoint_list(checkpoints, &updates, &n);
    free(updates);
    *begun = n > 0;
    return err;
}

fth_err fth_run_options_keep(const char *run, const char *checkpoints, const char *yaml) {
    bool begun;
    FTH_TRY(has_begun(checkpoints, &begun));
    char *path = fth_strdup_printf("%s/config.yaml", run);
    if (!path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    char *old = NULL;
    size_t size;
    fth_err err = FTH_OK;
    if (begun && fth_file_exists(path)) {
        err = fth_file_read(path, &old, &size);
        if (err == FTH_OK) err = compare_options(path, old, yaml);
    }
    if (err == FTH_OK) err = fth_file_write(path, yaml, strlen(yaml));
    free(old);
    free(path);
    return err;
}
