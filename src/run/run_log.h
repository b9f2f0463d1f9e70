/* run_log.h: RUN/log.jsonl (doc/formats.md#the-run-folder): one object a line, appended and
 * flushed. */
#ifndef FTH_RUN_RUN_LOG_H
#define FTH_RUN_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "run/tensorboard.h"

typedef struct fth_run_log {
    char *path;
    int fd;
    fth_events events; /* closed unless TensorBoard is to read along */
} fth_run_log;

/* Opens for appending and locks it; a line that was left unfinished is taken away. */
fth_err fth_run_log_open(fth_run_log *log, const char *path);
void fth_run_log_close(fth_run_log *log);

/* Whether its name is still that of the file that is open: not so when somebody has removed or
 * moved it. */
bool fth_run_log_is_ours(const fth_run_log *log);

/* Waits until all lines are on the disk. */
fth_err fth_run_log_sync(fth_run_log *log);

/* Whether there is a line of that type and update. */
fth_err fth_run_log_has(const fth_run_log *log, const char *type, int64_t update, bool *has);

/* Writes an object and gives it back its reference, also when it fails. A log that is not open, as
 * on ranks but the first, takes everything. */
fth_err fth_run_log_write(fth_run_log *log, json_t *line);

/* {"type": type, "update": update}, to be filled. NULL when memory is out: fth_run_log_write then
 * says so. */
json_t *fth_run_log_line(const char *type, int64_t update);
void fth_run_log_number(json_t *line, const char *key, double value);
void fth_run_log_text(json_t *line, const char *key, const char *value);

#endif
