/* log.h: messages to the user, for the command line and the loops it runs.
 *
 * The log is handed to whoever may have something to say; NULL is a log that says nothing. Warnings
 * are shown even when it is quiet. */
#ifndef FTH_BASE_LOG_H
#define FTH_BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

typedef struct fth_log {
    FILE *out;
    bool quiet;
    bool terminal;  /* out is a terminal: progress is a bar that is drawn over and over */
    bool line_open; /* a bar stands in the newest line; messages wipe it first */
} fth_log;

/* out is standard error in the program. */
void fth_log_init(fth_log *log, FILE *out, bool quiet);

void fth_log_info(fth_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fth_log_warn(fth_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Wipes a bar that stands in the newest line. */
void fth_log_wipe(fth_log *log);

#endif
