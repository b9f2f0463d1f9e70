/* child_process.c: a child process made by fork writes its bytes, or its error and message, into a
 * pipe; the parent reads to the end and waits for it. */
#include "base/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* Another thread may hold the sanitizer's locks while the process is copied, and the copy would
 * wait for them for ever. */
fth_err fth_in_child(const char *what, fth_child_work work, void *state, char **bytes,
                     size_t *size) {
    (void)what;
    return work(state, bytes, size);
}
#else

/* What the child sends first; `size` bytes follow, those of the message where err says so. */
typedef struct answer {
    fth_err err;
    size_t size;
} answer;

static bool put_all(int fd, const void *data, size_t size) {
    const char *from = data;
    while (size) {
        const ssize_t n = write(fd, from, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        from += n;
        size -= (size_t)n;
    }
    return true;
}

static bool get_all(int fd, void *data, size_t size) {
    char *to = data;
    while (size) {
        const ssize_t n = read(fd, to, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n;
        size -= (size_t)n;
    }
    return true;
}

/* The handlers of the parent are not for its copy, and nobody waits for it once the parent is
 * gone. */
static void leave_parent(pid_t parent) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
}

static _Noreturn void be_child(fth_child_work work, void *state, int to) {
    char *bytes = NULL;
    size_t size = 0;
    answer a = {.err = work(state, &bytes, &size)};
    const char *content = a.err == FTH_OK ? bytes : fth_error_message();
    a.size = a.err == FTH_OK ? size : strlen(content);
    _exit(put_all(to, &a, sizeof a) && put_all(to, content, a.size) ? 0 : 1);
}

/* False when the child ended before it had said all. */
static bool listen_to(int from, answer *a, char **content) {
    if (!get_all(from, a, sizeof *a)) return false;
    *content = malloc(a->size + 1);
    if (!*content || !get_all(from, *content, a->size)) return false;
    (*content)[a->size] = 0;
    return true;
}

static fth_err fail_dead(const char *what, pid_t child) {
    int raw = 0;
    while (waitpid(child, &raw, 0) < 0)
        if (errno != EINTR) break;
    if (WIFSIGNALED(raw))
        return fth_fail(FTH_FAILED, "%s: ended by signal %d (%s)", what, WTERMSIG(raw),
                        strsignal(WTERMSIG(raw)));
    return fth_fail(FTH_FAILED, "%s: ended with status %d", what, WEXITSTATUS(raw));
}

fth_err fth_in_child(const char *what, fth_child_work work, void *state, char **bytes,
                     size_t *size) {
    int ends[2];
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fth_fail(FTH_FAILED, "%s: no pipe: %s", what, strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        leave_parent(parent);
        be_child(work, state, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return fth_fail(FTH_FAILED, "%s: no process can be started: %s", what, strerror(errno));
    }
    answer a;
    char *content = NULL;
    const bool heard = listen_to(ends[0], &a, &content);
    close(ends[0]);
    fth_err err = FTH_OK;
    if (!heard)
        err = fail_dead(what, child);
    else if (waitpid(child, NULL, 0) != child)
        err = fth_fail(FTH_FAILED, "%s: a process was lost: %s", what, strerror(errno));
    else if (a.err != FTH_OK)
        err = fth_fail(a.err, "%s", content);
    if (err == FTH_OK) {
        *bytes = content;
        *size = a.size;
        return FTH_OK;
    }
    free(content);
    return err;
}
#endif
