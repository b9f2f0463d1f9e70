/* preload_sync.c: for LD_PRELOAD. Watches that nothing is renamed before it is on the disk: a file,
 * and every file and folder in a folder, must have been synced after it was last written; and the
 * folder that has the new name must be synced afterwards; before a checkpoint has its name, what
 * the run has logged must be on the disk too. FATHOM_SYNC_LOG=FILE gets a line for each rename, "ok
 * PATH" or "bad: WHY PATH". */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 1 << 14 };

typedef struct inode {
    dev_t dev;
    ino_t ino;
} inode;

typedef struct set {
    inode item[MOST];
    size_t n;
} set;

static set synced,
    unsynced_names;           /* the second: folders that have a new name since their last sync */
static char named[MOST][256]; /* [unsynced_names.n] one of these names */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;

static void say(const char *format, ...) {
    char line[PATH_MAX + 200];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (log_fd >= 0 && n > 0) (void)!syscall(SYS_write, log_fd, line, (size_t)n);
}

static size_t find(const set *s, const struct stat *st) {
    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].dev == st->st_dev && s->item[i].ino == st->st_ino) return i;
    return s->n;
}

static size_t put(set *s, const struct stat *st) {
    const size_t at = find(s, st);
    if (at == MOST) abort();
    s->item[at] = (inode){st->st_dev, st->st_ino};
    if (at == s->n) s->n++;
    return at;
}

static void drop(set *s, const struct stat *st) {
    const size_t at = find(s, st);
    if (at == s->n) return;
    s->n--;
    s->item[at] = s->item[s->n];
    if (s == &unsynced_names) memcpy(named[at], named[s->n], sizeof named[at]);
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("FATHOM_SYNC_LOG");
    if (path) log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

__attribute__((destructor)) static void finish(void) {
    for (size_t i = 0; i < unsynced_names.n; i++)
        say("bad: the folder was not synced after a rename in it: %s\n", named[i]);
}

/* ---- what the program calls ---- */

static void written(int fd) {
    struct stat st;
    pthread_mutex_lock(&lock);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) drop(&synced, &st);
    pthread_mutex_unlock(&lock);
}

ssize_t write(int fd, const void *data, size_t size) {
    written(fd);
    return syscall(SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    written(fd);
    return syscall(SYS_pwrite64, fd, data, size, at);
}

int ftruncate(int fd, off_t size) {
    written(fd);
    return (int)syscall(SYS_ftruncate, fd, size);
}

int fsync(int fd) {
    struct stat st;
    const int result = (int)syscall(SYS_fsync, fd);
    pthread_mutex_lock(&lock);
    if (result == 0 && fstat(fd, &st) == 0) {
        put(&synced, &st);
        if (S_ISDIR(st.st_mode)) drop(&unsynced_names, &st);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int fdatasync(int fd) {
    return fsync(fd);
}

/* The first thing in path that is not on the disk; false: all is. */
static bool unsynced(const char *path, char *what, size_t size) {
    struct stat st;
    if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode)) return false;
    if (find(&synced, &st) == synced.n) {
        snprintf(what, size, "%s", path);
        return true;
    }
    DIR *dir = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    bool found = false;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        char inner[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        found = unsynced(inner, what, size);
    }
    if (dir) closedir(dir);
    return found;
}

static void note_name(const char *path) {
    char folder[PATH_MAX];
    struct stat st;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    if (stat(slash ? folder : ".", &st) != 0) return;
    const size_t at = put(&unsynced_names, &st);
    snprintf(named[at], sizeof named[at], "%.255s", path);
}

/* The log of the run that a checkpoint belongs to is there and not synced. */
static bool log_is_behind(const char *checkpoint, char *what, size_t size) {
    struct stat st;
    const char *folder = strstr(checkpoint, "/checkpoints/step-");
    if (!folder) return false;
    snprintf(what, size, "%.*s/log.jsonl", (int)(folder - checkpoint), checkpoint);
    return stat(what, &st) == 0 && find(&synced, &st) == synced.n;
}

static int renamed(const char *from, const char *to, unsigned flags) {
    char what[PATH_MAX] = "";
    pthread_mutex_lock(&lock);
    const bool bad = unsynced(from, what, sizeof what) || log_is_behind(to, what, sizeof what);
    const int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
    if (result == 0 && bad) say("bad: renamed before it was synced: %s, for %s\n", what, to);
    if (result == 0 && !bad) say("ok %s\n", to);
    if (result == 0) note_name(to);
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    return renamed(from, to, 0);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    (void)from_at, (void)to_at; /* fathom has full names everywhere */
    return renamed(from, to, flags);
}
