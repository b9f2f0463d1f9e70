/* links: modelcase run */
/* The engine: places that never collide, recomputation to the bit, budgets, bits of dropout that
 * are kept, no allocation inside an update, packed sentences as if alone, micro-batches as one
 * batch, gradients of bf16 near those of ref. */
#include <malloc.h>
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
#include "graph/op.h"
#include "model/least_size.h"
#include "model_case.h"
#include "train/sum.h"

/* ---- counting allocations (not under sanitizers, which have their own allocator) ---- */

#ifndef __SANITIZE_ADDRESS__
static volatile int counting, allocations;
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void *malloc(size_t n) {
    if (counting) allocations++;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
    if (counting) allocations++;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n) {
    if (counting) allocations++;
    return __libc_realloc(p, n);
}

static void no_allocation_on(const char *device) {
    fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
    c.dropout = 0.1;
    model_case m;
    model_case_init(&m, &c, device, 2, 0, 0);
    allocations = 0;
    const fth_batch *batch = &m.store.batch;
    fth_update u;
    for (int t = 1; t <= 6; t++) {
        counting = t > 2; /* the first ones may start threads */
        assert_int_equal(fth_trainer_update(&m.trainer, t, &batch, 1, &u), FTH_OK);
        counting = 0;
    }
    assert_int_equal(allocations, 0);
    free(malloc(1)); /* the counter itself works */
    counting = 1;
    free(malloc(1));
    counting = 0;
    assert_int_equal(allocations, 1);
    model_case_fini(&m);
}

static void no_allocation_inside_updates(void **state) {
    (void)state;
    no_allocation_on("cpu");
    no_allocation_on("cpu-bf16");
}
#endif

/* ---- plan ---- */

typedef struct interval {
    int64_t from, to;    /* bytes */
    int32_t first, last; /* operations */
    fth_val v;
} interval;

static bool touches(const fth_graph *g, fth_val operand, fth_val v) {
    return operand && (operand == v || g->value[operand].base == v);
}

/* Operations that touch a value, views counted for their base; those that run aside may still be
 * reading `lag` operations later, and a join may make the product that it reads. */
static void life_of(const fth_graph *g, fth_val v, const fth_plan_spec *spec, int32_t *first,
                    int32_t *last) {
    *first = *last = -1;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        const int32_t product = spec->joined ? fth_joined_product(g, i) : -1;
        bool touched = product >= 0 && touches(g, g->op[product].in[0], v);
        for (int k = 0; k < op->n_in; k++) touched |= touches(g, op->in[k], v);
        for (int k = 0; k < op->n_out; k++) touched |= touches(g, op->out[k], v);
        if (!touched) continue;
        if (*first < 0) *first = i;
        const int32_t end = i + (fth_is_deferrable(op) ? spec->lag : 0);
        if (end > *last) *last = end;
    }
    if (g->value[v].keep) *last = g->n_ops;
}

/* A value may take the place of an input only in the operation where that input ends. */
static void check_places(const fth_graph *g, const fth_plan *plan, const fth_plan_spec *spec) {
    interval *all = malloc(sizeof *all * (size_t)g->n_values);
    int n = 0;
    for (fth_val v = 1; v < g->n_values; v++) {
        interval x = {.v = v};
        if (g->value[v].base || g->value[v].storage != FTH_IN_ARENA) continue;
        life_of(g, v, spec, &x.first, &x.last);
        if (x.first < 0) continue;
        x.from = plan->offset[v];
        x.to = x.from + fth_value_bytes(g, spec, v);
        assert_true(x.from >= 0 && x.to <= plan->bytes);
        all[n++] = x;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            bool space = all[i].from < all[j].to && all[j].from < all[i].to;
            bool time = all[i].first < all[j].last && all[j].first < all[i].last;
            if (space && time) fail_msg("values %d and %d share a place", all[i].v, all[j].v);
        }
    free(all);
}

/* Operations that were put elsewhere are known at their new places. */
static void check_producers(const fth_graph *g) {
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int k = 0; k < g->op[i].n_out; k++) {
            const fth_val v = g->op[i].out[k];
            if (!v || g->value[v].storage != FTH_IN_ARENA) continue;
            const fth_op *maker = &g->op[g->value[v].producer];
            bool makes = false;
            for (int j = 0; j < maker->n_out; j++) makes |= maker->out[j] == v;
            assert_true(makes);
        }
}

static fth_plan_spec plan_spec(void) {
    fth_plan_spec spec = {.real_size = 4, .full_size = 4};
    fth_trainer_spec size = {.src_tokens = 9, .tgt_tokens = 8, .max_len = 9};
    fth_capacities(&size, spec.capacity);
    return spec;
}

static void places_do_not_collide(void **state) {
    (void)state;
    fth_plan_spec spec = plan_spec();
    int32_t turn = 0;
    for (const fth_method *const *id = fth_methods(); *id; id++, turn++) {
        fth_config c = model_case_config((*id)->id, FTH_ENCDEC);
        fth_model m;
        fth_graph g;
        fth_outputs out;
        fth_plan plan;
        spec.lag = turn % 3 * 7; /* 0, 7 and 14: as on a device that runs nothing aside, or some */
        spec.joined = turn % 2;
        fth_graph_spec what = {.backward = true, .dropout = true, .smoothing = 0.1};
        assert_int_equal(fth_model_init(&m, &c), FTH_OK);
        assert_int_equal(fth_model_graph(&m, &what, &g, &out), FTH_OK);
        assert_int_equal(fth_plan_make(&g, &spec, &plan), FTH_OK);
        check_places(&g, &plan, &spec);
        int64_t whole = plan.bytes;
        fth_plan_fini(&plan);
        int32_t layers = 0;
        fth_err err = fth_plan_within(&g, &spec, whole * 9 / 10, &plan, &layers);
        if (err == FTH_OK) {
            assert_true(plan.bytes <= whole * 9 / 10);
            check_places(&g, &plan, &spec);
            check_producers(&g);
        }
        fth_plan_fini(&plan);
        fth_graph_fini(&g);
        fth_model_fini(&m);
    }
}

/* Both stacks add the same table of positions. */
static void constants_are_kept_once(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    fth_model m;
    fth_graph g;
    fth_outputs out;
    int constants = 0;
    assert_int_equal(fth_model_init(&m, &c), FTH_OK);
    assert_int_equal(fth_model_graph(&m, &(fth_graph_spec){0}, &g, &out), FTH_OK);
    for (fth_val v = 1; v < g.n_values; v++) constants += g.value[v].storage == FTH_IN_CONST;
    assert_int_equal(constants, 1);
    fth_graph_fini(&g);
    fth_model_fini(&m);
}

/* ---- values that are made again ---- */

static void check_savings(fth_plan_spec spec) {
    for (const fth_method *const *id = fth_methods(); *id; id++)
        for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
            fth_config c = model_case_config((*id)->id, (fth_arch)arch);
            if (arch != FTH_DEC) c.encoder_layers = 6;
            if (arch != FTH_ENC) c.decoder_layers = 6;
            fth_model m;
            fth_graph g;
            fth_outputs out;
            fth_plan before, after;
            fth_graph_spec what = {.backward = true, .dropout = true, .smoothing = 0.1};
            assert_int_equal(fth_model_init(&m, &c), FTH_OK);
            assert_int_equal(fth_model_graph(&m, &what, &g, &out), FTH_OK);
            assert_int_equal(fth_plan_make(&g, &spec, &before), FTH_OK);
            /* norms alone; some attentions too, all of them; some products too, all of them */
            const fth_recompute_counts all = fth_graph_recomputable(&g);
            const fth_recompute_counts how[] = {{0},
                                                {all.attention / 2, 0},
                                                {all.attention, 0},
                                                {all.attention, all.products / 4},
                                                all};
            fth_graph_fini(&g);
            /* where a coefficient is learned or there is no norm, norms save nothing */
            const bool saves = strstr("postln preln deepnorm branchnorm b2t", (*id)->id) != NULL;
            int64_t most = saves ? before.bytes * 9 / 10 : before.bytes;
            for (int i = 0; i < 5; i++) {
                assert_int_equal(fth_model_graph(&m, &what, &g, &out), FTH_OK);
                assert_int_equal(fth_graph_recompute_values(&g, how[i]), FTH_OK);
                assert_int_equal(fth_plan_make(&g, &spec, &after), FTH_OK);
                check_places(&g, &after, &spec);
                check_producers(&g);
                assert_true(after.bytes <= most + 256); /* a gap may be left */
                most = after.bytes;
                fth_plan_fini(&after);
                fth_graph_fini(&g);
            }
            assert_true(most <= before.bytes * (saves ? 3 : 4) / 4);
            fth_plan_fini(&before);
            fth_model_fini(&m);
        }
}

static void values_made_again_save_memory(void **state) {
    (void)state;
    fth_plan_spec spec = plan_spec();
    check_savings(spec);
    spec.joined = true;
    check_savings(spec);
}

/* ---- recomputation ---- */

/* The plan with so many per cent less of what can shrink gives the same bits as the whole. */
static void check_budget(const fth_config *c, const char *device, int percent, bool layers) {
    model_case a, b;
    model_case_init(&a, c, device, 2, 0.1, 0);
    int64_t fixed =
        fth_arenas_bytes(a.device, a.model.params.size, a.model.params.size, a.model.params.size);
    int64_t whole = fth_trainer_bytes(&a.trainer) - fixed;
    int64_t budget = fixed + whole - fth_program_arena_bytes(a.trainer.program) * percent / 100;
    model_case_init(&b, c, device, 2, 0.1, budget);
    assert_true(fth_trainer_bytes(&b.trainer) <= budget);
    assert_int_equal(fth_program_recomputed(b.trainer.program) > 0, layers);
    size_t n = (size_t)a.model.params.size;
    float *ga = malloc(sizeof *ga * n), *gb = malloc(sizeof *gb * n);
    fth_update ua = model_case_gradients(&a, 7, ga), ub = model_case_gradients(&b, 7, gb);
    assert_true(ua.loss == ub.loss && ua.gnorm == ub.gnorm);
    assert_memory_equal(ga, gb, sizeof *ga * n);
    free(ga);
    free(gb);
    model_case_fini(&a);
    model_case_fini(&b);
}

static void recompute_is_bit_identical(void **state) {
    (void)state;
    static const struct {
        const char *id;
        fth_activation act;
        int single; /* per cent that are saved by single values that are made again */
    } cases[] = {{"branchnorm", FTH_RELU, 45}, {"preln", FTH_GELU, 50},
                 {"b2t", FTH_RELU, 45},        {"dlcl-post", FTH_RELU, 35},
                 {"realformer", FTH_RELU, 25}, {"rfixup", FTH_RELU, 35}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth_config c = model_case_config(cases[i].id, FTH_ENCDEC);
        c.encoder_layers = c.decoder_layers = 16; /* activations outweigh scratch */
        c.dropout = 0.2;
        c.attention_dropout = 0.1;
        c.activation = cases[i].act;
        check_budget(&c, "cpu", 5, false);
        check_budget(&c, "cpu", cases[i].single / 2, false);
        check_budget(&c, "cpu", cases[i].single, false);
        check_budget(&c, "cpu", cases[i].single + 15, true);
        check_budget(&c, "cpu-bf16", cases[i].single / 2, false);
    }
}

/* ---- bits of dropout that joins keep for the backward ---- */

typedef struct outcome {
    fth_update update;
    float *grad;           /* [params.size] */
    size_t bytes;          /* of grad */
    int readers;           /* backward operations of joins that read bits */
    int64_t arena, budget; /* what the plan takes, what all takes */
} outcome;

/* Gradients of a case on ref, with bits or drawn again; a budget of 0 is none, else layers must be
 * recomputed in it. */
static outcome gradients_on_ref(const fth_config *c, bool bits, int64_t budget) {
    fth_backend table;
    model_case m;
    model_case_init(&m, c, "ref", 1, 0.1, 0);
    const fth_recipe recipe = m.trainer.recipe;
    const fth_trainer_spec size = {
        .src_tokens = 9, .tgt_tokens = 8, .max_len = 9, .memory_budget = budget};
    fth_trainer_fini(&m.trainer);
    table = *m.device->backend;
    table.keep_bits = bits;
    m.device->backend = &table;
    assert_int_equal(fth_trainer_init(&m.trainer, &m.model, m.device, &recipe, &size), FTH_OK);
    assert_int_equal(fth_arenas_load(m.device, &m.trainer.arenas, m.flat), FTH_OK);
    assert_int_equal(fth_program_recomputed(m.trainer.program) > 0, budget > 0);
    outcome o = {.bytes = sizeof *o.grad * (size_t)m.model.params.size,
                 .arena = fth_program_arena_bytes(m.trainer.program),
                 .budget = fth_trainer_bytes(&m.trainer)};
    const fth_graph *g = fth_program_graph(m.trainer.program);
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        if (op->kind != FTH_KIND_join_bwd && op->kind != FTH_KIND_join_norm_bwd) continue;
        o.readers += op->in[JOIN_BWD_KEPT] != 0;
    }
    o.grad = malloc(o.bytes);
    o.update = model_case_gradients(&m, 7, o.grad);
    model_case_fini(&m);
    return o;
}

/* Methods whose residual dropout is an operation of its own, because more than the sum reads it. */
static bool drops_before_a_norm(const char *id) {
    return strcmp(id, "periln") == 0 || strcmp(id, "resi-dual") == 0;
}

static void kept_bits_change_nothing(void **state) {
    (void)state;
    enum { LAYERS = 8, JOINS = 2 * LAYERS + 3 * LAYERS }; /* one for every sub-layer */
    for (const fth_method *const *id = fth_methods(); *id; id++) {
        fth_config c = model_case_config((*id)->id, FTH_ENCDEC);
        c.encoder_layers = c.decoder_layers = LAYERS;
        c.dropout = 0.2;
        const int joins = drops_before_a_norm((*id)->id) ? 0 : JOINS;
        const outcome drawn = gradients_on_ref(&c, false, 0), kept = gradients_on_ref(&c, true, 0);
        const int64_t budget = kept.budget - kept.arena * 70 / 100;
        const outcome again = gradients_on_ref(&c, true, budget);
        assert_int_equal(drawn.readers, 0);
        /* each takes a place of 256 bytes, if a gap is not large enough already */
        assert_true(kept.arena > drawn.arena - !joins && kept.arena <= drawn.arena + joins * 256);
        const outcome *with[] = {&kept, &again};
        for (int k = 0; k < 2; k++) {
            assert_int_equal(with[k]->readers, joins);
            assert_true(with[k]->update.loss == drawn.update.loss);
            assert_memory_equal(with[k]->grad, drawn.grad, drawn.bytes);
            free(with[k]->grad);
        }
        free(drawn.grad);
    }
}

static void too_small_budgets_are_refused(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    model_case a;
    model_case_init(&a, &c, "cpu", 1, 0, 0);
    int64_t fixed =
        fth_arenas_bytes(a.device, a.model.params.size, a.model.params.size, a.model.params.size);
    fth_trainer t;
    fth_trainer_spec size = {.src_tokens = 9, .tgt_tokens = 8, .max_len = 9, .memory_budget = 1};
    assert_int_equal(fth_trainer_init(&t, &a.model, a.device, &a.trainer.recipe, &size),
                     FTH_NO_MEMORY);
    assert_non_null(strstr(fth_error_message(), "--memory-budget"));
    size.memory_budget = fixed + 4096;
    assert_int_equal(fth_trainer_init(&t, &a.model, a.device, &a.trainer.recipe, &size),
                     FTH_NO_MEMORY);
    assert_non_null(strstr(fth_error_message(), "at least"));
    model_case_fini(&a);
}

/* ---- packing ---- */

/* Sentence s of the case's batch alone. */
static void alone(const model_case *m, int s, fth_batch_store *out) {
    assert_int_equal(fth_batch_store_init(out, 9, 8, 1), FTH_OK);
    for (int side = 0; side < 2; side++) {
        const fth_packed_side *p = &m->store.batch.side[side];
        int32_t first = p->offsets[s], offsets[2] = {0, p->offsets[s + 1] - first};
        assert_int_equal(fth_batch_store_fill(out, (fth_side)side, 1, offsets, p->ids + first,
                                              p->targets ? p->targets + first : NULL, 11),
                         FTH_OK);
    }
}

static void packed_on(const char *device, double loss_tolerance, double norm_tolerance) {
    for (const fth_method *const *id = fth_methods(); *id; id++) {
        fth_config c = model_case_config((*id)->id, FTH_ENCDEC);
        model_case m;
        model_case_init(&m, &c, device, 2, 0.1, 0);
        assert_int_equal(fth_sum_init(&m.trainer, 3), FTH_OK);
        fth_update whole = model_case_gradients(&m, 5, NULL), one;
        fth_batch_store parts[3];
        const fth_batch *batches[3];
        double loss = 0;
        for (int s = 0; s < 3; s++) {
            alone(&m, s, &parts[s]);
            batches[s] = &parts[s].batch;
            assert_int_equal(fth_trainer_gradients(&m.trainer, 5, &batches[s], 1, &one), FTH_OK);
            loss += one.loss * (double)one.tokens;
        }
        assert_close(loss / (double)whole.tokens, whole.loss, loss_tolerance);
        /* as micro-batches of one update: the same gradient */
        assert_int_equal(fth_trainer_gradients(&m.trainer, 5, batches, 3, &one), FTH_OK);
        assert_close(one.gnorm, whole.gnorm, norm_tolerance * whole.gnorm);
        assert_true(one.tokens == whole.tokens);
        for (int s = 0; s < 3; s++) fth_batch_store_fini(&parts[s]);
        model_case_fini(&m);
    }
}

static void packed_equals_one_by_one(void **state) {
    (void)state;
    packed_on("cpu", 1e-5, 1e-4);
    packed_on("cpu-bf16", 1e-3, 1e-2);
}

/* With dropout on, three micro-batches draw the masks of one batch. */
static void masks_do_not_depend_on_the_cut(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    c.dropout = 0.3;
    c.word_dropout = 0.2;
    c.attention_dropout = 0.2;
    model_case m;
    model_case_init(&m, &c, "ref", 1, 0.1, 0);
    assert_int_equal(fth_sum_init(&m.trainer, 3), FTH_OK);
    fth_update whole = model_case_gradients(&m, 5, NULL), cut;
    fth_batch_store parts[3];
    const fth_batch *batches[3];
    for (int s = 0; s < 3; s++) {
        alone(&m, s, &parts[s]);
        batches[s] = &parts[s].batch;
    }
    assert_int_equal(fth_trainer_gradients(&m.trainer, 5, batches, 3, &cut), FTH_OK);
    assert_close(cut.loss, whole.loss, 1e-12);
    assert_close(cut.nll, whole.nll, 1e-12);
    assert_true(whole.nll > 0.1);
    assert_close(cut.gnorm, whole.gnorm, 1e-9);
    for (int s = 0; s < 3; s++) fth_batch_store_fini(&parts[s]);
    model_case_fini(&m);
}

/* An update whose batches have other targets than were counted is none. */
static fth_err next_of_two(void *context, const fth_batch **out) {
    const fth_batch *const **at = context;
    *out = *(*at)++;
    return FTH_OK;
}

static void batches_are_those_that_were_counted(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    model_case m;
    fth_update u;
    model_case_init(&m, &c, "ref", 1, 0.1, 0);
    assert_int_equal(fth_sum_init(&m.trainer, 2), FTH_OK);
    const fth_batch *both[] = {&m.store.batch, &m.store.batch};
    const fth_batch *const *at = both;
    const int64_t each = fth_batch_targets(both[0], m.trainer.outputs.rows);
    fth_batches batches = {.n = 2, .targets = 2 * each, .next = next_of_two, .context = &at};
    assert_int_equal(fth_trainer_update_from(&m.trainer, 1, &batches, &u), FTH_OK);
    assert_int_equal(u.tokens, 2 * each);
    at = both;
    batches.targets--;
    assert_int_equal(fth_trainer_update_from(&m.trainer, 2, &batches, &u), FTH_FAILED);
    assert_non_null(strstr(fth_error_message(), "targets"));
    model_case_fini(&m);
}

/* ---- one operation after the other ---- */

static fth_err fails_third(void *context, const fth_op *op) {
    int *calls = context;
    (void)op;
    return ++*calls == 3 ? fth_fail(FTH_STOPPED, "the third") : FTH_OK;
}

static void a_visitor_ends_a_walk(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_DEC);
    model_case m;
    const fth_step step = {.loss_scale = 1};
    model_case_init(&m, &c, "ref", 1, 0.1, 0);
    for (int after = 0; after < 2; after++) {
        int calls = 0;
        assert_int_equal(fth_program_walk(m.trainer.program, &m.store.batch, &step,
                                          after ? NULL : fails_third, after ? fails_third : NULL,
                                          &calls),
                         FTH_STOPPED);
        assert_int_equal(calls, 3);
    }
    model_case_fini(&m);
}

/* ---- memory ---- */

/* Matrices begin on a line of the cache, whatever stands before them. */
static void groups_of_parameters_are_aligned(void **state) {
    (void)state;
    for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
        fth_config c = model_case_config("rezero", (fth_arch)arch);
        fth_model m;
        int64_t end = 0;
        int32_t aligned = 0;
        assert_int_equal(fth_model_init(&m, &c), FTH_OK);
        for (int32_t i = 0; i < m.params.n; i++) {
            const fth_param *p = &m.params.param[i];
            assert_true(p->offset >= end);
            assert_true(p->offset == end || p->offset % FTH_PARAM_ALIGNMENT == 0);
            aligned += p->offset > end;
            end = p->offset + fth_param_size(p);
        }
        assert_true(aligned > 0);
        assert_true(m.params.size >= end);
        fth_model_fini(&m);
    }
}

/* A model that just fits is no error, one byte less is. */
static void the_least_size_has_a_bound(void **state) {
    (void)state;
    const fth_config c = model_case_config("postln", FTH_ENCDEC);
    const int64_t n = fth_least_parameters(&c);
    assert_true(n > 100);
    assert_int_equal(fth_least_size_check(&c, 4, 10, 4 * n + 10, "here"), FTH_OK);
    assert_int_equal(fth_least_size_check(&c, 4, 10, 4 * n + 9, "here"), FTH_NO_MEMORY);
    assert_non_null(strstr(fth_error_message(), "here"));
}

static void devices_have_two_precisions(void **state) {
    (void)state;
    fth_device *d = NULL;
    assert_int_equal(fth_device_open("ref", "fp16", 1, &d), FTH_USAGE);
    assert_null(d);
    assert_non_null(strstr(fth_error_message(), "fp16: must be fp32 or bf16"));
    assert_int_equal(fth_device_open("nothing", "fp32", 1, &d), FTH_USAGE);
    assert_null(d);
}

/* What a store is said to take is what it takes, but for what malloc rounds up. */
static void a_store_takes_what_it_says(void **state) {
    (void)state;
    static const int32_t sizes[][3] = {{5000, 7000, 3000}, {0, 9000, 9000}, {9000, 2000, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int32_t *n = sizes[i];
        fth_batch_store s;
        assert_int_equal(fth_batch_store_init(&s, n[0], n[1], n[2]), FTH_OK);
        size_t taken = malloc_usable_size(s.counts) + malloc_usable_size(s.temp) +
                       malloc_usable_size(s.picked) + malloc_usable_size(s.picked_ids) +
                       malloc_usable_size(s.number_offsets) + malloc_usable_size(s.labels) +
                       malloc_usable_size(s.values);
        for (int k = 0; k < 2; k++)
            taken += malloc_usable_size(s.side[k].ids) + malloc_usable_size(s.side[k].pos) +
                     malloc_usable_size(s.side[k].targets) + malloc_usable_size(s.side[k].order) +
                     malloc_usable_size(s.side[k].sentence) + malloc_usable_size(s.side[k].offsets);
        const double said = (double)fth_batch_store_bytes(n[0], n[1], n[2]);
        assert_close(said, (double)taken, 0.01 * said);
        fth_batch_store_fini(&s);
    }
}

/* ---- determinism ---- */

static void train_some(model_case *m, int updates) {
    const fth_batch *batch = &m->store.batch;
    fth_update u;
    for (int t = 1; t <= updates; t++)
        assert_int_equal(fth_trainer_update(&m->trainer, t, &batch, 1, &u), FTH_OK);
    assert_int_equal(
        fth_arena_get(m->device, m->trainer.arenas.master, m->model.params.size, m->flat), FTH_OK);
}

static void repeats_on(const char *device, float tolerance) {
    fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
    c.dropout = 0.2;
    model_case m[3];
    for (int i = 0; i < 3; i++) {
        model_case_init(&m[i], &c, device, i < 2 ? 2 : 1, 0.1, 0);
        train_some(&m[i], 5);
    }
    size_t n = (size_t)m[0].model.params.size;
    assert_memory_equal(m[0].flat, m[1].flat, sizeof(float) * n);
    for (size_t i = 0; i < n; i++) assert_close(m[0].flat[i], m[2].flat[i], tolerance);
    for (int i = 0; i < 3; i++) model_case_fini(&m[i]);
}

static void runs_repeat_to_the_bit(void **state) {
    (void)state;
    repeats_on("cpu", 1e-3f);
    repeats_on("cpu-bf16",
               2e-2f); /* Adam moves a number by 1e-2 an update, whatever its gradient */
}

/* ---- bf16 ---- */

/* Loss and gradient of a model on a device. */
typedef struct measured {
    double loss;
    float *gradient; /* [size] */
    int64_t size;
} measured;

static measured measure_on(const char *device, const fth_config *c) {
    model_case m;
    model_case_init(&m, c, device, 2, 0.02, 0);
    measured o = {.size = m.model.params.size};
    o.gradient = malloc(sizeof(float) * (size_t)o.size);
    o.loss = model_case_gradients(&m, 100, o.gradient).loss;
    model_case_fini(&m);
    return o;
}

/* On cpu in bf16, by the products of an instruction set or, without one, the best. */
static void compare_with_ref(const char *isa, const fth_config *c, const measured *ref) {
    if (isa) setenv("FATHOM_CPU_ISA", isa, 1);
    measured o = measure_on("cpu-bf16", c);
    unsetenv("FATHOM_CPU_ISA");
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < o.size; i++) {
        difference += pow((double)o.gradient[i] - (double)ref->gradient[i], 2);
        norm += pow((double)ref->gradient[i], 2);
    }
    const double off = sqrt(difference / norm);
    if (!(off < 2e-2 && is_close(o.loss, ref->loss, 5e-3 * ref->loss)))
        fail_msg("%s, arch %d, %s: loss %g, ref has %g; the gradient is off by %g", c->method,
                 c->arch, isa ? isa : "best", o.loss, ref->loss, off);
    free(o.gradient);
}

/* Gradients of models of a usual head width; the other archs on the best instruction set only. */
static void gradients_in_bf16(void **state) {
    (void)state;
    static const char *const isas[] = {NULL, "plain", "plain-bf16", "plain-amx"};
    for (const fth_method *const *id = fth_methods(); *id; id++)
        for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
            fth_config c = model_case_config((*id)->id, (fth_arch)arch);
            c.d_model = 64;
            c.ffn_dim = 96;
            c.activation =
                FTH_GELU; /* a ReLU that opens or shuts by rounding counts too much in 8 tokens */
            c.dropout = 0.1;
            measured ref = measure_on("ref", &c);
            const size_t n = arch == FTH_ENCDEC ? sizeof isas / sizeof *isas : 1;
            for (size_t i = 0; i < n; i++) compare_with_ref(isas[i], &c, &ref);
            free(ref.gradient);
        }
}

/* A value that is not finite is found where it began. */
static void first_fault_is_named(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_ENCDEC);
    model_case m;
    model_case_init(&m, &c, "cpu", 1, 0.1, 0);
    int32_t i = fth_params_find(&m.model.params, "decoder.layers.1.fc1.weight"), at;
    m.flat[m.model.params.param[i].offset] = INFINITY;
    assert_int_equal(fth_arenas_load(m.device, &m.trainer.arenas, m.flat), FTH_OK);
    fth_step step = {.update = 1, .loss_scale = 1};
    assert_int_equal(fth_program_find_nonfinite(m.trainer.program, &m.store.batch, &step, &at),
                     FTH_OK);
    const fth_op *op = &fth_program_graph(m.trainer.program)->op[at];
    assert_true(at >= 0 && op->stack == FTH_DECODER && op->layer == 1 && op->sub == FTH_FFN);
    model_case_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(no_allocation_inside_updates),
#endif
        cmocka_unit_test(places_do_not_collide),
        cmocka_unit_test(constants_are_kept_once),
        cmocka_unit_test(values_made_again_save_memory),
        cmocka_unit_test(recompute_is_bit_identical),
        cmocka_unit_test(kept_bits_change_nothing),
        cmocka_unit_test(too_small_budgets_are_refused),
        cmocka_unit_test(packed_equals_one_by_one),
        cmocka_unit_test(masks_do_not_depend_on_the_cut),
        cmocka_unit_test(batches_are_those_that_were_counted),
        cmocka_unit_test(a_visitor_ends_a_walk),
        cmocka_unit_test(groups_of_parameters_are_aligned),
        cmocka_unit_test(a_store_takes_what_it_says),
        cmocka_unit_test(the_least_size_has_a_bound),
        cmocka_unit_test(devices_have_two_precisions),
        cmocka_unit_test(runs_repeat_to_the_bit),
        cmocka_unit_test(gradients_in_bf16),
        cmocka_unit_test(first_fault_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
