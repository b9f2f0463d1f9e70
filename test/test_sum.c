/* links: device */
/* The sum of gradients in a fixed order, on each device: the bits of adding one after the other,
 * whatever the threads, and within the bound of that against exact arithmetic, for a million
 * gradients made to cancel. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/device/device.h"
#include "base/philox.h"

enum { MANY = 8, N = 1000003 }; /* addends; elements: nothing divides it */

/* Addends of all sizes that cancel: the second half is the first with other signs, but for the last
 * bits. */
static void fill(float *x) {
    fth_rng r;
    fth_rng_init(&r, 11, 3);
    for (int64_t k = 0; k < MANY; k++)
        for (int64_t i = 0; i < N; i++) {
            const int exponent = (int)fth_rng_below(&r, 60) - 30;
            const float fresh = ldexpf((float)fth_rng_normal(&r), exponent);
            const float mirror = k < MANY / 2 ? 0 : -x[(k - MANY / 2) * N + i];
            x[k * N + i] = k < MANY / 2 ? fresh : nextafterf(mirror, fresh);
        }
}

/* Two numbers whose sum is that of a and b, exactly (Knuth). */
static void two_sum(double a, double b, double *sum, double *rest) {
    *sum = a + b;
    const double c = *sum - a;
    *rest = (a - (*sum - c)) + (b - c);
}

/* The sum of an element's addends, exact but for the last rounding, and that of their sizes. */
static void exact(const float *x, int64_t i, double *sum, double *size) {
    double high = 0, low = 0, rest;
    *size = 0;
    for (int64_t k = 0; k < MANY; k++) {
        two_sum(high, (double)x[k * N + i], &high, &rest);
        low += rest;
        *size += fabs((double)x[k * N + i]);
    }
    *sum = high + low;
}

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

/* All at once, and in two rounds of unequal length as ranks have them. */
static void add_on(fth_device *dev, const void *x, int first, void *sum) {
    const char *rest = (const char *)x + (size_t)first * N * fth_dtype_size(dev->full);
    assert_ok(dev->backend->add_up(dev, sum, &(fth_addends){x, N, first, true}, N));
    if (first < MANY)
        assert_ok(dev->backend->add_up(dev, sum, &(fth_addends){rest, N, MANY - first, false}, N));
}

static void sums_are_in_order(void **state) {
    (void)state;
    float *x = malloc(sizeof *x * MANY * N), *expected = malloc(sizeof *x * N), *sum;
    void *data;
    fill(x);
    for (int64_t i = 0; i < N; i++) {
        double true_sum, size;
        float s = x[i];
        for (int64_t k = 1; k < MANY; k++) s += x[k * N + i];
        expected[i] = s;
        exact(x, i, &true_sum, &size);
        if (!(fabs((double)s - true_sum) <= (MANY - 1) * 0x1p-24 * size))
            fail_msg("element %lld: %.9g is not near %.17g", (long long)i, (double)s, true_sum);
    }
    for (int threads = 1; threads <= 3; threads++) {
        fth_device *dev;
        assert_ok(fth_device_open("cpu", "fp32", threads, &dev));
        assert_ok(dev->backend->alloc(dev, (int64_t)sizeof *x * N, &data));
        sum = data;
        for (int first = 1; first <= MANY; first += 3) {
            add_on(dev, x, first, sum);
            assert_memory_equal(sum, expected, sizeof *x * N);
        }
        dev->backend->release(dev, data);
        fth_device_close(dev);
    }
    free(x);
    free(expected);
}

/* Sums of squares by pieces do not depend on which pieces are asked for. */
static void pieces_stand_alone(void **state) {
    (void)state;
    enum { PIECE = 4096, PIECES = (N + PIECE - 1) / PIECE, HALF = PIECES / 2 };
    static const char *const names[] = {"cpu", "ref"};
    float *x = malloc(sizeof *x * MANY * N);
    double *wide = malloc(sizeof *wide * N);
    fill(x);
    for (int64_t i = 0; i < N; i++) wide[i] = (double)x[i];
    for (int d = 0; d < 2; d++) {
        fth_device *dev;
        static double all[PIECES], part[PIECES];
        assert_ok(fth_device_open(names[d], "fp32", 2, &dev));
        const char *data = dev->full == FTH_F32 ? (const char *)x : (const char *)wide;
        const size_t cut = (size_t)HALF * PIECE;
        assert_ok(dev->backend->square_sums(dev, data, N, PIECE, all));
        assert_ok(dev->backend->square_sums(dev, data, (int64_t)cut, PIECE, part));
        assert_ok(dev->backend->square_sums(dev, data + cut * fth_dtype_size(dev->full),
                                            N - (int64_t)cut, PIECE, part + HALF));
        assert_memory_equal(all, part, sizeof all);
        fth_device_close(dev);
    }
    free(x);
    free(wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_in_order),
                                       cmocka_unit_test(pieces_stand_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
