#include "train/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static fth_err write_all(fth_run_log *log, const char *text, size_t length) {
    while (length > 0) {
        ssize_t n = write(log->fd, text, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fth_fail(FTH_IO, "%s: cannot write: %s", log->path, strerror(errno));
        text += n;
        length -= (size_t)n;
    }
    return FTH_OK;
}

fth_err fth_run_log_open(fth_run_log *log, const char *path) {
    *log = (fth_run_log){.path = strdup(path), .fd = -1};
    if (!log->path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    log->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (log->fd < 0) return fth_fail(FTH_IO, "%s: cannot open: %s", path, strerror(errno));
    if (flock(log->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fth_fail(FTH_FAILED,
                        "%s: another training writes it; stop that one first, or use another "
                        "--save-dir",
                        path);
    off_t size = lseek(log->fd, 0, SEEK_END);
    char last = '\n';
    if (size > 0 && pread(log->fd, &last, 1, size - 1) == 1 && last != '\n')
        return write_all(log, "\n", 1);
    return FTH_OK;
}

void fth_run_log_close(fth_run_log *log) {
    if (log->path && log->fd >= 0) close(log->fd);
    free(log->path);
    *log = (fth_run_log){.fd = -1};
}

fth_err fth_run_log_write(fth_run_log *log, json_t *line) {
    if (log->fd < 0) {
        json_decref(line);
        return FTH_OK;
    }
    if (!line) return fth_fail(FTH_NO_MEMORY, "no memory for a line of %s", log->path);
    fth_str text = {0};
    fth_err err = fth_json_write(line, 0, &text);
    if (err == FTH_OK) err = fth_str_add(&text, "\n", 1);
    if (err == FTH_OK) err = write_all(log, text.text, text.length);
    fth_str_fini(&text);
    json_decref(line);
    return err;
}

json_t *fth_run_log_line(const char *type, int64_t update) {
    return json_pack("{s:s, s:I}", "type", type, "update", (json_int_t)update);
}

void fth_run_log_number(json_t *line, const char *key, double value) {
    if (!line) return;
    bool whole = fabs(value) < 1e15 && value == floor(value);
    json_object_set_new(line, key,
                        whole ? json_integer((json_int_t)value) : fth_json_number(value));
}

void fth_run_log_text(json_t *line, const char *key, const char *value) {
    if (line) json_object_set_new(line, key, json_string(value));
}
