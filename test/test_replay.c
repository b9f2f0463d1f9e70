/* links: train */
/* The replay of an update on ranks that are not here, against schedules that can be worked out by
 * hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/replay.h"

enum { MOST = 8 };

static fth_replay play(int ranks, int stages, int batches, double link, bool own_first) {
    static const double even[MOST + 1][MOST] = {
        [1] = {1}, [2] = {0.5, 0.5}, [3] = {0.25, 0.5, 0.25}, [4] = {0.25, 0.25, 0.25, 0.25}};
    static const int64_t none[MOST];
    const fth_topology t = {.ranks = ranks,
                            .ranks_per_host = MOST,
                            .stages = stages,
                            .link = link,
                            .net = 1,
                            .latency = 0};
    const fth_workload w = {.batch = 12,
                            .update = 6,
                            .cost = even[stages],
                            .hop = none,
                            .batches = batches,
                            .parameters = 1000,
                            .own_first = own_first};
    fth_replay out;
    assert_int_equal(fth_replay_update(&t, &w, &out), FTH_OK);
    return out;
}

static void is_near(double x, double expected) {
    if (!(fabs(x - expected) <= 1e-9 * fabs(expected))) fail_msg("%.12g, not %.12g", x, expected);
}

static void test_alone(void **state) {
    (void)state;
    const fth_replay r = play(1, 1, 5, 1, false);
    is_near(r.seconds, 5 * 12 + 6);
    is_near(r.computed, 1);
    is_near(r.exchange + 1, 1);
    is_near(r.sent + 1, 1);
}

/* One forward and one backward in turn: (batches + stages - 1) / stages of the time of all. */
static void test_even_stages(void **state) {
    (void)state;
    for (int stages = 2; stages <= 4; stages += 2)
        for (int batches = 1; batches <= 9; batches++) {
            const fth_replay r = play(stages, stages, batches, INFINITY, false);
            is_near(r.seconds, 12.0 / stages * (batches + stages - 1) + 6.0 / stages);
            is_near(r.computed * r.seconds, 12.0 * batches / stages + 6.0 / stages);
        }
}

/* The stage with half of the work waits for the first forward (1), once for the first backward (1),
 * and the stage below it for the last (2). */
static void test_uneven_stages(void **state) {
    (void)state;
    is_near(play(3, 3, 7, INFINITY, false).seconds, 1 + 1 + 7 * 12 * 0.5 + 2 + 2);
}

/* Two ranks send half of 1000 floats a round, and their slice of the weights. */
static void test_exchange(void **state) {
    (void)state;
    const fth_replay exact = play(2, 1, 6, 1000, false), fast = play(2, 1, 6, 1000, true);
    is_near(exact.seconds, 3 * (12 + 2) + 3 + 2);
    is_near(exact.sent, 3 * 2000 + 2000);
    is_near(fast.seconds, 3 * 12 + 2 + 3 + 2);
    is_near(fast.sent, 2000 + 2000);
    is_near(fast.exchange * fast.seconds, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone), cmocka_unit_test(test_even_stages),
        cmocka_unit_test(test_uneven_stages), cmocka_unit_test(test_exchange)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
