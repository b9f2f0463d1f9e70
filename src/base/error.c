/* error.c: the message of the calling thread, in a buffer of its own; control characters in it
 * become printable. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The one piece of state outside a context: a thread's newest message, as errno is. */
static _Thread_local char message[1024];

/* A message stays one line and harmless on a terminal, whatever name or value it quotes. */
static void keep_printable(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) *text = '?';
}

/* The names stand in parentheses because an analyzer sees macros of the same names (error.h). */
fth_err(fth_fail)(fth_err code, const char *format, ...) {
    char text[sizeof message]; /* the arguments may point into message itself */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    keep_printable(text);
    memcpy(message, text, sizeof text);
    return code;
}

fth_err(fth_fail_in)(fth_err code, const char *format, ...) {
    char context[512], whole[sizeof context + 2 + sizeof message];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    keep_printable(context);
    snprintf(whole, sizeof whole, "%s: %s", context, message);
    whole[sizeof message - 1] = '\0';
    memcpy(message, whole, sizeof message);
    return code;
}

fth_err(fth_no_memory)(const char *thing) {
    return fth_fail(FTH_NO_MEMORY, "no memory for %s", thing);
}

const char *fth_error_message(void) {
    return message;
}

int fth_exit_status(fth_err code) {
    switch (code) {
    case FTH_OK: return 0;
    case FTH_USAGE:
    case FTH_BAD_CONFIG:
    case FTH_BAD_INPUT:
    case FTH_NOT_FOUND: return 2;
    case FTH_DIVERGED: return 3;
    case FTH_STOPPED: return 130;
    case FTH_TERMINATED: return 143;
    case FTH_IO:
    case FTH_NO_MEMORY:
    case FTH_FAILED: return 1;
    }
    return 1;
}
