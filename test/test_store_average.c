/* links: store base */
/* Means of checkpoints, with their method's schedule, and models of two kinds, which have none. */
#include "test_files.h"

#include <math.h>
#include <sys/wait.h>

#include "store/average.h"
#include "store/checkpoint.h"
#include "store/config_json.h"

enum { WIDE = 300001 }; /* more than one piece of the writer, and odd */

/* A model whose numbers are a ramp times scale. */
typedef struct variant {
    const char *name;
    int64_t step;
    float scale;
    fth_st_dtype dtype;
    int32_t ffn_dim;
    int n_tensors;
    float odd_one; /* replaces element 5 unless 0 */
} variant;

static void put_model(const char *folder, const variant *v) {
    char path[400];
    float *data = malloc(WIDE * sizeof *data);
    assert_non_null(data);
    for (int i = 0; i < WIDE; i++) data[i] = v->scale * (float)(i % 128);
    if (v->odd_one != 0) data[5] = v->odd_one;
    fth_config c = fth_config_default();
    strcpy(c.method, "somenorm");
    c.step = v->step;
    c.ffn_dim = v->ffn_dim;
    fth_st_tensor tensors[] = {{"wide", v->dtype, 1, {WIDE}, data},
                               {"b", v->dtype, 2, {2, 3}, data},
                               {"none", v->dtype, 1, {0}, NULL}};
    fth_model_content content = {&c,   tensors, (size_t)v->n_tensors, fth_st_fill_from_f32,
                                 NULL, NULL};
    PATH(path, folder, v->name);
    assert_ok(fth_model_dir_write(path, &content));
    free(data);
}

static void open_all(const char *folder, const variant *v, size_t n, fth_model_dir **models) {
    char path[400];
    for (size_t i = 0; i < n; i++) {
        put_model(folder, &v[i]);
        PATH(path, folder, v[i].name);
        assert_ok(fth_checkpoint_open_model(path, &models[i]));
    }
}

static void close_all(fth_model_dir **models, size_t n) {
    for (size_t i = 0; i < n; i++) fth_model_dir_close(models[i]);
}

static void writes_the_mean(void **state) {
    const variant v[] = {{"m1", 70, 1.0f, FTH_ST_F32, 64, 3, 0.0f},
                         {"m2", 90, 2.0f, FTH_ST_BF16, 64, 3, 0.0f},
                         {"m3", 80, 6.0f, FTH_ST_F64, 64, 3, 1e30f}};
    char path[400];
    fth_model_dir *models[3], *mean = NULL;
    open_all(*state, v, 3, models);
    PATH(path, *state, "m1/tokenizer.model");
    put_bytes(path, "pieces", 6);
    PATH(path, *state, "mean");
    assert_ok(fth_average_write(path, (const fth_model_dir *const *)models, 3));
    assert_ok(fth_model_dir_open(path, &mean));
    assert_int_equal(mean->config.step, 90);
    const char *key;
    assert_ok(fth_config_difference(&mean->config, &models[0]->config, &key));
    assert_null(key);
    assert_int_equal(mean->weights->n, 3);
    const fth_st_tensor *t = fth_st_find(mean->weights, "wide");
    assert_non_null(t);
    assert_int_equal(t->dtype, FTH_ST_F32);
    const float *values = t->data;
    for (int i = 0; i < WIDE; i++)
        if (i != 5 && values[i] != 3.0f * (float)(i % 128))
            fail_msg("element %d is %g", i, (double)values[i]);
    assert_true(values[5] == (float)((5.0 + 10.0 + (double)1e30f) / 3.0));
    PATH(path, *state, "mean/tokenizer.model");
    assert_true(fth_file_exists(path));
    fth_model_dir_close(mean);

    PATH(path, *state, "m1"); /* one model is its own mean, even written over itself */
    assert_ok(fth_average_write(path, (const fth_model_dir *const *)models, 1));
    close_all(models, 3);
}

static void refuses_models_of_two_kinds(void **state) {
    const struct {
        variant second;
        fth_err code;
        const char *words[4];
    } cases[] = {
        {{"m2", 1, 1.0f, FTH_ST_F32, 128, 3, 0.0f}, FTH_BAD_CONFIG, {"m1", "m2", "ffn_dim"}},
        {{"m2", 1, 1.0f, FTH_ST_F32, 64, 2, 0.0f}, FTH_BAD_INPUT, {"m2", "\"none\"", "missing"}},
        {{"m2", 1, 1.0f, FTH_ST_F32, 64, 3, INFINITY}, FTH_BAD_INPUT, {"m2", "element 5", "inf"}},
        {{"m2", 1, 1.0f, FTH_ST_F32, 64, 3, NAN}, FTH_BAD_INPUT, {"m2", "element 5", "nan"}},
    };
    char path[400];
    PATH(path, *state, "mean");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const variant v[] = {{"m1", 1, 1.0f, FTH_ST_F32, 64, 3, 0.0f}, cases[i].second};
        fth_model_dir *models[2];
        open_all(*state, v, 2, models);
        assert_failed(fth_average_write(path, (const fth_model_dir *const *)models, 2),
                      cases[i].code, cases[i].words);
        assert_false(fth_file_exists(path));
        close_all(models, 2);
    }
    assert_failed(fth_average_write(path, NULL, 0), FTH_USAGE, (const char *[]){"no model", NULL});
}

/* ---- the program ---- */

/* A checkpoint of a method with a schedule of 10 updates; its two numbers are the update. */
static void save(const char *folder, int64_t update) {
    const float values[2] = {(float)update, (float)update};
    const void *moments[1] = {values};
    fth_config c = fth_config_default();
    strcpy(c.method, "branchnorm");
    c.n_options = 1;
    c.options[0] = (fth_method_option){.key = "steps", .type = FTH_OPT_NUMBER, .number = 10};
    const fth_st_tensor t = {"w", FTH_ST_F32, 1, {2}, values};
    fth_checkpoint_content content = {
        {&c, &t, 1, NULL, NULL, NULL}, moments, moments, fth_train_state_default(), NULL};
    content.state.update = update;
    assert_ok(fth_checkpoint_save(folder, &content));
    assert_ok(fth_checkpoint_settle(folder, &(fth_settled){.last = update, .best = -1}));
}

/* Runs fathom average in the folder; what it says on standard error goes to said. */
static int run_average(const char *folder, const char *arguments, char *said, size_t size) {
    char command[900];
    snprintf(command, sizeof command, "cd '%s' && '%s' average %s 2>&1", folder, FATHOM_PROGRAM,
             arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(said, 1, size - 1, pipe);
    said[n] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_program_averages(void **state) {
    static const struct {
        const char *arguments;
        int status;
        const char *words[5];
        float mean; /* of the model OUT where the status is 0 */
    } cases[] = {
        {"run --last 2 --out OUT", 0, {"2 models"}, 35.0f},
        {"run/checkpoints --last 3 --out OUT", 0, {"3 models"}, 30.0f},
        {"run/checkpoints/step-00000020 run/checkpoints/last --out OUT", 0, {"2 models"}, 30.0f},
        {"run/checkpoints/step-00000020 --out OUT", 0, {"1 model"}, 20.0f},
        {"run --last 4 --out OUT", 2, {"step-00000005", "0.5", "the last 3", "alpha"}, 0.0f},
        {"run --last 5 --out OUT", 2, {"--last 5", "4 checkpoints"}, 0.0f},
        {"run run --last 1 --out OUT", 2, {"--last 1", "2 folders"}, 0.0f},
        {"run --last 0 --out OUT", 2, {"last", "0", "1"}, 0.0f},
        {"run --last 2", 2, {"--out"}, 0.0f},
        {"--out OUT", 2, {"FOLDER"}, 0.0f},
        {"run --out OUT", 2, {"run: is a run"}, 0.0f},
    };
    char path[400], said[2000];
    PATH(path, *state, "run/checkpoints");
    for (int64_t update = 10; update <= 40; update += 10) save(path, update == 10 ? 5 : update);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = run_average(*state, cases[i].arguments, said, sizeof said);
        if (status != cases[i].status) fail_msg("%s: %d: %s", cases[i].arguments, status, said);
        for (const char *const *word = cases[i].words; *word; word++)
            if (!strstr(said, *word))
                fail_msg("%s: no \"%s\" in: %s", cases[i].arguments, *word, said);
        fth_model_dir *m = NULL;
        PATH(path, *state, "OUT");
        if (status) continue;
        assert_ok(fth_model_dir_open(path, &m));
        assert_true(((const float *)m->weights->tensors[0].data)[1] == cases[i].mean);
        fth_model_dir_close(m);
        assert_ok(fth_remove_tree(path));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(writes_the_mean), TEST(refuses_models_of_two_kinds),
                                       TEST(the_program_averages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
