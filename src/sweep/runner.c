/* runner.c: keeps as many children as jobs, each with its output in a file, and hands SIGINT and
 * SIGTERM on to them. */
#include "sweep/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/signals.h"
#include "base/str.h"

/* ---- locks ---- */

static fth_err open_lock(const fth_runner *r, const char *name, int flags, int *fd) {
    char *path = fth_strdup_printf("%s/%s", r->out_dir, name);
    if (!path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    *fd = open(path, O_RDWR | O_CREAT | flags, 0666);
    fth_err err =
        *fd >= 0 ? FTH_OK : fth_fail(FTH_IO, "%s: cannot open: %s", path, strerror(errno));
    free(path);
    return err;
}

fth_err fth_runner_open(fth_runner *r) {
    r->sweep_lock = r->runs_lock = -1;
    FTH_TRY(open_lock(r, ".sweep.lock", O_CLOEXEC, &r->sweep_lock));
    if (flock(r->sweep_lock, LOCK_EX | LOCK_NB) != 0)
        return fth_fail(FTH_FAILED,
                        "%s: another fathom sweep works there; stop it first, or use "
                        "another --out",
                        r->out_dir);
    FTH_TRY(open_lock(r, ".runs.lock", 0, &r->runs_lock));
    if (flock(r->runs_lock, LOCK_EX | LOCK_NB) == 0) return FTH_OK;
    fth_log_info(r->log, "waiting for runs of an earlier sweep to save their checkpoints");
    while (flock(r->runs_lock, LOCK_EX) != 0)
        if (errno != EINTR) return fth_fail(FTH_IO, "%s: cannot be locked", r->out_dir);
    return FTH_OK;
}

void fth_runner_close(fth_runner *r) {
    if (r->runs_lock >= 0) close(r->runs_lock);
    if (r->sweep_lock >= 0) close(r->sweep_lock);
    r->sweep_lock = r->runs_lock = -1;
}

/* ---- one child ---- */

/* In the child: becomes the program with words. Signals of the terminal go to the sweep alone,
 * which passes them on; when the sweep dies, the run is asked to save and to end. */
static void become(const char *const *words, const char *output, const char *gpu, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127); /* it died before that */
    int in = open("/dev/null", O_RDONLY), out = open(output, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (in < 0 || out < 0) _exit(127);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    close(in);
    close(out);
    if (gpu) setenv("CUDA_VISIBLE_DEVICES", gpu, 1);
    execv("/proc/self/exe", (char *const *)words);
    _exit(127);
}

static fth_err start(const char *const *words, const char *output, const char *gpu, pid_t *pid) {
    pid_t parent = getpid();
    sigset_t both, before;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both,
                &before); /* none may be lost in the child's copy of the handler */
    *pid = fork();
    int reason = errno;
    if (*pid == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (*pid < 0) return fth_fail(FTH_FAILED, "no process can be started: %s", strerror(reason));
    if (*pid == 0) become(words, output, gpu, parent);
    return FTH_OK;
}

static int status_of(int raw) {
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

fth_err fth_runner_call(const char *const *words, const char *output, int *status) {
    size_t n = 0;
    int raw;
    pid_t pid;
    while (words[n]) n++;
    const char **line = calloc(n + 2, sizeof *line);
    if (!line) return fth_fail(FTH_NO_MEMORY, "no memory for a command line");
    line[0] = "fathom";
    memcpy(line + 1, words, n * sizeof *words);
    fth_err err = start(line, output, NULL, &pid);
    free(line);
    if (err != FTH_OK) return err;
    while (waitpid(pid, &raw, 0) < 0)
        if (errno != EINTR) return fth_fail(FTH_FAILED, "a process was lost: %s", strerror(errno));
    *status = status_of(raw);
    return FTH_OK;
}

/* ---- all of them ---- */

typedef struct slot {
    pid_t pid; /* 0: free */
    size_t run;
} slot;

typedef struct work {
    fth_runner *r;
    const fth_sweep_grid *grid;
    slot *slots; /* [jobs] */
    size_t next, finished, errors;
} work;

static char *folder_of(const work *w, size_t run) {
    return fth_strdup_printf("%s/runs/%s", w->r->out_dir, w->grid->run[run].name);
}

/* fathom train DATA --save-dir FOLDER, the extra words, the words of the run. */
static fth_err start_run(work *w, size_t run, slot *s) {
    const fth_sweep_run *what = &w->grid->run[run];
    size_t n = 0, at = (size_t)(s - w->slots);
    char *folder = folder_of(w, run);
    char *output = folder ? fth_strdup_printf("%s/output.txt", folder) : NULL;
    const char **words = calloc(what->n_words + w->r->n_extra + 8, sizeof *words);
    fth_err err = output && words ? fth_make_dirs(folder) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK) {
        const char *first[] = {"fathom", "train", w->r->data, "--save-dir", folder, "--quiet"};
        for (size_t i = 0; i < sizeof first / sizeof *first; i++) words[n++] = first[i];
        for (size_t i = 0; i < w->r->n_extra; i++) words[n++] = w->r->extra[i];
        for (size_t i = 0; i < what->n_words; i++) words[n++] = what->words[i];
        const char *gpu = w->r->n_gpus ? w->r->gpus[at % w->r->n_gpus] : NULL;
        err = start(words, output, gpu, &s->pid);
        s->run = run;
    }
    free(words);
    free(output);
    free(folder);
    return err;
}

/* The last line that a run wrote, for a message. */
static void last_words(const char *folder, char *out, size_t size) {
    char *path = fth_strdup_printf("%s/output.txt", folder), *text = NULL;
    size_t length = 0;
    out[0] = '\0';
    if (path && fth_file_read(path, &text, &length) == FTH_OK) {
        while (length > 0 && text[length - 1] == '\n') text[--length] = '\0';
        const char *line = strrchr(text, '\n');
        snprintf(out, size, "%s", line ? line + 1 : text);
    }
    free(path);
    free(text);
}

static fth_err is_finished(const work *w, size_t run, bool *out) {
    fth_sweep_result result;
    char *folder = folder_of(w, run);
    if (!folder) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_err err = fth_sweep_result_read(folder, &result);
    *out = err == FTH_OK && (result.state == FTH_VIEW_ENDED || result.state == FTH_VIEW_FAILED);
    fth_sweep_result_fini(&result);
    free(folder);
    return err;
}

static fth_err tell(work *w, size_t run, int status) {
    fth_sweep_result result;
    char *folder = folder_of(w, run), words[400];
    if (!folder) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_err err = fth_sweep_result_read(folder, &result);
    const char *name = w->grid->run[run].name;
    if (status == 0 || status == 3) w->finished++;
    if (err != FTH_OK) {
        free(folder);
        return err;
    }
    if (status == 0)
        fth_log_info(w->r->log, "[%zu/%zu] %s: best %.4f, final %.4f", w->finished, w->grid->n,
                     name, result.best, result.final);
    else if (status == 3)
        fth_log_info(w->r->log, "[%zu/%zu] %s: failed: %s", w->finished, w->grid->n, name,
                     result.reason ? result.reason : "");
    else if (status != 130 && status != 143) {
        last_words(folder, words, sizeof words);
        fth_log_warn(w->r->log, "%s: ended with status %d: %s", name, status, words);
        w->errors++;
    }
    fth_sweep_result_fini(&result);
    free(folder);
    return err;
}

static bool is_busy(const work *w) {
    for (int i = 0; i < w->r->jobs; i++)
        if (w->slots[i].pid) return true;
    return false;
}

static void pass_on(const work *w, int number) {
    for (int i = 0; i < w->r->jobs; i++)
        if (w->slots[i].pid) kill(w->slots[i].pid, number);
}

/* Fills the free slots with runs that are not finished. */
static fth_err fill(work *w) {
    for (int i = 0; i < w->r->jobs; i++) {
        while (!w->slots[i].pid && w->next < w->grid->n) {
            bool finished;
            size_t run = w->next++;
            FTH_TRY(is_finished(w, run, &finished));
            if (finished)
                w->finished++;
            else
                FTH_TRY(start_run(w, run, &w->slots[i]));
        }
    }
    return FTH_OK;
}

/* Looks for a child that has ended, or sleeps a little; a signal that comes in between is seen by
 * the loop, which a wait without end would not do. */
static fth_err wait_one(work *w) {
    int raw;
    pid_t pid = waitpid(-1, &raw, WNOHANG);
    if (pid < 0 && errno != EINTR)
        return fth_fail(FTH_FAILED, "a run was lost: %s", strerror(errno));
    if (pid <= 0) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        return FTH_OK;
    }
    for (int i = 0; i < w->r->jobs; i++) {
        if (w->slots[i].pid != pid) continue;
        w->slots[i].pid = 0;
        return tell(w, w->slots[i].run, status_of(raw));
    }
    return FTH_OK;
}

static fth_err loop(work *w, int *stopped) {
    fth_err err = FTH_OK;
    for (;;) {
        const int number = fth_signals_take();
        if (number) {
            if (!*stopped) fth_log_info(w->r->log, "stopping: runs save their checkpoints");
            *stopped = number;
            pass_on(w, number);
        }
        if (!*stopped && err == FTH_OK) err = fill(w);
        if (!is_busy(w)) return err;
        if (err != FTH_OK && !*stopped) { /* what runs is let come to a good end */
            *stopped = SIGTERM;
            pass_on(w, SIGTERM);
        }
        fth_err waited = wait_one(w);
        if (err == FTH_OK) err = waited;
    }
}

fth_err fth_runner_run(fth_runner *r, const fth_sweep_grid *grid, size_t *errors) {
    fth_signals before;
    work w = {.r = r, .grid = grid};
    int stopped = 0;
    w.slots = calloc((size_t)r->jobs, sizeof *w.slots);
    if (!w.slots) return fth_fail(FTH_NO_MEMORY, "no memory for %d jobs", r->jobs);
    fth_signals_catch_all(&before);
    fth_err err = loop(&w, &stopped);
    fth_signals_release(&before);
    free(w.slots);
    *errors = w.errors;
    if (err != FTH_OK || !stopped) return err;
    return fth_fail(stopped == SIGTERM ? FTH_TERMINATED : FTH_STOPPED,
                    "stopped by a signal with %zu of %zu runs finished; the same command goes on "
                    "from here",
                    w.finished, grid->n);
}
