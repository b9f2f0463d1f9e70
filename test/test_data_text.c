/* links: data base */
/* Text as it comes in: lines of plain and packed files, records of every kind, samples. */
#include "test_files.h"

#include <fcntl.h>
#include <zlib.h>
#include <zstd.h>

#include "text/lines.h"
#include "data/records.h"
#include "data/sample.h"

static void put_text(const char *path, const char *text) {
    put_bytes(path, text, strlen(text));
}

static void put_gzip(const char *path, const char *text, const char *mode) {
    gzFile file = gzopen(path, mode);
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

static void put_zstd(const char *path, const char *text) {
    char packed[65536];
    size_t size = ZSTD_compress(packed, sizeof packed, text, strlen(text), 3);
    assert_false(ZSTD_isError(size));
    put_bytes(path, packed, size);
}

/* All lines of some files, joined with '|'. */
static fth_err read_all(const fth_text_file *files, size_t n, char *out, size_t room) {
    fth_lines *lines = NULL;
    const char *text;
    size_t length, used = 0;
    fth_err err = fth_lines_new(files, n, &lines);
    out[0] = 0;
    for (;;) {
        if (!err) err = fth_lines_next(lines, &text, &length);
        if (err || !text) break;
        assert_int_equal(strlen(text), length);
        used += (size_t)snprintf(out + used, room - used, "%s|", text);
        assert_true(used < room);
    }
    fth_lines_free(lines);
    return err;
}

static void lines_of_all_kinds(void **state) {
    static const struct {
        const char *name, *text, *lines;
    } cases[] = {{"plain", "one\ntwo\n", "one|two|"},
                 {"no end", "one\ntwo", "one|two|"},
                 {"empty lines", "\n\na\n\n", "||a||"},
                 {"crlf", "one\r\ntwo\r\n\r\n", "one|two||"},
                 {"bare cr stays", "a\rb\n", "a\rb|"},
                 {"byte order mark", "\xef\xbb\xbfone\n", "one|"},
                 {"one newline", "\n", "|"},
                 {"unicode", "Gr\xc3\xbc\xc3\x9f\x65 \xf0\x9f\x98\x80\n",
                  "Gr\xc3\xbc\xc3\x9f\x65 \xf0\x9f\x98\x80|"}};
    char path[512], out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int packing = 0; packing < 3; packing++) {
            PATH(path, *state, "file");
            if (packing == 0) put_text(path, cases[i].text);
            if (packing == 1) put_gzip(path, cases[i].text, "wb");
            if (packing == 2) put_zstd(path, cases[i].text);
            fth_text_file file = {path, path};
            assert_ok(read_all(&file, 1, out, sizeof out));
            assert_string_equal(out, cases[i].lines);
        }
}

/* Zeros behind the last member, as on a tape. */
static void fill_up(const char *path) {
    static const char zeros[100000];
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    assert_int_equal(fwrite(zeros, 1, sizeof zeros, f), sizeof zeros);
    assert_int_equal(fclose(f), 0);
}

static void several_files_are_one_text(void **state) {
    char a[512], b[512], c[512], out[256];
    PATH(a, *state, "a");
    PATH(b, *state, "b.gz");
    PATH(c, *state, "c.zst");
    put_text(a, "1\n2"); /* the line ends with the file */
    put_gzip(b, "3\n", "wb");
    put_gzip(b, "4\n5\n", "ab"); /* a second member */
    fill_up(b);
    put_zstd(c, "6\n");
    fth_text_file files[] = {{a, "a"}, {b, "b"}, {c, "c"}};
    assert_ok(read_all(files, 3, out, sizeof out));
    assert_string_equal(out, "1|2|3|4|5|6|");
    assert_true(fth_text_files_size(files, 3) > 10);
}

static void long_lines_and_many(void **state) {
    char path[512];
    const char *text;
    size_t length, big = 3000000;
    char *line = malloc(big + 2);
    memset(line, 'x', big);
    memcpy(line + big, "\n", 2);
    PATH(path, *state, "file");
    put_gzip(path, line, "wb");
    for (int i = 0; i < 3; i++) put_gzip(path, "short\n", "ab");
    fth_text_file file = {path, path};
    fth_lines *lines;
    assert_ok(fth_lines_new(&file, 1, &lines));
    assert_ok(fth_lines_next(lines, &text, &length));
    assert_int_equal(length, big);
    for (int i = 0; i < 3; i++) {
        assert_ok(fth_lines_next(lines, &text, &length));
        assert_string_equal(text, "short");
    }
    assert_int_equal(fth_lines_number(lines), 4);
    assert_ok(fth_lines_next(lines, &text, &length));
    assert_null(text);
    fth_lines_free(lines);
    free(line);
}

static void bad_files_are_named(void **state) {
    static const struct {
        const char *what, *text;
        size_t size;
        fth_err code;
        const char *words[5];
    } cases[] = {
        {"empty", "", 0, FTH_BAD_INPUT, {"file", "empty"}},
        {"only a mark", "\xef\xbb\xbf", 3, FTH_BAD_INPUT, {"file", "empty"}},
        {"latin-1", "ok\nf\xfcr\n", 7, FTH_BAD_INPUT, {"file:2:", "UTF-8", "0xfc", "column 2"}},
        {"surrogate", "\xed\xa0\x80\n", 4, FTH_BAD_INPUT, {"file:1:", "UTF-8"}},
        {"cut in a character", "ok\n\xc3", 4, FTH_BAD_INPUT, {"file:2:", "UTF-8"}},
        {"NUL", "a\0b\n", 4, FTH_BAD_INPUT, {"file:1:", "NUL"}},
        {"bad gzip", "\x1f\x8b\x08\xffzzzzzzzzzzzzzz", 18, FTH_BAD_INPUT, {"file", "gzip"}},
        {"cut gzip", "\x1f\x8b\x08", 3, FTH_BAD_INPUT, {"file", "cut short"}},
        {"bad zstd", "\x28\xb5\x2f\xfd\x08\xff\xff\xff\xff\xff", 10, FTH_BAD_INPUT, {"Zstandard"}},
        {"cut zstd", "\x28\xb5\x2f\xfd", 4, FTH_BAD_INPUT, {"file", "cut short"}}};
    char path[512], out[256];
    PATH(path, *state, "file");
    fth_text_file file = {path, "file"};
    assert_failed(read_all(&file, 1, out, sizeof out), FTH_NOT_FOUND,
                  (const char *[]){"file", "No such file", NULL});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_bytes(path, cases[i].text, cases[i].size);
        assert_failed(read_all(&file, 1, out, sizeof out), cases[i].code, cases[i].words);
    }
    fth_text_file inside = {path, "inside"};
    strcat(path, "/x"); /* a file in the place of a folder */
    assert_failed(read_all(&inside, 1, out, sizeof out), FTH_NOT_FOUND,
                  (const char *[]){"inside", "Not a directory", NULL});
    fth_text_file folder = {*state, "folder"};
    assert_failed(read_all(&folder, 1, out, sizeof out), FTH_BAD_INPUT,
                  (const char *[]){"folder", NULL});
}

/* A packed file that ends anywhere, or has any byte wrong, gives an error or text, never a
 * crash. */
static void damaged_packed_files(void **state) {
    char path[512], out[65536], *data;
    size_t size;
    for (int packing = 0; packing < 2; packing++) {
        PATH(path, *state, "file");
        const char *text = "some text that is long enough to be packed, packed, packed, packed\n";
        if (packing == 0)
            put_gzip(path, text, "wb");
        else
            put_zstd(path, text);
        assert_ok(fth_file_read(path, &data, &size));
        fth_text_file file = {path, "file"};
        for (size_t cut = 4; cut < size; cut++) {
            put_bytes(path, data, cut);
            assert_int_equal(read_all(&file, 1, out, sizeof out), FTH_BAD_INPUT);
        }
        for (size_t at = 0; at < size; at++) {
            data[at] ^= 0x55;
            put_bytes(path, data, size);
            fth_err err = read_all(&file, 1, out, sizeof out);
            assert_true(err == FTH_OK || err == FTH_BAD_INPUT);
            data[at] ^= 0x55;
        }
        free(data);
    }
}

/* The records of one or two files as "source>target;" with "+reference" for each reference. */
static fth_err read_records(fth_text_kind kind, const fth_text_file *a, const fth_text_file *b,
                            char *out, size_t room) {
    fth_text_spec spec = {.kind = kind,
                          .files = {a, b},
                          .n_files = {1, b ? 1 : 0},
                          .keys = {"source", "target", "references"}};
    fth_records *records = NULL;
    fth_record record;
    size_t used = 0;
    fth_err err = fth_records_new(&spec, &records);
    out[0] = 0;
    for (;;) {
        if (!err) err = fth_records_next(records, &record);
        if (err || !record.sides) break;
        for (int s = 0; s < record.sides; s++) {
            assert_int_equal(strlen(record.text[s]), record.length[s]);
            used += (size_t)snprintf(out + used, room - used, "%s%s", s ? ">" : "", record.text[s]);
        }
        for (int i = 0; i < record.n_references; i++)
            used += (size_t)snprintf(out + used, room - used, "+%s", record.references[i]);
        used += (size_t)snprintf(out + used, room - used, ";");
        assert_true(used < room);
    }
    fth_records_free(records);
    return err;
}

static void records_of_all_kinds(void **state) {
    static const struct {
        const char *what;
        fth_text_kind kind;
        const char *a, *b, *records;
    } cases[] = {{"parallel", FTH_TEXT_PARALLEL, "a\nb\n", "x\ny\n", "a>x;b>y;"},
                 {"parallel, empty lines", FTH_TEXT_PARALLEL, "\nb\n", "x\n\n", ">x;b>;"},
                 {"tsv", FTH_TEXT_TSV, "a\tx\n\ty\nb\t\n", NULL, "a>x;>y;b>;"},
                 {"plain", FTH_TEXT_PLAIN, "a b\n\nc\n", NULL, "a b;;c;"},
                 {"jsonl", FTH_TEXT_JSONL,
                  "{\"source\": \"a\", \"target\": \"x\"}\n"
                  "{\"target\": \"y\\nz\", \"source\": \"\\u00fc\", \"id\": 3, \"references\": "
                  "[\"r\\ts\", \"\"]}\n",
                  NULL, "a>x;\xc3\xbc>y z+r s+;"}};
    char a[512], b[512], out[256];
    PATH(a, *state, "a");
    PATH(b, *state, "b");
    fth_text_file first = {a, "a"}, second = {b, "b"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(a, cases[i].a);
        if (cases[i].b) put_text(b, cases[i].b);
        assert_ok(
            read_records(cases[i].kind, &first, cases[i].b ? &second : NULL, out, sizeof out));
        assert_string_equal(out, cases[i].records);
    }
}

static void bad_records_are_named(void **state) {
    static const struct {
        const char *what;
        fth_text_kind kind;
        const char *a, *b, *words[5];
    } cases[] = {
        {"target shorter", FTH_TEXT_PARALLEL, "a\nb\nc\n", "x\n", {"a has 3 lines", "b has 1"}},
        {"source shorter", FTH_TEXT_PARALLEL, "a\n", "x\ny\n", {"a has 1 lines", "b has 2"}},
        {"no tab", FTH_TEXT_TSV, "a\tx\nb\n", NULL, {"a:2:", "no tab"}},
        {"two tabs", FTH_TEXT_TSV, "a\tx\ty\n", NULL, {"a:1:", "more than one tab"}},
        {"no json",
         FTH_TEXT_JSONL,
         "{\"source\": \"a\", \"target\": \"x\"}\nhello\n",
         NULL,
         {"a:2:", "not JSON"}},
        {"no object", FTH_TEXT_JSONL, "[1]\n", NULL, {"a:1:", "object"}},
        {"no target",
         FTH_TEXT_JSONL,
         "{\"source\": \"a\"}\n",
         NULL,
         {"a:1:", "'target' is missing"}},
        {"a number",
         FTH_TEXT_JSONL,
         "{\"source\": 1, \"target\": \"x\"}\n",
         NULL,
         {"a:1:", "'source' is not a string"}},
        {"references",
         FTH_TEXT_JSONL,
         "{\"source\": \"a\", \"target\": \"x\", \"references\": \"r\"}\n",
         NULL,
         {"a:1:", "'references'", "list"}},
        {"a NUL",
         FTH_TEXT_JSONL,
         "{\"source\": \"a\\u0000\", \"target\": \"x\"}\n",
         NULL,
         {"a:1:", "not JSON"}}};
    char a[512], b[512], out[256];
    PATH(a, *state, "a");
    PATH(b, *state, "b");
    fth_text_file first = {a, "a"}, second = {b, "b"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(a, cases[i].a);
        if (cases[i].b) put_text(b, cases[i].b);
        assert_failed(
            read_records(cases[i].kind, &first, cases[i].b ? &second : NULL, out, sizeof out),
            FTH_BAD_INPUT, cases[i].words);
    }
}

static void small_texts_are_kept_whole(void **state) {
    (void)state;
    fth_sample sample = {.budget = 4096};
    const char *text;
    size_t length;
    char line[32];
    for (int i = 0; i < 50; i++)
        assert_ok(fth_sample_add(&sample, line, (size_t)snprintf(line, sizeof line, "line %d", i)));
    for (int i = 0; i < 50; i++) {
        assert_ok(fth_sample_next(&sample, &text, &length));
        snprintf(line, sizeof line, "line %d", i);
        assert_int_equal(length, strlen(line));
        assert_memory_equal(text, line, length);
    }
    assert_ok(fth_sample_next(&sample, &text, &length));
    assert_null(text);
    fth_sample_fini(&sample);
}

/* A sample stays within its budget, spreads over the whole text, and is the same every time. */
static void large_texts_are_sampled(void **state) {
    (void)state;
    enum { LINES = 100000, BUDGET = 1 << 16 };
    uint64_t kept[2], sum[2] = {0, 0};
    for (int run = 0; run < 2; run++) {
        fth_sample sample = {.budget = BUDGET};
        int in_part[4] = {0};
        const char *text;
        size_t length;
        char line[32];
        for (int i = 0; i < LINES; i++)
            assert_ok(fth_sample_add(&sample, line, (size_t)snprintf(line, sizeof line, "%d", i)));
        assert_true(sample.size <= BUDGET && sample.capacity <= BUDGET);
        assert_true(sample.size > BUDGET / 3);
        kept[run] = sample.kept;
        for (;;) {
            assert_ok(fth_sample_next(&sample, &text, &length));
            if (!text) break;
            memcpy(line, text, length);
            line[length] = 0;
            in_part[atoi(line) / (LINES / 4)]++;
            sum[run] = sum[run] * 31 + (uint64_t)atoi(line);
        }
        for (int i = 0; i < 4; i++) /* binomial: four standard deviations are 15 % here */
            assert_in_range((uint64_t)in_part[i] * 4 * 100 / kept[run], 85, 115);
        fth_sample_fini(&sample);
    }
    assert_int_equal(kept[0], kept[1]);
    assert_int_equal(sum[0], sum[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(lines_of_all_kinds),      TEST(several_files_are_one_text),
        TEST(long_lines_and_many),     TEST(bad_files_are_named),
        TEST(damaged_packed_files),    TEST(records_of_all_kinds),
        TEST(bad_records_are_named),   TEST(small_texts_are_kept_whole),
        TEST(large_texts_are_sampled),
    };
    return cmocka_run_group_tests_name("data: text", tests, NULL, NULL);
}
