/* end_by_signal.c: the handler only writes down the signal; a thread of its own, which may take
 * locks, removes what is unfinished and ends the process: by the same signal, or with status 1
 * where a library has called abort. */
#include "cli/end_by_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/unfinished.h"

/* A handler can reach nothing but a global. */
static int to_guard = -1; /* a pipe: a byte for each signal */

static void pass_on(int number) {
    const int before = errno;
    const unsigned char byte = (unsigned char)number;
    (void)!write(to_guard, &byte, 1);
    errno = before;
}

/* Libraries abort where memory runs out in the middle of their work: protobuf, of which
 * SentencePiece's models are made, for one. The thread that aborts may hold a lock that removing
 * needs; then it is not waited for. */
static void on_abort(int number) {
    enum { PATIENCE = 5 }; /* seconds */
    static const char text[] = "fathom: a library has ended the program; it does so when memory "
                               "runs out\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    pass_on(number);
    sleep(PATIENCE);
    _exit(1);
}

/* Removing folders is too much for a handler, and the other threads may be in the middle of
 * anything: so a thread waits for this. It does not give the lock back, so nothing is made behind
 * its back. */
static void *wait_for_signal(void *pipe_end) {
    const int from = *(int *)pipe_end;
    unsigned char number;
    ssize_t got;
    while ((got = read(from, &number, 1)) < 0 && errno == EINTR) {
    }
    if (got != 1) return NULL;
    fth_unfinished_lock();
    fth_unfinished_remove();
    if (number == SIGABRT) _exit(1);
    signal(number, SIG_DFL);
    kill(getpid(), number);
    for (;;) pause();
}

/* The thread gets no signals itself. */
static int start_thread(int *pipe_end) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread, NULL, wait_for_signal, pipe_end);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed || pthread_detach(thread);
}

/* Whoever was started without one of the three standard files must not get another file in its
 * place: text for stderr would go into a log, and input be read from the pipe below. Opened the
 * wrong way round, so that using it is an error. */
static void fill_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void fth_end_by_signal(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    static int ends[2]; /* the thread reads it when this function is long over */
    fill_standard_files();
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    to_guard = ends[1];
    if (start_thread(&ends[0])) return;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action, before;
        memset(&action, 0, sizeof action);
        action.sa_handler = pass_on;
        action.sa_flags = (int)(SA_RESTART | SA_RESETHAND); /* the second one ends it at once */
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    }
    signal(SIGABRT, on_abort);
}
