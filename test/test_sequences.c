/* links: modelcase run decode */
/* Log-probabilities of given tokens: those of the full forward, whatever sequences share. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/device/device.h"
#include "close.h"
#include "decode/sequences.h"
#include "gpu.h"
#include "model_case.h"

enum { VOCAB = 11, MOST = 8, N = 9 };

/* Beginnings that are shared by two, three and four; one that is all of another; twins; a lone
 * one. */
static const int32_t ids[N][MOST] = {
    {2, 4, 5, 6, 7, 8, 9, 10},
    {2, 4, 5, 6, 7, 9},
    {2, 4, 5, 6, 9, 9, 9},
    {2, 4, 5, 10, 10},
    {2, 4, 5, 6},
    {2, 9, 8, 7, 6, 5, 4},
    {2, 9, 8, 7, 6, 5, 4},
    {2, 3},
    {2, 9, 8, 7, 6, 5, 10},
};
static const int32_t lengths[N] = {8, 6, 7, 5, 4, 7, 7, 2, 7};
static const int32_t from[N] = {4, 4, 4, 3, 1, 6, 1, 1, 6};
static const int32_t source_of[N] = {0, 0, 0, 0, 1, 1, 1, 2, 1};
static const int32_t sources[] = {4, 5, 6, 2, 7, 2, 10, 9, 8, 7, 2},
                     source_offsets[] = {0, 4, 6, 11};

/* By the full forward of one sequence alone. */
static double wanted(model_case *m, int i) {
    const int32_t *s = source_offsets + source_of[i];
    const bool encdec = m->model.config.arch == FTH_ENCDEC;
    double logits[MOST * VOCAB], sum = 0;
    model_case_logits(m, sources + s[0], encdec ? s[1] - s[0] : 0, ids[i], lengths[i], logits);
    for (int t = from[i]; t < lengths[i]; t++) {
        const double *row = logits + (t - 1) * VOCAB;
        double all = 0;
        for (int v = 0; v < VOCAB; v++) all += exp(row[v]);
        sum += row[ids[i][t]] - log(all);
    }
    return sum;
}

static int32_t fill(fth_sequence *s, bool encdec) {
    for (int32_t i = 0; i < N; i++)
        s[i] = (fth_sequence){.source = encdec ? source_of[i] : 0,
                              .ids = ids[i],
                              .n = lengths[i],
                              .from = from[i],
                              .number = i};
    fth_sequences_sort(s, N);
    return N;
}

static void check(const char *method, fth_arch arch, const char *device, int32_t top,
                  double tolerance) {
    fth_config config = model_case_config(method, arch);
    fth_sequence s[N];
    model_case m;
    fth_stepper *stepper = NULL;
    const bool encdec = arch == FTH_ENCDEC;
    config.step = 100;
    model_case_init(&m, &config, device, 2, 0.2, 0);
    const fth_sequences_size size = fth_sequences_measure(s, fill(s, encdec));
    const fth_stepper_spec spec = {.sentences = 3,
                                   .src_tokens = encdec ? 11 : 0,
                                   .rows = size.rows,
                                   .length = size.length,
                                   .slots = (int32_t)size.tokens,
                                   .top = top};
    assert_int_equal(fth_stepper_new(&m.model, m.device, &m.trainer.arenas, &spec, &stepper),
                     FTH_OK);
    double sums[N];
    for (int i = 0; i < N; i++) sums[i] = wanted(&m, i);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(
            fth_stepper_begin(stepper, encdec ? 3 : 1, encdec ? source_offsets : NULL, sources),
            FTH_OK);
        assert_int_equal(fth_sequences_score(stepper, VOCAB, s, N), FTH_OK);
        for (int i = 0; i < N; i++) assert_close(s[i].logp, sums[s[i].number], tolerance);
    }
    fth_stepper_free(stepper);
    model_case_fini(&m);
}

static void sums_are_those_of_the_full_forward(void **state) {
    (void)state;
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        for (int32_t top = 0; top < 2; top++) {
            check((*m)->id, FTH_DEC, "cpu", top, 1e-4);
            check((*m)->id, FTH_ENCDEC, "cpu", top, 1e-4);
        }
        check((*m)->id, FTH_DEC, "ref", 1, 1e-4);
    }
}

static void sums_on_a_gpu(void **state) {
    (void)state;
    if (!gpu_is_there()) skip();
    check("postln", FTH_DEC, "cuda", 0, 1e-3);
    check("postln", FTH_DEC, "cuda", 1, 1e-3);
    check("preln", FTH_ENCDEC, "cuda", 1, 1e-3);
}

/* Rows that are computed: one for each different beginning with the token that it is asked for. */
static void what_is_shared_is_counted_once(void **state) {
    (void)state;
    fth_sequence s[N];
    fill(s, false);
    const fth_sequences_size size = fth_sequences_measure(s, N);
    int64_t alone = 0, different = 0;
    for (int i = 0; i < N; i++) alone += lengths[i] - 1;
    for (int i = 0; i < N; i++)
        for (int n = 2; n <= lengths[i]; n++) {
            bool known = false;
            for (int k = 0; k < i; k++)
                known |= lengths[k] >= n && !memcmp(ids[i], ids[k], (size_t)n * sizeof **ids);
            different += !known;
        }
    assert_int_equal(size.tokens, different);
    assert_true(different < alone * 2 / 3);
    assert_int_equal(size.length, MOST - 1);
    assert_int_equal(size.rows, N);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_full_forward),
        cmocka_unit_test(sums_on_a_gpu),
        cmocka_unit_test(what_is_shared_is_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
