/* links: modelcase */
/* Reports of failed runs: which sub-layer is named, and that every piece of advice follows from its
 * numbers and from nothing else. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model_case.h"
#include "run/failure_report.h"

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

/* ---- advice ---- */

/* A run about which nothing stands out. */
static fth_evidence quiet(fth_fault_kind kind) {
    return (fth_evidence){.kind = kind,
                          .update = 5000,
                          .max_update = 10000,
                          .warmup = 400,
                          .lr = 1e-4,
                          .peak_lr = 5e-4,
                          .gnorm = 1,
                          .usual_gnorm = 1,
                          .update_ratio = 0.01,
                          .usual_update_ratio = 1e-3,
                          .update_where = "feed-forward of decoder layer 2",
                          .growth = 1.2,
                          .carried = 0.5,
                          .layers = 18,
                          .encoder_cosine = 0.3,
                          .dead = 0,
                          .sharp = 0,
                          .loss_middle = 5,
                          .loss_last = 5,
                          .alpha = 1};
}

typedef void change(fth_evidence *e);

static void nothing(fth_evidence *e) {
    (void)e;
}
static void large_update(fth_evidence *e) {
    e->update_ratio = 0.4;
}
static void grown(fth_evidence *e) {
    e->growth = 3.5;
}
static void tiny_updates(fth_evidence *e) {
    e->usual_update_ratio = 2e-6;
}
static void tiny_of_grown(fth_evidence *e) {
    e->usual_update_ratio = 2e-6;
    e->growth = 50;
}
static void collapse_in_ramp(fth_evidence *e) {
    e->schedule = 4000;
    e->alpha = 0.4;
    e->takes_branch_lr = true;
    e->encoder_cosine = 0.997;
}
static void collapse_after_ramp(fth_evidence *e) {
    collapse_in_ramp(e);
    e->schedule = 400;
}
static void lost_gradient(fth_evidence *e) {
    e->carried = 0.012;
}
static void lost_in_few_layers(fth_evidence *e) {
    e->carried = 0.012;
    e->layers = 3;
}
static void early(fth_evidence *e) {
    e->update = 900;
}
static void without_warmup(fth_evidence *e) {
    e->warmup = 0;
}
static void gradient_jump(fth_evidence *e) {
    e->gnorm = 25;
}
static void clipped_jump(fth_evidence *e) {
    e->gnorm = 25;
    e->clip = 1;
}
static void dead_layers(fth_evidence *e) {
    e->dead = 0.5;
}
static void sharp_layers(fth_evidence *e) {
    e->sharp = 0.5;
}
static void still_falling(fth_evidence *e) {
    e->loss_last = 4.6;
}
static void not_measured(fth_evidence *e) {
    e->gnorm = e->usual_gnorm = e->update_ratio = e->usual_update_ratio = e->growth = NAN;
    e->carried = e->encoder_cosine = e->dead = e->sharp = e->loss_middle = e->loss_last = NAN;
}

static void advice_follows_from_numbers(void **state) {
    (void)state;
    static const struct {
        fth_fault_kind kind;
        change *change;
        const char *rules; /* of the advice, in order */
        const char *words; /* in the first one's text */
    } rows[] = {
        {FTH_FAULT_NONFINITE, nothing, "general", "no measured number stands out: usually"},
        {FTH_FAULT_NONFINITE, not_measured, "general,telemetry", "usually"},
        {FTH_FAULT_NONFINITE, large_update, "rate", "feed-forward of decoder layer 2 by 40 %"},
        {FTH_FAULT_UNLEARNED, grown, "growth", "3.5 times as large"},
        {FTH_FAULT_UNLEARNED, tiny_updates, "too slow", "2.0e-06 of their size"},
        {FTH_FAULT_WORSENED, tiny_updates, "general", "usually"},
        {FTH_FAULT_UNLEARNED, tiny_of_grown, "growth", "50.0 times"},
        {FTH_FAULT_COLLAPSED, collapse_in_ramp, "schedule", "branch_lr=alpha"},
        {FTH_FAULT_COLLAPSED, collapse_after_ramp, "general", "usually"},
        {FTH_FAULT_UNLEARNED, lost_gradient, "method", "0.012 of the largest, over 18 layers"},
        {FTH_FAULT_UNLEARNED, lost_in_few_layers, "general", "usually"},
        {FTH_FAULT_NONFINITE, early, "warm-up", "--warmup-updates 1600"},
        {FTH_FAULT_NONFINITE, without_warmup, "warm-up", "no warm-up"},
        {FTH_FAULT_NONFINITE, gradient_jump, "clip", "25 times its median"},
        {FTH_FAULT_NONFINITE, clipped_jump, "general", "usually"},
        {FTH_FAULT_UNLEARNED, dead_layers, "dead", "50 % of the feed-forwards"},
        {FTH_FAULT_UNLEARNED, sharp_layers, "sharp", "50 % of the attentions"},
        {FTH_FAULT_UNLEARNED, still_falling, "longer", "--max-update 40000"},
        {FTH_FAULT_WORSENED, still_falling, "general", "usually"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_evidence e = quiet(rows[i].kind);
        rows[i].change(&e);
        json_t *list = fth_advice(&e);
        char rules[200] = "";
        size_t k;
        json_t *item;
        json_array_foreach(list, k, item) {
            const char *name = json_string_value(json_object_get(item, "rule"));
            snprintf(rules + strlen(rules), sizeof rules - strlen(rules), "%s%s", k ? "," : "",
                     name);
        }
        if (strcmp(rules, rows[i].rules) != 0)
            fail_msg("row %zu: advice %s, not %s", i, rules, rows[i].rules);
        const char *text = json_string_value(json_object_get(json_array_get(list, 0), "text"));
        if (!strstr(text, rows[i].words))
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, text, rows[i].words);
        json_decref(list);
    }
}

/* ---- which sub-layer ---- */

static const fth_trainer_spec size = {.src_tokens = 9, .tgt_tokens = 8, .max_len = 9};

/* Multiplies every element of a parameter. */
static void scale_parameter(model_case *m, const char *name, float factor) {
    int32_t i = fth_params_find(&m->model.params, name);
    assert_true(i >= 0);
    const fth_param *p = &m->model.params.param[i];
    for (int64_t k = 0; k < fth_param_size(p); k++) m->flat[p->offset + k] *= factor;
    assert_ok(fth_arenas_load(m->device, &m->trainer.arenas, m->flat));
}

static void nonfinite_values_are_found_where_they_begin(void **state) {
    (void)state;
    static const struct {
        const char *parameter, *where;
    } rows[] = {
        {"encoder.layers.0.self_attn.k_proj.weight",
         "self-attention of encoder layer 1 (linear, forward)"},
        {"encoder.layers.1.fc2.bias", "feed-forward of encoder layer 2 (linear, forward)"},
        {"decoder.layers.0.encoder_attn.q_proj.weight",
         "cross-attention of decoder layer 1 (linear, forward)"},
        {"decoder.layers.1.final_layer_norm.weight",
         "feed-forward of decoder layer 2 (join_norm, forward)"},
        {"embed_tokens.weight", "embed (forward)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_config c = model_case_config("postln", FTH_ENCDEC);
        model_case m;
        fth_nonfinite first;
        char where[160];
        model_case_init(&m, &c, "cpu", 1, 0.05, 0);
        scale_parameter(&m, rows[i].parameter, NAN);
        assert_ok(fth_health_first_nonfinite(&m.trainer, 1, &m.store.batch, &first));
        fth_nonfinite_text(&first, where, sizeof where);
        assert_string_equal(where, rows[i].where);
        model_case_fini(&m);
    }
}

/* Rows of a healthy training, then one after a parameter was changed. */
static void first_faults_are_found(void **state) {
    (void)state;
    static const struct {
        const char *parameter;
        float factor;
        fth_symptom symptom;
        const char *where;
    } rows[] = {
        {"decoder.layers.1.fc1.weight", 1, FTH_NO_SYMPTOM, ""},
        {"decoder.layers.1.fc2.weight", 1e4f, FTH_SYMPTOM_GROWTH,
         "feed-forward of decoder layer 2"},
        {"decoder.layers.1.encoder_attn.q_proj.weight", 1e5f, FTH_SYMPTOM_SHARP,
         "cross-attention of decoder layer 2"},
        {"encoder.layers.1.fc1.weight", NAN, FTH_SYMPTOM_NONFINITE,
         "feed-forward of encoder layer 2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth_config c = model_case_config("preln", FTH_ENCDEC);
        model_case m;
        fth_telemetry *w;
        fth_update u;
        model_case_init(&m, &c, "cpu", 1, 0.05, 0);
        m.trainer.recipe.schedule.lr = 0; /* nothing changes but what the row says */
        assert_ok(fth_telemetry_new(&m.trainer, &size, &w));
        const fth_batch *batch = &m.store.batch;
        for (int64_t t = 1; t <= 4; t++) assert_ok(fth_telemetry_update(w, t, &batch, 1, &u));
        scale_parameter(&m, rows[i].parameter, rows[i].factor);
        assert_ok(fth_telemetry_update(w, 5, &batch, 1, &u));
        fth_first_fault f = fth_find_first_fault(w);
        /* changed parameters below change gradients above: the symptom asked for is the first */
        char where[64] = "";
        if (f.symptom != FTH_NO_SYMPTOM) {
            fth_place p = fth_sublayer_place(&m.model.config, f.sublayer);
            fth_place_text(&p, where, sizeof where);
            assert_int_equal(f.update, 5);
        }
        if (f.symptom != rows[i].symptom || strcmp(where, rows[i].where) != 0)
            fail_msg("%s: found \"%s\" in %s (%s %g, usual %g)", rows[i].parameter,
                     fth_symptom_text(f.symptom), where, fth_quantity_name(f.quantity), f.value,
                     f.usual);
        fth_telemetry_free(w);
        model_case_fini(&m);
    }
}

/* ---- the file ---- */

static void reports_are_complete(void **state) {
    (void)state;
    char path[] = "/tmp/fathom-diverge-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    fth_config c = model_case_config("preln", FTH_ENCDEC);
    model_case m;
    fth_telemetry *w;
    fth_update u;
    model_case_init(&m, &c, "cpu", 1, 0.05, 0);
    assert_ok(fth_telemetry_new(&m.trainer, &size, &w));
    const fth_batch *batch = &m.store.batch;
    for (int64_t t = 1; t <= 3; t++) assert_ok(fth_telemetry_update(w, t, &batch, 1, &u));
    scale_parameter(&m, "decoder.layers.0.fc2.weight", NAN);
    fth_nonfinite first;
    assert_ok(fth_health_first_nonfinite(&m.trainer, 4, batch, &first));
    fth_failure f = {.kind = FTH_FAULT_NONFINITE,
                     .reason = "made up",
                     .update = 4,
                     .max_update = 100,
                     .loss = NAN,
                     .gnorm = NAN,
                     .encoder_cosine = NAN,
                     .nonfinite = &first};
    for (int rows = 0; rows < 2; rows++) { /* without telemetry, and with it */
        json_t *report;
        assert_ok(fth_diverge_write(path, &m.trainer, rows ? w : NULL, &f, NULL));
        assert_ok(fth_json_load(path, &report));
        const json_t *at = json_object_get(report, "first_nonfinite");
        assert_string_equal(json_string_value(json_object_get(at, "stack")), "decoder");
        assert_int_equal(json_integer_value(json_object_get(at, "layer")), 1);
        assert_string_equal(json_string_value(json_object_get(at, "sub")), "ffn");
        assert_string_equal(json_string_value(json_object_get(report, "kind")), "nonfinite");
        assert_true(json_array_size(json_object_get(report, "advice")) > 0);
        const json_t *list = json_object_get(report, "rows");
        assert_int_equal(json_array_size(list), rows * 3);
        if (rows) {
            const json_t *decoder = json_object_get(json_array_get(list, 2), "decoder");
            for (int q = 0; q < FTH_N_QUANTITIES; q++)
                assert_int_equal(
                    json_array_size(json_object_get(decoder, fth_quantity_name((fth_quantity)q))),
                    6);
            const json_t *shares = json_object_get(decoder, "ffn_nonzero");
            assert_true(json_is_null(json_array_get(shares, 0)));
            assert_true(json_is_number(json_array_get(shares, 2)));
        }
        json_decref(report);
    }
    unlink(path);
    fth_telemetry_free(w);
    model_case_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_follows_from_numbers),
        cmocka_unit_test(nonfinite_values_are_found_where_they_begin),
        cmocka_unit_test(first_faults_are_found),
        cmocka_unit_test(reports_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
