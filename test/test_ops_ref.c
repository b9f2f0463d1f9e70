/* links: harness ref */
/* The oracle's kernels against finite differences, and the harness against wrong kernels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/ref/ref.h"
#include "op_harness.h"

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

static fth_device *open_ref(void) {
    fth_device *dev = NULL;
    assert_ok(fth_harness_open(fth_backend_ref(), FTH_FP32, 1, &dev));
    return dev;
}

static void gradients_match_differences(void **state) {
    (void)state;
    fth_device *dev = open_ref();
    fth_op_case c;
    int wrong = 0;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (c.shape->large) continue;
        if (fth_harness_gradient(dev, &c) == FTH_OK) continue;
        print_error("%s\n", fth_error_message());
        wrong++;
    }
    dev->backend->close(dev);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
