/* fuzz.h: what the fuzz targets share. Each is a file NAME.c with LLVMFuzzerTestOneInput, built by
 * clang with -fsanitize=fuzzer (make fuzz); NAME.dict has words of the format, corpus/NAME small
 * real files. */
#ifndef FTH_TEST_FUZZ_H
#define FTH_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The path of a file in memory that holds data, for readers that open a path; the same file every
 * time. */
static inline const char *fuzz_file(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[40];
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    return path;
}

#endif
