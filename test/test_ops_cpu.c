/* links: harness cpu ref */
/* Device cpu against ref: every kind and case, every instruction set that this machine has, one to
 * three threads, both precisions; and the work on flat arenas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "op_harness.h"

static const char *const isas[] = {"plain", "avx2", "avx512"};
enum { N_ISAS = sizeof isas / sizeof *isas };

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

static bool has(const char *isa) {
    const fth_cpu_table *table;
    return fth_cpu_choose(isa, FTH_FP32, &table) == FTH_OK;
}

/* Every case on one device; prints what is wrong and returns how many. */
static int wrong_cases(fth_device *ref, const char *isa, fth_precision precision, int threads,
                       bool large) {
    fth_device *dev;
    assert_ok(fth_cpu_open_isa(isa, precision, threads, &dev));
    int wrong = 0;
    fth_op_case c;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (c.shape->large && !large) continue;
        /* with one key the gradients of scores are 0, and what is left of them is rounding */
        const double fp32 = c.shape->src[0] == 1 ? 1e-3 : 1e-5;
        const double tolerance = precision == FTH_PREC_BF16 ? 2e-2 : fp32;
        if (fth_harness_compare(ref, dev, &c, tolerance, FTH_TAIL_KEPT) == FTH_OK) continue;
        print_error("%s, %d threads: %s\n", isa, threads, fth_error_message());
        wrong++;
    }
    dev->backend->close(dev);
    return wrong;
}

/* Two threads and all shapes on every instruction set, one and three on the last that is there. */
static void kernels_agree_with_ref(fth_precision precision) {
    fth_device *ref;
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_FP32, 1, &ref));
    int wrong = 0, last = 0;
    for (int i = 0; i < N_ISAS; i++)
        if (has(isas[i])) {
            wrong += wrong_cases(ref, isas[i], precision, 2, true);
            last = i;
        }
    wrong += wrong_cases(ref, isas[last], precision, 1, false);
    wrong += wrong_cases(ref, isas[last], precision, 3, false);
    ref->backend->close(ref);
    assert_int_equal(wrong, 0);
}

static void fp32_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_FP32);
}

static void bf16_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_PREC_BF16);
}

/* ---- flat arenas ---- */

enum { N = 100003 }; /* elements: nothing divides it */

static void fill(double *x, uint64_t stream, bool positive) {
    fth_rng r;
    fth_rng_init(&r, 5, stream);
    for (int i = 0; i < N; i++) x[i] = fth_rng_normal(&r);
    for (int i = 0; i < N && positive; i++) x[i] = x[i] * x[i] * 1e-4;
    x[7] = 0;
}

static void to_floats(float *to, const double *from) {
    for (int i = 0; i < N; i++) to[i] = (float)from[i];
}

static void assert_near(const float *got, const double *expected, double tolerance) {
    for (int i = 0; i < N; i++)
        if (!(fabs((double)got[i] - expected[i]) <= tolerance * (fabs(expected[i]) + 0.1)))
            fail_msg("element %d is %.9g, not %.9g", i, (double)got[i], expected[i]);
}

/* Numbers of one update in both types. */
typedef struct flat {
    double p[N], m[N], v[N], grad[N];
    float fp[N], fm[N], fv[N], fgrad[N];
    uint16_t weights[N];
} flat;

static flat *new_flat(void) {
    flat *f = test_malloc(sizeof *f);
    fill(f->p, 1, false), fill(f->m, 2, false), fill(f->v, 3, true), fill(f->grad, 4, false);
    to_floats(f->fp, f->p), to_floats(f->fm, f->m), to_floats(f->fv, f->v);
    to_floats(f->fgrad, f->grad);
    return f;
}

static void adam_agrees_with_ref(void **state) {
    (void)state;
    fth_device *ref, *dev;
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_FP32, 1, &ref));
    const fth_adam_range ranges[] = {{0, 16, 1}, {16, 5001, 0.25f}, {9000, N, 1}};
    const fth_adam args = {.update = 3,
                           .lr = 1e-3,
                           .beta1 = 0.9,
                           .beta2 = 0.98,
                           .eps = 1e-8,
                           .weight_decay = 0.01,
                           .grad_scale = 0.5,
                           .range = ranges,
                           .n_ranges = 3};
    for (int i = 0; i < N_ISAS; i++)
        for (int bf16 = 0; bf16 < 2 && has(isas[i]); bf16++) {
            flat *f = new_flat();
            const fth_arenas a = {N, f->p, f->p, f->grad, f->m, f->v};
            const fth_arenas b = {N,        f->fp, bf16 ? (void *)f->weights : f->fp,
                                  f->fgrad, f->fm, f->fv};
            assert_ok(ref->backend->adam(ref, &a, &args));
            assert_ok(fth_cpu_open_isa(isas[i], bf16 ? FTH_PREC_BF16 : FTH_FP32, 2, &dev));
            assert_ok(dev->backend->refresh_weights(dev, &b));
            assert_ok(dev->backend->adam(dev, &b, &args));
            assert_near(f->fp, f->p, 1e-6);
            assert_near(f->fm, f->m, 1e-6);
            assert_near(f->fv, f->v, 1e-6);
            for (int k = 0; k < N && bf16; k++) { /* also where no range is */
                const uint32_t bits = (uint32_t)f->weights[k] << 16;
                float w;
                memcpy(&w, &bits, sizeof w);
                if (!(fabsf(w - f->fp[k]) <= fabsf(f->fp[k]) / 256))
                    fail_msg("weight %d is %.9g, not %.9g", k, (double)w, (double)f->fp[k]);
            }
            dev->backend->close(dev);
            test_free(f);
        }
    ref->backend->close(ref);
}

static void sums_of_squares(void **state) {
    (void)state;
    flat *f = new_flat();
    static const int64_t sizes[] = {0, 1, 1023, 1025, 4096, N};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        double expected = 0;
        for (int64_t k = 0; k < sizes[s]; k++)
            expected += (double)f->fgrad[k] * (double)f->fgrad[k];
        for (int i = 0; i < N_ISAS; i++) {
            double one = 0;
            for (int threads = 1; threads <= 3 && has(isas[i]); threads++) {
                fth_device *dev;
                double sum;
                assert_ok(fth_cpu_open_isa(isas[i], FTH_FP32, threads, &dev));
                assert_ok(dev->backend->sum_squares(dev, f->fgrad, sizes[s], &sum));
                assert_true(fabs(sum - expected) <= 1e-12 * expected);
                if (threads == 1) one = sum;
                assert_true(sum == one); /* whatever the number of threads */
                dev->backend->close(dev);
            }
        }
    }
    test_free(f);
}

/* ---- opening, memory ---- */

static void memory_is_zeroed(void **state) {
    (void)state;
    fth_device *dev;
    assert_ok(fth_backend_cpu()->open(fth_backend_cpu(), FTH_FP32, 2, &dev));
    static const int64_t sizes[] = {1, 100, 4096, (1 << 20) + 5, (9 << 20) + 1};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *data;
        assert_ok(dev->backend->alloc(dev, sizes[s], (void **)&data));
        assert_int_equal((uintptr_t)data % 64, 0);
        for (int64_t i = 0; i < sizes[s]; i++)
            if (data[i]) fail_msg("byte %lld of %lld is not 0", (long long)i, (long long)sizes[s]);
        for (int64_t i = 0; i < sizes[s]; i++) data[i] = 1;
        assert_ok(dev->backend->zero(dev, data, sizes[s]));
        for (int64_t i = 0; i < sizes[s]; i++)
            if (data[i]) fail_msg("byte %lld of %lld is not 0", (long long)i, (long long)sizes[s]);
        dev->backend->release(dev, data);
    }
    int64_t free_bytes, total_bytes;
    assert_ok(dev->backend->memory(dev, &free_bytes, &total_bytes));
    assert_true(free_bytes > 0 && free_bytes <= total_bytes);
    dev->backend->close(dev);
}

static void wrong_wishes_are_refused(void **state) {
    (void)state;
    fth_device *dev;
    assert_int_equal(fth_cpu_open_isa(NULL, FTH_FP32, 0, &dev), FTH_USAGE);
    assert_int_equal(fth_cpu_open_isa("sse9", FTH_FP32, 1, &dev), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "sse9"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_agrees_with_ref), cmocka_unit_test(bf16_agrees_with_ref),
        cmocka_unit_test(adam_agrees_with_ref), cmocka_unit_test(sums_of_squares),
        cmocka_unit_test(memory_is_zeroed),     cmocka_unit_test(wrong_wishes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
