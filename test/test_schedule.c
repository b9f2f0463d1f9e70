/* links: train */
/* The learning rate of an update, by hand, for every schedule: before, at and after the end of the
 * warm-up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "close.h"
#include "train/schedule.h"

static void rates(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t t;
        double lr;
    } rows[] = {
        /* lr 8, from 2 in 100 updates; 500 in all */
        {"inverse_sqrt", 0, 2},
        {"inverse_sqrt", 1, 2.06},
        {"inverse_sqrt", 50, 5},
        {"inverse_sqrt", 99, 7.94},
        {"inverse_sqrt", 100, 8},
        {"inverse_sqrt", 400, 4},
        {"inverse_sqrt", 900, 8.0 / 3},
        {"inverse_sqrt_nowarmup", 0, 8},
        {"inverse_sqrt_nowarmup", 12000, 4},
        {"constant", 50, 5},
        {"constant", 400, 8},
        {"linear", 50, 5},
        {"linear", 100, 8},
        {"linear", 200, 6},
        {"linear", 400, 2},
        {"linear", 500, 0},
        {"linear", 600, 0},
        {"cosine", 50, 5},
        {"cosine", 100, 8},
        {"cosine", 200, 6.82842712474619},
        {"cosine", 300, 4},
        {"cosine", 500, 0},
        {"cosine", 600, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_schedule s = {.lr = 8, .lr_start = 2, .warmup = 100, .total = 500};
        assert_int_equal(fth_schedule_find(rows[i].name, &s.kind), FTH_OK);
        const double lr = fth_schedule_lr(&s, rows[i].t);
        if (!is_close(lr, rows[i].lr, 1e-12))
            fail_msg("%s at %lld: %.15g, not %.15g", rows[i].name, (long long)rows[i].t, lr,
                     rows[i].lr);
    }
}

static void without_a_warmup(void **state) {
    (void)state;
    fth_schedule s = {.kind = FTH_INVERSE_SQRT, .lr = 8, .total = 100};
    assert_close(fth_schedule_lr(&s, 1), 8, 1e-12);
    assert_close(fth_schedule_lr(&s, 4), 4, 1e-12);
    s.kind = FTH_LINEAR;
    assert_close(fth_schedule_lr(&s, 25), 6, 1e-12);
    s.warmup = 100; /* and nothing after it */
    assert_close(fth_schedule_lr(&s, 50), 4, 1e-12);
    assert_close(fth_schedule_lr(&s, 100), 0, 1e-12);
}

static void unknown_names(void **state) {
    (void)state;
    fth_schedule_kind kind;
    assert_int_equal(fth_schedule_find("inverse", &kind), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "--lr-scheduler inverse: must be inverse_sqrt"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),
        cmocka_unit_test(without_a_warmup),
        cmocka_unit_test(unknown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
