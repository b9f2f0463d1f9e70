/* safetensors.c: opens and checks a file of named tensors. */
#include "store/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are stored little-endian");

/* The bound of the reference implementation: a header is parsed whole, in memory. */
enum { MAX_HEADER = 100000000 };

static const struct dtype_row {
    const char *name;
    size_t size;
} dtypes[] = {
#define ROW(name, size) {#name, size},
    FTH_ST_DTYPES(ROW)
#undef ROW
};

size_t fth_st_dtype_size(fth_st_dtype dtype) {
    return dtypes[dtype].size;
}

const char *fth_st_dtype_name(fth_st_dtype dtype) {
    return dtypes[dtype].name;
}

size_t fth_st_count(const fth_st_tensor *t) {
    size_t count = 1;
    for (int i = 0; i < t->rank; i++) count *= (size_t)t->shape[i];
    return count;
}

static size_t bytes_of(const fth_st_tensor *t) {
    return fth_st_count(t) * dtypes[t->dtype].size;
}

static fth_err map_file(fth_st_file *f) {
    /* a pipe is refused, not waited for */
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fth_fail(fth_path_error(errno), "cannot open: %s", strerror(errno));
    struct stat st;
    fth_err err = FTH_OK;
    if (fstat(fd, &st) != 0) {
        err = fth_fail(FTH_IO, "cannot read: %s", strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        err = fth_fail(FTH_BAD_INPUT, "is not a regular file");
    } else if (st.st_size < 8) {
        err = fth_fail(FTH_BAD_INPUT,
                       "%lld bytes are too few: a file begins with the 8-byte "
                       "length of its header",
                       (long long)st.st_size);
    } else {
        f->map_size = (size_t)st.st_size;
        f->map = mmap(NULL, f->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (f->map == MAP_FAILED) {
            f->map = NULL;
            err = fth_fail(FTH_IO, "cannot map %zu bytes: %s", f->map_size, strerror(errno));
        }
    }
    close(fd);
    return err;
}

static fth_err read_dtype(json_t *value, fth_st_tensor *t) {
    const char *text = json_string_value(value);
    if (!text) return fth_fail(FTH_BAD_INPUT, "dtype is missing or not a string");
    for (size_t i = 0; i < FTH_ST_N_DTYPES; i++) {
        if (!strcmp(text, dtypes[i].name)) {
            t->dtype = (fth_st_dtype)i;
            return FTH_OK;
        }
    }
    return fth_fail(FTH_BAD_INPUT,
                    "dtype \"%.40s\" is not one that fathom reads (F64, F32, F16, "
                    "BF16, I64 to I8, U64 to U8, BOOL)",
                    text);
}

/* A whole number of at least 0 from an array; the rule is named by what. */
static fth_err read_size(json_t *array, size_t i, const char *what, int64_t *out) {
    json_t *value = json_array_get(array, i);
    if (!json_is_integer(value))
        return fth_fail(FTH_BAD_INPUT, "%s[%zu] is not a whole number", what, i);
    *out = json_integer_value(value);
    if (*out < 0)
        return fth_fail(FTH_BAD_INPUT, "%s[%zu] is %lld: it must be 0 or more", what, i,
                        (long long)*out);
    return FTH_OK;
}

/* Reads the shape; *bytes is what a tensor of that shape and dtype takes. */
static fth_err read_shape(json_t *value, fth_st_tensor *t, int64_t *bytes) {
    if (!json_is_array(value)) return fth_fail(FTH_BAD_INPUT, "shape is missing or not an array");
    if (json_array_size(value) > FTH_ST_MAX_RANK)
        return fth_fail(FTH_BAD_INPUT, "shape has %zu dimensions, at most %d are possible",
                        json_array_size(value), FTH_ST_MAX_RANK);
    t->rank = (int)json_array_size(value);
    int64_t size = (int64_t)dtypes[t->dtype].size;
    int empty = 0; /* [0, 2^62, 2^62] is no shape either: a zero hides no overflow */
    for (int i = 0; i < t->rank; i++) {
        FTH_TRY(read_size(value, (size_t)i, "shape", &t->shape[i]));
        empty |= t->shape[i] == 0;
        if (__builtin_mul_overflow(size, t->shape[i] ? t->shape[i] : 1, &size))
            return fth_fail(FTH_BAD_INPUT, "shape[%d] is %lld: the size overflows 64 bits", i,
                            (long long)t->shape[i]);
    }
    *bytes = empty ? 0 : size;
    return FTH_OK;
}

static fth_err read_offsets(json_t *value, fth_st_tensor *t, int64_t bytes, const char *data,
                            size_t data_size) {
    int64_t begin = 0, end = 0;
    if (!json_is_array(value) || json_array_size(value) != 2)
        return fth_fail(FTH_BAD_INPUT, "data_offsets is missing or not an array of two numbers");
    FTH_TRY(read_size(value, 0, "data_offsets", &begin));
    FTH_TRY(read_size(value, 1, "data_offsets", &end));
    if (begin > end || (uint64_t)end > data_size)
        return fth_fail(FTH_BAD_INPUT,
                        "data_offsets [%lld,%lld] do not lie in the %zu bytes after the header",
                        (long long)begin, (long long)end, data_size);
    if (end - begin != bytes)
        return fth_fail(
            FTH_BAD_INPUT,
            "data_offsets [%lld,%lld] hold %lld bytes, but dtype %s and shape need %lld",
            (long long)begin, (long long)end, (long long)(end - begin), dtypes[t->dtype].name,
            (long long)bytes);
    t->data = data + begin;
    return FTH_OK;
}

static fth_err read_tensor(json_t *value, fth_st_tensor *t, const char *data, size_t data_size) {
    int64_t bytes = 0;
    const char *key;
    json_t *field;
    if (!json_is_object(value)) return fth_fail(FTH_BAD_INPUT, "is not an object");
    json_object_foreach(value, key, field) {
        if (strcmp(key, "dtype") && strcmp(key, "shape") && strcmp(key, "data_offsets"))
            return fth_fail(FTH_BAD_INPUT,
                            "unknown key \"%.40s\": there are dtype, shape and data_offsets", key);
    }
    FTH_TRY(read_dtype(json_object_get(value, "dtype"), t));
    FTH_TRY(read_shape(json_object_get(value, "shape"), t, &bytes));
    return read_offsets(json_object_get(value, "data_offsets"), t, bytes, data, data_size);
}

static fth_err check_metadata(json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) return fth_fail(FTH_BAD_INPUT, "__metadata__ is not an object");
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return fth_fail(FTH_BAD_INPUT, "__metadata__ \"%.40s\" is not a string", key);
    }
    return FTH_OK;
}

static int by_place(const void *a, const void *b) {
    const fth_st_tensor *x = a, *y = b;
    const char *from_x = x->data, *from_y = y->data;
    if (from_x != from_y) return from_x < from_y ? -1 : 1;
    size_t bytes_x = bytes_of(x), bytes_y = bytes_of(y); /* empty ones first */
    return bytes_x < bytes_y ? -1 : bytes_x > bytes_y;
}

static int by_name(const void *a, const void *b) {
    const fth_st_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Every byte of the data belongs to one tensor. Leaves the tensors in the order of their names. */
static fth_err check_places(fth_st_file *f, const char *data, size_t data_size) {
    size_t end = 0;
    const char *before = "";
    if (f->n) qsort(f->tensors, f->n, sizeof *f->tensors, by_place);
    for (size_t i = 0; i < f->n; i++) {
        const fth_st_tensor *t = &f->tensors[i];
        size_t begin = (size_t)((const char *)t->data - data);
        if (begin < end)
            return fth_fail(FTH_BAD_INPUT,
                            "tensor \"%s\": its data begin at %zu, before the end "
                            "of tensor \"%s\" at %zu: tensors must not overlap",
                            t->name, begin, before, end);
        if (begin > end)
            return fth_fail(FTH_BAD_INPUT,
                            "tensor \"%s\": its data begin at %zu, but the data "
                            "before it end at %zu: there must be no gap",
                            t->name, begin, end);
        end = begin + bytes_of(t);
        before = t->name;
    }
    if (end != data_size)
        return fth_fail(FTH_BAD_INPUT,
                        "%zu bytes after the header, but the tensors end at %zu: "
                        "there must be nothing behind them",
                        data_size, end);
    if (f->n) qsort(f->tensors, f->n, sizeof *f->tensors, by_name);
    return FTH_OK;
}

static fth_err read_header(fth_st_file *f, json_t *header, const char *data, size_t data_size) {
    const char *key;
    json_t *value;
    if (!(f->tensors = calloc(json_object_size(header) + 1, sizeof *f->tensors)))
        return fth_fail(FTH_NO_MEMORY, "no memory for %zu tensors", json_object_size(header));
    json_object_foreach(header, key, value) {
        if (!strcmp(key, "__metadata__")) {
            FTH_TRY(check_metadata(value));
            continue;
        }
        fth_st_tensor *t = &f->tensors[f->n];
        if (!(t->name = strdup(key)))
            return fth_fail(FTH_NO_MEMORY, "no memory for the names of tensors");
        f->n++; /* close frees the name from here on */
        fth_err err = read_tensor(value, t, data, data_size);
        if (err) return fth_fail_in(err, "tensor \"%s\"", key);
    }
    return check_places(f, data, data_size);
}

static fth_err read_all(fth_st_file *f) {
    FTH_TRY(map_file(f));
    const unsigned char *bytes = f->map;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
    if (length > MAX_HEADER || length > f->map_size - 8)
        return fth_fail(FTH_BAD_INPUT,
                        "header length %llu is larger than the rest of the file (%zu) or than %d",
                        (unsigned long long)length, f->map_size - 8, MAX_HEADER);
    const char *text = (const char *)bytes + 8;
    if (length < 2 || text[0] != '{')
        return fth_fail(FTH_BAD_INPUT, "the header (%llu bytes) does not begin with {",
                        (unsigned long long)length);
    json_error_t e;
    json_t *header = fth_json_read(text, (size_t)length, &e);
    if (!header && json_error_code(&e) == json_error_out_of_memory)
        return fth_fail(FTH_NO_MEMORY, "no memory for the header");
    if (!header)
        return fth_fail(FTH_BAD_INPUT, "header, byte %d: %s: it must be strict JSON", e.position,
                        e.text);
    fth_err err = read_header(f, header, text + length, f->map_size - 8 - (size_t)length);
    json_decref(header);
    return err;
}

fth_err fth_st_open(const char *path, fth_st_file **out) {
    *out = NULL;
    fth_st_file *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(path))) {
        fth_st_close(f);
        return fth_fail(FTH_NO_MEMORY, "%s: no memory to open it", path);
    }
    fth_err err = read_all(f);
    if (err) {
        fth_st_close(f);
        return fth_fail_in(err, "%s", path);
    }
    *out = f;
    return FTH_OK;
}

void fth_st_close(fth_st_file *f) {
    if (!f) return;
    for (size_t i = 0; i < f->n; i++) free((char *)f->tensors[i].name);
    if (f->map) munmap(f->map, f->map_size);
    free(f->tensors);
    free(f->path);
    free(f);
}

const fth_st_tensor *fth_st_find(const fth_st_file *f, const char *name) {
    const fth_st_tensor key = {.name = name};
    if (!f->n) return NULL;
    return bsearch(&key, f->tensors, f->n, sizeof key, by_name);
}

fth_err fth_st_get(const fth_st_file *f, const char *name, const fth_st_tensor **out) {
    *out = fth_st_find(f, name);
    if (*out) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: tensor \"%s\" is missing: it is not among the %zu of the "
                    "file",
                    f->path, name, f->n);
}

/* The shape as [2,3] into text. */
static void print_shape(const fth_st_tensor *t, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, i ? ",%lld" : "%lld",
                                 (long long)t->shape[i]);
    if (used < size) snprintf(text + used, size - used, "]");
}

static int is_float(fth_st_dtype dtype) {
    return dtype == FTH_ST_F64 || dtype == FTH_ST_F32 || dtype == FTH_ST_F16 ||
           dtype == FTH_ST_BF16;
}

static fth_err expect_one(const fth_st_file *f, const fth_st_tensor *t, const fth_st_tensor *want) {
    char found[8 * 22], wanted[8 * 22];
    if (t->rank != want->rank ||
        memcmp(t->shape, want->shape, (size_t)t->rank * sizeof t->shape[0])) {
        print_shape(t, found, sizeof found);
        print_shape(want, wanted, sizeof wanted);
        return fth_fail(FTH_BAD_INPUT, "%s: tensor \"%s\" has shape %s, but must have %s", f->path,
                        t->name, found, wanted);
    }
    if (t->dtype != want->dtype && !(is_float(t->dtype) && is_float(want->dtype)))
        return fth_fail(FTH_BAD_INPUT, "%s: tensor \"%s\" has dtype %s, but must have %s", f->path,
                        t->name, dtypes[t->dtype].name, dtypes[want->dtype].name);
    return FTH_OK;
}

static int by_name_of_pointer(const void *a, const void *b) {
    const fth_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

fth_err fth_st_expect(const fth_st_file *f, const fth_st_tensor *expected, size_t n) {
    const fth_st_tensor **want = calloc(n + 1, sizeof *want); /* [n] in the order of the file */
    if (!want) return fth_fail(FTH_NO_MEMORY, "%s: no memory for %zu names", f->path, n);
    for (size_t i = 0; i < n; i++) want[i] = &expected[i];
    qsort(want, n, sizeof *want, by_name_of_pointer);
    fth_err err = FTH_OK;
    for (size_t i = 0; !err && (i < f->n || i < n); i++) {
        int order = i >= n ? -1 : i >= f->n ? 1 : strcmp(f->tensors[i].name, want[i]->name);
        if (order < 0)
            err = fth_fail(FTH_BAD_INPUT, "%s: tensor \"%s\" is no part of this model", f->path,
                           f->tensors[i].name);
        else if (order > 0)
            err = fth_fail(FTH_BAD_INPUT, "%s: tensor \"%s\" is missing (%zu tensors of %zu)",
                           f->path, want[i]->name, f->n, n);
        else
            err = expect_one(f, &f->tensors[i], want[i]);
    }
    free(want);
    return err;
}
