/* links: data base */
/* From text to a data set: every kind of input, what is left out, what is refused, bounded
 * memory. */
#include "test_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/philox.h"
#include "close.h"
#include "data/describe.h"
#include "data/folder.h"
#include "data/prepare.h"

static const char *const NAMES[] = {"train.src", "train.tgt", "valid.src", "valid.tgt"};

typedef struct request {
    char paths[4][512], out[512];
    fth_text_file files[4];
    fth_prepare p;
} request;

/* Words that both sides are made of; line i of a text is the same every time. */
static size_t make_line(char *line, size_t room, uint64_t text, uint64_t i) {
    static const char *const words[] = {"the", "cat",  "dog",   "house", "runs",  "sees", "a",
                                        "big", "blue", "small", "under", "old",   "tree", "river",
                                        "and", "we",   "they",  "walk",  "quick", "night"};
    fth_rng rng;
    size_t used = 0;
    fth_rng_init(&rng, text, i);
    for (uint64_t n = 2 + fth_rng_below(&rng, 9); n; n--)
        used += (size_t)snprintf(line + used, room - used, "%s%s", used ? " " : "",
                                 words[fth_rng_below(&rng, 20)]);
    return used;
}

static void put_lines(const char *path, uint64_t text, int64_t lines) {
    char line[256];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int64_t i = 0; i < lines; i++) {
        make_line(line, sizeof line, text, (uint64_t)i);
        fprintf(file, "%s\n", line);
    }
    assert_int_equal(fclose(file), 0);
}

/* A request for pairs with a validation set; the text is written too. */
static void ask(request *r, const char *folder) {
    memset(r, 0, sizeof *r);
    for (int i = 0; i < 4; i++) {
        PATH(r->paths[i], folder, NAMES[i]);
        put_lines(r->paths[i], (uint64_t)i, i < 2 ? 500 : 40);
        r->files[i] = (fth_text_file){r->paths[i], NAMES[i]};
    }
    PATH(r->out, folder, "data");
    r->p = (fth_prepare){.out = r->out,
                         .tokenizer = {"bpe", 90, 1.0, 0, "", NULL},
                         .sample_bytes = 1 << 20,
                         .max_positions = 1024,
                         .threads = 2};
    for (int i = 0; i < 2; i++)
        r->p.text[i] = (fth_text_spec){.kind = FTH_TEXT_PARALLEL,
                                       .files = {&r->files[2 * i], &r->files[2 * i + 1]},
                                       .n_files = {1, 1},
                                       .keys = {"source", "target", "references"}};
}

/* How many entries a folder has: nothing but what belongs there may be left. */
static int entries(const char *folder) {
    DIR *dir = opendir(folder);
    int n = 0;
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Every sentence decodes to its line. */
static void assert_texts(const fth_folder *f, int split, int64_t lines, const uint64_t texts[2]) {
    fth_dataset *d = NULL;
    fth_tokenizer *t[2] = {NULL, NULL};
    fth_str out = {0};
    char expected[600];
    assert_ok(fth_folder_split(f, split, &d));
    assert_int_equal(d->sentences, lines);
    for (int s = 0; s < 2; s++) assert_ok(fth_folder_tokenizer(f, s, &t[s]));
    for (int64_t i = 0; i < lines; i++) {
        size_t n = make_line(expected, sizeof expected, texts[0], (uint64_t)i);
        if (f->n_sides == 2) {
            expected[n++] = '\t';
            n += make_line(expected + n, sizeof expected - n, texts[1], (uint64_t)i);
        }
        strcpy(expected + n, "\n");
        fth_str_clear(&out);
        assert_ok(
            fth_describe_sentence(d, i, (const fth_tokenizer *const *)t, FTH_SHOW_TEXT, &out));
        assert_string_equal(out.text, expected);
    }
    fth_str_fini(&out);
    for (int s = 0; s < 2; s++) fth_tokenizer_free(t[s]);
    fth_dataset_free(d);
}

static void pairs_joint_and_separate(void **state) {
    request r;
    for (int separate = 0; separate < 2; separate++)
        for (int threads = 1; threads < 6; threads += 2) {
            fth_folder f;
            ask(&r, *state);
            r.p.separate = separate;
            r.p.threads = threads;
            r.p.force = 1;
            assert_ok(fth_prepare_run(&r.p));
            assert_ok(fth_folder_open(&f, r.out));
            assert_ok(fth_folder_check(&f));
            assert_int_equal(f.separate, separate);
            assert_texts(&f, FTH_TRAIN, 500, (uint64_t[]){0, 1});
            assert_texts(&f, FTH_VALID, 40, (uint64_t[]){2, 3});
            fth_folder_fini(&f);
            assert_int_equal(entries(*state), 5);
            assert_int_equal(entries(r.out), separate ? 7 : 6);
        }
}

static void texts_of_the_validation_set(void **state) {
    request r;
    char path[600], *a, *b;
    size_t size[2];
    ask(&r, *state);
    assert_ok(fth_prepare_run(&r.p));
    for (int s = 0; s < 2; s++) {
        snprintf(path, sizeof path, "%s/valid.%s.txt", r.out, s ? "tgt" : "src");
        assert_ok(fth_file_read(path, &a, &size[0]));
        assert_ok(fth_file_read(r.paths[2 + s], &b, &size[1]));
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
}

/* The same text gives the same bytes, whatever the number of threads. */
static void the_result_does_not_depend_on_threads(void **state) {
    request r;
    char path[600], *a, *b;
    size_t size[2];
    ask(&r, *state);
    r.p.threads = 1;
    assert_ok(fth_prepare_run(&r.p));
    snprintf(path, sizeof path, "%s/train.fds", r.out);
    assert_ok(fth_file_read(path, &a, &size[0]));
    r.p.threads = 4;
    r.p.force = 1;
    assert_ok(fth_prepare_run(&r.p));
    assert_ok(fth_file_read(path, &b, &size[1]));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    free(a);
    free(b);
}

/* H_uni by hand: source a, targets "x x y" and "x": x three times, y once, two ends. */
static void unigram_nll_of_the_target(void **state) {
    request r;
    fth_folder f;
    ask(&r, *state);
    put_bytes(r.paths[0], "a\na\n", 4);
    put_bytes(r.paths[1], "x x y\nx\n", 8);
    r.p.text[FTH_VALID].kind = FTH_TEXT_NONE;
    r.p.tokenizer = (fth_tokenizer_spec){"word", 0, 1.0, 0, "", NULL};
    assert_ok(fth_prepare_run(&r.p));
    assert_ok(fth_folder_open(&f, r.out));
    double nll = -(3 * log(3.0 / 6) + log(1.0 / 6) + 2 * log(2.0 / 6)) / 6;
    assert_close(f.target_unigram_nll, nll, 1e-12);
    fth_dataset *d = NULL;
    assert_failed(fth_folder_split(&f, FTH_TEST, &d), FTH_NOT_FOUND,
                  (const char *[]){"'test'", "train", NULL});
    fth_folder_fini(&f);
}

static void one_file_of_pairs(void **state) {
    static const struct {
        fth_text_kind kind;
        const char *text;
    } cases[] = {{FTH_TEXT_TSV, "a cat\tx y\nthe dog\ty z\n"},
                 {FTH_TEXT_JSONL,
                  "{\"source\": \"a cat\", \"target\": \"x y\"}\n"
                  "{\"source\": \"the\\ndog\", \"target\": \"y z\", \"references\": [\"q\"]}\n"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        request r;
        fth_folder f;
        char path[600], *text;
        size_t size;
        ask(&r, *state);
        r.p.force = 1;
        r.p.tokenizer = (fth_tokenizer_spec){"word", 0, 1.0, 0, "", NULL};
        for (int i = 0; i < 2; i++) { /* the same file for both splits */
            r.p.text[i].kind = cases[c].kind;
            r.p.text[i].files[0] = &r.files[0];
            r.p.text[i].n_files[1] = 0;
        }
        put_bytes(r.paths[0], cases[c].text, strlen(cases[c].text));
        assert_ok(fth_prepare_run(&r.p));
        assert_ok(fth_folder_open(&f, r.out));
        assert_ok(fth_folder_check(&f));
        fth_folder_fini(&f);
        snprintf(path, sizeof path, "%s/valid.src.txt", r.out);
        assert_ok(fth_file_read(path, &text, &size));
        assert_string_equal(text, "a cat\nthe dog\n");
        free(text);
        snprintf(path, sizeof path, "%s/valid.ref1.txt", r.out);
        assert_int_equal(fth_file_exists(path), cases[c].kind == FTH_TEXT_JSONL);
        if (cases[c].kind != FTH_TEXT_JSONL) continue;
        assert_ok(fth_file_read(path, &text, &size));
        assert_string_equal(text, "\nq\n");
        free(text);
    }
}

static void plain_text(void **state) {
    request r;
    fth_folder f;
    ask(&r, *state);
    for (int i = 0; i < 2; i++) {
        r.p.text[i].kind = FTH_TEXT_PLAIN;
        r.p.text[i].n_files[1] = 0;
    }
    assert_ok(fth_prepare_run(&r.p));
    assert_ok(fth_folder_open(&f, r.out));
    assert_ok(fth_folder_check(&f));
    assert_int_equal(f.n_sides, 1);
    assert_texts(&f, FTH_TRAIN, 500, (uint64_t[]){0, 0});
    fth_folder_fini(&f);
}

/* A pipe can be read once; prepare reads twice. */
static void pipes_are_copied(void **state) {
    request r;
    fth_folder f;
    char pipe_path[512];
    ask(&r, *state);
    PATH(pipe_path, *state, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    r.files[0] = (fth_text_file){pipe_path, "pipe"};
    pid_t child = fork();
    if (child == 0) {
        char line[256];
        FILE *file = fopen(pipe_path, "w");
        for (uint64_t i = 0; file && i < 500; i++) {
            make_line(line, sizeof line, 0, i);
            fprintf(file, "%s\n", line);
        }
        _exit(file && fclose(file) == 0 ? 0 : 1);
    }
    assert_ok(fth_prepare_run(&r.p));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(fth_folder_open(&f, r.out));
    assert_texts(&f, FTH_TRAIN, 500, (uint64_t[]){0, 1});
    fth_folder_fini(&f);
    assert_int_equal(entries(r.out), 6);
}

static void a_given_tokenizer(void **state) {
    request r;
    fth_folder f;
    char model[600], *a, *b;
    size_t size[2];
    ask(&r, *state);
    assert_ok(fth_prepare_run(&r.p));
    snprintf(model, sizeof model, "%s/tokenizer.model", r.out);
    assert_ok(fth_file_read(model, &a, &size[0]));
    char second[512];
    PATH(second, *state, "second");
    r.p.out = second;
    r.p.tokenizer_path[0] = model;
    r.p.text[FTH_TRAIN].kind = FTH_TEXT_NONE; /* a test set alone is fine then */
    assert_ok(fth_prepare_run(&r.p));
    assert_ok(fth_folder_open(&f, second));
    assert_ok(fth_folder_check(&f));
    assert_true(isnan(f.target_unigram_nll));
    assert_texts(&f, FTH_VALID, 40, (uint64_t[]){2, 3});
    fth_folder_fini(&f);
    snprintf(model, sizeof model, "%s/tokenizer.model", second);
    assert_ok(fth_file_read(model, &b, &size[1]));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    free(a);
    free(b);
}

static void long_and_empty_pairs(void **state) {
    request r;
    fth_folder f;
    fth_dataset *d = NULL;
    ask(&r, *state);
    /* 5 tokens with the end symbol are allowed: the second and third pair are too long */
    put_bytes(r.paths[0], "a b c d\na b c d e\na\n\na b c d\n", 29);
    put_bytes(r.paths[1], "x\nx\nx y x y x\nx\n\n", 17);
    put_bytes(r.paths[2], "a b c d e f\n\na\n", 15);
    put_bytes(r.paths[3], "x\nx\ny\n", 6);
    r.p.tokenizer = (fth_tokenizer_spec){"word", 0, 1.0, 0, "", NULL};
    r.p.max_positions = 5;
    assert_ok(fth_prepare_run(&r.p));
    assert_ok(fth_folder_open(&f, r.out));
    assert_ok(fth_folder_split(&f, FTH_TRAIN, &d));
    assert_int_equal(d->sentences, 1); /* empty sides are left out of training */
    fth_dataset_free(d);
    assert_ok(fth_folder_split(&f, FTH_VALID, &d));
    assert_int_equal(d->sentences, 2); /* but not of validation */
    fth_dataset_free(d);
    const json_t *train = json_object_get(json_object_get(f.json, "splits"), "train");
    assert_int_equal(json_integer_value(json_object_get(train, "too_long")), 2);
    assert_int_equal(json_integer_value(json_object_get(train, "empty")), 2);
    assert_int_equal(json_integer_value(json_object_get(train, "read")), 5);
    fth_folder_fini(&f);
    r.p.force = r.p.strict = 1;
    r.p.text[FTH_VALID].kind = FTH_TEXT_NONE;
    assert_failed(fth_prepare_run(&r.p), FTH_BAD_INPUT,
                  (const char *[]){"train.src:2:", "6 tokens", "--max-positions 5", NULL});
    r.p.max_tokens[0] = r.p.max_tokens[1] = 5; /* cut, nothing is too long any more */
    assert_ok(fth_prepare_run(&r.p));
    assert_ok(fth_folder_open(&f, r.out));
    assert_ok(fth_folder_split(&f, FTH_TRAIN, &d));
    assert_int_equal(d->sentences, 3);
    assert_int_equal(d->side[0].longest, 4);
    assert_int_equal(d->side[1].longest, 4);
    fth_dataset_free(d);
    fth_folder_fini(&f);
}

/* One wrong thing each; nothing is left behind and what was there stays. */
static void refused_requests(void **state) {
    static const struct {
        const char *what;
        fth_err code;
        const char *words[4];
    } cases[] = {{"no text", FTH_USAGE, {"no text"}},
                 {"no train", FTH_USAGE, {"no training text", "tokenizer"}},
                 {"mixed sides", FTH_USAGE, {"valid", "plain text"}},
                 {"missing file", FTH_NOT_FOUND, {"train.src", "No such file"}},
                 {"empty file", FTH_BAD_INPUT, {"valid.tgt", "empty"}},
                 {"not UTF-8", FTH_BAD_INPUT, {"train.tgt:1:", "UTF-8"}},
                 {"lengths differ", FTH_BAD_INPUT, {"train.src has 500", "train.tgt has 499"}},
                 {"too many ids", FTH_BAD_INPUT, {"vocab-size 50000", "at most"}},
                 {"all too long", FTH_BAD_INPUT, {"valid", "none of its 40"}},
                 {"no tokenizer file", FTH_NOT_FOUND, {"nowhere.model"}},
                 {"a bad tokenizer", FTH_BAD_INPUT, {"train.src", "SentencePiece"}},
                 {"separate text", FTH_USAGE, {"one side", "separate"}},
                 {"is there", FTH_USAGE, {"data", "--force"}},
                 {"not a data set", FTH_USAGE, {"data", "dataset.json"}},
                 {"no name", FTH_USAGE, {"empty"}}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        request r;
        ask(&r, *state);
        const char *path = r.paths[0];
        int left = 4;
        switch (c) {
        case 0: r.p.text[0].kind = r.p.text[1].kind = FTH_TEXT_NONE; break;
        case 1: r.p.text[0].kind = FTH_TEXT_NONE; break;
        case 2: r.p.text[1].kind = FTH_TEXT_PLAIN; break;
        case 3:
            remove(path);
            left = 3;
            break;
        case 4: put_bytes(r.paths[3], "", 0); break;
        case 5: put_bytes(r.paths[1], "\xff\n", 2); break;
        case 6: put_lines(r.paths[1], 1, 499); break;
        case 7: r.p.tokenizer.vocab_size = 50000; break;
        case 8: r.p.max_positions = 2; break;
        case 9: r.p.tokenizer_path[0] = "nowhere.model"; break;
        case 10: r.p.tokenizer_path[0] = path; break;
        case 11:
            r.p.text[0].kind = r.p.text[1].kind = FTH_TEXT_PLAIN;
            r.p.separate = 1;
            break;
        case 12:
            assert_ok(fth_prepare_run(&r.p));
            left = 5;
            break;
        case 13:
            put_bytes(r.out, "mine", 4);
            r.p.force = 1;
            left = 5;
            break;
        case 14: r.p.out = ""; break;
        }
        fth_err err = fth_prepare_run(&r.p);
        if (err != cases[c].code) print_message("case: %s\n", cases[c].what);
        assert_failed(err, cases[c].code, cases[c].words);
        assert_int_equal(entries(*state), left);
        assert_ok(fth_remove_tree(r.out));
    }
}

static void damaged_folders(void **state) {
    static const struct {
        const char *json;
        const char *words[3];
    } cases[] = {
        {"{}", {"dataset.json", "'format'"}},
        {"{\"format\": \"fathom-dataset\", \"version\": 2}", {"dataset.json", "'version'"}},
        {"{\"format\": \"fathom-dataset\", \"version\": 1, \"sides\": 3}", {"'sides'"}},
        {"{\"format\": \"fathom-dataset\", \"version\": 1, \"sides\": 1, \"tokenizers\": "
         "[1, 2]}",
         {"'tokenizers'"}},
        {"nonsense", {"dataset.json"}}};
    request r;
    fth_folder f;
    char path[600];
    assert_failed(fth_folder_open(&f, *state), FTH_NOT_FOUND,
                  (const char *[]){"dataset.json", NULL});
    ask(&r, *state);
    assert_failed(fth_folder_open(&f, r.out), FTH_NOT_FOUND, (const char *[]){"data", NULL});
    assert_ok(fth_prepare_run(&r.p));
    snprintf(path, sizeof path, "%s/tokenizer.model", r.out);
    char *model;
    size_t size;
    assert_ok(fth_file_read(path, &model, &size));
    model[size / 2] ^= 1;
    put_bytes(path, model, size);
    free(model);
    assert_ok(fth_folder_open(&f, r.out));
    assert_failed(fth_folder_check(&f), FTH_BAD_INPUT, (const char *[]){"tokenizer.model", NULL});
    fth_folder_fini(&f);
    snprintf(path, sizeof path, "%s/dataset.json", r.out);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        put_bytes(path, cases[c].json, strlen(cases[c].json));
        assert_failed(fth_folder_open(&f, r.out), FTH_BAD_INPUT, cases[c].words);
    }
}

/* Peak memory of this process, in KB. */
static long peak_kb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Prepares a tenth of the text and then all of it; exits with the MB that the second grew beyond
 * the first. */
static void prepare_twice(request *r, int64_t lines) {
    char all[sizeof r->out], tenth[sizeof r->out + 8];
    memcpy(all, r->out, sizeof all);
    snprintf(tenth, sizeof tenth, "%s.tenth", all);
    for (int s = 0; s < 2; s++) put_lines(r->paths[s], (uint64_t)s, lines / 10);
    r->p.out = tenth;
    if (fth_prepare_run(&r->p)) _exit(200);
    const long before = peak_kb();
    for (int s = 0; s < 2; s++) put_lines(r->paths[s], (uint64_t)s, lines);
    r->p.out = all;
    _exit(fth_prepare_run(&r->p) ? 200 : (int)((peak_kb() - before) / 1024));
}

/* 34 MB of text take as much memory as 3, with a sample of 1 MB of either. */
static void memory_is_bounded(void **state) {
#ifdef __SANITIZE_ADDRESS__
    skip(); /* it keeps what is freed */
#endif
    request r;
    enum { LINES = 600000 };
    ask(&r, *state);
    r.p.tokenizer = (fth_tokenizer_spec){"word", 0, 1.0, 0, "", NULL};
    pid_t child = fork();
    if (child == 0) prepare_twice(&r, LINES);
    int status;
    struct stat text;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(stat(r.paths[0], &text), 0);
    assert_true(text.st_size > 8000000);
    assert_in_range(WEXITSTATUS(status), 0, 12); /* MB; 1 was seen, 6 under qemu */
    fth_folder f;
    fth_dataset *d = NULL;
    assert_ok(fth_folder_open(&f, r.out));
    assert_ok(fth_folder_split(&f, FTH_TRAIN, &d));
    assert_int_equal(d->sentences, LINES);
    fth_dataset_free(d);
    fth_folder_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(pairs_joint_and_separate),
        TEST(texts_of_the_validation_set),
        TEST(the_result_does_not_depend_on_threads),
        TEST(unigram_nll_of_the_target),
        TEST(one_file_of_pairs),
        TEST(plain_text),
        TEST(pipes_are_copied),
        TEST(a_given_tokenizer),
        TEST(long_and_empty_pairs),
        TEST(refused_requests),
        TEST(damaged_folders),
        TEST(memory_is_bounded),
    };
    return cmocka_run_group_tests_name("data: prepare", tests, NULL, NULL);
}
