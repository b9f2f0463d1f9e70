/* links: harness cpu ref */
/* Work of the cpu device on flat arenas, against ref: Adam, sums of squares. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "close.h"
#include "cpu_paths.h"
#include "op_harness.h"

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
        if (!is_close((double)got[i], expected[i], tolerance * (fabs(expected[i]) + 0.1)))
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
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_PRECISION_FP32, 1, &ref));
    const fth_adam_range ranges[] = {{0, 16, 0, 1}, {16, 5001, 16, 0.25f}, {9000, N, 5008, 1}};
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
            const fth_arenas a = {N, f->p, f->p, f->grad, f->m, f->v, N};
            const fth_arenas b = {N,     f->fp, bf16 ? (void *)f->weights : f->fp, f->fgrad, f->fm,
                                  f->fv, N};
            assert_ok(ref->backend->adam(ref, &a, &args));
            assert_ok(
                fth_cpu_open_isa(isas[i], bf16 ? FTH_PRECISION_BF16 : FTH_PRECISION_FP32, 2, &dev));
            assert_ok(dev->backend->refresh_weights(dev, &b));
            assert_ok(dev->backend->adam(dev, &b, &args));
            assert_near(f->fp, f->p, 1e-6);
            assert_near(f->fm, f->m, 1e-6);
            assert_near(f->fv, f->v, 1e-6);
            for (int k = 0; k < N && bf16; k++) { /* also where no range is */
                const uint32_t bits = (uint32_t)f->weights[k] << 16;
                float w;
                memcpy(&w, &bits, sizeof w);
                if (!is_close(w, f->fp[k], fabsf(f->fp[k]) / 256))
                    fail_msg("weight %d is %.9g, not %.9g", k, (double)w, (double)f->fp[k]);
            }
            dev->backend->close(dev);
            test_free(f);
        }
    ref->backend->close(ref);
}

/* What is taken from parameters that are 0, by roots of all sizes; the same bits with any number of
 * threads. */
static void steps_of_adam(void **state) {
    (void)state;
    fth_device *ref, *dev;
    fth_rng r;
    fth_rng_init(&r, 6, 0);
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_PRECISION_FP32, 1, &ref));
    const fth_adam_range ranges[] = {{0, 5001, 0, 1}, {5001, N, 5001, 1}};
    const fth_adam args = {.update = 3,
                           .lr = 1,
                           .beta1 = 0.9,
                           .beta2 = 0.98,
                           .eps = 1e-8,
                           .grad_scale = 1,
                           .range = ranges,
                           .n_ranges = 2};
    flat *f = new_flat();
    float *p = test_malloc(sizeof *p * N), *first = test_malloc(sizeof *first * N);
    for (int i = 0; i < N; i++) {
        f->v[i] = f->fv[i] =
            (float)ldexp(1 + fth_rng_uniform(&r), (int)fth_rng_below(&r, 250) - 126);
        f->p[i] = f->grad[i] = f->fgrad[i] = 0;
        f->m[i] = f->fm[i];
    }
    f->v[9] = f->fv[9] = 0;
    assert_ok(ref->backend->adam(ref, &(fth_arenas){N, f->p, f->p, f->grad, f->m, f->v, N}, &args));
    for (int i = 0; i < N_ISAS; i++)
        for (int threads = 1; threads <= 3 && has(isas[i]); threads++) {
            flat *g = new_flat();
            memcpy(g->fv, f->fv, sizeof g->fv);
            memset(p, 0, sizeof *p * N);
            assert_ok(fth_cpu_open_isa(isas[i], FTH_PRECISION_FP32, threads, &dev));
            assert_ok(
                dev->backend->adam(dev, &(fth_arenas){N, p, p, f->fgrad, g->fm, g->fv, N}, &args));
            for (int k = 0; k < N; k++)
                if (!is_close((double)p[k], f->p[k], 1e-6 * fabs(f->p[k])))
                    fail_msg("%s: step %d is %.9g, not %.9g", isas[i], k, (double)p[k], f->p[k]);
            if (threads == 1) memcpy(first, p, sizeof *p * N);
            assert_memory_equal(p, first, sizeof *p * N);
            dev->backend->close(dev);
            test_free(g);
        }
    test_free(p);
    test_free(first);
    test_free(f);
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
                assert_ok(fth_cpu_open_isa(isas[i], FTH_PRECISION_FP32, threads, &dev));
                assert_ok(dev->backend->sum_squares(dev, f->fgrad, sizes[s], &sum));
                assert_close(sum, expected, 1e-12 * expected);
                if (threads == 1) one = sum;
                assert_true(sum == one); /* whatever the number of threads */
                dev->backend->close(dev);
            }
        }
    }
    test_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_agrees_with_ref),
        cmocka_unit_test(steps_of_adam),
        cmocka_unit_test(sums_of_squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
