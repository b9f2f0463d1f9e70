/* telemetry.c: builds the program with gauges, runs it in place of the trainer's when a row is due,
 * and turns its sums into norms, ratios and cosines. */
#include "run/telemetry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/gauge.h"

/* What the gauges of a sub-layer write, two columns of the board each. */
enum { AT_NORM, AT_RATIO, AT_COSINE, AT_INSIDE, AT_GRADIENT, N_ENTRIES };
enum { COLUMNS = 2 * N_ENTRIES };

/* Most elements of a range of parameters that is summed up in one piece. */
enum { RANGE_ELEMENTS = 32768 };

struct fth_telemetry {
    fth_trainer *trainer;
    fth_program *program;
    fth_outputs outputs;
    fth_stand_in watcher;
    int32_t n_sub;
    bool *has; /* [FTH_N_QUANTITIES, n_sub] */
    /* The board: COLUMNS for each sub-layer, then two for the encoder's positions. */
    fth_val board;
    int32_t columns;
    double *newest, *sums;         /* [columns] of the last micro-batch, of the update */
    double rows[2];                /* by fth_side: rows of the update */
    fth_adam_range *range;         /* [n_ranges] */
    const fth_param **range_param; /* [n_ranges] whose they are */
    int32_t *range_sub;            /* [n_ranges] its sub-layer, n_sub: none */
    double *range_sums;            /* [n_ranges, FTH_RANGE_SUMS] */
    int32_t n_ranges;
    double *sub_sums; /* [n_sub + 1, FTH_RANGE_SUMS] */
    float *numbers;   /* [FTH_TELEMETRY_ROWS + 1, FTH_N_QUANTITIES, n_sub], the first row last */
    fth_telemetry_row row[FTH_TELEMETRY_ROWS], first;
    int64_t n_rows; /* ever made; row n - 1 is at (n - 1) % FTH_TELEMETRY_ROWS */
};

static const char *const quantity_names[] = {
#define QUANTITY(id, name, text) name,
#include "run/quantities.def"
#undef QUANTITY
};

const char *fth_quantity_name(fth_quantity q) {
    return quantity_names[q];
}

/* ---- sub-layers ---- */

static int32_t subs_of_layer(const fth_config *c, fth_stack stack) {
    return stack == FTH_DECODER && c->arch == FTH_ENCDEC ? 3 : 2;
}

int32_t fth_sublayers(const fth_config *c, fth_stack stack) {
    return fth_stack_layers(c, stack) * subs_of_layer(c, stack);
}

/* Number of a sub-layer of the whole model. */
static int32_t number_of(const fth_config *c, fth_stack stack, int32_t layer, fth_sub sub) {
    int32_t each = subs_of_layer(c, stack), within = sub == FTH_FFN ? each - 1 : (int32_t)sub;
    int32_t below = stack == FTH_DECODER ? fth_sublayers(c, FTH_ENCODER) : 0;
    return below + layer * each + within;
}

static void mark(fth_telemetry *w, fth_quantity q, int32_t sub) {
    w->has[(int32_t)q * w->n_sub + sub] = true;
}

bool fth_telemetry_has(const fth_telemetry *w, fth_quantity q, int32_t i) {
    return w->has[(int32_t)q * w->n_sub + i];
}

/* ---- the watching program ---- */

static fth_gauge_at place_of(const fth_telemetry *w, const fth_tap *tap, int entry, bool backward) {
    int32_t sub = number_of(&w->trainer->model->config, tap->stack, tap->layer, tap->sub);
    return (fth_gauge_at){.stack = tap->stack,
                          .sub = tap->sub,
                          .layer = tap->layer,
                          .backward = backward,
                          .board = w->board,
                          .column = sub * COLUMNS + 2 * entry};
}

/* The encoder's output: what the keys of the lowest cross-attention are made of. */
static void watch_encoder(fth_telemetry *w, fth_graph *g, const fth_tap *tap) {
    fth_val keys = g->value[tap->k].base ? g->value[tap->k].base : tap->k;
    fth_gauge_at at = {.stack = FTH_ENCODER,
                       .sub = FTH_NO_SUB,
                       .layer = -1,
                       .board = w->board,
                       .column = w->n_sub * COLUMNS};
    fth_gauge_positions(g, &at, g->op[g->value[keys].producer].in[LINEAR_X], FTH_SRC);
}

/* A sub-layer's forward is complete. */
static void watch_sublayer(void *context, fth_builder *b, const fth_tap *tap) {
    fth_telemetry *w = context;
    fth_graph *g = b->graph;
    const fth_config *c = &w->trainer->model->config;
    if (!w->board) w->board = fth_gauge_board(g, w->columns);
    if (g->err != FTH_OK) return;
    int32_t sub = number_of(c, tap->stack, tap->layer, tap->sub);
    fth_gauge_at at = place_of(w, tap, AT_NORM, false);
    fth_gauge_norm(g, &at, tap->z);
    if (tap->z) mark(w, FTH_Q_LN_INPUT_NORM, sub);
    at = place_of(w, tap, AT_RATIO, false);
    fth_gauge_ratio(g, &at, tap->x, tap->f, tap->y);
    mark(w, FTH_Q_BRANCH_RATIO, sub);
    at = place_of(w, tap, AT_COSINE, false);
    fth_gauge_cosine(g, &at, tap->x, tap->y);
    mark(w, FTH_Q_COSINE, sub);
    at = place_of(w, tap, AT_INSIDE, false);
    if (tap->sub != FTH_FFN) {
        fth_gauge_entropy(g, &at, tap->lse);
        mark(w, FTH_Q_ENTROPY, sub);
    } else if (c->activation == FTH_RELU) { /* with GELU the count means nothing */
        fth_gauge_nonzero(g, &at, tap->act);
        mark(w, FTH_Q_FFN_NONZERO, sub);
    }
    if (tap->sub == FTH_CROSS && tap->layer == 0) watch_encoder(w, g, tap);
}

typedef struct building {
    fth_telemetry *w;
    const fth_taps *taps;
} building;

static void sublayer_built(void *context, fth_builder *b, const fth_tap *tap) {
    watch_sublayer(((building *)context)->w, b, tap);
}

static void gradient_made(void *context, fth_builder *b, const fth_grad_request *gradient) {
    const building *now = context;
    const fth_tap *tap = fth_taps_by_output(now->taps, gradient->value);
    if (!tap) return;
    fth_gauge_at at = place_of(now->w, tap, AT_GRADIENT, true);
    fth_gauge_norm(b->graph, &at, gradient->grad);
    mark(now->w, FTH_Q_OUTPUT_GRAD_NORM,
         number_of(&now->w->trainer->model->config, tap->stack, tap->layer, tap->sub));
}

/* Adds the sums of a micro-batch; norms as squares. */
static fth_err add_sums(void *context, const fth_batch *batch) {
    fth_telemetry *w = context;
    FTH_TRY(fth_program_read(w->program, w->board, w->newest));
    for (int32_t i = 0; i < w->columns; i++) {
        int entry = i < w->n_sub * COLUMNS ? i % COLUMNS / 2 : -1;
        bool root = entry == AT_RATIO || ((entry == AT_NORM || entry == AT_GRADIENT) && i % 2 == 0);
        w->sums[i] += root ? w->newest[i] * w->newest[i] : w->newest[i];
    }
    for (int s = 0; s < 2; s++) w->rows[s] += batch->side[s].rows;
    return FTH_OK;
}

static fth_err make_program(fth_telemetry *w, const fth_trainer_spec *spec) {
    fth_taps taps = {.gradients = FTH_TAP_DY, .built = sublayer_built, .made = gradient_made};
    building now = {w, &taps};
    taps.context = &now;
    fth_err err =
        fth_trainer_program(w->trainer, spec, &taps, w->trainer->program, &w->program, &w->outputs);
    fth_taps_fini(&taps);
    w->watcher = (fth_stand_in){w->program, &w->outputs, add_sums, w};
    return err;
}

/* ---- ranges of parameters ---- */

/* The sub-layer of a parameter, n_sub: none. */
static int32_t sub_of(const fth_telemetry *w, const fth_param *p) {
    if (p->layer < 0 || p->sub == FTH_NO_SUB || p->stack == FTH_NO_STACK) return w->n_sub;
    return number_of(&w->trainer->model->config, p->stack, p->layer, p->sub);
}

/* Ranges of at most RANGE_ELEMENTS with one learning rate, each of one parameter. */
static fth_err make_ranges(fth_telemetry *w) {
    const fth_params *params = &w->trainer->model->params;
    int64_t n = 0;
    for (int32_t i = 0; i < params->n; i++)
        n += (fth_param_size(&params->param[i]) + RANGE_ELEMENTS - 1) / RANGE_ELEMENTS;
    n += 1; /* a model has parameters; said for the analyser */
    w->range = calloc((size_t)n, sizeof *w->range);
    w->range_param = calloc((size_t)n, sizeof *w->range_param);
    w->range_sub = calloc((size_t)n, sizeof *w->range_sub);
    w->range_sums = calloc((size_t)n * FTH_RANGE_SUMS, sizeof *w->range_sums);
    if (!w->range || !w->range_param || !w->range_sub || !w->range_sums)
        return fth_fail(FTH_NO_MEMORY, "no memory for telemetry");
    for (int32_t i = 0; i < params->n; i++) {
        const fth_param *p = &params->param[i];
        int64_t end = p->offset + fth_param_size(p), at = p->offset;
        int64_t grad = fth_inline_updates_grad(&w->trainer->inline_updates,
                                               at); /* -1: the program sums it up */
        if (w->trainer->exchange) {                 /* what this rank updates; nothing is early */
            const fth_slice own = w->trainer->own;
            at = grad = (at > own.begin ? at : own.begin) - own.begin;
            end = (end < own.end ? end : own.end) - own.begin;
        }
        for (; grad >= 0 && at < end; at += RANGE_ELEMENTS, grad += RANGE_ELEMENTS) {
            int64_t stop = at + RANGE_ELEMENTS < end ? at + RANGE_ELEMENTS : end;
            w->range[w->n_ranges] = (fth_adam_range){at, stop, grad, 1};
            w->range_param[w->n_ranges] = p;
            w->range_sub[w->n_ranges++] = sub_of(w, p);
        }
        if (sub_of(w, p) == w->n_sub || p->share == 0) continue;
        mark(w, FTH_Q_GRAD_NORM, sub_of(w, p));
        mark(w, FTH_Q_PARAM_NORM, sub_of(w, p));
        mark(w, FTH_Q_UPDATE_RATIO, sub_of(w, p));
    }
    return FTH_OK;
}

/* What the program has summed up of the matrices that it updates itself. */
static void add_inline_sums(fth_telemetry *w) {
    const fth_params *params = &w->trainer->model->params;
    const fth_inline_updates *updates = &w->trainer->inline_updates;
    for (int32_t i = 0, at = 0; i < updates->n; i++) {
        while (params->param[at].offset < updates->range[i].begin) at++;
        double *sums = w->sub_sums + sub_of(w, &params->param[at]) * FTH_RANGE_SUMS;
        for (int k = 0; k < FTH_RANGE_SUMS; k++) {
            const double root = w->trainer->inline_sums[i * FTH_RANGE_SUMS + k];
            sums[k] += root * root;
        }
    }
}

static fth_ranks *ranks_of(const fth_telemetry *w) {
    return w->trainer->exchange ? w->trainer->exchange->ranks : NULL;
}

/* Sums over the parameters of each sub-layer after an update. */
static fth_err sum_parameters(fth_telemetry *w, int64_t update, const fth_update *u) {
    const fth_method_state *m = &w->trainer->model->method;
    fth_adam adam = fth_trainer_adam(w->trainer, update, u);
    if (!u->finite) adam.lr = 0; /* nothing was applied */
    for (int32_t i = 0; i < w->n_ranges; i++)
        w->range[i].lr_scale = fth_rate_of(m, w->range_param[i], update);
    adam.range = w->range;
    adam.n_ranges = w->n_ranges;
    fth_device *dev = w->trainer->device;
    const fth_arenas own = fth_trainer_own(w->trainer);
    FTH_TRY(dev->backend->range_sums(dev, &own, &adam, w->range_sums));
    memset(w->sub_sums, 0, sizeof *w->sub_sums * FTH_RANGE_SUMS * (size_t)(w->n_sub + 1));
    for (int32_t i = 0; i < w->n_ranges; i++)
        for (int k = 0; k < FTH_RANGE_SUMS; k++)
            w->sub_sums[w->range_sub[i] * FTH_RANGE_SUMS + k] +=
                w->range_sums[i * FTH_RANGE_SUMS + k];
    add_inline_sums(w);
    return fth_ranks_add(ranks_of(w), w->sub_sums, (w->n_sub + 1) * FTH_RANGE_SUMS);
}

/* ---- rows ---- */

static double number(const fth_telemetry *w, fth_quantity q, int32_t sub) {
    const double *board = w->sums + sub * COLUMNS, *sums = w->sub_sums + sub * FTH_RANGE_SUMS;
    const double *inside = board + 2 * AT_INSIDE;
    bool encoder = sub < fth_sublayers(&w->trainer->model->config, FTH_ENCODER);
    switch (q) {
    case FTH_Q_GRAD_NORM: return sqrt(sums[FTH_RANGE_GRAD]);
    case FTH_Q_OUTPUT_GRAD_NORM: return sqrt(board[2 * AT_GRADIENT]);
    case FTH_Q_PARAM_NORM: return sqrt(sums[FTH_RANGE_PARAM]);
    case FTH_Q_UPDATE_RATIO: return sqrt(sums[FTH_RANGE_CHANGE] / sums[FTH_RANGE_PARAM]);
    case FTH_Q_LN_INPUT_NORM: return board[2 * AT_NORM + 1] / w->rows[encoder ? FTH_SRC : FTH_TGT];
    case FTH_Q_BRANCH_RATIO: return sqrt(board[2 * AT_RATIO] / board[2 * AT_RATIO + 1]);
    case FTH_Q_FFN_NONZERO:
    case FTH_Q_ENTROPY: return inside[0] / inside[1];
    case FTH_Q_COSINE: return board[2 * AT_COSINE] / board[2 * AT_COSINE + 1];
    case FTH_N_QUANTITIES: break;
    }
    return NAN;
}

static void add_row(fth_telemetry *w, int64_t update, const fth_update *u) {
    int64_t at = w->n_rows++ % FTH_TELEMETRY_ROWS;
    fth_telemetry_row *row = &w->row[at];
    const double *cosine = w->sums + w->n_sub * COLUMNS;
    *row = (fth_telemetry_row){.update = update,
                               .what = *u,
                               .encoder_cosine = cosine[1] > 0 ? cosine[0] / cosine[1] : NAN,
                               .value = w->numbers + at * FTH_N_QUANTITIES * w->n_sub};
    for (int q = 0; q < FTH_N_QUANTITIES; q++)
        for (int32_t i = 0; i < w->n_sub; i++)
            row->value[q * w->n_sub + i] = fth_telemetry_has(w, (fth_quantity)q, i)
                                               ? (float)number(w, (fth_quantity)q, i)
                                               : NAN;
    if (w->n_rows > 1) return;
    size_t n = (size_t)FTH_N_QUANTITIES * (size_t)w->n_sub;
    w->first = *row;
    w->first.value = w->numbers + FTH_TELEMETRY_ROWS * n;
    memcpy(w->first.value, row->value, sizeof *row->value * n);
}

fth_err fth_telemetry_update(fth_telemetry *w, int64_t update, const fth_batch *const *batches,
                             int n_batches, fth_update *out) {
    const fth_batches all = fth_batches_of(w->trainer, &batches, n_batches);
    return fth_telemetry_update_from(w, update, &all, out);
}

fth_err fth_telemetry_update_from(fth_telemetry *w, int64_t update, const fth_batches *batches,
                                  fth_update *out) {
    memset(w->sums, 0, sizeof *w->sums * (size_t)w->columns);
    w->rows[0] = w->rows[1] = 0;
    w->trainer->watcher = &w->watcher;
    fth_err err = fth_trainer_update_from(w->trainer, update, batches, out);
    w->trainer->watcher = NULL;
    if (err == FTH_OK) err = fth_ranks_add(ranks_of(w), w->sums, w->columns);
    if (err == FTH_OK) err = fth_ranks_add(ranks_of(w), w->rows, 2);
    if (err == FTH_OK) err = sum_parameters(w, update, out);
    if (err == FTH_OK) add_row(w, update, out);
    return err;
}

int32_t fth_telemetry_sublayers(const fth_telemetry *w) {
    return w->n_sub;
}

int32_t fth_telemetry_rows(const fth_telemetry *w) {
    return w->n_rows < FTH_TELEMETRY_ROWS ? (int32_t)w->n_rows : FTH_TELEMETRY_ROWS;
}

const fth_telemetry_row *fth_telemetry_row_at(const fth_telemetry *w, int32_t i) {
    return &w->row[(w->n_rows - 1 - i) % FTH_TELEMETRY_ROWS];
}

const fth_telemetry_row *fth_telemetry_first(const fth_telemetry *w) {
    return w->n_rows > 0 ? &w->first : NULL;
}

double fth_telemetry_rest(const fth_telemetry *w) {
    return w->sub_sums[w->n_sub * FTH_RANGE_SUMS + FTH_RANGE_GRAD];
}

int64_t fth_telemetry_bytes(const fth_telemetry *w) {
    return w ? fth_program_bytes(w->program) : 0;
}

/* ---- making ---- */

fth_err fth_telemetry_new(fth_trainer *trainer, const fth_trainer_spec *spec, fth_telemetry **out) {
    const fth_config *c = &trainer->model->config;
    fth_telemetry *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w) return fth_fail(FTH_NO_MEMORY, "no memory for telemetry");
    w->trainer = trainer;
    w->n_sub = fth_sublayers(c, FTH_ENCODER) + fth_sublayers(c, FTH_DECODER);
    w->columns = w->n_sub * COLUMNS + 2;
    size_t n = (size_t)w->n_sub, numbers = n * FTH_N_QUANTITIES;
    w->has = calloc(numbers, sizeof *w->has);
    w->newest = calloc((size_t)w->columns, sizeof *w->newest);
    w->sums = calloc((size_t)w->columns, sizeof *w->sums);
    w->sub_sums = calloc((n + 1) * FTH_RANGE_SUMS, sizeof *w->sub_sums);
    w->numbers = calloc(numbers * (FTH_TELEMETRY_ROWS + 1), sizeof *w->numbers);
    fth_err err = FTH_OK;
    if (!w->has || !w->newest || !w->sums || !w->sub_sums || !w->numbers)
        err = fth_fail(FTH_NO_MEMORY, "no memory for telemetry of %d sub-layers", w->n_sub);
    if (err == FTH_OK) err = make_program(w, spec);
    if (err == FTH_OK) err = make_ranges(w);
    if (err != FTH_OK) {
        fth_telemetry_free(w);
        return err;
    }
    *out = w;
    return FTH_OK;
}

void fth_telemetry_free(fth_telemetry *w) {
    if (!w) return;
    fth_program_free(w->program);
    free(w->has);
    free(w->newest);
    free(w->sums);
    free(w->range);
    free(w->range_param);
    free(w->range_sub);
    free(w->range_sums);
    free(w->sub_sums);
    free(w->numbers);
    free(w);
}

/* ---- writing ---- */

/* Six digits are enough for a figure, and they keep the log short. */
static json_t *short_number(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", x);
    return fth_json_number(strtod(text, NULL));
}

json_t *fth_telemetry_values(const fth_telemetry *w, const fth_telemetry_row *row, fth_quantity q,
                             fth_stack stack) {
    const fth_config *c = &w->trainer->model->config;
    int32_t first = stack == FTH_DECODER ? fth_sublayers(c, FTH_ENCODER) : 0;
    json_t *values = json_array();
    bool any = false;
    for (int32_t i = first; i < first + fth_sublayers(c, stack); i++) {
        bool there = fth_telemetry_has(w, q, i);
        any |= there;
        json_array_append_new(values,
                              there ? short_number((double)row->value[(int32_t)q * w->n_sub + i])
                                    : json_null());
    }
    if (any) return values;
    json_decref(values);
    return json_null();
}

fth_err fth_telemetry_log(const fth_telemetry *w, fth_run_log *log) {
    static const char *const names[] = {"encoder", "decoder"};
    const fth_telemetry_row *row = fth_telemetry_row_at(w, 0);
    for (int stack = 0; stack < 2; stack++)
        for (int q = 0; q < FTH_N_QUANTITIES; q++) {
            json_t *values = fth_telemetry_values(w, row, (fth_quantity)q, (fth_stack)stack);
            if (json_is_null(values)) continue; /* no sub-layer of the stack has it */
            json_t *line = fth_run_log_line("layers", row->update);
            fth_run_log_text(line, "stack", names[stack]);
            fth_run_log_text(line, "name", fth_quantity_name((fth_quantity)q));
            if (line) json_object_set_new(line, "values", values);
            FTH_TRY(fth_run_log_write(log, line));
        }
    if (w->trainer->model->config.arch != FTH_ENCDEC) return FTH_OK;
    json_t *line = fth_run_log_line("layers", row->update);
    fth_run_log_text(line, "stack", names[FTH_ENCODER]);
    fth_run_log_text(line, "name", "position_cosine");
    if (line)
        json_object_set_new(line, "values", json_pack("[o]", short_number(row->encoder_cosine)));
    return fth_run_log_write(log, line);
}
