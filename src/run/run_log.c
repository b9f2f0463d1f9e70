/* run_log.c: appends whole lines; a half line at the end, of a killed run, is cut off when the
 * log is opened. */
#include "run/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

/* A line that a full disk or a kill has left unfinished is taken away; pipes have none. */
static fth_err cut_half_line(fth_run_log *log) {
    enum { PIECE = 4096 };
    char piece[PIECE];
    const off_t size = lseek(log->fd, 0, SEEK_END);
    off_t end = size > 0 ? size : 0, n = 0;
    const char *last = NULL;
    while (end > 0 && !last) {
        n = end < PIECE ? end : PIECE;
        if (pread(log->fd, piece, (size_t)n, end - n) != n)
            return fth_fail(FTH_IO, "%s: cannot read: %s", log->path, strerror(errno));
        last = memrchr(piece, '\n', (size_t)n);
        end = last ? end - n + (last - piece) + 1 : end - n;
    }
    if (end < size && ftruncate(log->fd, end) != 0)
        return fth_fail(FTH_IO, "%s: cannot write: %s", log->path, strerror(errno));
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
    return cut_half_line(log);
}

bool fth_run_log_is_ours(const fth_run_log *log) {
    struct stat open_file, named;
    if (log->fd < 0) return true;
    return fstat(log->fd, &open_file) == 0 && stat(log->path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

fth_err fth_run_log_sync(fth_run_log *log) {
    if (log->fd < 0 || fsync(log->fd) == 0 || errno == EINVAL)
        return FTH_OK; /* EINVAL: a pipe, a device */
    return fth_fail(FTH_IO, "%s: cannot write: %s", log->path, strerror(errno));
}

fth_err fth_run_log_has(const fth_run_log *log, const char *type, int64_t update, bool *has) {
    char begin[96], *line = NULL;
    size_t capacity = 0;
    *has = false;
    const int n =
        snprintf(begin, sizeof begin, "{\"type\":\"%s\",\"update\":%lld,", type, (long long)update);
    struct stat st;
    if (fstat(log->fd, &st) != 0 || !S_ISREG(st.st_mode)) return FTH_OK; /* a pipe, a device */
    FILE *file = fopen(log->path, "re");
    if (!file) return fth_fail(FTH_IO, "%s: cannot open: %s", log->path, strerror(errno));
    while (!*has && getline(&line, &capacity, file) > 0)
        *has = strncmp(line, begin, (size_t)n) == 0;
    free(line);
    fclose(file);
    return FTH_OK;
}

void fth_run_log_close(fth_run_log *log) {
    if (log->path && log->fd >= 0) close(log->fd);
    free(log->path);
    fth_events_close(&log->events);
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
    if (err == FTH_OK) err = fth_events_line(&log->events, line);
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
