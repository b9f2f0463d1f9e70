/* links: data base */
/* Files of labels, pictures and frames: what is written is read, what is damaged is refused. */
#include "test_files.h"

#include "data/vectors.h"

/* Record i has i % 4 vectors of 3 floats. */
static void write_frames(const char *path, int records) {
    fth_vectors_writer *w = NULL;
    float frames[9];
    assert_ok(fth_vectors_writer_new(path, FTH_VECTOR_F32, 3, 0, &w));
    for (int i = 0; i < records; i++) {
        for (int k = 0; k < 9; k++) frames[k] = (float)(i * 10 + k);
        assert_ok(fth_vectors_writer_add(w, frames, i % 4));
    }
    assert_ok(fth_vectors_writer_finish(w));
    fth_vectors_writer_free(w);
}

static void frames_are_read(void **state) {
    char path[512];
    PATH(path, *state, "frames");
    write_frames(path, 10);
    fth_vectors *v = NULL;
    assert_ok(fth_vectors_open(path, &v));
    assert_int_equal(v->records, 10);
    assert_int_equal(v->vectors, 13);
    assert_int_equal(v->longest, 3);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fth_vectors_length(v, i), i % 4);
        const float *frames = fth_vectors_at(v, i);
        for (int k = 0; k < 3 * (i % 4); k++) assert_true(frames[k] == (float)(i * 10 + k));
    }
    assert_ok(fth_vectors_check(v));
    fth_vectors_free(v);
}

static void labels_have_no_offsets(void **state) {
    char path[512];
    PATH(path, *state, "labels");
    fth_vectors_writer *w = NULL;
    assert_ok(fth_vectors_writer_new(path, FTH_VECTOR_I32, 1, 1, &w));
    for (int32_t i = 0; i < 5; i++) assert_ok(fth_vectors_writer_add(w, &i, 1));
    const int32_t two[2] = {1, 2};
    assert_int_equal(fth_vectors_writer_add(w, two, 2), FTH_FAILED);
    assert_ok(fth_vectors_writer_finish(w));
    fth_vectors_writer_free(w);
    fth_vectors *v = NULL;
    assert_ok(fth_vectors_open(path, &v));
    assert_null(v->offsets);
    for (int32_t i = 0; i < 5; i++) assert_int_equal(*(const int32_t *)fth_vectors_at(v, i), i);
    assert_ok(fth_vectors_check(v));
    fth_vectors_free(v);
}

/* Every byte of the file matters, but for the gaps. */
static void every_damaged_byte_is_found(void **state) {
    char path[512], *data = NULL;
    size_t size = 0;
    int found = 0;
    PATH(path, *state, "frames");
    write_frames(path, 6);
    assert_ok(fth_file_read(path, &data, &size));
    for (size_t i = 0; i < size; i++) {
        data[i] = (char)(data[i] ^ 0x10);
        put_bytes(path, data, size);
        data[i] = (char)(data[i] ^ 0x10);
        fth_vectors *v = NULL;
        fth_err err = fth_vectors_open(path, &v);
        if (err == FTH_OK) err = fth_vectors_check(v);
        assert_true(err == FTH_OK || err == FTH_BAD_INPUT);
        found += err != FTH_OK;
        fth_vectors_free(v);
    }
    /* header, 7 offsets, 7 vectors of 3 floats: all that is not a gap */
    assert_int_equal(found, 128 + 7 * 8 + 7 * 12);
    free(data);
}

static void cut_files_are_refused(void **state) {
    char path[512], *data = NULL;
    size_t size = 0;
    PATH(path, *state, "frames");
    write_frames(path, 6);
    assert_ok(fth_file_read(path, &data, &size));
    for (size_t cut = 0; cut < size; cut += 7) {
        fth_vectors *v = NULL;
        put_bytes(path, data, cut);
        assert_failed(fth_vectors_open(path, &v), FTH_BAD_INPUT, (const char *[]){"frames", NULL});
        assert_null(v);
    }
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(frames_are_read),
        TEST(labels_have_no_offsets),
        TEST(every_damaged_byte_is_found),
        TEST(cut_files_are_refused),
    };
    return cmocka_run_group_tests_name("data: vectors", tests, NULL, NULL);
}
