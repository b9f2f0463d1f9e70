/* links: run */
/* The rules of preflight's verdict and of a collapsed encoder, on both sides of each bound
 * (doc/preflight.md). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "run/health.h"
#include "run/preflight.h"

/* A healthy training. */
static fth_preflight healthy(void) {
    const fth_dash dash = {.updates = FTH_PREFLIGHT_UPDATES,
                           .first_loss = 9,
                           .last_loss = 8,
                           .carried = 0.5,
                           .encoder_cosine = 0.3};
    return (fth_preflight){.fits = true,
                           .planned = FTH_PREFLIGHT_UPDATES,
                           .carried = {0.5, 0.5},
                           .encoder_cosine = 0.3,
                           .peak_lr = 1e-3,
                           .warmup = 4000,
                           .available_bytes = 1 << 30,
                           .scheduled = dash,
                           .peak = dash};
}

static void assert_verdict(const char *what, fth_preflight p, fth_verdict verdict,
                           const char *says) {
    fth_preflight_judge(&p);
    if (p.verdict != verdict || !strstr(p.reason, says))
        fail_msg("%s: %s, \"%s\"; expected %s, \"%s\"", what, fth_verdict_name(p.verdict), p.reason,
                 fth_verdict_name(verdict), says);
}

static void healthy_runs_are_fine(void **state) {
    (void)state;
    assert_verdict("healthy", healthy(), FTH_FINE, "leave 0.5 of the largest");
    fth_preflight decoder = healthy();
    decoder.carried[0] = decoder.encoder_cosine = decoder.peak.encoder_cosine = NAN;
    assert_verdict("no encoder", decoder, FTH_FINE, "");
}

static void gradients_that_are_lost(void **state) {
    (void)state;
    static const struct {
        const char *what;
        double at_peak, at_first;
        int64_t warmup;
        fth_verdict verdict;
        const char *says;
    } rows[] = {
        {"healthy, just", 0.101, 0.5, 4000, FTH_FINE, ""},
        {"weak", 0.099, 0.5, 4000, FTH_AT_RISK, "smaller --lr or a longer warm-up"},
        {"weak, short ramp", 0.021, 0.5, 100, FTH_AT_RISK, "healthy runs keep more"},
        {"fading, short ramp", 0.019, 0.5, 100, FTH_WILL_FAIL, "a longer warm-up"},
        {"fading, long ramp", 0.019, 0.5, 101, FTH_AT_RISK, "healthy runs keep more"},
        {"lost, saved by the ramp", 0.0009, 0.101, 101, FTH_AT_RISK, "without a warm-up"},
        {"lost, not at the start", 0.0009, 0.099, 101, FTH_WILL_FAIL, "made for depth"},
        {"lost, short ramp", 0.0009, 0.5, 100, FTH_WILL_FAIL, "a longer warm-up"},
        {"hardly lost", 0.0011, 0.099, 4000, FTH_AT_RISK, "healthy runs keep more"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_preflight p = healthy();
        p.peak.carried = rows[i].at_peak;
        p.carried[0] = rows[i].at_first;
        p.warmup = rows[i].warmup;
        assert_verdict(rows[i].what, p, rows[i].verdict, rows[i].says);
    }
}

/* A ramp of the method's own: long enough and with the branches' rate it saves a run that passes
 * gradients down at first; what the method advises against is a risk. */
static void ramps_and_advice(void **state) {
    (void)state;
    fth_preflight p = healthy();
    p.peak.carried = 1e-9;
    p.ramp = (fth_ramp){.updates = 2000, .rate_follows = true};
    assert_verdict("a ramp of half the warm-up", p, FTH_FINE, "grow over 2000 updates");
    p.ramp.updates = 1999;
    assert_verdict("a shorter one", p, FTH_AT_RISK, "without a warm-up");
    p.ramp = (fth_ramp){.updates = 4000, .rate_follows = false};
    assert_verdict("the full rate", p, FTH_AT_RISK, "without a warm-up");
    p.ramp.rate_follows = true;
    p.carried[1] = 0.099;
    assert_verdict("not at the start", p, FTH_WILL_FAIL, "made for depth");
    p = healthy();
    p.advice = "do not";
    assert_verdict("advice", p, FTH_AT_RISK, "do not");
}

static void positions_that_are_alike(void **state) {
    (void)state;
    fth_preflight p = healthy();
    p.peak.encoder_cosine = 0.989;
    assert_verdict("a cosine of 0.989", p, FTH_FINE, "");
    p.peak.encoder_cosine = 0.991;
    assert_verdict("a cosine of 0.991", p, FTH_AT_RISK, "it may collapse");
}

static void a_run_whose_encoder_collapsed(void **state) {
    (void)state;
    fth_judgement j = {0};
    assert_false(fth_health_judge_cosine(0.989, &j));
    assert_false(fth_health_judge_cosine(NAN, &j)); /* no encoder */
    assert_string_equal(j.reason, "");
    assert_true(fth_health_judge_cosine(0.991, &j));
    assert_int_equal(j.kind, FTH_FAULT_COLLAPSED);
    assert_string_equal(j.reason, "the encoder collapsed: the mean cosine between its positions is "
                                  "0.9910, above 0.99");
}

/* How far the output has gone is said in units of its size at the start. */
static void movement_is_relative(void **state) {
    (void)state;
    fth_preflight p = healthy();
    p.peak.updates = 2;
    p.peak.moved[0] = 1;
    p.peak.moved[1] = 3;
    p.peak.size = 6;
    json_t *o = fth_preflight_json(&p);
    assert_non_null(o);
    assert_true(json_number_value(json_object_get(json_object_get(o, "peak"), "drift")) == 0.5);
    json_decref(o);
}

static void updates_that_are_not_finite(void **state) {
    (void)state;
    fth_preflight p = healthy();
    p.scheduled.updates = 3;
    assert_verdict("the run", p, FTH_WILL_FAIL, "update 4 of the run is not finite");
    p = healthy();
    p.peak.updates = 0;
    assert_verdict("the peak", p, FTH_WILL_FAIL, "update 1 at the peak rate is not finite");
    p = healthy();
    p.fits = false;
    p.planned_bytes = 2 << 20;
    p.available_bytes = 1 << 20;
    assert_verdict("the memory", p, FTH_WILL_FAIL, "are needed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_runs_are_fine),
        cmocka_unit_test(gradients_that_are_lost),
        cmocka_unit_test(ramps_and_advice),
        cmocka_unit_test(positions_that_are_alike),
        cmocka_unit_test(a_run_whose_encoder_collapsed),
        cmocka_unit_test(movement_is_relative),
        cmocka_unit_test(updates_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
