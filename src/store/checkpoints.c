/* checkpoints.c: the folder of a run's checkpoints: its links, what is kept, what is resumed. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/staged_dir.h"
#include "store/checkpoint.h"

enum { NAME_BYTES = 40 };

static void name_of(int64_t update, char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "step-%08lld", (long long)update);
}

/* The update of a name that name_of gives; -1 for any other name. */
static int64_t update_of(const char *entry) {
    char name[NAME_BYTES];
    if (strncmp(entry, "step-", 5)) return -1;
    errno = 0;
    long long update = strtoll(entry + 5, NULL, 10);
    if (errno || update < 0) return -1;
    name_of(update, name);
    return strcmp(entry, name) ? -1 : update;
}

/* FOLDER/name, malloc'd. */
static fth_err join(const char *folder, const char *name, char **out) {
    *out = fth_strdup_printf("%s/%s", folder, name);
    return *out ? FTH_OK : fth_fail(FTH_NO_MEMORY, "%s/%s: no memory for its name", folder, name);
}

/* Points FOLDER/link to the neighbour `target`; at every moment the link is the old or the new. */
static fth_err set_link(const char *folder, const char *link, const char *target) {
    char *path = fth_strdup_printf("%s/%s", folder, link);
    char *temp = fth_strdup_printf("%s/.%s.tmp-%ld-0", folder, link, (long)getpid());
    fth_err err = FTH_OK;
    if (!path || !temp) {
        err = fth_fail(FTH_NO_MEMORY, "%s/%s: no memory for its name", folder, link);
    } else {
        (void)unlink(temp);
        if (symlink(target, temp) != 0 || rename(temp, path) != 0) {
            err = fth_fail(FTH_IO, "%s: cannot link it to %s: %s", path, target, strerror(errno));
            (void)unlink(temp);
        }
    }
    free(path);
    free(temp);
    return err ? err : fth_sync_dir(folder);
}

fth_err fth_checkpoint_save(const char *folder, const fth_checkpoint_content *c) {
    char name[NAME_BYTES], *path = NULL;
    name_of(c->state.update, name);
    FTH_TRY(join(folder, name, &path));
    fth_err err = fth_checkpoint_write(path, c);
    free(path);
    return err;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static fth_err append(int64_t **list, size_t *n, int64_t update) {
    int64_t *more = realloc(*list, (*n + 1) * sizeof *more);
    if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for %zu checkpoints", *n + 1);
    more[(*n)++] = update;
    *list = more;
    return FTH_OK;
}

fth_err fth_checkpoint_list(const char *folder, int64_t **updates, size_t *n) {
    *updates = NULL;
    *n = 0;
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT) return FTH_OK;
    if (!dir) return fth_fail(FTH_IO, "%s: cannot read: %s", folder, strerror(errno));
    fth_err err = FTH_OK;
    for (struct dirent *entry; !err && (entry = readdir(dir));) {
        int64_t update = update_of(entry->d_name);
        if (update >= 0) err = append(updates, n, update);
    }
    closedir(dir);
    if (*n) qsort(*updates, *n, sizeof **updates, ascending);
    return err;
}

/* The update that a link points to, -1 without one. */
static int64_t linked(const char *folder, const char *link) {
    char target[NAME_BYTES + 1] = "", *path = NULL;
    if (join(folder, link, &path)) return -1;
    ssize_t length = readlink(path, target, sizeof target - 1);
    free(path);
    return length > 0 ? update_of(target) : -1;
}

/* Renamed first: a checkpoint that is half removed must not look like one. */
static fth_err remove_one(const char *folder, int64_t update) {
    char name[NAME_BYTES], *path = NULL;
    name_of(update, name);
    FTH_TRY(join(folder, name, &path));
    char *temp = fth_strdup_printf("%s/.%s.tmp-%ld-0", folder, name, (long)getpid());
    fth_err err = FTH_OK;
    if (!temp)
        err = fth_fail(FTH_NO_MEMORY, "%s: no memory for its name", path);
    else if (rename(path, temp) != 0)
        err = fth_fail(FTH_IO, "%s: cannot remove: %s", path, strerror(errno));
    else
        err = fth_remove_tree(temp);
    free(temp);
    free(path);
    return err;
}

/* A link that is right already is not touched; one to a checkpoint that somebody has removed is not
 * made. */
static fth_err link_to(const char *folder, const char *link, int64_t update) {
    char name[NAME_BYTES];
    name_of(update, name);
    if (linked(folder, link) == update || !fth_folder_has(folder, name)) return FTH_OK;
    return set_link(folder, link, name);
}

/* A stop leaves no trace: one that is averaged over the last checkpoints finds those of a run that
 * was never stopped. */
static fth_err prune(const char *folder, const fth_settled *s) {
    int64_t *updates = NULL;
    size_t n = 0, stays = 0;
    fth_err err = fth_checkpoint_list(folder, &updates, &n);
    while (n > 0 && updates[n - 1] > s->last) n--;
    for (size_t i = 0; !err && i < n; i++) {
        const bool stop = updates[i] == s->stop && s->stop > 0 && s->stop != s->last;
        if (stop && updates[i] != s->best)
            err = remove_one(folder, updates[i]);
        else
            updates[stays++] = updates[i];
    }
    for (size_t i = 0; !err && s->keep > 0 && i + (size_t)s->keep < stays; i++)
        if (updates[i] != s->best) err = remove_one(folder, updates[i]);
    free(updates);
    return err;
}

fth_err fth_checkpoint_settle(const char *folder, const fth_settled *s) {
    FTH_TRY(link_to(folder, "last", s->last));
    if (s->best >= 0) FTH_TRY(link_to(folder, "best", s->best));
    return prune(folder, s);
}

fth_err fth_checkpoint_clean(const char *folder) {
    return fth_staged_dir_clean(folder, NULL);
}

/* Opens step-UPDATE. */
static fth_err open_one(const char *folder, int64_t update, fth_checkpoint **out) {
    char name[NAME_BYTES], *path = NULL;
    name_of(update, name);
    FTH_TRY(join(folder, name, &path));
    fth_err err = fth_checkpoint_open(path, out);
    free(path);
    return err;
}

fth_err fth_checkpoint_find(const char *folder, fth_checkpoint_warn *warn, void *context,
                            fth_checkpoint **out) {
    int64_t *updates = NULL;
    size_t n = 0;
    *out = NULL;
    fth_err err = fth_checkpoint_list(folder, &updates, &n);
    for (size_t i = n; i > 0 && !err && !*out; i--) {
        err = open_one(folder, updates[i - 1], out);
        if (!err || err == FTH_NO_MEMORY) continue;
        if (warn) warn(context, fth_error_message());
        err = FTH_OK;
    }
    free(updates);
    if (err || *out) return err;
    if (!n) return fth_fail(FTH_NOT_FOUND, "%s: there is no checkpoint", folder);
    return fth_fail(FTH_BAD_INPUT, "%s: all of its %zu checkpoints are damaged", folder, n);
}
