/* preload_malloc.c: for LD_PRELOAD. Memory runs out at one call: FATHOM_MALLOC_FAIL_AT=N lets the
 * N-th allocation fail, and with FATHOM_MALLOC_STAY=1 all after it. FATHOM_MALLOC_SITES=FILE writes
 * instead the numbers of the calls that come from a place in the program (by its callers) for the
 * first time, a line for each. Calls count while main runs: what libraries do before it, when they
 * are loaded, is not the program's. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

enum { FRAMES = 8, SITES = 1 << 16 };

static atomic_long calls;
static long fail_at;
static bool counting, stay;
static int sites_fd = -1;
static _Atomic(uint64_t) seen[SITES];
static _Thread_local bool inside; /* backtrace allocates too */

static bool is_new(uint64_t hash) {
    for (size_t i = hash % SITES, k = 0; k < SITES; i = (i + 1) % SITES, k++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&seen[i], &none, hash)) return true;
        if (none == hash) return false;
    }
    return false;
}

static void note_site(long call) {
    void *frames[FRAMES];
    char line[24];
    uint64_t hash = 14695981039346656037u;
    inside = true;
    const int n = backtrace(frames, FRAMES);
    inside = false;
    for (int i = 0; i < n; i++) hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    if (!is_new(hash | 1)) return;
    const int length = snprintf(line, sizeof line, "%ld\n", call);
    if (write(sites_fd, line, (size_t)length) != length) _exit(99);
}

static bool fails(void) {
    if (!counting || inside) return false;
    const long call = atomic_fetch_add(&calls, 1) + 1;
    if (sites_fd >= 0) note_site(call);
    if (!fail_at || !(stay ? call >= fail_at : call == fail_at)) return false;
    errno = ENOMEM;
    return true;
}

static void start(void) {
    void *frame;
    const char *at = getenv("FATHOM_MALLOC_FAIL_AT"), *sites = getenv("FATHOM_MALLOC_SITES");
    backtrace(&frame, 1); /* loads what it needs */
    if (at) fail_at = atol(at);
    stay = getenv("FATHOM_MALLOC_STAY") != NULL;
    if (sites) sites_fd = open(sites, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const bool of_fathom =
        strncmp(program_invocation_short_name, "fathom", 6) == 0; /* not of its gnuplot */
    counting = of_fathom && (at || sites);
}

typedef int main_function(int argc, char **argv, char **environment);
static main_function *real_main;

static int counted_main(int argc, char **argv, char **environment) {
    start();
    const int status = real_main(argc, argv, environment);
    counting = false;
    return status;
}

/* The C library's start of a program, with another main. */
int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    __typeof__(&__libc_start_main) next =
        (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = program;
    return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size) {
    return fails() ? NULL : __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *p = fails() ? NULL : __libc_memalign(alignment, size);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}
