/* signals.c: the handler writes the signal's number down, and nothing else. */
#include "base/signals.h"

#include <string.h>

/* A handler can reach nothing but a global. */
static volatile sig_atomic_t pending;

static void on_signal(int number) {
    pending = number;
}

void fth_signals_catch(fth_signals *before, bool once) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = once ? (int)SA_RESETHAND : 0; /* the second one has its usual effect */
    pending = 0;
    sigaction(SIGINT, &action, &before->interrupt);
    sigaction(SIGTERM, &action, &before->terminate);
}

void fth_signals_release(const fth_signals *before) {
    sigaction(SIGINT, &before->interrupt, NULL);
    sigaction(SIGTERM, &before->terminate, NULL);
}

int fth_signals_pending(void) {
    return pending;
}

int fth_signals_take(void) {
    const int number = pending;
    pending = 0;
    return number;
}
