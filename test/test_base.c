/* links: base */
/* Strings, files, UTF-8, counted random numbers, hashes, arenas. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/median.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/philox.h"
#include "base/unfinished.h"
#include "base/str.h"
#include "base/utf8.h"
#include "close.h"

static void error_messages(void **state) {
    (void)state;
    assert_int_equal(fth_fail(FTH_BAD_INPUT, "line %d", 7), FTH_BAD_INPUT);
    assert_int_equal(fth_fail_in(FTH_BAD_INPUT, "file %s", "a"), FTH_BAD_INPUT);
    assert_string_equal(fth_error_message(), "file a: line 7");
    fth_fail(FTH_IO, "%s!", fth_error_message());
    assert_string_equal(fth_error_message(), "file a: line 7!");
    static const int statuses[][2] = {{FTH_OK, 0},        {FTH_USAGE, 2},       {FTH_BAD_CONFIG, 2},
                                      {FTH_BAD_INPUT, 2}, {FTH_NOT_FOUND, 2},   {FTH_IO, 1},
                                      {FTH_NO_MEMORY, 1}, {FTH_FAILED, 1},      {FTH_DIVERGED, 3},
                                      {FTH_STOPPED, 130}, {FTH_TERMINATED, 143}};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_int_equal(fth_exit_status((fth_err)statuses[i][0]), statuses[i][1]);
}

static void strings_grow(void **state) {
    (void)state;
    fth_str s = {0};
    fth_str_clear(&s);
    assert_null(s.text);
    assert_int_equal(fth_str_add(&s, NULL, 0), FTH_OK);
    assert_string_equal(s.text, "");
    for (int i = 0; i < 1000; i++) assert_int_equal(fth_str_addf(&s, "%03d,", i), FTH_OK);
    assert_int_equal(s.length, 4000);
    assert_int_equal(strlen(s.text), 4000);
    assert_memory_equal(s.text + 4 * 517, "517,", 4);
    assert_int_equal(fth_str_add(&s, "a\0b", 3), FTH_OK);
    assert_memory_equal(s.text + 4000, "a\0b\0", 4);
    assert_int_equal(fth_str_add(&s, "", SIZE_MAX - 1), FTH_NO_MEMORY);
    assert_int_equal(s.length, 4003);
    fth_str_clear(&s);
    assert_int_equal(s.length, 0);
    assert_string_equal(s.text, "");
    fth_str_fini(&s);
    fth_str_fini(&s);
    char *text = fth_strdup_printf("%d-%s", 5, "x");
    assert_string_equal(text, "5-x");
    free(text);
}

static void arenas_hand_out_zeroed_aligned_memory(void **state) {
    (void)state;
    fth_arena a;
    fth_arena_init(&a);
    unsigned char *last = NULL;
    for (size_t size = 0; size < 3000000; size = size * 3 + 1) {
        unsigned char *p = fth_arena_alloc(&a, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_ptr_not_equal(p, last);
        for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
        memset(p, 0xAA, size);
        last = p;
    }
    assert_string_equal(fth_arena_strdup(&a, "deep"), "deep");
    assert_string_equal(fth_arena_strndup(&a, "deeper", 4), "deep");
    assert_null(fth_arena_alloc(&a, SIZE_MAX));
    fth_arena_fini(&a);
    fth_arena_fini(&a);
    assert_non_null(fth_arena_alloc(&a, 1));
    fth_arena_fini(&a);
}

/* A folder of its own for each test of files. */
static char folder[] = "/tmp/fathom-test-XXXXXX";

static char *in_folder(const char *name) {
    char *path = fth_strdup_printf("%s/%s", folder, name);
    assert_non_null(path);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return fth_remove_tree(folder) == FTH_OK && !fth_file_exists(folder) ? 0 : -1;
}

static int count_entries(const char *path) {
    char command[256];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%d", &n), 1);
    pclose(pipe);
    return n;
}

static void files_read_back(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 1000003};
    char *path = in_folder("f"), *bytes = malloc(1000003);
    assert_non_null(bytes);
    for (size_t i = 0; i < 1000003; i++) bytes[i] = (char)(i * 31 >> 3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *data;
        size_t size;
        assert_int_equal(fth_file_write(path, bytes, sizes[i]), FTH_OK);
        assert_int_equal(fth_file_read(path, &data, &size), FTH_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(data, bytes, size);
        assert_int_equal(data[size], 0);
        free(data);
    }
    assert_int_equal(count_entries(folder), 1); /* no temporary file stays behind */
    free(bytes);
    free(path);
}

static void files_that_fail_say_why(void **state) {
    (void)state;
    char *data, *path = in_folder("none/f");
    size_t size;
    assert_int_equal(fth_file_read(path, &data, &size), FTH_NOT_FOUND);
    assert_null(data);
    assert_non_null(strstr(fth_error_message(), path));
    assert_non_null(strstr(fth_error_message(), "No such file"));
    assert_int_equal(fth_file_write(path, "x", 1), FTH_NOT_FOUND);
    assert_int_equal(fth_file_read(folder, &data, &size), FTH_BAD_INPUT);
    assert_non_null(strstr(fth_error_message(), "Is a directory"));
    assert_int_equal(fth_file_write(folder, "x", 1), FTH_BAD_INPUT);
    assert_int_equal(fth_file_write("/dev/full", "x", 1), FTH_IO);
    assert_non_null(strstr(fth_error_message(), "/dev/full"));
    assert_int_equal(fth_sync_dir(path), FTH_NOT_FOUND);
    assert_int_equal(count_entries(folder), 0);
    free(path);
}

static void devices_and_links_stay_what_they_are(void **state) {
    (void)state;
    struct stat st;
    assert_int_equal(fth_file_write("/dev/null", "x", 1), FTH_OK);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    char *link = in_folder("link"), *target = in_folder("target"), *data;
    size_t size;
    assert_int_equal(fth_file_write(target, "old", 3), FTH_OK);
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(fth_file_write(link, "new!", 4), FTH_OK);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(fth_file_read(target, &data, &size), FTH_OK);
    assert_string_equal(data, "new!");
    free(data);
    free(link);
    free(target);
}

static void folders_come_and_go(void **state) {
    (void)state;
    char *deep = in_folder("a//b/c/"), *top = in_folder("a"), *file = in_folder("a/b/f");
    char *under_file = in_folder("a/b/f/g"), *outside = in_folder("outside");
    char *link = in_folder("a/link");
    assert_int_equal(fth_make_dirs(deep), FTH_OK);
    assert_int_equal(fth_make_dirs(deep), FTH_OK);
    assert_int_equal(fth_file_write(file, "x", 1), FTH_OK);
    assert_int_equal(fth_make_dirs(file), FTH_IO);
    assert_int_equal(fth_make_dirs(under_file), FTH_IO);
    assert_int_equal(fth_sync_dir(top), FTH_OK);
    assert_int_equal(fth_file_write(outside, "x", 1), FTH_OK);
    assert_int_equal(symlink(folder, link), 0);
    assert_int_equal(fth_remove_tree(top), FTH_OK);
    assert_int_equal(fth_remove_tree(top), FTH_OK);
    assert_false(fth_file_exists(top));
    assert_true(fth_file_exists(outside)); /* the link was not followed */
    free(deep), free(top), free(file), free(under_file), free(outside), free(link);
}

/* What is held goes, what was dropped or was there before stays. */
/* What a killed process left of a file goes when the file is written again, unless somebody still
 * holds it. */
static void abandoned_names_are_swept(void **state) {
    (void)state;
    assert_int_equal(chdir(folder), 0);
    static const char *const names[] = {"page.tmp-1-0", "page.tmp-1-1", "page.tmp-x",
                                        "pages.tmp-1-0"};
    int fd[4];
    for (int i = 0; i < 4; i++) fd[i] = open(names[i], O_WRONLY | O_CREAT, 0666);
    assert_true(fth_unfinished_claim(fd[1], names[1]));
    assert_int_equal(mkfifo("page.tmp-2-0", 0666), 0); /* not waited for */
    assert_int_equal(fth_file_write("page", "x", 1), FTH_OK);
    assert_false(fth_file_exists(names[0]));
    for (int i = 1; i < 4; i++) assert_true(fth_file_exists(names[i]));
    close(fd[1]);
    assert_int_equal(fth_unfinished_sweep(".", NULL), FTH_OK);
    assert_false(fth_file_exists(names[1]) || fth_file_exists(names[3]));
    assert_false(fth_file_exists("page.tmp-2-0"));
    assert_true(fth_file_exists(names[2]) && fth_file_exists("page"));
    assert_false(fth_unfinished_claim(fd[0], names[0])); /* somebody was faster */
    for (int i = 0; i < 4; i++)
        if (i != 1) close(fd[i]);
}

static void temporary_names_go_on_a_signal(void **state) {
    (void)state;
    fth_new_dirs outer = {0}, inner = {0}, full = {0};
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(fth_new_dirs_make(&outer, "a//b/"), FTH_OK);
    assert_int_equal(fth_new_dirs_make(&inner, "a/b/c"), FTH_OK);
    assert_int_equal(fth_new_dirs_make(&full, "d/e"), FTH_OK);
    assert_int_equal(fth_file_write("d/kept", "x", 1), FTH_OK);
    assert_int_equal(fth_unfinished_hold("a/b/c/tree"), FTH_OK);
    assert_int_equal(fth_make_dirs("a/b/c/tree/deep"), FTH_OK);
    assert_int_equal(fth_unfinished_hold("file"), FTH_OK);
    assert_int_equal(fth_file_write("file", "x", 1), FTH_OK);
    assert_int_equal(fth_unfinished_hold("d/kept"), FTH_OK);
    fth_unfinished_drop("d/kept");
    fth_unfinished_drop("never held");
    fth_unfinished_lock();
    fth_unfinished_remove();
    fth_unfinished_unlock();
    assert_false(fth_file_exists("a") || fth_file_exists("file"));
    assert_true(fth_file_exists("d/kept") && !fth_file_exists("d/e"));
    fth_unfinished_drop("a/b/c/tree");
    fth_unfinished_drop("file");
    fth_new_dirs_fini(&inner);
    fth_new_dirs_fini(&outer);
    fth_new_dirs_fini(&full);
    assert_true(fth_file_exists("d"));
    assert_int_equal(chdir("/"), 0);
}

static void utf8_is_checked_strictly(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t valid;
    } cases[] = {
        {"", 0},
        {"plain text", 10},
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 9},
        {"12345678\xC3\xA4", 10},
        {"1234567\xC3\xA4"
         "12345678",
         17},
        {"a\x80", 1},            /* a continuation without a beginning */
        {"a\xC3", 1},            /* cut off */
        {"ab\xE2\x82", 2},       /* cut off */
        {"\xC0\x80", 0},         /* overlong NUL */
        {"\xC1\xBF", 0},         /* overlong */
        {"\xE0\x9F\xBF", 0},     /* overlong */
        {"\xF0\x8F\xBF\xBF", 0}, /* overlong */
        {"\xE0\xA0\x80", 3},     /* U+0800, the smallest of three bytes */
        {"\xED\x9F\xBF", 3},     /* U+D7FF */
        {"\xED\xA0\x80", 0},     /* a surrogate */
        {"\xEE\x80\x80", 3},     /* U+E000 */
        {"\xF4\x8F\xBF\xBF", 4}, /* U+10FFFF */
        {"\xF4\x90\x80\x80", 0}, /* U+110000 */
        {"\xF5\x80\x80\x80", 0}, /* never */
        {"\xE2\x82\xC3\xA4", 0}, /* third byte wrong */
        {"\xF0\x9F\x98\x28", 0}, /* fourth byte wrong */
        {"12345678 \xFF 1234567", 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i].text);
        char *exact = malloc(length + 1); /* its own block, so that the sanitizer sees overreads */
        assert_non_null(exact);
        memcpy(exact + 1, cases[i].text, length);
        assert_int_equal(fth_utf8_valid_prefix(exact + 1, length), cases[i].valid);
        free(exact);
    }
    assert_int_equal(fth_utf8_valid_prefix("a\0b", 3), 3);
    static const struct {
        const char *text;
        int blank;
    } texts[] = {{"", 1},
                 {" \t\x01\x7f\xc2\xa0\xc2\x8f", 1},
                 {"\xe2\x80\x8b\xe3\x80\x80\xe2\x80\xa9\xef\xbb\xbf\xe1\x9a\x80", 1},
                 {"\xe2\x80\x90", 0},
                 {"  x", 0},
                 {" \xc3\xa4", 0}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(fth_utf8_is_blank(texts[i].text, strlen(texts[i].text)), texts[i].blank);
}

static void philox_gives_the_known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t key;
        uint32_t counter[4], out[4];
    } cases[] = {/* the known-answer vectors of Random123 */
                 {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                 {UINT64_MAX,
                  {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
                  {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                 {UINT64_C(0x299f31d0a4093822),
                  {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                  {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        fth_philox(cases[i].key, cases[i].counter, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
    static const uint32_t zeros[4] = {0},
                          seven[4] = {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48};
    uint32_t out[4];
    fth_philox_by(7, 0, zeros, out);
    assert_memory_equal(out, seven, sizeof out);
}

static void rng_walks_along_its_stream(void **state) {
    (void)state;
    fth_rng r;
    const uint64_t key = 42, stream = UINT64_C(0x0123456789abcdef);
    fth_rng_init(&r, key, stream);
    for (uint32_t block = 0; block < 3; block++) {
        const uint32_t counter[4] = {block, 0, 0x89abcdef, 0x01234567};
        uint32_t out[4];
        fth_philox(key, counter, out);
        for (int i = 0; i < 4; i++) assert_int_equal(fth_rng_u32(&r), out[i]);
    }
    fth_rng copy = r; /* the struct is the whole state */
    for (int i = 0; i < 9; i++) assert_int_equal(fth_rng_u32(&r), fth_rng_u32(&copy));
    r.next = UINT64_C(0x100000002);
    r.n_left = 0;
    const uint32_t counter[4] = {2, 1, 0x89abcdef, 0x01234567};
    uint32_t out[4];
    fth_philox(key, counter, out);
    assert_int_equal(fth_rng_u32(&r), out[0]);
}

static void rng_has_the_right_distributions(void **state) {
    (void)state;
    enum { DRAWS = 60000 };
    fth_rng r;
    fth_rng_init(&r, 1, 0);
    int counts[6] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t x = fth_rng_below(&r, 6);
        assert_true(x < 6);
        counts[x]++;
    }
    for (int i = 0; i < 6; i++) assert_true(abs(counts[i] - DRAWS / 6) < 500); /* 5.5 sigma */
    /* 3/4 of 2^64: without rejection the lower third would come twice as often */
    const uint64_t n = UINT64_C(3) << 62;
    int low = 0;
    for (int i = 0; i < DRAWS; i++) low += fth_rng_below(&r, n) < n / 3;
    assert_true(abs(low - DRAWS / 3) < 650);
    assert_int_equal(fth_rng_below(&r, 1), 0);
    assert_int_equal(fth_rng_below(&r, 0), 0);
    double sum = 0, squares = 0, fourth = 0, uniform = 0;
    for (int i = 0; i < DRAWS; i++) {
        double u = fth_rng_uniform(&r), x = fth_rng_normal(&r);
        assert_true(u >= 0 && u < 1 && isfinite(x));
        uniform += u, sum += x, squares += x * x, fourth += x * x * x * x;
    }
    assert_close(uniform / DRAWS, 0.5, 0.006);
    assert_close(sum / DRAWS, 0, 0.02);
    assert_close(squares / DRAWS, 1, 0.03);
    assert_close(fourth / DRAWS, 3, 0.2);
}

/* Each block of four words makes two pairs by Box and Muller, here with the library's functions. */
static void normals_are_those_of_the_library(void **state) {
    (void)state;
    enum { MOST = 4003 };
    float all[MOST], some[70];
    fth_normals(5, 77, MOST, all);
    for (uint32_t i = 0; i + 1 < MOST; i += 2) {
        const uint32_t counter[4] = {i / 4, 0, 77, 0};
        uint32_t w[4];
        fth_philox(5, counter, w);
        const double radius = sqrt(-2 * log((w[i % 4] + 0.5) * 0x1p-32));
        const double angle = 2 * acos(-1.0) * w[i % 4 + 1] * 0x1p-32;
        assert_close(all[i], radius * cos(angle), 1e-6);
        assert_close(all[i + 1], radius * sin(angle), 1e-6);
    }
    /* fewer numbers are the beginning of more */
    fth_normals(5, 77, 70, some);
    assert_memory_equal(all, some, sizeof some);
}

static void hashes_are_fixed(void **state) {
    (void)state;
    assert_int_equal(fth_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(fth_crc32(fth_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
    assert_int_equal(fth_crc32(17, NULL, 0), 17);
    unsigned char bytes[40] = {0};
    uint64_t seen[41 + 40 * 8];
    size_t n = 0;
    for (size_t size = 0; size <= 40; size++) seen[n++] = fth_hash64(bytes, size);
    for (size_t bit = 0; bit < 40 * 8; bit++) {
        bytes[bit / 8] = (unsigned char)(1 << bit % 8);
        seen[n++] = fth_hash64(bytes, 40);
        bytes[bit / 8] = 0;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            assert_true(seen[i] != seen[k]);
            assert_true((uint32_t)seen[i] != (uint32_t)seen[k]); /* low bits pick the slot */
        }
}

static void shown_numbers(void **state) {
    (void)state;
    assert_string_equal(fth_shown_number(-NAN).text, "nan");
    assert_string_equal(fth_shown_number(NAN).text, "nan");
    assert_string_equal(fth_shown_number(-INFINITY).text, "-inf");
    assert_string_equal(fth_shown_number(-0.125).text, "-0.125");
}

static void medians(void **state) {
    (void)state;
    double odd[] = {5, -1, 3}, even[] = {8, 1, 2, 4}, one[] = {7};
    assert_true(fth_median(odd, 3) == 3);
    assert_true(fth_median(even, 4) == 3);
    assert_true(fth_median(one, 1) == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians),
        cmocka_unit_test(error_messages),
        cmocka_unit_test(strings_grow),
        cmocka_unit_test(arenas_hand_out_zeroed_aligned_memory),
        cmocka_unit_test_setup_teardown(files_read_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_that_fail_say_why, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(devices_and_links_stay_what_they_are, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(folders_come_and_go, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(abandoned_names_are_swept, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(temporary_names_go_on_a_signal, make_folder, remove_folder),
        cmocka_unit_test(utf8_is_checked_strictly),
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(rng_walks_along_its_stream),
        cmocka_unit_test(rng_has_the_right_distributions),
        cmocka_unit_test(normals_are_those_of_the_library),
        cmocka_unit_test(hashes_are_fixed),
        cmocka_unit_test(shown_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
