/* failure_report.c: goes back through the rows of telemetry to the first sub-layer with a symptom,
 * gathers the evidence that advice is given on, and writes diverged.json. */
#include "run/failure_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/median.h"

static const char *const stack_names[] = {"encoder", "decoder"};

const char *fth_symptom_text(fth_symptom s) {
    static const char *const texts[] = {
        "a number is not finite",
        "an update moved the parameters by more than half of their size",
        "the gradient is 30 times its median so far",
        "the branch is 30 times its median so far, against the residual",
        "fewer than 1 in 100 activations is not 0",
        "attention looks at a single position",
        "nothing",
    };
    return texts[s];
}

void fth_place_text(const fth_place *p, char *text, size_t size) {
    static const char *const subs[] = {"self-attention", "cross-attention", "feed-forward",
                                       "layer"};
    snprintf(text, size, "%s of %s layer %d", subs[p->sub], stack_names[p->stack], p->layer + 1);
}

fth_place fth_sublayer_place(const fth_config *c, int32_t sublayer) {
    int32_t below = fth_sublayers(c, FTH_ENCODER);
    fth_stack stack = sublayer < below ? FTH_ENCODER : FTH_DECODER;
    int32_t at = stack == FTH_ENCODER ? sublayer : sublayer - below;
    int32_t each = stack == FTH_DECODER && c->arch == FTH_ENCDEC ? 3 : 2, within = at % each;
    fth_sub sub = within == each - 1 ? FTH_FFN : (fth_sub)within;
    return (fth_place){stack, sub, at / each};
}

/* ---- the first fault ---- */

static double value_at(const fth_telemetry *w, int32_t age, fth_quantity q, int32_t sub) {
    int32_t n = fth_telemetry_sublayers(w);
    return (double)fth_telemetry_row_at(w, age)->value[(int32_t)q * n + sub];
}

/* Median of the rows before the one of that age. */
static double usual(const fth_telemetry *w, int32_t age, fth_quantity q, int32_t sub) {
    double before[FTH_TELEMETRY_ROWS] = {0};
    int32_t n = 0;
    for (int32_t i = age + 1; i < fth_telemetry_rows(w); i++) before[n++] = value_at(w, i, q, sub);
    return n < 3 ? NAN : fth_median(before, n);
}

/* Does the finite number of one quantity show something? */
static fth_symptom symptom_of(const fth_telemetry *w, int32_t age, fth_quantity q, int32_t sub,
                              double *normal) {
    double x = value_at(w, age, q, sub);
    *normal = NAN;
    switch (q) {
    case FTH_Q_UPDATE_RATIO: return x > 0.5 ? FTH_SYMPTOM_UPDATE : FTH_NO_SYMPTOM;
    case FTH_Q_GRAD_NORM:
    case FTH_Q_OUTPUT_GRAD_NORM:
        *normal = usual(w, age, q, sub);
        return x > 30 * *normal && x > 1e-3 ? FTH_SYMPTOM_JUMP : FTH_NO_SYMPTOM;
    case FTH_Q_BRANCH_RATIO:
        *normal = usual(w, age, q, sub);
        return x > 30 * *normal && x > 1 ? FTH_SYMPTOM_GROWTH : FTH_NO_SYMPTOM;
    case FTH_Q_FFN_NONZERO: return x < 0.01 ? FTH_SYMPTOM_DEAD : FTH_NO_SYMPTOM;
    case FTH_Q_ENTROPY:
        *normal = usual(w, age, q, sub);
        return *normal > 0.2 && x < 0.02 ? FTH_SYMPTOM_SHARP : FTH_NO_SYMPTOM;
    default: return FTH_NO_SYMPTOM;
    }
}

static bool is_bad(const fth_telemetry *w, int32_t age, int q, int32_t sub) {
    return fth_telemetry_has(w, (fth_quantity)q, sub) &&
           !isfinite(value_at(w, age, (fth_quantity)q, sub));
}

/* The first number of a row that is not finite, in the order in which an update makes them: values
 * from the bottom up, their gradients from the top down, then what concerns parameters. */
static bool find_nonfinite(const fth_telemetry *w, int32_t age, fth_first_fault *f) {
    static const fth_quantity forward[] = {FTH_Q_LN_INPUT_NORM, FTH_Q_ENTROPY, FTH_Q_FFN_NONZERO,
                                           FTH_Q_BRANCH_RATIO, FTH_Q_COSINE};
    int32_t n = fth_telemetry_sublayers(w);
    for (f->sublayer = 0; f->sublayer < n; f->sublayer++)
        for (size_t k = 0; k < sizeof forward / sizeof *forward; k++)
            if (is_bad(w, age, f->quantity = forward[k], f->sublayer)) return true;
    f->quantity = FTH_Q_OUTPUT_GRAD_NORM;
    for (f->sublayer = n - 1; f->sublayer >= 0; f->sublayer--)
        if (is_bad(w, age, f->quantity, f->sublayer)) return true;
    for (f->sublayer = 0; f->sublayer < n; f->sublayer++)
        for (int q = 0; q < FTH_N_QUANTITIES; q++)
            if (is_bad(w, age, f->quantity = (fth_quantity)q, f->sublayer)) return true;
    return false;
}

/* The first symptom of a row whose numbers are finite, from the bottom up. */
static bool find_symptom(const fth_telemetry *w, int32_t age, fth_first_fault *f) {
    for (f->sublayer = 0; f->sublayer < fth_telemetry_sublayers(w); f->sublayer++)
        for (int q = 0; q < FTH_N_QUANTITIES; q++) {
            if (!fth_telemetry_has(w, (fth_quantity)q, f->sublayer)) continue;
            f->quantity = (fth_quantity)q;
            f->symptom = symptom_of(w, age, f->quantity, f->sublayer, &f->usual);
            if (f->symptom != FTH_NO_SYMPTOM) return true;
        }
    return false;
}

fth_first_fault fth_find_first_fault(const fth_telemetry *w) {
    for (int32_t age = fth_telemetry_rows(w) - 1; age >= 0; age--) {
        fth_first_fault f = {.symptom = FTH_SYMPTOM_NONFINITE, .usual = NAN};
        if (!find_nonfinite(w, age, &f) && !find_symptom(w, age, &f)) continue;
        f.update = fth_telemetry_row_at(w, age)->update;
        f.value = value_at(w, age, f.quantity, f.sublayer);
        return f;
    }
    return (fth_first_fault){.symptom = FTH_NO_SYMPTOM, .sublayer = -1};
}

/* ---- evidence ---- */

static double first_value(const fth_telemetry *w, fth_quantity q, int32_t sub) {
    return (double)fth_telemetry_first(w)->value[(int32_t)q * fth_telemetry_sublayers(w) + sub];
}

/* Norm of a layer's gradient in the first row. */
static double layer_norm(const fth_telemetry *w, int32_t first, int32_t each) {
    double squares = 0;
    for (int32_t i = first; i < first + each; i++) {
        double x = first_value(w, FTH_Q_GRAD_NORM, i);
        squares += x * x;
    }
    return sqrt(squares);
}

static void look_at_gradients(const fth_config *c, const fth_telemetry *w, fth_evidence *e) {
    int32_t first = 0;
    for (int stack = 0; stack < 2; stack++) {
        int32_t layers = fth_stack_layers(c, (fth_stack)stack);
        int32_t each = layers ? fth_sublayers(c, (fth_stack)stack) / layers : 0;
        double least = INFINITY, most = 0;
        for (int32_t l = 0; l < layers; l++, first += each) {
            double norm = layer_norm(w, first, each);
            least = fmin(least, norm);
            most = fmax(most, norm);
        }
        if (!(most > 0) || !isfinite(most) || least / most >= e->carried) continue;
        e->carried = least / most;
        e->layers = layers;
    }
}

/* Largest update of a sub-layer in all rows, the usual one of the newest, and how the parameters
 * have grown. */
static void look_at_updates(const fth_config *c, const fth_telemetry *w, double *sorted,
                            fth_evidence *e) {
    int32_t n = fth_telemetry_sublayers(w);
    e->update_ratio = 0;
    for (int32_t age = 0; age < fth_telemetry_rows(w); age++)
        for (int32_t i = 0; i < n; i++) {
            double x = value_at(w, age, FTH_Q_UPDATE_RATIO, i);
            if (!isfinite(x) || x <= e->update_ratio) continue;
            fth_place p = fth_sublayer_place(c, i);
            e->update_ratio = x;
            fth_place_text(&p, e->update_where, sizeof e->update_where);
        }
    for (int32_t i = 0; i < n; i++) sorted[i] = value_at(w, 0, FTH_Q_UPDATE_RATIO, i);
    e->usual_update_ratio = fth_median(sorted, n);
    for (int32_t i = 0; i < n; i++)
        sorted[i] = value_at(w, 0, FTH_Q_PARAM_NORM, i) / first_value(w, FTH_Q_PARAM_NORM, i);
    e->growth = fth_median(sorted, n);
}

/* Share of the sub-layers that have a quantity in which it is below a limit, in the newest row. */
static double share_below(const fth_telemetry *w, fth_quantity q, double limit) {
    double below = 0, all = 0;
    for (int32_t i = 0; i < fth_telemetry_sublayers(w); i++) {
        if (!fth_telemetry_has(w, q, i)) continue;
        all += 1;
        below += value_at(w, 0, q, i) < limit;
    }
    return all > 0 ? below / all : NAN;
}

static fth_err look_at_rows(const fth_config *c, const fth_telemetry *w, fth_evidence *e) {
    int32_t rows = fth_telemetry_rows(w);
    double gnorms[FTH_TELEMETRY_ROWS] = {0};
    double *sorted = calloc((size_t)fth_telemetry_sublayers(w) + 1, sizeof *sorted);
    if (!sorted) return fth_fail(FTH_NO_MEMORY, "no memory for a report");
    e->carried = 1;
    look_at_gradients(c, w, e);
    look_at_updates(c, w, sorted, e);
    free(sorted);
    for (int32_t i = 1; i < rows; i++) gnorms[i - 1] = fth_telemetry_row_at(w, i)->what.gnorm;
    e->usual_gnorm = fth_median(gnorms, rows - 1);
    if (isnan(e->gnorm)) e->gnorm = fth_telemetry_row_at(w, 0)->what.gnorm;
    if (isnan(e->encoder_cosine)) e->encoder_cosine = fth_telemetry_row_at(w, 0)->encoder_cosine;
    e->dead = share_below(w, FTH_Q_FFN_NONZERO, 0.01);
    e->sharp = share_below(w, FTH_Q_ENTROPY, 0.02);
    e->loss_middle = fth_telemetry_row_at(w, rows / 2)->what.nll;
    e->loss_last = fth_telemetry_row_at(w, 0)->what.nll;
    return FTH_OK;
}

static bool takes_option(const fth_method *m, const char *key) {
    for (const fth_option_spec *o = m->options; o && o->key; o++)
        if (strcmp(o->key, key) == 0) return true;
    return false;
}

static fth_err gather(const fth_trainer *t, const fth_telemetry *w, const fth_failure *f,
                      fth_evidence *e) {
    const fth_method_state *m = &t->model->method;
    double slots[FTH_STEP_SLOTS];
    fth_method_step(m, f->update, slots);
    *e = (fth_evidence){.kind = f->kind,
                        .update = f->update,
                        .max_update = f->max_update,
                        .warmup = t->recipe.schedule.warmup,
                        .lr = fth_schedule_lr(&t->recipe.schedule, f->update),
                        .peak_lr = t->recipe.schedule.lr,
                        .clip = t->recipe.clip,
                        .gnorm = f->gnorm,
                        .usual_gnorm = NAN,
                        .update_ratio = NAN,
                        .usual_update_ratio = NAN,
                        .growth = NAN,
                        .carried = NAN,
                        .encoder_cosine = f->encoder_cosine,
                        .dead = NAN,
                        .sharp = NAN,
                        .loss_middle = NAN,
                        .loss_last = NAN,
                        .alpha = slots[0]};
    if (t->recipe.schedule.kind == FTH_INVERSE_SQRT_NOWARMUP) e->warmup = 0;
    e->schedule = fth_method_ramp(m).updates;
    e->takes_branch_lr = takes_option(m->method, "branch_lr") &&
                         strcmp(fth_option_text(m, "branch_lr"), "full") == 0;
    return w && fth_telemetry_rows(w) > 0 ? look_at_rows(&t->model->config, w, e) : FTH_OK;
}

/* ---- writing ---- */

static void set_place(json_t *object, const fth_place *p) {
    static const char *const subs[] = {"self_attn", "encoder_attn", "ffn", "layer"};
    char text[64];
    fth_place_text(p, text, sizeof text);
    json_object_set_new(object, "stack", json_string(stack_names[p->stack]));
    json_object_set_new(object, "layer", json_integer(p->layer + 1));
    json_object_set_new(object, "sub", json_string(subs[p->sub]));
    json_object_set_new(object, "text", json_string(text));
}

static json_t *nonfinite_json(const fth_nonfinite *n) {
    if (!n || n->op < 0) return json_null();
    json_t *o = json_pack("{s:s, s:s}", "operation", fth_kind_name(n->kind), "direction",
                          n->backward ? "backward" : "forward");
    if (n->layer >= 0 && n->stack < FTH_NO_STACK) {
        fth_place place = {n->stack, n->sub, n->layer};
        set_place(o, &place);
    }
    return o;
}

static json_t *first_fault_json(const fth_trainer *t, const fth_telemetry *w) {
    if (!w || fth_telemetry_rows(w) == 0) return json_null();
    fth_first_fault f = fth_find_first_fault(w);
    if (f.symptom == FTH_NO_SYMPTOM) return json_null();
    json_t *o = json_pack("{s:I, s:s, s:s, s:o, s:o}", "update", (json_int_t)f.update, "symptom",
                          fth_symptom_text(f.symptom), "quantity", fth_quantity_name(f.quantity),
                          "value", fth_json_number(f.value), "usual",
                          isnan(f.usual) ? json_null() : fth_json_number(f.usual));
    fth_place place = fth_sublayer_place(&t->model->config, f.sublayer);
    if (o) set_place(o, &place);
    return o;
}

static json_t *row_json(const fth_telemetry *w, const fth_telemetry_row *row) {
    json_t *o = json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "update", (json_int_t)row->update, "loss",
        fth_json_number(row->what.loss), "nll_loss", fth_json_number(row->what.nll), "gnorm",
        fth_json_number(row->what.gnorm), "lr", fth_json_number(row->what.lr), "alpha",
        fth_json_number(row->what.alpha), "position_cosine", fth_json_number(row->encoder_cosine));
    for (int stack = 0; o && stack < 2; stack++) {
        json_t *values = json_object();
        for (int q = 0; q < FTH_N_QUANTITIES; q++) {
            json_t *numbers = fth_telemetry_values(w, row, (fth_quantity)q, (fth_stack)stack);
            if (json_is_null(numbers)) continue;
            json_object_set_new(values, fth_quantity_name((fth_quantity)q), numbers);
        }
        json_object_set_new(o, stack_names[stack], values);
    }
    return o;
}

static json_t *rows_json(const fth_telemetry *w) {
    json_t *rows = json_array();
    for (int32_t age = w ? fth_telemetry_rows(w) - 1 : -1; age >= 0; age--)
        json_array_append_new(rows, row_json(w, fth_telemetry_row_at(w, age)));
    return rows;
}

static void log_advice(const json_t *report, fth_log *log) {
    const json_t *advice = json_object_get(report, "advice");
    for (size_t i = 0; i < json_array_size(advice); i++)
        fth_log_info(log, "what usually helps: %s",
                     json_string_value(json_object_get(json_array_get(advice, i), "text")));
}

fth_err fth_diverge_write(const char *path, const fth_trainer *t, const fth_telemetry *w,
                          const fth_failure *f, fth_log *log) {
    const fth_config *c = &t->model->config;
    fth_evidence e;
    fth_str text = {0};
    FTH_TRY(gather(t, w, f, &e));
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:I, s:s, s:i, s:i, s:o, s:o, s:o, s:o}", "kind",
        fth_fault_name(f->kind), "rule", fth_fault_rule(f->kind), "reason", f->reason, "update",
        (json_int_t)f->update, "loss", fth_json_number(f->loss), "gnorm", fth_json_number(e.gnorm),
        "lr", fth_json_number(e.lr), "alpha", fth_json_number(e.alpha), "warmup_updates",
        (json_int_t)e.warmup, "method", c->method, "encoder_layers", c->encoder_layers,
        "decoder_layers", c->decoder_layers, "first_nonfinite", nonfinite_json(f->nonfinite),
        "first_fault", first_fault_json(t, w), "advice", fth_advice(&e), "rows", rows_json(w));
    fth_err err =
        o ? fth_json_write(o, 1, &text) : fth_fail(FTH_NO_MEMORY, "no memory for a report");
    if (err == FTH_OK) err = fth_str_add(&text, "\n", 1);
    if (err == FTH_OK) err = fth_file_write(path, text.text, text.length);
    if (err == FTH_OK) log_advice(o, log);
    fth_str_fini(&text);
    json_decref(o);
    return err;
}
