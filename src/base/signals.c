/* signals.c: the handler writes the signal's number down, and nothing else. */
#include "base/signals.h"

#include <string.h>

/* A handler can reach nothing but a global. */
static volatile sig_atomic_t pending;

static void note_signal(int number) {
    pending = number;
}

static struct sigaction action_with(int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_signal;
    action.sa_flags = flags;
    return action;
}

void fth_signals_catch(fth_signals *before) {
    const struct sigaction action = action_with((int)SA_RESETHAND); /* the second acts as usual */
    pending = 0;
    before->has_hang_up = true;
    sigaction(SIGINT, &action, &before->interrupt);
    sigaction(SIGTERM, &action, &before->terminate);
    sigaction(SIGHUP, NULL, &before->hang_up);
    if (before->hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

void fth_signals_catch_all(fth_signals *before) {
    const struct sigaction action = action_with(0); /* no SA_RESTART: waiting ends */
    pending = 0;
    before->has_hang_up = false;
    sigaction(SIGINT, &action, &before->interrupt);
    sigaction(SIGTERM, &action, &before->terminate);
}

void fth_signals_release(const fth_signals *before) {
    sigaction(SIGINT, &before->interrupt, NULL);
    sigaction(SIGTERM, &before->terminate, NULL);
    if (before->has_hang_up) sigaction(SIGHUP, &before->hang_up, NULL);
}

int fth_signals_pending(void) {
    return pending;
}

const volatile sig_atomic_t *fth_signals_flag(void) {
    return &pending;
}

int fth_signals_take(void) {
    const int number = pending;
    pending = 0;
    return number;
}
