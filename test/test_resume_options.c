/* links: run */
/* What a run may go on with: the tables of options say it of every option. */
#include "test_files.h"

#include <stdbool.h>

#include "run/resume_options.h"

#define SOME_OPTIONS(X)                                                                            \
    X(I64, kept, "1", FTH_KEPT(FTH_MIN(0)), "must be as it was")                                   \
    X(I64, said, "1", FTH_SAID(FTH_MIN(0)), "may change")                                          \
    X(I64, free, "1", FTH_FREE(FTH_MIN(0)), "changes nothing")                                     \
    X(I64, machine, "1", FTH_OF_MACHINE(FTH_MIN(0)), "changes nothing")
FTH_OPTIONS(some_options, "some", SOME_OPTIONS)

#define OTHER_OPTIONS(X) X(I64, silent, "1", FTH_MIN(0), "says nothing of itself")
FTH_OPTIONS(other_options, "others", OTHER_OPTIONS)

typedef struct tables {
    some_options some;
    other_options other;
    fth_option_group group[2];
    fth_run_spec spec;
} tables;

static void set_up(tables *t, const char *folder) {
    t->group[0] = some_options_group(&t->some);
    t->group[1] = other_options_group(&t->other);
    t->spec = (fth_run_spec){.save_dir = folder, .options = t->group, .n_options = 2};
}

static void each_option_has_its_rule(void **state) {
    static const struct {
        const char *now, *said;
        fth_err err;
    } cases[] = {{"kept: 1\nsaid: 1\n", NULL, FTH_OK},
                 {"kept: 2\n", NULL, FTH_BAD_CONFIG},
                 {"said: 2\n", "--said 2 (was 1)", FTH_OK},
                 {"free: 2\nmachine: 2\n", NULL, FTH_OK},
                 {"silent: 2\n", NULL, FTH_BAD_CONFIG}, /* the safe side */
                 {"# kept: not set\n", NULL, FTH_BAD_CONFIG},
                 {"new: 2\n", NULL, FTH_OK}}; /* the older program did not have it */
    const char *before = "kept: 1\nsaid: 1\nfree: 1\nmachine: 1\nsilent: 1\n";
    tables t;
    set_up(&t, *state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_str changed = {0};
        t.spec.yaml = cases[i].now;
        assert_int_equal(fth_run_options_compare(&t.spec, before, &changed), cases[i].err);
        if (cases[i].said)
            assert_string_equal(changed.text, cases[i].said);
        else
            assert_int_equal(changed.length, 0);
        fth_str_fini(&changed);
    }
}

/* fathom train fails at its start, so no test of it passes, while an option says nothing. */
static void no_option_is_forgotten(void **state) {
    char path[300];
    tables t;
    PATH(path, *state, "config.yaml");
    set_up(&t, *state);
    t.spec.yaml = "kept: 1\nsilent: 1\n";
    assert_int_equal(fth_run_options_keep(&t.spec), FTH_FAILED);
    assert_non_null(strstr(fth_error_message(), "--silent: its table does not say"));
    assert_false(fth_file_exists(path));
    t.group[1].resume = FTH_RESUME_KEPT; /* the group says it for its options */
    assert_int_equal(fth_run_options_keep(&t.spec), FTH_OK);
    assert_true(fth_file_exists(path));
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(each_option_has_its_rule),
                                       TEST(no_option_is_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
