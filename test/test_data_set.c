/* links: data base */
/* The data set file: what is written is read, and what is damaged is refused, never followed. */
#include "test_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/philox.h"
#include "data/dataset.h"
#include "data/format.h"
#include "data/verify.h"

static const fth_data_side NARROW = {.vocab = 100, .special = {0, 1, 2, 3}};
static const fth_data_side WIDE = {.vocab = 70000, .special = {0, 1, 2, 3}};

/* Sentence i has i % 7 tokens on side 0 and i % 5 on side 1. */
static size_t length_of(int64_t i, int side) {
    return (size_t)(i % (side ? 5 : 7));
}

static int32_t token_of(int64_t i, int side, size_t k, int32_t vocab) {
    return (int32_t)((i * 31 + side * 7 + (int64_t)k * 3) % vocab);
}

static void write_set(const char *path, int64_t sentences, int n_sides,
                      const fth_data_side *sides) {
    fth_dataset_writer *w = NULL;
    int32_t ids[2][8];
    assert_ok(fth_dataset_writer_new(path, n_sides, sides, &w));
    for (int64_t i = 0; i < sentences; i++) {
        const int32_t *all[2] = {ids[0], ids[1]};
        size_t n[2] = {0, 0}, words[2] = {1, 2}, bytes[2] = {10, 20};
        for (int s = 0; s < n_sides; s++) {
            n[s] = length_of(i, s);
            for (size_t k = 0; k < n[s]; k++) ids[s][k] = token_of(i, s, k, sides[s].vocab);
        }
        assert_ok(fth_dataset_writer_add(w, all, n, words, bytes));
    }
    assert_ok(fth_dataset_writer_finish(w));
    fth_dataset_writer_free(w);
}

static void what_is_written_is_read(void **state) {
    static const struct {
        int64_t sentences;
        int n_sides;
        const fth_data_side *sides[2];
        int id_bytes;
    } cases[] = {{1000, 2, {&NARROW, &NARROW}, 2},
                 {333, 2, {&NARROW, &WIDE}, 4},
                 {50, 1, {&WIDE, NULL}, 4},
                 {1, 1, {&NARROW, NULL}, 2},
                 {0, 2, {&NARROW, &NARROW}, 2}};
    char path[512];
    PATH(path, *state, "set.fds");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fth_data_side sides[2] = {*cases[c].sides[0]};
        if (cases[c].sides[1]) sides[1] = *cases[c].sides[1];
        fth_dataset *d = NULL;
        write_set(path, cases[c].sentences, cases[c].n_sides, sides);
        assert_ok(fth_dataset_open(path, &d));
        assert_ok(fth_dataset_check(d));
        assert_int_equal(d->sentences, cases[c].sentences);
        assert_int_equal(d->n_sides, cases[c].n_sides);
        assert_int_equal(d->id_bytes, cases[c].id_bytes);
        for (int s = 0; s < d->n_sides; s++) {
            int64_t tokens = 0, longest = 0;
            for (int64_t i = 0; i < d->sentences; i++) {
                int32_t ids[8];
                int64_t n = fth_dataset_length(d, s, i);
                assert_int_equal(n, length_of(i, s));
                assert_ok(fth_dataset_copy(d, s, i, 0, n, ids));
                for (int64_t k = 0; k < n; k++)
                    assert_int_equal(ids[k], token_of(i, s, (size_t)k, sides[s].vocab));
                if (n > 1) {
                    assert_ok(fth_dataset_copy(d, s, i, 1, n - 1, ids));
                    assert_int_equal(ids[0], token_of(i, s, 1, sides[s].vocab));
                }
                assert_int_equal(fth_dataset_copy(d, s, i, 1, n, ids), FTH_BAD_INPUT);
                tokens += n;
                if (n > longest) longest = n;
            }
            assert_int_equal(d->side[s].tokens, tokens);
            assert_int_equal(d->side[s].longest, longest);
            assert_int_equal(d->side[s].words, d->sentences * (s + 1));
            assert_int_equal(d->side[s].bytes, d->sentences * 10 * (s + 1));
            assert_int_equal(d->side[s].special.unk, 3);
        }
        fth_dataset_free(d);
    }
}

static void wrong_ids_are_not_written(void **state) {
    char path[512];
    PATH(path, *state, "set.fds");
    for (int i = 0; i < 2; i++) {
        int32_t id = i ? 100 : -1;
        const int32_t *ids[2] = {&id, NULL};
        size_t one[2] = {1, 0};
        fth_dataset_writer *w = NULL;
        assert_ok(fth_dataset_writer_new(path, 1, &NARROW, &w));
        assert_failed(fth_dataset_writer_add(w, ids, one, one, one), FTH_BAD_INPUT,
                      (const char *[]){"token id", "[0, 100)", NULL});
        fth_dataset_writer_free(w);
        assert_false(fth_file_exists(path));
    }
}

static void nothing_is_left_without_finish(void **state) {
    char path[512], command[600];
    PATH(path, *state, "set.fds");
    fth_dataset_writer *w = NULL;
    assert_ok(fth_dataset_writer_new(path, 1, &NARROW, &w));
    fth_dataset_writer_free(w);
    snprintf(command, sizeof command, "test -z \"$(ls -A %s)\"", (const char *)*state);
    assert_int_equal(system(command), 0);
}

/* Writes a file with one header field changed and the header's check sum made right again. */
static void put_header(const char *path, const char *data, size_t size, const fth_fds_header *h) {
    char *copy = malloc(size);
    fth_fds_header header = *h;
    header.crc = fth_crc32(0, &header, offsetof(fth_fds_header, crc));
    memcpy(copy, data, size);
    memcpy(copy, &header, sizeof header);
    put_bytes(path, copy, size);
    free(copy);
}

static void impossible_headers(void **state) {
    char path[512], *data;
    size_t size;
    fth_dataset *d = NULL;
    PATH(path, *state, "set.fds");
    write_set(path, 100, 2, (fth_data_side[]){NARROW, NARROW});
    assert_ok(fth_file_read(path, &data, &size));
    fth_fds_header good;
    memcpy(&good, data, sizeof good);
    put_header(path, data, size, &good);
    assert_ok(fth_dataset_open(path, &d)); /* the helper itself does no harm */
    fth_dataset_free(d);

    static const char *const names[] = {
        "magic",  "version",   "order",   "no sides",  "three sides", "id bytes", "many",
        "tokens", "file size", "special", "sentences", "vocab",       "longest",  NULL};
    for (int i = 0; names[i]; i++) {
        fth_fds_header h = good;
        if (i == 0) h.magic[0] = 'X';
        if (i == 1) h.version = 2;
        if (i == 2) h.order = 0x04030201;
        if (i == 3) h.n_sides = 0;
        if (i == 4) h.n_sides = 3;
        if (i == 5) h.id_bytes = 3;
        if (i == 6) h.sentences = UINT64_MAX / 8;
        if (i == 7) h.side[1].tokens = UINT64_MAX;
        if (i == 8) h.file_size++;
        if (i == 9) h.side[0].eos = 100;
        if (i == 10) h.sentences++;
        if (i == 11) h.side[0].vocab = UINT32_MAX;
        if (i == 12) h.side[0].longest = UINT32_MAX;
        put_header(path, data, size, &h);
        fth_err err = fth_dataset_open(path, &d);
        if (err != FTH_BAD_INPUT) fail_msg("%s: error %d", names[i], (int)err);
        assert_non_null(strstr(fth_error_message(), "set.fds"));
        if (i == 1) assert_non_null(strstr(fth_error_message(), "version 2"));
    }
    free(data);
}

/* Every length below the whole: refused at opening. */
static void cut_files(void **state) {
    char path[512], *data;
    size_t size;
    fth_dataset *d = NULL;
    PATH(path, *state, "set.fds");
    write_set(path, 20, 2, (fth_data_side[]){NARROW, NARROW});
    assert_ok(fth_file_read(path, &data, &size));
    for (size_t n = 0; n < size; n += n < 600 ? 1 : 7) {
        put_bytes(path, data, n);
        assert_failed(fth_dataset_open(path, &d), FTH_BAD_INPUT, (const char *[]){"set.fds", NULL});
    }
    free(data);
    remove(path);
    assert_failed(fth_dataset_open(path, &d), FTH_NOT_FOUND, (const char *[]){"set.fds", NULL});
    assert_failed(fth_dataset_open(*state, &d), FTH_BAD_INPUT, (const char *[]){NULL});
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(60); /* for a reader that waits */
    assert_failed(fth_dataset_open(path, &d), FTH_BAD_INPUT, (const char *[]){"regular", NULL});
    alarm(0);
}

/* Reads everything, as training would. */
static void read_through(const fth_dataset *d) {
    int32_t ids[64];
    for (int s = 0; s < d->n_sides; s++)
        for (int64_t i = 0; i < d->sentences; i++) {
            int64_t n = fth_dataset_length(d, s, i);
            if (n < 0 || n > 64) continue;
            if (fth_dataset_copy(d, s, i, 0, n, ids) != FTH_OK) continue;
            for (int64_t k = 0; k < n; k++) assert_in_range(ids[k], 0, d->side[s].vocab - 1);
        }
}

static void put_byte(const char *path, size_t at, char byte) {
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* One wrong byte anywhere: the check finds it, and reading stays inside the file. */
static void flipped_bytes(void **state) {
    char path[512], *data;
    size_t size;
    fth_rng rng;
    fth_rng_init(&rng, 11, 0);
    PATH(path, *state, "set.fds");
    write_set(path, 60, 2, (fth_data_side[]){NARROW, NARROW});
    assert_ok(fth_file_read(path, &data, &size));
    fth_fds_header header;
    fth_fds_layout layout;
    memcpy(&header, data, sizeof header);
    assert_true(fth_fds_layout_of(&header, &layout));
    for (int round = 0; round < 2000; round++) {
        size_t at = (size_t)fth_rng_below(&rng, size);
        char before = data[at];
        char wrong = (char)(before ^ (1 << fth_rng_below(&rng, 8)));
        put_byte(path, at, wrong);
        fth_dataset *d = NULL;
        fth_err err = fth_dataset_open(path, &d);
        int found = err == FTH_BAD_INPUT;
        if (!err) {
            read_through(d);
            found = fth_dataset_check(d) == FTH_BAD_INPUT;
        }
        int gap = 0; /* the zeros between the parts carry nothing */
        for (int s = 0; s < 2; s++) {
            uint64_t ids = layout.ids[s] + 2 * header.side[s].tokens;
            uint64_t offsets = layout.offsets[s] + 8 * (header.sentences + 1);
            gap |= at >= ids && at < fth_fds_align(ids);
            gap |= at >= offsets && at < layout.ids[s];
        }
        if (!found && !gap) fail_msg("byte %zu: not found", at);
        fth_dataset_free(d);
        put_byte(path, at, before);
    }
    free(data);
}

/* Opening looks at the header alone: 100 million sentences (a file of holes) in milliseconds. */
static void opening_takes_no_time(void **state) {
    char path[512];
    PATH(path, *state, "set.fds");
    fth_fds_header h = {.version = FTH_FDS_VERSION,
                        .order = FTH_FDS_ORDER,
                        .n_sides = 2,
                        .id_bytes = 2,
                        .sentences = 100000000};
    memcpy(h.magic, FTH_FDS_MAGIC, sizeof h.magic);
    for (int s = 0; s < 2; s++)
        h.side[s] = (fth_fds_side){.tokens = 3000000000u, .vocab = 100, .longest = 200, .eos = 2};
    fth_fds_layout layout;
    assert_true(fth_fds_layout_of(&h, &layout));
    h.file_size = layout.file_size;
    h.crc = fth_crc32(0, &h, offsetof(fth_fds_header, crc));
    put_bytes(path, &h, sizeof h);
    if (truncate(path, (off_t)layout.file_size) != 0) skip(); /* no room for holes here */
    for (int s = 0; s < 2; s++) {
        uint64_t tokens = h.side[s].tokens, last = layout.offsets[s] + 8 * h.sentences;
        for (int k = 0; k < 8; k++) put_byte(path, last + (size_t)k, (char)(tokens >> 8 * k));
    }
    struct timespec a, b;
    fth_dataset *d = NULL;
    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_ok(fth_dataset_open(path, &d));
    assert_int_equal(fth_dataset_length(d, 1, 99999998), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ms = 1e3 * (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_nsec - a.tv_nsec);
    assert_true(ms < 100); /* a pass over the offsets alone would take a second */
    fth_dataset_free(d);
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Verifies what lies at path. */
static fth_err verify(const char *path) {
    fth_dataset *d = NULL;
    fth_verify *v = NULL;
    assert_ok(fth_dataset_open(path, &d));
    assert_ok(fth_verify_start((const fth_dataset *[]){NULL, d}, 2, &v));
    fth_err err = fth_verify_wait(v);
    assert_int_equal(fth_verify_found(v), err);
    fth_verify_free(v);
    fth_dataset_free(d);
    return err;
}

/* Every byte after the header, in files with check sums of blocks and in older ones without. */
static void damage_has_a_place(void **state) {
    const fth_data_side sides[2] = {NARROW, NARROW};
    char path[512], *bytes, place[100];
    size_t size;
    PATH(path, *state, "set.fds");
    write_set(path, 100, 2, sides);
    assert_ok(fth_file_read(path, &bytes, &size));
    for (int old = 0; old < 2; old++) {
        fth_fds_header *h = (fth_fds_header *)bytes;
        if (old) {
            memset(h->block_crc, 0, sizeof h->block_crc);
            h->n_blocks = 0;
            h->crc = fth_crc32(0, h, offsetof(fth_fds_header, crc));
        }
        write_file(path, bytes, size);
        assert_ok(verify(path));
        const size_t side_1 = size - 300; /* ids, none of the gaps, which old files do not sum */
        for (size_t at = old ? side_1 : FTH_FDS_HEADER; at < (old ? side_1 + 1 : size); at += 13) {
            bytes[at] ^= 1;
            write_file(path, bytes, size);
            bytes[at] ^= 1;
            fth_dataset *d = NULL;
            if (fth_dataset_open(path, &d) != FTH_OK) continue; /* an end of the offsets */
            fth_dataset_free(d);
            assert_int_equal(verify(path), FTH_BAD_INPUT);
            const size_t block = (size_t)fth_fds_block(h);
            const size_t from = FTH_FDS_HEADER + (at - FTH_FDS_HEADER) / block * block;
            const size_t end = from + block < size ? from + block : size;
            snprintf(place, sizeof place, "bytes %zu to %zu", from, end - 1);
            assert_non_null(strstr(fth_error_message(), old ? "side 1's ids" : place));
        }
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(damage_has_a_place),
        TEST(wrong_ids_are_not_written),
        TEST(nothing_is_left_without_finish),
        TEST(impossible_headers),
        TEST(cut_files),
        TEST(flipped_bytes),
        TEST(opening_takes_no_time),
    };
    return cmocka_run_group_tests_name("data: file", tests, NULL, NULL);
}
