/* links: store base */
/* safetensors files: what is written reads back, and every damaged header is refused. */
#include "test_files.h"

#include <math.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/philox.h"
#include "store/safetensors.h"
#include "close.h"

static const float ramp[6] = {-0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 0.75f};

/* ---- files that are fine ---- */

static void reads_what_python_wrote(void **state) {
    (void)state;
    fth_st_file *f = NULL;
    const fth_st_tensor *t;
    float values[6];
    int32_t numbers[3];
    assert_ok(fth_st_open(TEST_DIR "/golden/store/python.safetensors", &f));
    assert_int_equal(f->n, 13);
    for (size_t i = 1; i < f->n; i++)
        assert_true(strcmp(f->tensors[i - 1].name, f->tensors[i].name) < 0);

    const char *floats[] = {"f64", "f32", "f16", "bf16"};
    for (size_t i = 0; i < 4; i++) {
        assert_ok(fth_st_get(f, floats[i], &t));
        assert_int_equal(t->rank, 2);
        assert_int_equal(t->shape[0], 2);
        assert_int_equal(t->shape[1], 3);
        assert_ok(fth_st_to_f32(f, t, values));
        assert_memory_equal(values, ramp, sizeof ramp);
    }
    const float special[5] = {0.0f, -0.0f, 0x1p-24f, -65504.0f, INFINITY};
    assert_ok(fth_st_get(f, "f16.special", &t));
    assert_ok(fth_st_to_f32(f, t, values));
    assert_memory_equal(values, special, sizeof special);

    assert_ok(fth_st_get(f, "i64", &t));
    assert_ok(fth_st_to_i32(f, t, numbers));
    assert_int_equal(numbers[0], -2);
    assert_int_equal(numbers[2], INT32_MAX);
    assert_ok(fth_st_get(f, "i32", &t));
    assert_ok(fth_st_to_i32(f, t, numbers));
    assert_int_equal(numbers[0], -2);
    assert_int_equal(numbers[1], 7);
    assert_ok(fth_st_get(f, "u8", &t));
    assert_int_equal(((const unsigned char *)t->data)[2], 255);
    assert_ok(fth_st_get(f, "scalar", &t));
    assert_int_equal(t->rank, 0);
    assert_int_equal(fth_st_count(t), 1);
    assert_ok(fth_st_to_f32(f, t, values));
    assert_true(values[0] == 2.5f);
    assert_ok(fth_st_get(f, "empty", &t));
    assert_int_equal(fth_st_count(t), 0);
    assert_non_null(fth_st_find(f, "größe \"quoted\""));
    fth_st_close(f);
}

static void refuses_wrong_conversions(void **state) {
    (void)state;
    fth_st_file *f = NULL;
    const fth_st_tensor *t;
    float values[3];
    int32_t numbers[6];
    assert_ok(fth_st_open(TEST_DIR "/golden/store/python.safetensors", &f));
    assert_ok(fth_st_get(f, "i64.large", &t));
    assert_failed(fth_st_to_i32(f, t, numbers), FTH_BAD_INPUT,
                  (const char *[]){"python.safetensors", "i64.large", "2147483648", NULL});
    assert_ok(fth_st_get(f, "i64", &t));
    assert_failed(fth_st_to_f32(f, t, values), FTH_BAD_INPUT,
                  (const char *[]){"\"i64\"", "I64", "BF16", NULL});
    assert_ok(fth_st_get(f, "f32", &t));
    assert_failed(fth_st_to_i32(f, t, numbers), FTH_BAD_INPUT,
                  (const char *[]){"\"f32\"", "F32", "I32", NULL});
    assert_failed(fth_st_get(f, "f33", &t), FTH_BAD_INPUT,
                  (const char *[]){"python.safetensors", "f33", "missing", NULL});
    fth_st_close(f);
}

/* Names out of order, a scalar, an empty tensor, an odd number of bytes before a float. */
static const fth_st_tensor written[] = {
    {"z", FTH_ST_F32, 2, {2, 3}, ramp},
    {"a.weight", FTH_ST_F32, 1, {6}, ramp},
    {"B", FTH_ST_U8, 1, {3}, "\1\2\3"},
    {"scalar", FTH_ST_F32, 0, {0}, ramp},
    {"none", FTH_ST_I64, 2, {0, 5}, NULL},
    {"a", FTH_ST_F32, 3, {1, 1, 2}, ramp},
    {"gr\xc3\xb6\xc3\x9f\x65\n", FTH_ST_F32, 1, {1}, ramp},
};
enum { N_WRITTEN = sizeof written / sizeof written[0] };

static void writes_what_it_reads(void **state) {
    char path[300], *bytes;
    size_t size;
    fth_st_sum sum = {0};
    PATH(path, *state, "w.safetensors");
    assert_ok(fth_st_write(path, written, N_WRITTEN, NULL, NULL, &sum));
    assert_ok(fth_file_read(path, &bytes, &size));
    assert_int_equal(sum.crc32, fth_crc32(0, bytes, size));
    assert_int_equal(sum.bytes, size);

    uint64_t length = 0;
    memcpy(&length, bytes, 8);
    assert_int_equal((8 + length) % 64, 0);
    assert_int_equal(size, 8 + length + 24 + 24 + 3 + 4 + 0 + 8 + 4);
    const char *begin =
        "{\"__metadata__\":{\"format\":\"pt\"},\"B\":{\"dtype\":\"U8\",\"shape\":[3],"
        "\"data_offsets\":[0,3]},\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,2],"
        "\"data_offsets\":[3,11]},\"a.weight\":";
    assert_memory_equal(bytes + 8, begin, strlen(begin));
    free(bytes);

    fth_st_file *f = NULL;
    assert_ok(fth_st_open(path, &f));
    assert_ok(fth_st_expect(f, written, N_WRITTEN));
    for (size_t i = 0; i < N_WRITTEN; i++) {
        const fth_st_tensor *t = fth_st_find(f, written[i].name);
        assert_non_null(t);
        assert_int_equal(t->dtype, written[i].dtype);
        size_t n = fth_st_count(t) * fth_st_dtype_size(t->dtype);
        if (n) assert_memory_equal(t->data, written[i].data, n);
    }
    fth_st_close(f);
}

static void writes_a_file_without_tensors(void **state) {
    char path[300];
    fth_st_file *f = NULL;
    PATH(path, *state, "empty.safetensors");
    assert_ok(fth_st_write(path, NULL, 0, NULL, NULL, NULL));
    assert_ok(fth_st_open(path, &f));
    assert_int_equal(f->n, 0);
    assert_null(fth_st_find(f, "a"));
    fth_st_close(f);
}

static void writes_through_links_and_to_devices(void **state) {
    char path[300], link[300];
    struct stat st;
    fth_st_file *f = NULL;
    PATH(path, *state, "target.safetensors");
    PATH(link, *state, "link.safetensors");
    put_bytes(path, "old", 3);
    assert_int_equal(symlink("target.safetensors", link), 0);
    assert_ok(fth_st_write(link, written, N_WRITTEN, NULL, NULL, NULL));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_ok(fth_st_open(path, &f));
    fth_st_close(f);
    assert_ok(fth_st_write("/dev/null", written, N_WRITTEN, NULL, NULL, NULL));
    assert_int_equal(lstat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode)); /* and not replaced by a file */
    assert_failed(fth_st_write("/dev/full", written, N_WRITTEN, NULL, NULL, NULL), FTH_IO,
                  (const char *[]){"/dev/full", "No space", NULL});
    assert_failed(fth_st_write(*state, written, N_WRITTEN, NULL, NULL, NULL), FTH_BAD_INPUT,
                  (const char *[]){"directory", NULL});
}

static void refuses_to_write(void **state) {
    const struct {
        const char *what;
        fth_st_tensor tensors[2];
        const char *words[4];
    } cases[] = {
        {"twice", {{"a", FTH_ST_F32, 1, {1}, ramp}, {"a", FTH_ST_F32, 1, {1}, ramp}}, {"\"a\""}},
        {"reserved", {{"__metadata__", FTH_ST_F32, 1, {1}, ramp}, written[1]}, {"__metadata__"}},
        {"negative",
         {{"a", FTH_ST_F32, 2, {3, -1}, ramp}, written[0]},
         {"\"a\"", "shape[1]", "-1"}},
        {"huge", {{"a", FTH_ST_F32, 2, {1ll << 40, 1ll << 40}, ramp}, written[0]}, {"shape[1]"}},
        {"rank", {{"a", FTH_ST_F32, 9, {1}, ramp}, written[0]}, {"rank 9", "8"}},
        {"no data", {{"a", FTH_ST_F32, 1, {1}, NULL}, written[0]}, {"\"a\"", "no data"}},
        {"not UTF-8", {{"a\xff", FTH_ST_F32, 1, {1}, ramp}, written[0]}, {"UTF-8"}},
    };
    char path[300];
    PATH(path, *state, "w.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_failed(fth_st_write(path, cases[i].tensors, 2, NULL, NULL, NULL), FTH_FAILED,
                      cases[i].words);
        assert_false(fth_file_exists(path));
    }
    PATH(path, *state, "no/such/folder.safetensors");
    assert_failed(fth_st_write(path, written, 1, NULL, NULL, NULL), FTH_NOT_FOUND,
                  (const char *[]){"no/such/folder", NULL});
}

/* More than one chunk, so that the pieces must meet. */
static void converts_while_writing(void **state) {
    enum { N = (1 << 19) + 3 };
    char path[300];
    fth_st_file *f = NULL;
    float *data = malloc(N * sizeof *data), *back = malloc(N * sizeof *back);
    fth_rng rng;
    fth_rng_init(&rng, 7, 0);
    for (size_t i = 0; i < N; i++) data[i] = (float)fth_rng_normal(&rng);
    const float edges[] = {1.00390625f /* a tie, to even: 1 */,
                           1.01171875f /* a tie: 1.015625 */,
                           3.3895314e38f,
                           -0.0f,
                           INFINITY,
                           NAN};
    const float rounded[] = {1.0f, 1.015625f, 0x1.fep127f, -0.0f, INFINITY};
    memcpy(data + N - 6, edges, sizeof edges);
    fth_st_tensor t[] = {{"bf16", FTH_ST_BF16, 1, {N}, data},
                         {"f32", FTH_ST_F32, 1, {N}, data},
                         {"f64", FTH_ST_F64, 1, {N}, data}};
    PATH(path, *state, "c.safetensors");
    assert_ok(fth_st_write(path, t, 3, fth_st_fill_from_f32, NULL, NULL));
    assert_ok(fth_st_open(path, &f));
    assert_ok(fth_st_to_f32(f, fth_st_find(f, "f32"), back));
    assert_memory_equal(back, data, N * sizeof *data);
    assert_ok(fth_st_to_f32(f, fth_st_find(f, "f64"), back));
    assert_memory_equal(back, data, (N - 1) * sizeof *data);
    assert_ok(fth_st_to_f32(f, fth_st_find(f, "bf16"), back));
    for (size_t i = 0; i < N - 6; i++)
        if (!is_close(back[i], data[i], fabsf(data[i]) * 0x1p-8f))
            fail_msg("element %zu: %g became %g", i, (double)data[i], (double)back[i]);
    assert_memory_equal(back + N - 6, rounded, sizeof rounded);
    assert_true(isnan(back[N - 1]));
    fth_st_close(f);
    t[0].dtype = FTH_ST_I32;
    assert_failed(fth_st_write(path, t, 1, fth_st_fill_from_f32, NULL, NULL), FTH_FAILED,
                  (const char *[]){"\"bf16\"", "I32", NULL});
    assert_ok(fth_st_open(path, &f)); /* the earlier file is untouched */
    assert_int_equal(f->n, 3);
    fth_st_close(f);
    free(data);
    free(back);
}

static void names_what_a_model_lacks(void **state) {
    char path[300];
    fth_st_file *f = NULL;
    fth_st_tensor want[N_WRITTEN];
    PATH(path, *state, "w.safetensors");
    assert_ok(fth_st_write(path, written, N_WRITTEN, NULL, NULL, NULL));
    assert_ok(fth_st_open(path, &f));

    memcpy(want, written, sizeof want);
    want[0].dtype = FTH_ST_BF16; /* floats stand for each other */
    assert_ok(fth_st_expect(f, want, N_WRITTEN));
    want[0].dtype = FTH_ST_I32;
    assert_failed(fth_st_expect(f, want, N_WRITTEN), FTH_BAD_INPUT,
                  (const char *[]){"w.safetensors", "\"z\"", "F32", "I32", NULL});
    memcpy(want, written, sizeof want);
    want[0].shape[1] = 4;
    assert_failed(fth_st_expect(f, want, N_WRITTEN), FTH_BAD_INPUT,
                  (const char *[]){"w.safetensors", "\"z\"", "[2,3]", "[2,4]", NULL});
    want[0] = written[0];
    want[0].rank = 1;
    assert_failed(fth_st_expect(f, want, N_WRITTEN), FTH_BAD_INPUT,
                  (const char *[]){"\"z\"", "[2,3]", "[2]", NULL});
    assert_failed(fth_st_expect(f, written + 1, N_WRITTEN - 1), FTH_BAD_INPUT,
                  (const char *[]){"\"z\"", "no part", NULL});
    want[0] = written[0];
    want[0].name = "y";
    assert_failed(fth_st_expect(f, want, N_WRITTEN), FTH_BAD_INPUT,
                  (const char *[]){"\"y\"", "missing", NULL});
    want[0].name = "zz";
    assert_failed(fth_st_expect(f, want, N_WRITTEN), FTH_BAD_INPUT,
                  (const char *[]){"\"z\"", "no part", NULL});
    fth_st_close(f);
}

/* ---- files that are not ---- */

/* A file of a header and so many zero bytes; length below 0: the header's own. */
static void put_file(const char *path, const char *header, int64_t length, size_t data) {
    char bytes[4096] = {0};
    size_t n = strlen(header);
    if (length < 0) length = (int64_t)n;
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, n);
    put_bytes(path, bytes, 8 + n + data);
}

#define A(dtype, shape, offsets)                                                                   \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct malformed {
    const char *header;
    int64_t length;
    size_t data;
    const char *words[4];
} malformed[] = {
    {"{}", 3, 0, {"length 3", "(2)"}},
    {"{}", INT64_MAX, 0, {"9223372036854775807"}},
    {"{}", 0, 0, {"{"}},
    {"{}", 1, 0, {"{"}},
    {" {}", -1, 0, {"begin with {"}},
    {"[]", -1, 0, {"begin with {"}},
    {"{", 1, 0, {"{"}},
    {"{\"a\":", -1, 0, {"JSON"}},
    {"{} x", -1, 0, {"JSON"}},
    {"{\"a\":NaN}", -1, 0, {"JSON"}},
    {"{\"\xff\":1}", -1, 0, {"JSON"}},
    {"{\"a\":1,\"a\":1}", -1, 0, {"JSON", "duplicate", "a"}},
    {"{}", -1, 1, {"1 bytes", "end at 0"}},
    {"{\"a\":3}", -1, 0, {"\"a\"", "object"}},
    {"{\"a\":{}}", -1, 0, {"\"a\"", "dtype"}},
    {"{\"__metadata__\":3}", -1, 0, {"__metadata__", "object"}},
    {"{\"__metadata__\":{\"x\":3}}", -1, 0, {"__metadata__", "\"x\"", "string"}},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}",
     -1,
     4,
     {"\"a\"", "unknown key \"x\""}},
    {"{\"line\\nbreak\":{\"dtype\":0}}", -1, 0, {"line?break", "dtype"}},
    {A("\"F31\"", "[1]", "[0,4]"), -1, 4, {"\"a\"", "dtype \"F31\"", "F32"}},
    {A("32", "[1]", "[0,4]"), -1, 4, {"\"a\"", "dtype"}},
    {A("\"F32\"", "1", "[0,4]"), -1, 4, {"\"a\"", "shape"}},
    {A("\"F32\"", "[1.0]", "[0,4]"), -1, 4, {"\"a\"", "shape[0]", "whole"}},
    {A("\"F32\"", "[-1]", "[0,4]"), -1, 4, {"\"a\"", "shape[0]", "-1"}},
    {A("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), -1, 4, {"\"a\"", "9 dimensions", "8"}},
    {A("\"F32\"", "[4294967296,4294967296]", "[0,0]"), -1, 0, {"\"a\"", "4294967296", "overflows"}},
    {A("\"F32\"", "[0,4294967296,4294967296]", "[0,0]"), -1, 0, {"\"a\"", "overflows"}},
    {A("\"F32\"", "[1]", "[0,4,8]"), -1, 8, {"\"a\"", "data_offsets", "two"}},
    {A("\"F32\"", "[1]", "{}"), -1, 4, {"\"a\"", "data_offsets"}},
    {A("\"F32\"", "[1]", "[\"0\",4]"), -1, 4, {"\"a\"", "data_offsets[0]"}},
    {A("\"F32\"", "[1]", "[-4,0]"), -1, 4, {"\"a\"", "data_offsets[0]", "-4"}},
    {A("\"F32\"", "[1]", "[4,0]"), -1, 4, {"\"a\"", "[4,0]", "4 bytes"}},
    {A("\"F32\"", "[2]", "[0,8]"), -1, 4, {"\"a\"", "[0,8]", "4 bytes"}},
    {A("\"F32\"", "[2]", "[0,4]"), -1, 4, {"\"a\"", "hold 4 bytes", "need 8"}},
    {A("\"F32\"", "[]", "[0,8]"), -1, 8, {"\"a\"", "hold 8 bytes", "need 4"}},
    {A("\"F32\"", "[1]", "[4,8]"), -1, 8, {"\"a\"", "begin at 4", "gap"}},
    {A("\"F32\"", "[1]", "[0,4]"), -1, 8, {"8 bytes", "end at 4"}},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
     -1,
     4,
     {"\"b\"", "\"a\"", "overlap"}},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}",
     -1,
     3,
     {"overlap"}},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
     -1,
     4,
     {"\"b\"", "gap"}},
};

static void refuses_malformed_files(void **state) {
    char path[300];
    fth_st_file *f = NULL;
    PATH(path, *state, "bad.safetensors");
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        const struct malformed *m = &malformed[i];
        put_file(path, m->header, m->length, m->data);
        fth_err err = fth_st_open(path, &f);
        assert_failed(err, FTH_BAD_INPUT, (const char *[]){"bad.safetensors", NULL});
        assert_failed(err, FTH_BAD_INPUT, m->words);
        assert_null(f);
    }
    put_bytes(path, "1234567", 7);
    assert_failed(fth_st_open(path, &f), FTH_BAD_INPUT, (const char *[]){"7 bytes", NULL});
    assert_failed(fth_st_open(*state, &f), FTH_BAD_INPUT, (const char *[]){"regular", NULL});
    PATH(path, *state, "pipe.safetensors");
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(60); /* for a reader that waits */
    assert_failed(fth_st_open(path, &f), FTH_BAD_INPUT, (const char *[]){"regular", NULL});
    alarm(0);
    PATH(path, *state, "none.safetensors");
    assert_failed(fth_st_open(path, &f), FTH_NOT_FOUND, (const char *[]){path, NULL});
}

/* Reads all that a file hands out, so that a view that leaves the file is noticed. */
static void read_everything(const fth_st_file *f) {
    volatile unsigned sum = 0;
    for (size_t i = 0; i < f->n; i++) {
        const fth_st_tensor *t = &f->tensors[i];
        const unsigned char *bytes = t->data;
        size_t n = fth_st_count(t) * fth_st_dtype_size(t->dtype);
        assert_true(bytes >= (unsigned char *)f->map);
        assert_true(n <= f->map_size);
        assert_true(bytes + n <= (unsigned char *)f->map + f->map_size);
        for (size_t k = 0; k < n; k++) sum = sum + bytes[k];
    }
}

/* One mutation: a flipped bit, another digit, bytes taken out, put in or cut off. */
static size_t mutate(fth_rng *rng, unsigned char *bytes, size_t size) {
    static const char letters[] = "0123456789-.,:\"[]{}eE \\x";
    size_t at = fth_rng_below(rng, size < 1100 ? size : 1100); /* mostly the header */
    size_t few = 1 + fth_rng_below(rng, 9);
    switch (fth_rng_below(rng, 5)) {
    case 0: bytes[at] ^= (unsigned char)(1u << fth_rng_below(rng, 8)); break;
    case 1: bytes[at] = (unsigned char)letters[fth_rng_below(rng, sizeof letters - 1)]; break;
    case 2:
        if (few > size - at) few = size - at;
        memmove(bytes + at, bytes + at + few, size - at - few);
        return size - few;
    case 3: memmove(bytes + at + few, bytes + at, size - at); return size + few;
    default: return at + 1;
    }
    return size;
}

static void survives_mutated_files(void **state) {
    char path[300], *original;
    unsigned char bytes[8192];
    size_t size;
    int accepted = 0, refused = 0;
    fth_rng rng;
    fth_rng_init(&rng, 20, 25);
    PATH(path, *state, "fuzz.safetensors");
    assert_ok(fth_file_read(TEST_DIR "/golden/store/python.safetensors", &original, &size));
    for (int round = 0; round < 6000; round++) {
        size_t n = size;
        memcpy(bytes, original, size);
        for (uint64_t k = fth_rng_below(&rng, 3) + 1; k > 0 && n > 0; k--)
            n = mutate(&rng, bytes, n);
        /* keep the length of the header right half of the time, to come past it */
        if (round % 2 && n > 8) memcpy(bytes, original, 8);
        put_bytes(path, bytes, n);
        fth_st_file *f = NULL;
        fth_err err = fth_st_open(path, &f);
        if (err) {
            assert_failed(err, FTH_BAD_INPUT, (const char *[]){"fuzz.safetensors: ", NULL});
            refused++;
        } else {
            read_everything(f);
            accepted++;
        }
        fth_st_close(f);
    }
    free(original);
    assert_true(accepted > 100); /* a flipped bit in the data is no matter of the format */
    assert_true(refused > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_what_python_wrote),
        TEST(refuses_wrong_conversions),
        TEST(writes_what_it_reads),
        TEST(writes_a_file_without_tensors),
        TEST(writes_through_links_and_to_devices),
        TEST(refuses_to_write),
        TEST(converts_while_writing),
        TEST(names_what_a_model_lacks),
        TEST(refuses_malformed_files),
        TEST(survives_mutated_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
