/* inflate.c: looks at the first bytes for the marks of gzip and Zstandard; several streams after
 * each other are one. */
#include "text/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "base/str.h"

enum { PACKED_BYTES = 1 << 16 };

typedef enum packing { PLAIN, GZIP, ZSTANDARD } packing;

struct fth_inflate {
    const char *name;
    int fd;          /* -1: not open */
    packing packing; /* by the first bytes */
    int64_t read;    /* bytes taken from fd */
    int at_end;      /* of fd */
    int open_part;   /* in the middle of a gzip member or a Zstandard frame */
    uint8_t *packed; /* [PACKED_BYTES] as in the file, at .. n still to be used */
    size_t at, n;
    z_stream gzip;
    int gzip_ready;
    ZSTD_DStream *zstd;
};

/* Reads more of the file behind what is not used yet. */
static fth_err refill(fth_inflate *f) {
    if (f->at) memmove(f->packed, f->packed + f->at, f->n - f->at);
    f->n -= f->at;
    f->at = 0;
    if (f->at_end || f->n == PACKED_BYTES) return FTH_OK;
    ssize_t got;
    do got = read(f->fd, f->packed + f->n, PACKED_BYTES - f->n);
    while (got < 0 && errno == EINTR);
    if (got < 0) return fth_fail(FTH_IO, "%s: cannot read: %s", f->name, strerror(errno));
    f->at_end = got == 0;
    f->n += (size_t)got;
    f->read += got;
    return FTH_OK;
}

static const uint8_t gzip_mark[] = {0x1f, 0x8b}, zstd_mark[] = {0x28, 0xb5, 0x2f, 0xfd};

/* Could it be a packed file, of which more has to be read? Whoever writes a short line into a pipe
 * waits for its answer, so no more is read than needed. */
static bool may_be_packed(const fth_inflate *f) {
    return (f->n < sizeof gzip_mark && !memcmp(f->packed, gzip_mark, f->n)) ||
           (f->n < sizeof zstd_mark && !memcmp(f->packed, zstd_mark, f->n));
}

/* No UTF-8 text begins with the first bytes of a packed file, so there is no doubt. */
static fth_err find_packing(fth_inflate *f) {
    while (may_be_packed(f) && !f->at_end) FTH_TRY(refill(f));
    if (f->n >= sizeof gzip_mark && !memcmp(f->packed, gzip_mark, sizeof gzip_mark)) {
        f->packing = GZIP;
        f->gzip_ready = inflateInit2(&f->gzip, 16 + MAX_WBITS) == Z_OK;
        if (!f->gzip_ready) return fth_fail(FTH_NO_MEMORY, "%s: no memory to unpack it", f->name);
    } else if (f->n >= sizeof zstd_mark && !memcmp(f->packed, zstd_mark, sizeof zstd_mark)) {
        f->packing = ZSTANDARD;
        f->zstd = ZSTD_createDStream();
        if (!f->zstd) return fth_fail(FTH_NO_MEMORY, "%s: no memory to unpack it", f->name);
    }
    return FTH_OK;
}

fth_err fth_inflate_new(const char *path, const char *name, fth_inflate **out) {
    fth_err err;
    struct stat info;
    fth_inflate *f = calloc(1, sizeof *f);
    if (!f) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", name);
    f->name = name;
    f->fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                   : open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0) {
        err = fth_fail(fth_path_error(errno), "%s: cannot open: %s", name, strerror(errno));
        goto fail;
    }
    if (fstat(f->fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        err = fth_fail(FTH_BAD_INPUT, "%s: a folder, not a text file", name);
        goto fail;
    }
    f->packed = malloc(PACKED_BYTES);
    if (!f->packed) {
        err = fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", name);
        goto fail;
    }
    FTH_TRY_OR(err, find_packing(f), fail);
    *out = f;
    return FTH_OK;
fail:
    fth_inflate_free(f);
    return err;
}

void fth_inflate_free(fth_inflate *f) {
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    if (f->gzip_ready) inflateEnd(&f->gzip);
    ZSTD_freeDStream(f->zstd);
    free(f->packed);
    free(f);
}

static fth_err cut_short(const fth_inflate *f) {
    return fth_fail(FTH_BAD_INPUT, "%s: the compressed file is cut short", f->name);
}

/* Tapes and some programs fill a file up with zeros behind its last member. */
static void skip_zeros(fth_inflate *f) {
    while (f->at < f->n && f->packed[f->at] == 0) f->at++;
}

/* Unpacks what there is; *got may be 0 before the end. A file may be several members in a row. */
static fth_err unpack_gzip(fth_inflate *f, void *data, size_t size, size_t *got) {
    if (!f->open_part) {
        skip_zeros(f);
        if (f->at == f->n) return FTH_OK;
        if (inflateReset(&f->gzip) != Z_OK) return fth_fail(FTH_FAILED, "%s: zlib failed", f->name);
    }
    f->open_part = 1;
    f->gzip.next_in = f->packed + f->at;
    f->gzip.avail_in = (uInt)(f->n - f->at);
    f->gzip.next_out = data;
    f->gzip.avail_out = (uInt)size;
    int result = inflate(&f->gzip, Z_NO_FLUSH);
    f->at = f->n - f->gzip.avail_in;
    *got = size - f->gzip.avail_out;
    if (result == Z_STREAM_END) f->open_part = 0;
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s: damaged gzip file: %s", f->name,
                    f->gzip.msg ? f->gzip.msg : "wrong data");
}

static fth_err unpack_zstd(fth_inflate *f, void *data, size_t size, size_t *got) {
    ZSTD_inBuffer in = {f->packed, f->n, f->at};
    ZSTD_outBuffer out = {data, size, 0};
    size_t result = ZSTD_decompressStream(f->zstd, &out, &in);
    if (ZSTD_isError(result))
        return fth_fail(FTH_BAD_INPUT, "%s: damaged Zstandard file: %s", f->name,
                        ZSTD_getErrorName(result));
    f->at = in.pos;
    f->open_part = result != 0;
    *got = out.pos;
    return FTH_OK;
}

static fth_err copy_plain(fth_inflate *f, void *data, size_t size, size_t *got) {
    *got = f->n - f->at < size ? f->n - f->at : size;
    memcpy(data, f->packed + f->at, *got);
    f->at += *got;
    return FTH_OK;
}

fth_err fth_inflate_read(fth_inflate *f, void *data, size_t size, size_t *got) {
    size_t step = size < (1u << 30) ? size : (1u << 30); /* zlib counts in 32 bits */
    *got = 0;
    while (*got == 0) {
        if (f->at == f->n) FTH_TRY(refill(f));
        int dry = f->at == f->n && f->at_end;
        if (dry && !f->open_part) return FTH_OK;
        size_t before = f->at;
        switch (f->packing) {
        case GZIP: FTH_TRY(unpack_gzip(f, data, step, got)); break;
        case ZSTANDARD: FTH_TRY(unpack_zstd(f, data, step, got)); break;
        case PLAIN: FTH_TRY(copy_plain(f, data, step, got)); break;
        }
        if (dry && *got == 0 && f->at == before) return cut_short(f);
    }
    return FTH_OK;
}

fth_err fth_inflate_all(const char *path, const char *name, char **data, size_t *size) {
    fth_inflate *f = NULL;
    fth_str all = {0};
    char *piece = malloc(PACKED_BYTES);
    size_t got = 1;
    fth_err err = piece ? fth_str_add(&all, "", 0)
                        : fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", name);
    if (err == FTH_OK) err = fth_inflate_new(path, name, &f);
    while (err == FTH_OK && got > 0) {
        err = fth_inflate_read(f, piece, PACKED_BYTES, &got);
        if (err == FTH_OK) err = fth_str_add(&all, piece, got);
    }
    fth_inflate_free(f);
    free(piece);
    if (err) fth_str_fini(&all);
    *data = all.text;
    *size = all.length;
    return err;
}

bool fth_inflate_would_wait(const fth_inflate *f) {
    struct pollfd input = {.fd = f->fd, .events = POLLIN};
    return f->at == f->n && !f->at_end && poll(&input, 1, 0) == 0;
}

int64_t fth_inflate_bytes(const fth_inflate *f) {
    return f->read;
}
