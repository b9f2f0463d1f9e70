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

/* What a child is told: its words, the file that gets what it says, the file that gets its standard
 * output if that is another (emptied first), its GPU. The last two may be NULL. */
typedef struct call {
    const char *const *words;
    const char *output, *product, *gpu;
} call;

/* In the child: becomes the program with words. Signals of the terminal go to the sweep alone,
 * which passes them on; when the sweep dies, the run is asked to save and to end. */
static void become(const call *c, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127); /* it died before that */
    int in = open("/dev/null", O_RDONLY);
    int says = open(c->output, O_WRONLY | O_CREAT | O_APPEND, 0666);
    int out = c->product ? open(c->product, O_WRONLY | O_CREAT | O_TRUNC, 0666) : dup(says);
    if (in < 0 || says < 0 || out < 0) _exit(127);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(says, STDERR_FILENO);
    close(in);
    close(says);
    close(out);
    if (c->gpu) setenv("CUDA_VISIBLE_DEVICES", c->gpu, 1);
    execv("/proc/self/exe", (char *const *)c->words);
    _exit(127);
}

static fth_err start(const call *c, pid_t *pid) {
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
    if (*pid == 0) become(c, parent);
    return FTH_OK;
}

static int status_of(int raw) {
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

/* words after the program's name; malloc'd, NULL-ended. */
static const char **line_of(const char *const *words, size_t n) {
    const char **line = calloc(n + 2, sizeof *line);
    if (!line) return NULL;
    line[0] = "fathom";
    memcpy(line + 1, words, n * sizeof *words);
    return line;
}

fth_err fth_runner_call(const char *const *words, const char *output, const char *product,
                        int *status) {
    size_t n = 0;
    int raw;
    pid_t pid;
    while (words[n]) n++;
    const char **line = line_of(words, n);
    if (!line) return fth_fail(FTH_NO_MEMORY, "no memory for a command line");
    fth_err err = start(&(call){line, output, product, NULL}, &pid);
    free(line);
    if (err != FTH_OK) return err;
    while (waitpid(pid, &raw, 0) < 0)
        if (errno != EINTR) return fth_fail(FTH_FAILED, "a process was lost: %s", strerror(errno));
    *status = status_of(raw);
    return FTH_OK;
}

/* ---- all of them ---- */

/* A place for a run: its training, and then the commands that measure it. */
typedef struct slot {
    pid_t pid; /* 0: free */
    size_t run;
    char *product; /* of the command that runs; NULL: it has none, or is the training */
    bool trains;
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

/* Starts a command of a run on the slot's GPU. What has a product writes it to PRODUCT.part. */
static fth_err start_command(work *w, slot *s, const char *const *words, size_t n) {
    const size_t at = (size_t)(s - w->slots);
    const char *gpu = w->r->n_gpus ? w->r->gpus[at % w->r->n_gpus] : NULL;
    char *output =
        fth_strdup_printf("%s/runs/%s/output.txt", w->r->out_dir, w->grid->run[s->run].name);
    char *part = s->product ? fth_strdup_printf("%s.part", s->product) : NULL;
    const char **line = line_of(words, n);
    fth_err err = output && line && (part || !s->product)
                      ? start(&(call){line, output, part, gpu}, &s->pid)
                      : fth_fail(FTH_NO_MEMORY, "no memory for a command line");
    free(line);
    free(part);
    free(output);
    return err;
}

/* train DATA --save-dir FOLDER, the extra words, the words of the run. */
static fth_err start_run(work *w, slot *s) {
    const fth_sweep_run *what = &w->grid->run[s->run];
    size_t n = 0;
    char *folder = folder_of(w, s->run);
    const char **words = calloc(what->n_words + w->r->n_extra + 8, sizeof *words);
    fth_err err = folder && words ? fth_make_dirs(folder) : fth_fail(FTH_NO_MEMORY, "no memory");
    if (err == FTH_OK) {
        const char *first[] = {"train", w->r->data, "--save-dir", folder, "--quiet"};
        for (size_t i = 0; i < sizeof first / sizeof *first; i++) words[n++] = first[i];
        for (size_t i = 0; i < w->r->n_extra; i++) words[n++] = w->r->extra[i];
        for (size_t i = 0; i < what->n_words; i++) words[n++] = what->words[i];
        s->trains = true;
        err = start_command(w, s, words, n);
    }
    free(words);
    free(folder);
    return err;
}

/* Starts what the trained run of a slot still needs; the slot stays free when that is nothing. */
static fth_err start_measure(work *w, slot *s) {
    fth_command c;
    char *folder =
        fth_strdup_printf("%s/runs/%s/measures", w->r->out_dir, w->grid->run[s->run].name);
    fth_err err = folder ? fth_measure_next(w->r->measuring, &w->grid->run[s->run], &c)
                         : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (!folder) return err;
    if (err == FTH_OK && c.n > 0) {
        err = fth_make_dirs(folder);
        s->trains = false;
        if (err == FTH_OK && c.product && !(s->product = strdup(c.product)))
            err = fth_fail(FTH_NO_MEMORY, "no memory for a name");
        if (err == FTH_OK) err = start_command(w, s, c.word, c.n);
    }
    fth_command_fini(&c);
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

static fth_err read_state(const work *w, size_t run, fth_run_view_state *out) {
    fth_sweep_result result;
    char *folder = folder_of(w, run);
    if (!folder) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    fth_err err = fth_sweep_result_read(folder, &result);
    *out = result.state;
    fth_sweep_result_fini(&result);
    free(folder);
    return err;
}

static fth_err add_measures(const work *w, size_t run, fth_str *out) {
    const fth_sweep_spec *s = w->r->measuring->spec;
    double *values = calloc(s->n_measures + 1, sizeof *values);
    if (!values) return fth_fail(FTH_NO_MEMORY, "no memory for the measures of a run");
    fth_err err = fth_measure_values(s, w->r->out_dir, &w->grid->run[run], values);
    for (size_t i = 0; i < s->n_measures && err == FTH_OK; i++)
        err = fth_str_addf(out, ", %s %.4g", s->measure[i].name, values[i]);
    free(values);
    return err;
}

/* Says what a finished run came to. */
static fth_err tell_end(work *w, size_t run) {
    fth_sweep_result result = {0};
    fth_str measures = {0};
    char *folder = folder_of(w, run);
    fth_err err = folder ? fth_sweep_result_read(folder, &result)
                         : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK) err = add_measures(w, run, &measures);
    w->finished++;
    if (err == FTH_OK && result.state == FTH_VIEW_FAILED)
        fth_log_info(w->r->log, "[%zu/%zu] %s: failed: %s", w->finished, w->grid->n,
                     w->grid->run[run].name, result.reason ? result.reason : "");
    else if (err == FTH_OK)
        fth_log_info(w->r->log, "[%zu/%zu] %s: best %.4f, final %.4f%s", w->finished, w->grid->n,
                     w->grid->run[run].name, result.best, result.final,
                     measures.length ? measures.text : "");
    fth_sweep_result_fini(&result);
    fth_str_fini(&measures);
    free(folder);
    return err;
}

/* A command that ended otherwise than with a result; a signal was ours. */
static fth_err tell_trouble(work *w, size_t run, int status) {
    char words[400], *folder = folder_of(w, run);
    if (!folder) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (status != 130 && status != 143) {
        last_words(folder, words, sizeof words);
        fth_log_warn(w->r->log, "%s: ended with status %d: %s", w->grid->run[run].name, status,
                     words);
        w->errors++;
    }
    free(folder);
    return FTH_OK;
}

/* Gives the product of a command that succeeded its name. */
static fth_err keep_product(slot *s) {
    if (!s->product) return FTH_OK;
    char *part = fth_strdup_printf("%s.part", s->product);
    fth_err err = part ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK && rename(part, s->product) != 0)
        err = fth_fail(FTH_IO, "%s: cannot be renamed: %s", part, strerror(errno));
    free(part);
    return err;
}

/* The child of a slot has ended: what comes next in its run is started. */
static fth_err go_on(work *w, slot *s, int status, bool stopped) {
    fth_err err = status == 0 ? keep_product(s) : FTH_OK;
    free(s->product);
    s->product = NULL;
    if (err != FTH_OK) return err;
    if (status == 3 && s->trains) return tell_end(w, s->run);
    if (status != 0) return tell_trouble(w, s->run, status);
    if (stopped) return FTH_OK;
    FTH_TRY(start_measure(w, s));
    return s->pid ? FTH_OK : tell_end(w, s->run);
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

/* Gives a free slot the next thing that a run needs; it stays free when the run needs none. */
static fth_err take_run(work *w, slot *s, size_t run) {
    fth_run_view_state state = FTH_VIEW_MISSING;
    s->run = run;
    FTH_TRY(read_state(w, run, &state));
    if (state == FTH_VIEW_ENDED)
        FTH_TRY(start_measure(w, s));
    else if (state != FTH_VIEW_FAILED)
        FTH_TRY(start_run(w, s));
    if (!s->pid) w->finished++;
    return FTH_OK;
}

static fth_err fill(work *w) {
    for (int i = 0; i < w->r->jobs; i++)
        while (!w->slots[i].pid && w->next < w->grid->n)
            FTH_TRY(take_run(w, &w->slots[i], w->next++));
    return FTH_OK;
}

/* Looks for a child that has ended, or sleeps a little; a signal that comes in between is seen by
 * the loop, which a wait without end would not do. */
static fth_err wait_one(work *w, bool stopped) {
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
        return go_on(w, &w->slots[i], status_of(raw), stopped);
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
        fth_err waited = wait_one(w, *stopped != 0);
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
    for (int i = 0; i < r->jobs; i++) free(w.slots[i].product);
    free(w.slots);
    *errors = w.errors;
    if (err != FTH_OK || !stopped) return err;
    return fth_fail(stopped == SIGTERM ? FTH_TERMINATED : FTH_STOPPED,
                    "stopped by a signal with %zu of %zu runs finished; the same command goes on "
                    "from here",
                    w.finished, grid->n);
}
