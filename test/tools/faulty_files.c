/* faulty_files.c: a library for LD_PRELOAD that counts what a program does to files and lets the
 * n-th operation go wrong. FAULT_AT=n says which, from 1; FAULT_HOW what happens there:
 *
 *   kill    the process dies before it
 *   enospc  it fails, as on a full disk
 *   eio     it fails, as on a broken disk
 *   short   a write puts down half of its bytes, and the next one fails as on a full disk; others
 *           are not touched
 *
 * FAULT_COUNT names a file that gets the number of operations when the program ends. Standard
 * files, pipes and devices are not counted, nor is what programs do that it starts. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long count;
static atomic_bool full; /* the next write fails: the one before was short */
static long at;
static char how[16], to[4096];

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("FAULT_AT"), *kind = getenv("FAULT_HOW"),
               *file = getenv("FAULT_COUNT");
    at = place ? atol(place) : 0;
    snprintf(how, sizeof how, "%s", kind ? kind : "");
    snprintf(to, sizeof to, "%s", file ? file : "");
    unsetenv("LD_PRELOAD");
}

/* The function of that name that the program would have called. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((destructor)) static void end(void) {
    char text[32];
    if (!to[0]) return;
    const int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&count));
    const int fd = REAL(open)(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0 && REAL(write)(fd, text, (size_t)length) == length) REAL(close)(fd);
}

/* Counts an operation; true: it fails, with errno. *half: only half of it is to be done. */
static bool fails(bool *half) {
    const bool here = atomic_fetch_add(&count, 1) + 1 == at;
    if (half && atomic_exchange(&full, false)) {
        errno = ENOSPC;
        return true;
    }
    if (!here) return false;
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (strcmp(how, "short") == 0) {
        if (half) atomic_store(&full, *half = true);
        return false;
    }
    errno = strcmp(how, "eio") == 0 ? EIO : ENOSPC;
    return true;
}

static bool is_counted(int fd) {
    struct stat st;
    return fd > STDERR_FILENO && fstat(fd, &st) == 0 &&
           (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

/* ---- making and removing names ---- */

static bool changes(int flags) {
    return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
}

#define OPENS(name)                                                                                \
    int name(const char *path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                            \
        va_end(rest);                                                                              \
        struct stat st;                                                                            \
        const bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);                         \
        if (changes(flags) && !special && fails(NULL)) return -1;                                  \
        return REAL(name)(path, flags, mode);                                                      \
    }
OPENS(open)
OPENS(open64)

#define FOPENS(name)                                                                               \
    FILE *name(const char *path, const char *mode) {                                               \
        if (strpbrk(mode, "wa+") && fails(NULL)) return NULL;                                      \
        return REAL(name)(path, mode);                                                             \
    }
FOPENS(fopen)
FOPENS(fopen64)

#define MAKES_TEMP(name)                                                                           \
    int name(char *pattern) {                                                                      \
        return fails(NULL) ? -1 : REAL(name)(pattern);                                             \
    }
MAKES_TEMP(mkstemp)
MAKES_TEMP(mkstemp64)

int mkdir(const char *path, mode_t mode) {
    return fails(NULL) ? -1 : REAL(mkdir)(path, mode);
}
int rmdir(const char *path) {
    return fails(NULL) ? -1 : REAL(rmdir)(path);
}
int unlink(const char *path) {
    return fails(NULL) ? -1 : REAL(unlink)(path);
}
int remove(const char *path) {
    return fails(NULL) ? -1 : REAL(remove)(path);
}
int rename(const char *from, const char *path) {
    return fails(NULL) ? -1 : REAL(rename)(from, path);
}
int symlink(const char *target, const char *path) {
    return fails(NULL) ? -1 : REAL(symlink)(target, path);
}
int link(const char *from, const char *path) {
    return fails(NULL) ? -1 : REAL(link)(from, path);
}
int renameat2(int a, const char *from, int b, const char *path, unsigned flags) {
    return fails(NULL) ? -1 : REAL(renameat2)(a, from, b, path, flags);
}

/* ---- content ---- */

ssize_t write(int fd, const void *data, size_t size) {
    bool half = false;
    if (!is_counted(fd)) return REAL(write)(fd, data, size);
    if (fails(&half)) return -1;
    return REAL(write)(fd, data, half && size > 1 ? size / 2 : size);
}

ssize_t writev(int fd, const struct iovec *part, int n) {
    if (is_counted(fd) && fails(NULL)) return -1;
    return REAL(writev)(fd, part, n);
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *file) {
    bool half = false;
    if (!is_counted(fileno(file))) return REAL(fwrite)(data, size, n, file);
    if (fails(&half)) return 0;
    return REAL(fwrite)(data, size, half ? n / 2 : n, file);
}

int fflush(FILE *file) {
    if (file && is_counted(fileno(file)) && fails(NULL)) return EOF;
    return REAL(fflush)(file);
}

#define SYNCS(name)                                                                                \
    int name(int fd) {                                                                             \
        return is_counted(fd) && fails(NULL) ? -1 : REAL(name)(fd);                                \
    }
SYNCS(fsync)
SYNCS(fdatasync)

#define TRUNCATES(name, size_type)                                                                 \
    int name(int fd, size_type size) {                                                             \
        return is_counted(fd) && fails(NULL) ? -1 : REAL(name)(fd, size);                          \
    }
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)
