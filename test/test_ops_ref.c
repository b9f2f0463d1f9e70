/* links: harness ref */
/* The oracle's kernels against finite differences; every kind has its cases; and the harness finds
 * kernels that are wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/ref/ref.h"
#include "op_harness.h"

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

/* A device over ref's memory with another table or other dtypes. */
static fth_device device(const fth_backend *backend, fth_dtype real, fth_dtype full) {
    return (fth_device){backend, FTH_PRECISION_FP32, 1, real, full, NULL};
}

static void gradients_match_differences(void **state) {
    (void)state;
    fth_device ref = device(fth_backend_ref(), FTH_F64, FTH_F64);
    fth_op_case c;
    int wrong = 0;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (c.shape->large || fth_harness_gradient(&ref, &c) == FTH_OK) continue;
        print_error("%s\n", fth_error_message());
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Which kinds are in a case, and which in one whose gradients are checked. */
static void every_kind_has_a_case(void **state) {
    (void)state;
    bool seen[FTH_N_KINDS] = {0}, differentiated[FTH_N_KINDS] = {0};
    fth_op_case c;
    fth_trial *t = test_malloc(sizeof *t);
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        assert_ok(fth_trial_init(t, &c));
        for (int32_t k = 0; k < t->graph.n_ops; k++) {
            seen[t->graph.op[k].kind] = true;
            if (t->n_pairs && !c.shape->large) differentiated[t->graph.op[k].kind] = true;
        }
        fth_trial_fini(t);
    }
    test_free(t);
    for (int k = 0; k < FTH_N_KINDS; k++) {
        if (!seen[k]) fail_msg("%s has no case in op_cases.c", fth_kind_name((fth_kind)k));
        /* generation, updates and watching: never differentiated */
        const bool plain = k == FTH_KIND_attention_cached || k == FTH_KIND_top ||
                           k == FTH_KIND_update || k == FTH_KIND_log_words || k == FTH_KIND_gauge ||
                           k == FTH_KIND_gauge_positions || k == FTH_KIND_gauge_entropy;
        if (!differentiated[k] && !plain)
            fail_msg("no gradient goes through %s in op_cases.c", fth_kind_name((fth_kind)k));
    }
}

/* ref's kernels on the smaller dtypes: the figures that other backends can be held to. */
static void other_dtypes_differ_by_rounding(void **state) {
    (void)state;
    static const struct {
        fth_dtype real, full;
        double tolerance;
    } rows[] = {{FTH_F64, FTH_F64, 1e-300}, {FTH_F32, FTH_F32, 1e-5}, {FTH_BF16, FTH_F32, 1e-2}};
    fth_device ref = device(fth_backend_ref(), FTH_F64, FTH_F64);
    fth_op_case c;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fth_device dev = device(fth_backend_ref(), rows[k].real, rows[k].full);
        for (size_t i = 0; fth_op_case_at(i, &c); i++)
            if (!c.shape->large)
                assert_ok(fth_harness_compare(&ref, &dev, &c, rows[k].tolerance, FTH_TAIL_KEPT));
    }
}

/* ---- wrong kernels ---- */

static fth_err right(fth_exec *ex, const fth_op *op) {
    return fth_backend_ref()->kernel[op->kind](ex, op);
}

/* An output of the operation that is made of numbers of the batch; NULL: none. */
static const fth_tensor *an_output(fth_exec *ex, const fth_op *op, fth_storage storage) {
    for (int k = 0; k < op->n_out; k++)
        if (op->out[k] && ex->graph->value[op->out[k]].storage == storage)
            return fth_arg(ex, op->out[k]);
    return NULL;
}

static fth_err wrong_sign(fth_exec *ex, const fth_op *op) {
    FTH_TRY(right(ex, op));
    const fth_tensor *y = an_output(ex, op, FTH_IN_ARENA);
    if (!y) return FTH_OK;
    for (int64_t r = 0; r < fth_rows_now(ex, y); r++)
        for (int32_t c = 0; c < y->width; c++) fth_ref_put(y, r, c, -fth_ref_get(y, r, c));
    return FTH_OK;
}

/* One element in the last row is off by a thousandth. */
static fth_err slightly_off(fth_exec *ex, const fth_op *op) {
    FTH_TRY(right(ex, op));
    const fth_tensor *y = an_output(ex, op, FTH_IN_ARENA);
    if (!y) y = an_output(ex, op, FTH_IN_GRAD);
    const int64_t last = fth_rows_now(ex, y) - 1;
    double largest = 0;
    for (int32_t c = 0; c < y->width; c++) { /* with fmax gcc 12 gives up on 64-bit ARM */
        const double size = fabs(fth_ref_get(y, last, c));
        if (size > largest) largest = size;
    }
    fth_ref_add_to(y, last, 0, 1e-3 * (largest + 1));
    return FTH_OK;
}

/* Assigns where it should add. */
static fth_err forgets_to_add(fth_exec *ex, const fth_op *op) {
    for (int k = 0; k < op->n_out; k++) {
        if (!op->out[k] || ex->graph->value[op->out[k]].storage != FTH_IN_GRAD) continue;
        const fth_tensor *g = fth_arg(ex, op->out[k]);
        for (int64_t r = 0; r < g->rows; r++)
            for (int32_t c = 0; c < g->width; c++) fth_ref_put(g, r, c, 0);
    }
    return right(ex, op);
}

/* Adds where it should assign: the poison stays. */
static fth_err adds_to_output(fth_exec *ex, const fth_op *op) {
    const fth_tensor *y = an_output(ex, op, FTH_IN_ARENA);
    const double before = y ? fth_ref_get(y, 0, 0) : 0;
    FTH_TRY(right(ex, op));
    if (y) fth_ref_add_to(y, 0, 0, before);
    return FTH_OK;
}

static fth_err writes_past_the_batch(fth_exec *ex, const fth_op *op) {
    FTH_TRY(right(ex, op));
    for (int k = 0; k < op->n_out; k++) {
        const fth_tensor *y = fth_arg(ex, op->out[k]);
        if (y && y->extent != FTH_ROWS_FIXED) fth_ref_put(y, fth_rows_now(ex, y), y->width - 1, 0);
    }
    return FTH_OK;
}

static fth_err changes_an_input(fth_exec *ex, const fth_op *op) {
    FTH_TRY(right(ex, op));
    for (int k = op->n_in - 1; k >= 0; k--)
        if (op->in[k]) {
            const fth_tensor *x = fth_arg(ex, op->in[k]);
            fth_ref_put(x, 0, 0, 2 * fth_ref_get(x, 0, 0) + 1);
            return FTH_OK;
        }
    return FTH_OK;
}

/* Whether some operation of the case has an output in the storage, of the batch's rows if asked. */
static bool has_output(const fth_op_case *c, fth_storage storage, bool of_batch) {
    fth_trial *t = test_malloc(sizeof *t);
    assert_ok(fth_trial_init(t, c));
    bool found = false;
    for (int32_t i = 0; i < t->graph.n_ops; i++)
        for (int k = 0; k < t->graph.op[i].n_out; k++) {
            const fth_value *v = &t->graph.value[t->graph.op[i].out[k]];
            found |= t->graph.op[i].out[k] && v->storage == storage &&
                     (!of_batch || v->extent != FTH_ROWS_FIXED);
        }
    fth_trial_fini(t);
    test_free(t);
    return found;
}

static void comparison_finds_wrong_kernels(void **state) {
    (void)state;
    static const struct {
        const char *name;
        fth_kernel kernel;
        fth_storage storage; /* what it needs to be wrong about */
        bool of_batch;
    } rows[] = {
        {"sign", wrong_sign, FTH_IN_ARENA, false},
        {"off", slightly_off, FTH_IN_ARENA, false},
        {"assigns", forgets_to_add, FTH_IN_GRAD, false},
        {"adds", adds_to_output, FTH_IN_ARENA, false},
        {"tail", writes_past_the_batch, FTH_IN_ARENA, true},
        {"input", changes_an_input, FTH_IN_ARENA, false},
    };
    fth_device ref = device(fth_backend_ref(), FTH_F64, FTH_F64);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fth_backend table = *fth_backend_ref();
        for (int kind = 0; kind < FTH_N_KINDS; kind++) table.kernel[kind] = rows[k].kernel;
        fth_device dev = device(&table, FTH_F64, FTH_F64);
        fth_op_case c;
        for (size_t i = 0; fth_op_case_at(i, &c); i++) {
            if (c.shape->large || c.shape->n_sent < 4) continue;
            if (!has_output(&c, rows[k].storage, rows[k].of_batch)) continue;
            if (fth_harness_compare(&ref, &dev, &c, 1e-5, FTH_TAIL_KEPT) == FTH_OK)
                fail_msg("%s: a kernel with a wrong %s passes", c.name, rows[k].name);
        }
    }
}

/* One bit of dropout of the last row is wrong. */
static fth_err flips_a_bit(fth_exec *ex, const fth_op *op) {
    FTH_TRY(right(ex, op));
    const fth_tensor *bits = op->kind == FTH_KIND_join || op->kind == FTH_KIND_join_norm
                                 ? fth_arg(ex, op->out[JOIN_KEPT])
                                 : NULL;
    const int64_t last = bits ? fth_rows_now(ex, bits) - 1 : 0;
    if (bits) ((uint8_t *)bits->data)[last * bits->ld] ^= 1;
    return FTH_OK;
}

static void comparison_finds_wrong_bits(void **state) {
    (void)state;
    fth_device ref = device(fth_backend_ref(), FTH_F64, FTH_F64);
    fth_backend table = *fth_backend_ref();
    for (int kind = 0; kind < FTH_N_KINDS; kind++) table.kernel[kind] = flips_a_bit;
    fth_device dev = device(&table, FTH_F64, FTH_F64);
    fth_op_case c;
    int found = 0;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (c.shape->n_sent == 0 || c.shape->large || !strstr(c.name, ", bits")) continue;
        if (fth_harness_compare(&ref, &dev, &c, 1e-2, FTH_TAIL_KEPT) == FTH_OK)
            fail_msg("%s: a wrong bit passes", c.name);
        found++;
    }
    assert_true(found > 0);
}

/* A backward kernel that is right but for its sign must not pass. */
static fth_err backward_sign(fth_exec *ex, const fth_op *op) {
    return op->backward ? wrong_sign(ex, op) : right(ex, op);
}

static void differences_find_wrong_signs(void **state) {
    (void)state;
    fth_backend table = *fth_backend_ref();
    for (int kind = 0; kind < FTH_N_KINDS; kind++) table.kernel[kind] = backward_sign;
    fth_device dev = device(&table, FTH_F64, FTH_F64);
    fth_op_case c;
    int found = 0;
    for (size_t i = 0; fth_op_case_at(i, &c); i++) {
        if (c.shape->large || c.shape->n_sent < 4) continue;
        fth_trial *t = test_malloc(sizeof *t);
        assert_ok(fth_trial_init(t, &c));
        bool wrong = false; /* whether an operation is run whose output is turned round */
        for (int32_t k = 0; k < t->graph.n_ops; k++)
            for (int o = 0; o < t->graph.op[k].n_out && t->graph.op[k].backward; o++)
                wrong |= t->graph.op[k].out[o] &&
                         t->graph.value[t->graph.op[k].out[o]].storage == FTH_IN_ARENA;
        fth_trial_fini(t);
        test_free(t);
        if (!wrong) continue;
        found++;
        if (fth_harness_gradient(&dev, &c) == FTH_OK) fail_msg("%s: a wrong sign passes", c.name);
    }
    assert_true(found > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(every_kind_has_a_case),
        cmocka_unit_test(other_dtypes_differ_by_rounding),
        cmocka_unit_test(comparison_finds_wrong_kernels),
        cmocka_unit_test(comparison_finds_wrong_bits),
        cmocka_unit_test(differences_find_wrong_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
