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
    sigaction(SIGHUP, NULL, &before->hang_up);
    if (before->hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

void fth_signals_release(const fth_signals *before) {
    sigaction(SIGINT, &before->interrupt, NULL);
    sigaction(SIGTERM, &before->terminate, NULL);
    sigaction(SIGHUP, &before->hang_up, NULL);
}

int fth_signals_pending(void) {
    return pending;
}

const volatile sig_atomic_t *fth_signals_flag(void) {
    return &pending;
}
