/* close.h: one meaning of "close" for all tests. A NaN is close to nothing, not even to a NaN
 * (cmocka's assert_float_equal takes it for close to everything). */
#ifndef FTH_TEST_CLOSE_H
#define FTH_TEST_CLOSE_H

#include <math.h>
#include <stdbool.h>

static inline bool is_close(double got, double expected, double tolerance) {
    return fabs(got - expected) <= tolerance;
}

#define assert_close(got, expected, tolerance)                                                     \
    do {                                                                                           \
        const double close_got = (got), close_expected = (expected), close_by = (tolerance);       \
        if (!is_close(close_got, close_expected, close_by))                                        \
            fail_msg("%s is %.17g, not within %g of %.17g", #got, close_got, close_by,             \
                     close_expected);                                                              \
    } while (0)

#endif
