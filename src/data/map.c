/* map.c: opens, checks that it is a plain file, and maps it for reading only. */
#include "data/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static fth_err map_open(const char *path, int fd, size_t least, void **map, size_t *size) {
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return fth_fail(FTH_BAD_INPUT, "%s: not a data set of fathom, no regular file", path);
    if (info.st_size < (off_t)least)
        return fth_fail(FTH_BAD_INPUT, "%s: not a data set of fathom, or cut short: %lld bytes",
                        path, (long long)info.st_size);
    *size = (size_t)info.st_size;
    *map = mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0);
    if (*map != MAP_FAILED) return FTH_OK;
    *map = NULL;
    return fth_fail(FTH_IO, "%s: cannot map: %s", path, strerror(errno));
}

fth_err fth_map_file(const char *path, size_t least, void **map, size_t *size) {
    *map = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fth_fail(fth_path_error(errno), "%s: cannot open: %s", path, strerror(errno));
    fth_err err = map_open(path, fd, least, map, size);
    close(fd);
    return err;
}

void fth_unmap_file(void *map, size_t size) {
    if (map) munmap(map, size);
}
