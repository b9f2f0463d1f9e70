#include "train/signals.h"

#include <signal.h>
#include <string.h>

/* A handler can reach nothing but a global. */
static volatile sig_atomic_t pending;

static void on_signal(int number) {
    pending = number;
}

void fth_signals_catch(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND; /* the second one has its usual effect */
    pending = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void fth_signals_release(void) {
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

int fth_signals_pending(void) {
    return pending;
}
