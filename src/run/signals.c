/* signals.c: the handler writes the signal's number down; the loop of the run asks for it after
 * every update. */
#include "run/signals.h"

#include <string.h>

/* A handler can reach nothing but a global. */
static volatile sig_atomic_t pending;

static void on_signal(int number) {
    pending = number;
}

void fth_signals_catch(fth_signals *before) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND; /* the second one has its usual effect */
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
