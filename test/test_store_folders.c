/* links: store base */
/* Model folders and checkpoints: round trips, damage, and failure or death at every system call
 * that changes something. This file has its own versions of those calls, which count. */
#include "test_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/str.h"
#include "store/checkpoint.h"
#include "base/staged_dir.h"

/* ---- system calls that fail on demand ---- */

static struct faults {
    int calls;       /* counted since the last reset */
    int fail_at;     /* the call that fails; 0: none */
    int error;       /* with this errno; 0: the process ends there instead */
    int no_exchange; /* the file system cannot swap two names */
} faults;

static int fails(void) {
    if (++faults.calls != faults.fail_at) return 0;
    if (!faults.error) _exit(77);
    errno = faults.error;
    return 1;
}

int rename(const char *from, const char *to) {
    return fails() ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    if (faults.no_exchange) {
        errno = EINVAL;
        return -1;
    }
    return fails() ? -1 : (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

int fsync(int fd) {
    return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t write(int fd, const void *data, size_t size) {
    return fails() ? -1 : syscall(SYS_write, fd, data, size);
}

int mkdir(const char *path, mode_t mode) {
    return fails() ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int symlink(const char *target, const char *path) {
    return fails() ? -1 : (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
}

static void set_faults(int fail_at, int error, int no_exchange) {
    faults = (struct faults){.fail_at = fail_at, .error = error, .no_exchange = no_exchange};
}

/* ---- a small model whose numbers tell which one it is ---- */

enum { N = 3, LARGE = 40000 };

typedef struct model {
    float values[LARGE]; /* every parameter and moment reads from here */
    fth_config config;
    fth_st_tensor tensors[N];
    const void *moments[2][N];
    fth_checkpoint_content content;
} model;

/* Numbered by update; all of its numbers begin with it. */
static model *make_model(int64_t update) {
    static const fth_st_tensor tensors[N] = {
        {.name = "b", .dtype = FTH_ST_F32, .rank = 2, .shape = {2, 3}},
        {.name = "a.weight", .dtype = FTH_ST_F32, .rank = 2, .shape = {LARGE / 8, 8}},
        {.name = "c", .dtype = FTH_ST_F32, .rank = 1, .shape = {1}},
    };
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (int i = 0; i < LARGE; i++) m->values[i] = (float)update + (float)i / LARGE;
    m->config = fth_config_default();
    strcpy(m->config.method, "somenorm");
    for (int i = 0; i < N; i++) {
        m->tensors[i] = tensors[i];
        m->tensors[i].data = m->values;
        m->moments[0][i] = m->moments[1][i] = m->values;
    }
    m->content.model = (fth_model_content){&m->config, m->tensors, N, NULL, NULL, NULL};
    m->content.exp_avg = m->moments[0];
    m->content.exp_avg_sq = m->moments[1];
    m->content.state = fth_train_state_default();
    m->content.state.update = update;
    return m;
}

static fth_err write_model(const char *path, int64_t update) {
    model *m = make_model(update);
    m->config.step = update;
    fth_err err = fth_model_dir_write(path, &m->content.model);
    free(m);
    return err;
}

static fth_err settle(const char *folder, int64_t last, int64_t best, int64_t keep) {
    const fth_settled s = {.last = last, .best = best, .keep = keep};
    return fth_checkpoint_settle(folder, &s);
}

static fth_err save(const char *folder, int64_t update) {
    model *m = make_model(update);
    fth_err err = fth_checkpoint_save(folder, &m->content);
    if (err == FTH_OK) err = settle(folder, update, -1, 0);
    free(m);
    return err;
}

/* Every number of the file belongs to the model of that update. */
static void assert_of_update(const fth_st_file *f, int64_t update) {
    for (size_t i = 0; i < f->n; i++) {
        const float *data = f->tensors[i].data;
        for (size_t k = 0; k < fth_st_count(&f->tensors[i]); k++)
            assert_true(data[k] == (float)update + (float)k / LARGE);
    }
}

/* The update of the model at path, after a look at everything in it. */
static int64_t read_model(const char *path) {
    fth_model_dir *m = NULL;
    model *expected = make_model(0);
    assert_ok(fth_model_dir_open(path, &m));
    assert_ok(fth_st_expect(m->weights, expected->tensors, N));
    int64_t update = m->config.step;
    assert_of_update(m->weights, update);
    fth_model_dir_close(m);
    free(expected);
    return update;
}

static int count_entries(const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = -2; /* . and .. */
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

static int is_there(const char *folder, const char *name) {
    char path[400];
    struct stat st;
    PATH(path, folder, name);
    return lstat(path, &st) == 0;
}

/* ---- model folders ---- */

static void model_round_trip(void **state) {
    char path[300], other[300], file[400];
    PATH(path, *state, "new/parents/model/");
    assert_ok(write_model(path, 1));
    assert_int_equal(read_model(path), 1);
    assert_ok(write_model(path, 2)); /* replaced */
    assert_int_equal(read_model(path), 2);
    path[strlen(path) - 1] = '\0';
    assert_int_equal(read_model(path), 2);

    PATH(other, *state, "link"); /* through a link: the link stays */
    assert_int_equal(symlink("new/parents/model", other), 0);
    assert_ok(write_model(other, 3));
    assert_int_equal(read_model(path), 3);
    struct stat st;
    assert_int_equal(lstat(other, &st), 0);
    assert_true(S_ISLNK(st.st_mode));

    PATH(file, path, "tokenizer.model"); /* the tokenizer goes along */
    put_bytes(file, "pieces", 6);
    PATH(other, *state, "copy");
    model *m = make_model(4);
    m->content.model.tokenizer_from = path;
    assert_ok(fth_model_dir_write(other, &m->content.model));
    free(m);
    char *data;
    size_t size;
    PATH(file, other, "tokenizer.model");
    assert_ok(fth_file_read(file, &data, &size));
    assert_int_equal(size, 6);
    assert_memory_equal(data, "pieces", 6);
    free(data);
    assert_int_equal(count_entries(other), 3);
}

static void model_in_bf16(void **state) {
    char path[300];
    model *m = make_model(1);
    fth_model_dir *back = NULL;
    for (int i = 0; i < N; i++) m->tensors[i].dtype = FTH_ST_BF16;
    m->content.model.fill = fth_st_fill_from_f32;
    PATH(path, *state, "model");
    assert_ok(fth_model_dir_write(path, &m->content.model));
    assert_ok(fth_model_dir_open(path, &back));
    assert_ok(fth_st_expect(back->weights, m->tensors, N));
    assert_int_equal(fth_st_find(back->weights, "c")->dtype, FTH_ST_BF16);
    fth_model_dir_close(back);
    free(m);
}

static void refuses_to_replace_other_things(void **state) {
    char path[300], file[400];
    PATH(path, *state, "home");
    PATH(file, *state, "home/letters.txt");
    assert_int_equal(mkdir(path, 0777), 0);
    assert_ok(write_model(path, 1)); /* an empty folder may go */
    put_bytes(file, "dear", 4);
    assert_failed(write_model(path, 2), FTH_USAGE,
                  (const char *[]){path, "letters.txt", "not be replaced", NULL});
    assert_true(fth_file_exists(file));
    assert_int_equal(read_model(path), 1);
    assert_failed(write_model(file, 2), FTH_IO, (const char *[]){file, NULL});
    assert_failed(write_model(".", 2), FTH_USAGE, (const char *[]){".: ", "name", NULL});
    assert_failed(write_model("/", 2), FTH_USAGE, (const char *[]){"/: ", "name", NULL});
    assert_failed(write_model("..", 2), FTH_USAGE, (const char *[]){"..: ", "name", NULL});
    assert_int_equal(count_entries(*state), 1);
}

static void names_what_is_missing_in_a_model(void **state) {
    char path[300], file[400];
    fth_model_dir *m = NULL;
    PATH(path, *state, "model");
    assert_failed(fth_model_dir_open(path, &m), FTH_NOT_FOUND,
                  (const char *[]){path, "no such model folder", NULL});
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        assert_ok(write_model(path, 1));
        PATH(file, path, files[i]);
        assert_int_equal(unlink(file), 0);
        assert_failed(fth_model_dir_open(path, &m), FTH_NOT_FOUND, (const char *[]){file, NULL});
    }
    assert_null(m);
}

/* Fails at the k-th call, for every k. Whatever happens, one of the two models is there, whole,
 * and no hidden folder is left unless it holds the older model of a doubtful new one. */
static void replacing_a_model_fails_anywhere(void **state) {
    char path[300];
    PATH(path, *state, "model");
    for (int no_exchange = 0; no_exchange < 2; no_exchange++) {
        int failures = 0, ends = 0;
        for (int k = 1;; k++) {
            set_faults(0, 0, 0);
            assert_ok(write_model(path, 1));
            set_faults(k, k % 2 ? ENOSPC : EROFS, no_exchange);
            fth_err err = write_model(path, 2);
            int calls = faults.calls;
            set_faults(0, 0, 0);
            int64_t update = read_model(path);
            /* the last call makes sure that the new name is on the disk: the older folder stays */
            int at_the_end = err && update == 2;
            assert_int_equal(count_entries(*state), at_the_end ? 2 : 1);
            if (calls < k) { /* nothing failed */
                assert_int_equal(err, FTH_OK);
                assert_int_equal(update, 2);
                break;
            }
            assert_failed(err, FTH_IO, (const char *[]){k % 2 ? "No space" : "Read-only", NULL});
            failures++;
            ends += at_the_end;
        }
        assert_true(failures > 10);
        assert_int_equal(ends, 1);
    }
}

/* Runs the function in a process of its own, which ends at the k-th call. 1: it did. */
static int dies(int k, int no_exchange, fth_err (*call)(const char *, int64_t), const char *path,
                int64_t update) {
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        set_faults(k, 0, no_exchange);
        _exit(call(path, update) == FTH_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 0);
    return WEXITSTATUS(status) == 77;
}

static void replacing_a_model_is_killed_anywhere(void **state) {
    char path[300];
    int recovered = 0;
    PATH(path, *state, "model");
    for (int no_exchange = 0; no_exchange < 2; no_exchange++) {
        for (int k = 1, died = 1; died; k++) {
            assert_ok(write_model(path, 1));
            assert_int_equal(count_entries(*state), 1); /* what was left is cleared */
            died = dies(k, no_exchange, write_model, path, 2);
            int64_t update = read_model(path);
            assert_true(died ? update == 1 || update == 2 : update == 2);
            if (!is_there(*state, "model")) recovered++;
            assert_true(died || k > 10);
        }
    }
    assert_int_equal(recovered, 1); /* between the two renames */
}

static void a_writer_at_work_is_left_alone(void **state) {
    char path[300];
    fth_staged_dir d;
    PATH(path, *state, "model");
    assert_ok(fth_staged_dir_open(&d, path, fth_model_may_replace));
    assert_ok(fth_staged_dir_clean(*state, NULL));
    assert_true(fth_file_exists(d.temp));
    assert_ok(write_model(path, 5)); /* a second writer does not disturb the first */
    assert_true(fth_file_exists(d.temp));
    fth_staged_dir_fini(&d);
    assert_int_equal(count_entries(*state), 1);

    PATH(path, *state, ".model.tmp-notes"); /* of the user's own */
    assert_int_equal(mkdir(path, 0777), 0);
    PATH(path, *state, ".model.tmp-1-0");
    assert_int_equal(mkdir(path, 0777), 0);
    assert_ok(fth_staged_dir_clean(*state, "model"));
    assert_true(is_there(*state, ".model.tmp-notes"));
    assert_false(is_there(*state, ".model.tmp-1-0"));
}

/* ---- checkpoints ---- */

typedef struct warnings {
    int n;
    char text[1100];
} warnings;

static void keep_warning(void *context, const char *text) {
    warnings *w = context;
    w->n++;
    snprintf(w->text, sizeof w->text, "%s", text);
}

/* The update that a run would resume from, after a look at everything in it. */
static int64_t resume(const char *folder, warnings *w) {
    fth_checkpoint *c = NULL;
    w->n = 0;
    assert_ok(fth_checkpoint_find(folder, keep_warning, w, &c));
    int64_t update = c->state.update;
    assert_int_equal(c->model->config.step, update);
    assert_of_update(c->model->weights, update);
    assert_of_update(c->optimizer, update);
    fth_checkpoint_close(c);
    return update;
}

static void assert_link(const char *folder, const char *link, const char *target) {
    char path[400], text[100] = "";
    PATH(path, folder, link);
    assert_true(readlink(path, text, sizeof text - 1) > 0);
    assert_string_equal(text, target);
}

static void checkpoint_round_trip(void **state) {
    char folder[300], path[400];
    warnings w;
    fth_checkpoint *c = NULL;
    PATH(folder, *state, "run/checkpoints");
    assert_failed(fth_checkpoint_find(folder, NULL, NULL, &c), FTH_NOT_FOUND,
                  (const char *[]){folder, "no checkpoint", NULL});
    assert_ok(fth_checkpoint_clean(folder));
    assert_ok(save(folder, 1000));
    assert_ok(save(folder, 123456789));
    assert_ok(settle(folder, 123456789, 1000, 0));
    assert_link(folder, "last", "step-123456789");
    assert_link(folder, "best", "step-00001000");
    assert_int_equal(resume(folder, &w), 123456789);
    assert_int_equal(w.n, 0);
    PATH(path, folder, "best");
    assert_int_equal(read_model(path), 1000);
    assert_ok(save(folder, 1000));         /* again: replaced */
    assert_ok(settle(folder, 1000, 7, 0)); /* 7 is not there and cannot be the best */
    assert_link(folder, "last", "step-00001000");
    assert_link(folder, "best", "step-00001000");
    assert_int_equal(count_entries(folder), 4);

    assert_ok(fth_checkpoint_open(path, &c));
    assert_int_equal(c->optimizer->n, 2 * N);
    const fth_st_tensor *t = fth_st_find(c->optimizer, "exp_avg_sq.a.weight");
    assert_non_null(t);
    assert_int_equal(t->dtype, FTH_ST_F32);
    assert_int_equal(t->shape[0], LARGE / 8);
    fth_checkpoint_close(c);
}

static void state_round_trip(void **state) {
    char path[300];
    char *options = NULL;
    fth_train_state s = fth_train_state_default(), back;
    fth_file_sums sums = {0}, sums_back;
    fth_str text = {0};
    assert_string_equal(s.version, FATHOM_VERSION);
    s.update = INT64_C(1) << 53;
    s.epoch = 3;
    s.position = 17;
    s.seed = INT64_MAX - 42;
    s.rng_counter = 5;
    s.best_update = 9;
    s.patience = 2;
    s.loss_scale = 0x1p-20;
    s.alpha = 0.1;
    s.tokens = 1234567890123;
    s.wall = 1.0 / 3.0;
    s.data_hash = UINT64_MAX;
    s.validated = 7, s.log_tokens = 8, s.log_updates = 9;
    s.valid_nll = 2.5, s.first_nll = 1.0 / 7;
    s.log_loss = 1e300, s.log_nll = 0.1, s.log_gnorm = 0.7;
    fth_file_sums_add(&sums, "config.json", (fth_st_sum){12, 0xdeadbeef});
    const double scores[] = {NAN, INFINITY, -INFINITY, 27.25};
    PATH(path, *state, "state.json");
    for (size_t i = 0; i < 4; i++) {
        s.best_score = scores[i];
        fth_str_clear(&text);
        assert_ok(fth_train_state_print(&s, "# run\na: 1\n\nbeam: [x]\n# c: not set\n# d: other\n",
                                        &sums, &text));
        put_bytes(path, text.text, text.length);
        assert_ok(fth_train_state_read(path, &back, &options, &sums_back));
        assert_string_equal(options, "a: 1\nbeam: [x]\nc: not set\n");
        free(options);
        assert_true(isnan(scores[i]) ? isnan(back.best_score) : back.best_score == scores[i]);
        assert_true(back.alpha == s.alpha && back.wall == s.wall);
        assert_true(back.loss_scale == s.loss_scale && back.data_hash == s.data_hash);
        assert_int_equal(back.update, s.update);
        assert_int_equal(back.tokens, s.tokens);
        assert_int_equal(back.epoch + back.position + back.rng_counter, 3 + 17 + 5);
        assert_int_equal(back.seed, s.seed);
        assert_int_equal(back.best_update + back.patience, 11);
        assert_int_equal(back.validated + back.log_tokens + back.log_updates, 7 + 8 + 9);
        assert_true(back.valid_nll == 2.5 && back.first_nll == 1.0 / 7 && isnan(back.last_nll));
        assert_true(back.log_loss == 1e300 && back.log_nll == 0.1 && back.log_gnorm == 0.7);
        assert_int_equal(sums_back.n, 1);
        assert_int_equal(sums_back.files[0].sum.crc32, 0xdeadbeef);
        assert_int_equal(sums_back.files[0].sum.bytes, 12);
    }
    for (size_t i = 0; i < text.length; i++) { /* every byte counts */
        text.text[i] ^= 1;
        put_bytes(path, text.text, text.length);
        text.text[i] ^= 1;
        assert_failed(fth_train_state_read(path, &back, NULL, NULL), FTH_BAD_INPUT,
                      (const char *[]){path, NULL});
    }
    for (size_t i = 0; i < text.length; i++) { /* cut anywhere */
        put_bytes(path, text.text, i);
        assert_failed(fth_train_state_read(path, &back, NULL, NULL), FTH_BAD_INPUT,
                      (const char *[]){path, "crc32", NULL});
    }
    fth_str_fini(&text);
}

/* Writes the text with another value of a key, and with the sum that belongs to it. */
static void put_changed(const char *path, const char *text, const char *key, const char *value) {
    char *from = strstr(text, key);
    assert_non_null(from);
    from += strlen(key) + 2; /* the quote and the colon */
    char *changed = fth_strdup_printf("%.*s %s%s", (int)(from - text), text, value,
                                      from + strcspn(from, ",\n"));
    char *digits = changed + strlen(changed) - 12, sum[9];
    memset(digits, '0', 8);
    snprintf(sum, sizeof sum, "%08x", fth_crc32(0, changed, strlen(changed)));
    memcpy(digits, sum, 8);
    put_bytes(path, changed, strlen(changed));
    free(changed);
}

static void wrong_values_of_the_state(void **state) {
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"seed", "[]", "seed is []: it must be a whole number from 0 to 9223372036854775807"},
        {"seed", "\"x\"", "seed is \"x\": it must"},
        {"update", "1.5", "update is 1.5: it must be a whole number from 0 to 9007199254740992"},
        {"tokens", "9223372036854775807", "tokens is 9223372036854775807: it must be"},
        {"patience", "-1", "patience is -1: it must"},
        {"bytes", "true", "bytes is true: it must"},
        {"wall", "null", "wall is null: must be a number"},
        {"version", "7", "version is 7: it must be a string of at most 31 bytes"},
        {"beam", "7", "beam in options is 7: it must be a string"},
        {"data_hash", "{}", "data_hash is {}: it must be a string of 16 hexadecimal"},
    };
    char path[300];
    fth_train_state s = fth_train_state_default();
    fth_file_sums sums = {0};
    fth_str text = {0};
    PATH(path, *state, "state.json");
    fth_file_sums_add(&sums, "config.json", (fth_st_sum){12, 0xdeadbeef});
    assert_ok(fth_train_state_print(&s, "# run\na: 1\n\nbeam: [x]\n# c: not set\n# d: other\n",
                                    &sums, &text));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_changed(path, text.text, cases[i].key, cases[i].value);
        assert_failed(fth_train_state_read(path, &s, NULL, NULL), FTH_BAD_INPUT,
                      (const char *[]){path, cases[i].says, NULL});
    }
    fth_str_fini(&text);
}

/* A state of version 0.1.0, which knew less. */
static void an_older_state(void **state) {
    static const char text[] =
        "{\n  \"version\": \"0.1.0\",\n  \"update\": 20,\n  \"epoch\": 2,\n  \"position\": 3,\n  "
        "\"window\": 0,\n"
        "  \"batch\": 3,\n  \"seed\": 1,\n  \"rng_counter\": 0,\n  \"best_score\": 3.5,\n  "
        "\"best_update\": 14,\n"
        "  \"patience\": 1,\n  \"loss_scale\": 1.0,\n  \"alpha\": 1.0,\n  \"tokens\": 700,\n  "
        "\"wall\": 1.5,\n"
        "  \"data_hash\": \"00000000000000ff\",\n  \"files\": {},\n  \"crc32\": \"00000000\"\n}\n";
    char path[300];
    fth_train_state s;
    PATH(path, *state, "state.json");
    put_changed(path, text, "patience", "1");
    assert_ok(fth_train_state_read(path, &s, NULL, NULL));
    assert_int_equal(s.validated, 20); /* it saved after it had validated */
    assert_int_equal(s.best_update, 14);
    assert_true(isnan(s.first_nll) && isnan(s.valid_nll) && s.log_updates == 0);
    put_changed(path, text, "best_score", "\"nan\"");
    assert_ok(fth_train_state_read(path, &s, NULL, NULL));
    assert_int_equal(s.validated, 0);
}

static void damaged_checkpoints_are_passed_over(void **state) {
    static const char *const files[] = {"config.json", "model.safetensors", "optimizer.safetensors",
                                        "state.json"};
    char folder[300], path[400], *data;
    size_t size;
    warnings w;
    fth_checkpoint *c = NULL;
    PATH(folder, *state, "checkpoints");
    assert_ok(save(folder, 1));
    assert_ok(save(folder, 2));
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/step-00000002/%s", folder, files[i]);
        assert_ok(fth_file_read(path, &data, &size));
        for (size_t k = 0; k < 12; k++) { /* a flipped bit, the cut file, no file */
            size_t at = size * k / 10;
            if (k < 10) {
                data[at] ^= 4;
                put_bytes(path, data, size);
                data[at] ^= 4;
            } else if (k == 10) {
                put_bytes(path, data, size - 1);
            } else {
                assert_int_equal(unlink(path), 0);
            }
            assert_int_equal(resume(folder, &w), 1);
            assert_int_equal(w.n, 1);
            if (!strstr(w.text, "step-00000002")) fail_msg("%s", w.text);
        }
        put_bytes(path, data, size);
        free(data);
        assert_int_equal(resume(folder, &w), 2);
        assert_int_equal(w.n, 0);
    }
    snprintf(path, sizeof path, "%s/step-00000002/state.json", folder);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/step-00000001/config.json", folder);
    assert_int_equal(truncate(path, 10), 0);
    w.n = 0;
    assert_failed(fth_checkpoint_find(folder, keep_warning, &w, &c), FTH_BAD_INPUT,
                  (const char *[]){folder, "2", "damaged", NULL});
    assert_int_equal(w.n, 2);
}

/* Without the optimizer, which only training needs. */
static void the_model_of_a_checkpoint(void **state) {
    char folder[300], path[400], file[500];
    fth_model_dir *m = NULL;
    PATH(folder, *state, "checkpoints");
    assert_ok(save(folder, 7));
    PATH(path, folder, "last");
    PATH(file, path, "optimizer.safetensors");
    assert_int_equal(truncate(file, 100), 0);
    assert_ok(fth_checkpoint_open_model(path, &m));
    assert_of_update(m->weights, 7);
    fth_model_dir_close(m);
    PATH(file, path, "model.safetensors");
    int fd = open(file, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "x", 1, 1000), 1);
    close(fd);
    assert_failed(fth_checkpoint_open_model(path, &m), FTH_BAD_INPUT,
                  (const char *[]){"step-00000007/model.safetensors", "crc32", "damaged", NULL});
    assert_null(m);
    PATH(file, path, "state.json"); /* a plain model folder has no sums */
    assert_int_equal(unlink(file), 0);
    assert_ok(fth_checkpoint_open_model(path, &m));
    fth_model_dir_close(m);
}

/* Files of another checkpoint are whole, but do not belong here. */
static void mixed_checkpoints_are_found(void **state) {
    char folder[300], from[400], to[400];
    warnings w;
    PATH(folder, *state, "checkpoints");
    assert_ok(save(folder, 1));
    assert_ok(save(folder, 2));
    assert_ok(save(folder, 3));
    PATH(from, folder, "step-00000002/optimizer.safetensors");
    PATH(to, folder, "step-00000003/optimizer.safetensors");
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(resume(folder, &w), 1);
    assert_int_equal(w.n, 2);
}

static void settling_keeps_last_and_best(void **state) {
    char folder[300], path[400];
    int64_t *updates;
    size_t n;
    PATH(folder, *state, "checkpoints");
    for (int64_t i = 1; i <= 6; i++) assert_ok(save(folder, i * 10));
    PATH(path, folder, "step-7"); /* not a name of ours */
    assert_int_equal(mkdir(path, 0777), 0);
    assert_ok(settle(folder, 60, -1, 0));
    assert_false(is_there(folder, "best"));
    assert_ok(settle(folder, 60, 20, 6));
    assert_ok(fth_checkpoint_list(folder, &updates, &n));
    assert_int_equal(n, 6);
    free(updates);
    assert_ok(settle(folder, 60, 20, 2)); /* whatever the links were */
    assert_ok(fth_checkpoint_list(folder, &updates, &n));
    assert_int_equal(n, 3);
    assert_int_equal(updates[0], 20);
    assert_int_equal(updates[1], 50);
    assert_int_equal(updates[2], 60);
    free(updates);
    assert_true(is_there(folder, "step-7"));
    assert_link(folder, "last", "step-00000060");
    assert_link(folder, "best", "step-00000020");
    /* 60 is damaged: the run goes on from 50 and leaves it alone */
    assert_ok(settle(folder, 50, 20, 1));
    assert_true(is_there(folder, "step-00000020"));
    assert_true(is_there(folder, "step-00000050"));
    assert_true(is_there(folder, "step-00000060"));
    assert_link(folder, "last", "step-00000050");
}

static void saving_fails_anywhere(void **state) {
    char folder[300];
    warnings w;
    int failures = 0;
    PATH(folder, *state, "checkpoints");
    for (int k = 1;; k++) {
        char path[400];
        set_faults(0, 0, 0);
        PATH(path, folder, "step-00000002");
        assert_ok(fth_remove_tree(path));
        assert_ok(save(folder, 1));
        set_faults(k, ENOSPC, 0);
        fth_err err = save(folder, 2);
        int calls = faults.calls;
        set_faults(0, 0, 0);
        int64_t update = resume(folder, &w);
        assert_int_equal(w.n, 0);
        if (calls < k) {
            assert_ok(err);
            assert_link(folder, "last", "step-00000002");
            break;
        }
        failures++;
        assert_failed(err, FTH_IO, (const char *[]){"No space", NULL});
        assert_int_equal(count_entries(folder), update == 1 ? 2 : 3);
    }
    assert_true(failures > 15);
}

static void saving_is_killed_anywhere(void **state) {
    char folder[300], path[400];
    warnings w;
    int deaths = 0;
    PATH(folder, *state, "checkpoints");
    PATH(path, folder, "step-00000002");
    for (int k = 1, died = 1; died; k++) {
        assert_ok(fth_remove_tree(path));
        assert_ok(save(folder, 1));
        died = dies(k, 0, save, folder, 2);
        deaths += died;
        assert_ok(fth_checkpoint_clean(folder));
        int64_t update = resume(folder, &w);
        assert_int_equal(w.n, 0);
        assert_int_equal(count_entries(folder), update == 1 ? 2 : 3);
        if (!died) assert_int_equal(update, 2);
    }
    assert_true(deaths > 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(model_round_trip),
        TEST(model_in_bf16),
        TEST(refuses_to_replace_other_things),
        TEST(names_what_is_missing_in_a_model),
        TEST(replacing_a_model_fails_anywhere),
        TEST(replacing_a_model_is_killed_anywhere),
        TEST(a_writer_at_work_is_left_alone),
        TEST(checkpoint_round_trip),
        TEST(state_round_trip),
        TEST(wrong_values_of_the_state),
        TEST(an_older_state),
        TEST(damaged_checkpoints_are_passed_over),
        TEST(the_model_of_a_checkpoint),
        TEST(mixed_checkpoints_are_found),
        TEST(settling_keeps_last_and_best),
        TEST(saving_fails_anywhere),
        TEST(saving_is_killed_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
