/* log.c: lines to standard error, each written after the progress bar has been wiped away. */
#include "base/log.h"

#include <stdarg.h>
#include <unistd.h>

void fth_log_init(fth_log *log, FILE *out, bool quiet) {
    *log = (fth_log){.out = out, .quiet = quiet, .terminal = isatty(fileno(out)) == 1};
}

void fth_log_wipe(fth_log *log) {
    if (!log || !log->line_open) return;
    fputs("\r\033[K", log->out);
    log->line_open = false;
}

static void add_line(fth_log *log, const char *prefix, const char *format, va_list args) {
    fth_log_wipe(log);
    fputs(prefix, log->out);
    vfprintf(log->out, format, args);
    fputc('\n', log->out);
    fflush(log->out);
}

void fth_log_info(fth_log *log, const char *format, ...) {
    if (!log || log->quiet) return;
    va_list args;
    va_start(args, format);
    add_line(log, "", format, args);
    va_end(args);
}

void fth_log_warn(fth_log *log, const char *format, ...) {
    if (!log) return;
    va_list args;
    va_start(args, format);
    add_line(log, "warning: ", format, args);
    va_end(args);
}
