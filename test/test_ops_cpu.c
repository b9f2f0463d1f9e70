/* links: harness cpu ref */
/* Device cpu against ref: every kind and case, every instruction set that this machine has, one to
 * three threads, both precisions; and how a device is opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/cpu/tile/unit.h"
#include "cpu_paths.h"
#include "op_harness.h"

/* A device of a list. */
typedef struct entry {
    const char *isa;
    int threads;
    bool large; /* large shapes too */
} entry;

/* A case of attention with another shape; false: it is no such case, or has come with another
 * one. */
static bool with_shape(fth_op_case *c, const fth_shape *shape) {
    static const char name[] = "attention";
    char *end = strstr(c->name, " / ");
    if (strncmp(c->name, name, sizeof name - 1) != 0 || strcmp(end, " / one token") != 0)
        return false;
    snprintf(end, sizeof c->name - (size_t)(end - c->name), " / %s", shape->name);
    c->shape = shape;
    return true;
}

/* Every case on all devices of a list, or, where a shape is given, attention with that; prints what
 * is wrong and returns how many. */
static int wrong_cases(const entry *list, int n, fth_precision precision, const fth_shape *shape) {
    enum { MOST = 8 };
    fth_device *ref, *dev[MOST];
    assert_true(n <= MOST);
    assert_ok(fth_backend_ref()->open(fth_backend_ref(), FTH_PRECISION_FP32, 1, &ref));
    for (int i = 0; i < n; i++)
        assert_ok(fth_cpu_open_isa(list[i].isa, precision, list[i].threads, &dev[i]));
    int wrong = 0, n_large = 0, at;
    while (n_large < n && list[n_large].large) n_large++; /* they come first */
    fth_op_case c;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (shape && !with_shape(&c, shape)) continue;
        const double tolerance = precision == FTH_PRECISION_BF16 ? 2e-2 : 2e-5;
        const int m = c.shape->large ? n_large : n;
        if (!m || fth_harness_compare_all(ref, dev, m, &c, tolerance, FTH_TAIL_KEPT, &at) == FTH_OK)
            continue;
        print_error("%s, %d threads: %s\n", list[at].isa, list[at].threads, fth_error_message());
        wrong++;
    }
    for (int i = 0; i < n; i++) dev[i]->backend->close(dev[i]);
    ref->backend->close(ref);
    return wrong;
}

/* Two threads and all shapes on every instruction set, one and three on the last that is there. */
static void kernels_agree_with_ref(fth_precision precision) {
    entry list[N_ISAS + 2];
    int n = 0;
    for (int i = 0; i < N_ISAS; i++)
        if (has(isas[i])) list[n++] = (entry){isas[i], 2, true};
    const char *last = list[n - 1].isa;
    list[n++] = (entry){last, 1, false};
    list[n++] = (entry){last, 3, false};
    assert_int_equal(wrong_cases(list, n, precision, NULL), 0);
}

static void fp32_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_PRECISION_FP32);
}

static void bf16_agrees_with_ref(void **state) {
    (void)state;
    kernels_agree_with_ref(FTH_PRECISION_BF16);
}

static int list_units(entry list[N_UNITS]) {
    int n = 0;
    for (int i = 0; i < N_UNITS; i++)
        if (has(units[i])) list[n++] = (entry){units[i], 2, true};
    return n;
}

static void units_of_bf16_agree_with_ref(void **state) {
    (void)state;
    entry list[N_UNITS];
    const int n = list_units(list);
    assert_int_equal(wrong_cases(list, n, FTH_PRECISION_BF16, NULL), 0);
}

/* Sentences that fill tiles are read where they lie. */
static void attention_of_whole_tiles(void **state) {
    (void)state;
    static const fth_shape whole = {"whole tiles", 3, {32, 16, 7}, {48, 32, 16}, 128, 2, 16, 9, 0};
    entry list[N_UNITS];
    const int n = list_units(list);
    assert_int_equal(wrong_cases(list, n, FTH_PRECISION_BF16, &whole), 0);
}

/* Queries whose sentence has nothing on the other side see nothing, and give nothing. */
static void attention_without_keys(void **state) {
    (void)state;
    static const fth_shape empty = {"no keys", 3, {5, 0, 2}, {3, 4, 0}, 64, 2, 16, 9, 0};
    entry list[N_ISAS];
    int n = 0;
    for (int i = 0; i < N_ISAS; i++)
        if (has(isas[i])) list[n++] = (entry){isas[i], 2, true};
    assert_int_equal(wrong_cases(list, n, FTH_PRECISION_FP32, &empty), 0);
    assert_int_equal(wrong_cases(list, n, FTH_PRECISION_BF16, &empty), 0);
}

/* ---- opening, memory ---- */

static void memory_is_zeroed(void **state) {
    (void)state;
    fth_device *dev;
    assert_ok(fth_backend_cpu()->open(fth_backend_cpu(), FTH_PRECISION_FP32, 2, &dev));
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
    assert_int_equal(fth_cpu_open_isa(NULL, FTH_PRECISION_FP32, 0, &dev), FTH_USAGE);
    assert_int_equal(fth_cpu_open_isa("sse9", FTH_PRECISION_FP32, 1, &dev), FTH_USAGE);
    assert_non_null(strstr(fth_error_message(), "sse9"));
}

/* Vectors of pairs are taken where they are faster than floats, and only there. */
static void the_faster_unit_is_chosen(void **state) {
    (void)state;
    fth_cpu_choice best;
    assert_ok(fth_cpu_choose(NULL, FTH_PRECISION_BF16, &best));
    if (!fth_cpu_unit_present(FTH_UNIT_AVX512)) {
        assert_null(best.pairs);
        return;
    }
    assert_true(fth_cpu_unit_outruns(FTH_UNIT_AVX512, FTH_UNIT_PLAIN));
    assert_false(fth_cpu_unit_outruns(FTH_UNIT_PLAIN, FTH_UNIT_AVX512));
    const bool pay =
        fth_cpu_unit_present(FTH_UNIT_BF16) && fth_cpu_unit_outruns(FTH_UNIT_BF16, FTH_UNIT_AVX512);
    if (fth_cpu_unit_present(FTH_UNIT_AMX))
        assert_string_equal(best.pairs->name, "amx");
    else if (pay)
        assert_string_equal(best.pairs->name, "avx512-bf16");
    else
        assert_null(best.pairs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_agrees_with_ref),         cmocka_unit_test(bf16_agrees_with_ref),
        cmocka_unit_test(units_of_bf16_agree_with_ref), cmocka_unit_test(attention_of_whole_tiles),
        cmocka_unit_test(attention_without_keys),       cmocka_unit_test(memory_is_zeroed),
        cmocka_unit_test(wrong_wishes_are_refused),     cmocka_unit_test(the_faster_unit_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
