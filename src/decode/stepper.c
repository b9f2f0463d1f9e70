/* stepper.c: two programs over one set of weights: one encodes, one takes a step over a cache of
 * keys and values whose rows hypotheses share. */
#include "decode/stepper.h"

#include <stdlib.h>
#include <string.h>

#include "data/frames.h"
#include "graph/builder.h"

struct fth_stepper {
    const fth_model *model;
    fth_device *device;
    fth_stepper_spec spec;
    fth_program *encode, *step;
    fth_val logits_value, best_value; /* best_value 0: the device does not choose */
    fth_batch_store sources;
    int32_t n_sent, steps; /* of the batch at hand; steps made */
    int32_t n_rows;        /* of the newest step */
    int32_t n_slots;
    int32_t *history[2]; /* [rows, length] slots of the newest step and of the one being made */
    uint8_t *used;       /* [n_slots] */
    int32_t *ids, *pos, *slot, *length, *asked; /* [rows] */
    int32_t *offsets;                           /* [sentences + 1] rows of each sentence */
    int32_t k;                                  /* words that the device chooses */
    bool direct;     /* the host reads what the program made where it lies */
    float *logits;   /* [rows, vocab] fetched; made when first asked for */
    bool has_logits; /* of the newest step */
    float *best;     /* [rows, TOP_BEST + 2 k] fetched */
    fth_step numbers;
};

/* ---- making ---- */

static fth_err make_encode(fth_stepper *s, const fth_arenas *arenas, fth_encode_graph *g) {
    fth_err err = fth_model_encode_graph(s->model, g);
    if (err != FTH_OK) {
        fth_graph_fini(&g->graph);
        return err;
    }
    fth_program_spec how = {.arenas = arenas, .frozen = true};
    int64_t src = s->spec.src_tokens, longest = s->model->config.max_positions;
    how.capacity[FTH_ROWS_SRC] = how.capacity[FTH_ROWS_INPUT] = src;
    how.capacity[FTH_ROWS_SRC_PAIRS] = src * (longest < src ? longest : src);
    return fth_program_new(s->device, &g->graph, &how, &s->encode);
}

static fth_err make_step(fth_stepper *s, const fth_arenas *arenas, const fth_val *memory) {
    fth_step_graph g;
    fth_shared *shared = NULL;
    int32_t layers = s->model->config.decoder_layers;
    fth_err err = fth_model_step_graph(s->model, s->n_slots, s->spec.src_tokens, &g);
    fth_builder b = {.graph = &g.graph, .stack = FTH_NO_STACK, .sub = FTH_NO_SUB, .layer = -1};
    if (err == FTH_OK && s->k) s->best_value = fth_top(&b, g.logits, s->k);
    if (err == FTH_OK) err = g.graph.err;
    if (err == FTH_OK && memory && !(shared = calloc((size_t)layers, sizeof *shared)))
        err = fth_fail(FTH_NO_MEMORY, "no memory for generation");
    if (err != FTH_OK) {
        fth_graph_fini(&g.graph);
        free(shared);
        return err;
    }
    for (int32_t l = 0; memory && l < layers; l++)
        shared[l] = (fth_shared){g.memory[l], fth_program_address(s->encode, memory[l])};
    s->logits_value = g.logits;
    int64_t rows = s->spec.rows, src = s->spec.src_tokens;
    fth_program_spec how = {
        .arenas = arenas, .shared = shared, .n_shared = memory ? layers : 0, .frozen = true};
    how.capacity[FTH_ROWS_SRC] = src;
    how.capacity[FTH_ROWS_TGT] = rows;
    how.capacity[FTH_ROWS_TGT_PAIRS] = rows * s->spec.length;
    how.capacity[FTH_ROWS_CROSS_PAIRS] = rows * (src > 0 ? src : 1);
    const fth_class class = g.graph.value[g.logits].class;
    const fth_dtype type = class == FTH_REAL ? s->device->real : s->device->full;
    s->direct = s->device->backend->on_host && type == FTH_F32;
    err = fth_program_new(s->device, &g.graph, &how, &s->step);
    free(shared);
    return err;
}

static fth_err make_arrays(fth_stepper *s) {
    size_t rows = (size_t)s->spec.rows, length = (size_t)s->spec.length;
    for (int i = 0; i < 2; i++) s->history[i] = calloc(rows * length, sizeof(int32_t));
    s->used = calloc((size_t)s->n_slots, 1);
    s->ids = calloc(rows * 5, sizeof(int32_t));
    s->offsets = calloc((size_t)s->spec.sentences + 1, sizeof(int32_t));
    s->best = calloc(rows * (size_t)(TOP_BEST + 2 * s->k), sizeof(float));
    if (!s->history[0] || !s->history[1] || !s->used || !s->ids || !s->offsets || !s->best)
        return fth_fail(FTH_NO_MEMORY, "no memory for generation");
    s->pos = s->ids + rows;
    s->slot = s->pos + rows;
    s->length = s->slot + rows;
    s->asked = s->length + rows;
    return fth_batch_store_init(&s->sources, s->spec.src_tokens, 0, s->spec.sentences);
}

fth_err fth_stepper_new(const fth_model *model, fth_device *dev, const fth_arenas *arenas,
                        const fth_stepper_spec *spec, fth_stepper **out) {
    *out = NULL;
    fth_stepper *s = calloc(1, sizeof *s);
    if (!s) return fth_fail(FTH_NO_MEMORY, "no memory for generation");
    s->model = model;
    s->device = dev;
    s->spec = *spec;
    s->n_slots = spec->slots > 0 ? spec->slots : spec->rows * spec->length;
    /* ref computes in double and shows what a choice among all words gives */
    s->k = dev->full == FTH_F32 ? spec->top : 0;
    s->numbers.update = (uint32_t)model->config.step;
    fth_method_step(&model->method, model->config.step, s->numbers.slots);
    fth_encode_graph encode = {0};
    bool encdec = model->config.arch == FTH_ENCDEC;
    fth_err err = FTH_OK;
    if (model->config.arch == FTH_ENC)
        err = fth_fail(FTH_BAD_INPUT, "an enc model has no decoder and cannot generate");
    else if (model->config.front == FTH_FRONT_IMAGE)
        err = fth_fail(FTH_BAD_INPUT, "a model of front %s does not generate",
                       fth_front_name(model->config.front));
    if (err == FTH_OK && encdec) err = make_encode(s, arenas, &encode);
    if (err == FTH_OK) err = make_step(s, arenas, encdec ? encode.memory : NULL);
    if (err == FTH_OK) err = make_arrays(s);
    if (err != FTH_OK) {
        fth_stepper_free(s);
        return err;
    }
    *out = s;
    return FTH_OK;
}

void fth_stepper_free(fth_stepper *s) {
    if (!s) return;
    fth_program_free(s->step);
    fth_program_free(s->encode);
    fth_batch_store_fini(&s->sources);
    free(s->history[0]);
    free(s->history[1]);
    free(s->used);
    free(s->ids);
    free(s->offsets);
    free(s->logits);
    free(s->best);
    free(s);
}

/* ---- running ---- */

static fth_err begin(fth_stepper *s, int32_t n_sent) {
    if (n_sent > s->spec.sentences)
        return fth_fail(FTH_FAILED, "%d sentences at once, the plan holds %d", n_sent,
                        s->spec.sentences);
    s->n_sent = n_sent;
    s->steps = s->n_rows = 0;
    return FTH_OK;
}

fth_err fth_stepper_begin_frames(fth_stepper *s, int32_t n_sent, const int32_t *offsets,
                                 const float *frames, const int32_t *masked) {
    FTH_TRY(begin(s, n_sent));
    FTH_TRY(fth_batch_store_rows(&s->sources, FTH_SRC, n_sent, offsets, NULL, 0, NULL, 0));
    FTH_TRY(fth_batch_store_numbers(&s->sources, n_sent, offsets,
                                    FTH_FRAMES_OF_ROW * s->model->config.features, frames, masked));
    return fth_program_run(s->encode, &s->sources.batch, &s->numbers);
}

fth_err fth_stepper_begin(fth_stepper *s, int32_t n_sent, const int32_t *offsets,
                          const int32_t *ids) {
    FTH_TRY(begin(s, n_sent));
    if (!s->encode) return FTH_OK;
    FTH_TRY(fth_batch_store_fill(&s->sources, FTH_SRC, n_sent, offsets, ids, NULL,
                                 s->model->config.src_vocab));
    return fth_program_run(s->encode, &s->sources.batch, &s->numbers);
}

/* Histories of the new rows from those of their parents, in the other table. */
static void inherit(fth_stepper *s, const fth_step_row *rows, int32_t n) {
    size_t pitch = (size_t)s->spec.length;
    for (int32_t r = 0; r < n; r++)
        if (s->steps > 0)
            memcpy(s->history[1] + (size_t)r * pitch,
                   s->history[0] + (size_t)rows[r].parent * pitch,
                   sizeof(int32_t) * (size_t)s->steps);
    int32_t *old = s->history[0];
    s->history[0] = s->history[1];
    s->history[1] = old;
}

/* Every row gets a slot that no history holds. */
static fth_err take_slots(fth_stepper *s, int32_t n) {
    size_t pitch = (size_t)s->spec.length;
    memset(s->used, 0, (size_t)s->n_slots);
    for (int32_t r = 0; r < n; r++)
        for (int32_t i = 0; i < s->steps; i++) s->used[s->history[0][(size_t)r * pitch + i]] = 1;
    int32_t next = 0;
    for (int32_t r = 0; r < n; r++) {
        while (next < s->n_slots && s->used[next]) next++;
        if (next == s->n_slots) return fth_fail(FTH_FAILED, "no cache row is left");
        s->slot[r] = s->history[0][(size_t)r * pitch + s->steps] = next++;
    }
    return FTH_OK;
}

static fth_batch make_batch(fth_stepper *s, const fth_step_row *rows, int32_t n) {
    memset(s->offsets, 0, sizeof *s->offsets * (size_t)(s->n_sent + 1));
    for (int32_t r = 0; r < n; r++) {
        s->ids[r] = rows[r].token;
        s->pos[r] = s->steps;
        s->length[r] = s->steps + 1;
        s->asked[r] = rows[r].asked;
        s->offsets[rows[r].sentence + 1]++;
    }
    for (int32_t i = 0; i < s->n_sent; i++) s->offsets[i + 1] += s->offsets[i];
    fth_batch batch = {.n_sent = s->n_sent,
                       .slot = s->slot,
                       .history = s->history[0],
                       .history_pitch = s->spec.length,
                       .length = s->length};
    if (s->encode) batch.side[FTH_SRC] = s->sources.batch.side[FTH_SRC];
    batch.side[FTH_TGT] = (fth_packed_side){
        .rows = n, .ids = s->ids, .pos = s->pos, .targets = s->asked, .offsets = s->offsets};
    for (int32_t i = 0; i < s->n_sent; i++) {
        int32_t group = s->offsets[i + 1] - s->offsets[i];
        if (group > batch.side[FTH_TGT].max_len) batch.side[FTH_TGT].max_len = group;
    }
    return batch;
}

static fth_err check_rows(const fth_stepper *s, const fth_step_row *rows, int32_t n) {
    if (n > s->spec.rows || s->steps >= s->spec.length)
        return fth_fail(FTH_FAILED, "step %d of %d hypotheses, the plan holds %d of %d", s->steps,
                        n, s->spec.length, s->spec.rows);
    for (int32_t r = 0; r < n; r++) {
        bool ordered = r == 0 || rows[r].sentence >= rows[r - 1].sentence;
        bool known = s->steps == 0 || (rows[r].parent >= 0 && rows[r].parent < s->n_rows);
        if (!ordered || !known || rows[r].sentence < 0 || rows[r].sentence >= s->n_sent)
            return fth_fail(FTH_FAILED, "row %d of a step is out of order", r);
        if (rows[r].asked >= fth_config_output_vocab(&s->model->config))
            return fth_fail(FTH_FAILED, "row %d of a step asks for word %d", r, rows[r].asked);
    }
    return FTH_OK;
}

fth_err fth_stepper_step(fth_stepper *s, const fth_step_row *rows, int32_t n,
                         const float **logits) {
    FTH_TRY(check_rows(s, rows, n));
    inherit(s, rows, n);
    FTH_TRY(take_slots(s, n));
    fth_batch batch = make_batch(s, rows, n);
    FTH_TRY(fth_program_run(s->step, &batch, &s->numbers));
    s->steps++;
    s->n_rows = n;
    s->has_logits = false;
    return logits ? fth_stepper_logits(s, logits) : FTH_OK;
}

fth_err fth_stepper_logits(fth_stepper *s, const float **logits) {
    *logits = s->direct ? fth_program_address(s->step, s->logits_value) : s->logits;
    if (s->direct || s->has_logits) return FTH_OK;
    const int64_t vocab = fth_config_output_vocab(&s->model->config);
    if (!s->logits) s->logits = malloc(sizeof *s->logits * (size_t)(s->spec.rows * vocab));
    if (!s->logits) return fth_fail(FTH_NO_MEMORY, "no memory for generation");
    FTH_TRY(fth_program_read_f32(s->step, s->logits_value, s->logits));
    s->has_logits = true;
    *logits = s->logits;
    return FTH_OK;
}

fth_err fth_stepper_best(fth_stepper *s, fth_best *best) {
    *best = (fth_best){.k = s->k, .rows = s->best};
    if (!s->k) return FTH_OK;
    if (s->device->backend->on_host) { /* full is float: the list lies there as it is */
        best->rows = fth_program_address(s->step, s->best_value);
        return FTH_OK;
    }
    return fth_program_read_f32(s->step, s->best_value, s->best);
}

/* ---- measuring ---- */

void fth_stepper_profile(fth_stepper *s, bool on) {
    if (s->encode) fth_program_profile(s->encode, on);
    fth_program_profile(s->step, on);
}

void fth_stepper_times(const fth_stepper *s, double times[FTH_N_KINDS]) {
    for (int k = 0; k < FTH_N_KINDS; k++)
        times[k] =
            fth_program_times(s->step)[k] + (s->encode ? fth_program_times(s->encode)[k] : 0);
}

int64_t fth_stepper_bytes(const fth_stepper *s) {
    return fth_program_bytes(s->step) + (s->encode ? fth_program_bytes(s->encode) : 0);
}
