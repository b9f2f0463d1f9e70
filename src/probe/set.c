/* set.c: reads or draws sentences and cuts them into pieces of at most so many tokens; a piece is a
 * range of sentences. */
#include "probe/set.h"

#include <stdlib.h>
#include <string.h>

#include "data/folder.h"
#include "data/shuffle.h"
#include "head/head.h"
#include "probe/set_encoder.h"
#include "store/safetensors.h"
#include "train/fits.h"
#include "train/trainer.h"

/* ---- walking ---- */

/* Rows of sentences [first, end) on a side. */
static int32_t rows_of(const fth_probe_set *s, fth_side side, int32_t first, int32_t end) {
    const fth_packed_side *p = &s->all.store.batch.side[side];
    return p->offsets ? p->offsets[end] - p->offsets[first] : 0;
}

/* End of the piece that begins at a sentence. */
static int32_t end_of(const fth_probe_set *s, int32_t first) {
    int32_t n = s->all.store.batch.n_sent, end = first + 1;
    while (end < n && rows_of(s, FTH_SRC, first, end + 1) <= s->max_tokens &&
           rows_of(s, FTH_TGT, first, end + 1) <= s->max_tokens)
        end++;
    return end;
}

fth_err fth_probe_set_read(fth_probe_set *s, const char *path, const fth_config *c,
                           int64_t max_tokens) {
    *s = (fth_probe_set){.max_tokens = (int32_t)max_tokens,
                         .side = c->arch == FTH_ENC ? FTH_SRC : FTH_TGT};
    if (c->front == FTH_FRONT_SPEECH)
        return fth_fail(FTH_USAGE, "probe of front %s is not offered", fth_front_name(c->front));
    FTH_TRY(fth_padded_read(path, c, &s->all));
    const fth_batch *b = &s->all.store.batch;
    int32_t most[2] = {0, 0};
    for (int32_t i = 0; i < b->n_sent; i = end_of(s, i))
        for (int side = 0; side < 2; side++) {
            int32_t rows = rows_of(s, (fth_side)side, i, end_of(s, i));
            if (rows > most[side]) most[side] = rows;
        }
    s->targets = fth_batch_targets(b, fth_head_rows(c));
    fth_err err = fth_batch_store_init(&s->part, most[0], most[1], b->n_sent);
    if (err != FTH_OK) fth_probe_set_fini(s);
    return err;
}

void fth_probe_set_fini(fth_probe_set *s) {
    fth_padded_fini(&s->all);
    fth_batch_store_fini(&s->part);
    *s = (fth_probe_set){0};
}

void fth_probe_set_capacity(const fth_probe_set *s, int64_t capacity[FTH_N_EXTENTS]) {
    const fth_batch *b = &s->all.store.batch;
    int64_t longest =
        b->side[0].max_len > b->side[1].max_len ? b->side[0].max_len : b->side[1].max_len;
    fth_trainer_spec size = {.src_tokens = s->part.max_rows[FTH_SRC],
                             .tgt_tokens = s->part.max_rows[FTH_TGT],
                             .max_len = longest};
    fth_capacities(&size, capacity);
}

void fth_probe_set_rewind(fth_probe_set *s) {
    s->next = 0;
}

/* Pictures, labels and values of n sentences. */
static fth_err take_inputs(fth_probe_set *s, int32_t first, int32_t n) {
    const fth_batch *b = &s->all.store.batch;
    const fth_packed_numbers *in = &b->input;
    if (in->rows) {
        const int64_t from = in->offsets[first];
        const int32_t rows = in->offsets[first + 1] - in->offsets[first]; /* all are of one size */
        FTH_TRY(fth_batch_store_pictures(&s->part, n, rows, in->width, in->data + from * in->width,
                                         in->masked ? in->masked + from : NULL));
    }
    fth_batch_store_labels(&s->part, b->labels ? b->labels + first : NULL,
                           b->values ? b->values + first : NULL);
    return FTH_OK;
}

fth_err fth_probe_set_next(fth_probe_set *s, bool *more) {
    const fth_batch *b = &s->all.store.batch;
    *more = s->next < b->n_sent;
    if (!*more) return FTH_OK;
    int32_t first = s->next, n = end_of(s, first) - first;
    int32_t *offsets = malloc(sizeof *offsets * ((size_t)n + 1));
    if (!offsets) return fth_fail(FTH_NO_MEMORY, "no memory for %d sentences", n);
    fth_err err = FTH_OK;
    for (int side = 0; side < 2 && err == FTH_OK; side++) {
        const fth_packed_side *p = &b->side[side];
        if (!p->offsets) continue;
        int32_t from = p->offsets[first];
        for (int32_t i = 0; i <= n; i++) offsets[i] = p->offsets[first + i] - from;
        err = fth_batch_store_fill(&s->part, (fth_side)side, n, offsets, p->ids + from,
                                   p->targets ? p->targets + from : NULL, INT32_MAX);
    }
    free(offsets);
    if (err == FTH_OK) err = take_inputs(s, first, n);
    s->next = first + n;
    return err;
}

/* ---- drawing ---- */

/* Padded matrices [n, width] of a batch file. */
typedef struct matrices {
    int64_t n, width[2]; /* by side */
    int32_t *src, *tgt_in, *tgt_out;
} matrices;

/* Numbers of `wanted` sentences that the model's positions hold, in drawn order. */
static fth_err choose(const fth_dataset *data, const fth_config *c, const fth_probe_draw *draw,
                      int64_t *chosen) {
    fth_shuffle order;
    fth_shuffle_init(&order, draw->seed, 1, (uint64_t)data->sentences);
    int64_t n = 0;
    for (int64_t i = 0; i < data->sentences && n < draw->sentences; i++) {
        int64_t number = (int64_t)fth_shuffle_at(&order, (uint64_t)i);
        bool fits = true;
        const int64_t ends = c->arch == FTH_ENC ? 2 : 1; /* eos; an encoder's bos too */
        for (int side = c->arch == FTH_ENCDEC ? 0 : data->n_sides - 1; side < data->n_sides;
             side++) {
            if (data->images) continue; /* all of one size */
            int64_t length = fth_dataset_length(data, side, number);
            if (length < 0) return fth_dataset_damaged(data, side, number);
            fits = fits && length + ends <= c->max_positions;
        }
        if (fits) chosen[n++] = number;
    }
    if (n == draw->sentences) return FTH_OK;
    return fth_fail(FTH_USAGE,
                    "--sentences %lld: %s has only %lld sentences of fewer than %d tokens",
                    (long long)draw->sentences, data->path, (long long)n, c->max_positions);
}

static int32_t *padding(int64_t n, int64_t width, int32_t pad) {
    int32_t *m = malloc(sizeof *m * (size_t)(n * width + 1));
    for (int64_t i = 0; m && i < n * width; i++) m[i] = pad;
    return m;
}

/* Longest chosen sentence of a side, its end symbol included. */
static int64_t longest_of(const fth_dataset *data, int side, const int64_t *chosen, int64_t n) {
    int64_t width = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = fth_dataset_length(data, side, chosen[i]) + 1;
        if (length > width) width = length;
    }
    return width;
}

static fth_err fill_matrices(const fth_dataset *data, const fth_config *c, const int64_t *chosen,
                             matrices *m) {
    int tgt = data->n_sides - 1;
    bool has_src = c->arch == FTH_ENCDEC;
    m->width[FTH_SRC] = has_src ? longest_of(data, 0, chosen, m->n) : 0;
    m->width[FTH_TGT] = longest_of(data, tgt, chosen, m->n);
    m->src = padding(m->n, m->width[FTH_SRC], c->pad);
    m->tgt_in = padding(m->n, m->width[FTH_TGT], c->pad);
    m->tgt_out = padding(m->n, m->width[FTH_TGT], c->pad);
    if (!m->src || !m->tgt_in || !m->tgt_out)
        return fth_fail(FTH_NO_MEMORY, "no memory for %lld sentences", (long long)m->n);
    for (int64_t i = 0; i < m->n; i++) {
        if (has_src) {
            int32_t *src = m->src + i * m->width[FTH_SRC];
            int64_t length = fth_dataset_length(data, 0, chosen[i]);
            FTH_TRY(fth_dataset_copy(data, 0, chosen[i], 0, length, src));
            src[length] = c->eos;
        }
        int64_t length = fth_dataset_length(data, tgt, chosen[i]);
        int32_t *in = m->tgt_in + i * m->width[FTH_TGT], *out = m->tgt_out + i * m->width[FTH_TGT];
        FTH_TRY(fth_dataset_copy(data, tgt, chosen[i], 0, length, out));
        memcpy(in + 1, out, sizeof *in * (size_t)length);
        in[0] = c->bos;
        out[length] = c->eos;
    }
    return FTH_OK;
}

static fth_err write_matrices(const matrices *m, const fth_config *c, const char *path) {
    const fth_st_tensor tensors[] = {
        {"tgt_in", FTH_ST_I32, 2, {m->n, m->width[FTH_TGT]}, m->tgt_in},
        {"tgt_out", FTH_ST_I32, 2, {m->n, m->width[FTH_TGT]}, m->tgt_out},
        {"src", FTH_ST_I32, 2, {m->n, m->width[FTH_SRC]}, m->src},
    };
    return fth_st_write(path, tensors, c->arch == FTH_ENCDEC ? 3 : 2, NULL, NULL, NULL);
}

fth_err fth_probe_set_draw(const fth_probe_draw *draw, const fth_config *c, const char *path) {
    fth_folder folder = {0};
    fth_dataset *data = NULL;
    matrices m = {.n = draw->sentences};
    int64_t *chosen = calloc((size_t)draw->sentences, sizeof *chosen);
    fth_err err = chosen ? FTH_OK
                         : fth_fail(FTH_NO_MEMORY, "no memory for %lld sentences",
                                    (long long)draw->sentences);
    if (err == FTH_OK) err = fth_folder_open(&folder, draw->data);
    if (err == FTH_OK) err = fth_folder_split(&folder, draw->split, &data);
    if (err == FTH_OK) err = fth_fits(c, draw->model, &folder, data);
    if (err == FTH_OK) err = choose(data, c, draw, chosen);
    if (err == FTH_OK && c->arch == FTH_ENC) {
        err = fth_probe_set_encoder(&folder, data, c, chosen, m.n, draw->seed, path);
    } else if (err == FTH_OK) {
        err = fill_matrices(data, c, chosen, &m);
        if (err == FTH_OK) err = write_matrices(&m, c, path);
    }
    free(m.src);
    free(m.tgt_in);
    free(m.tgt_out);
    free(chosen);
    fth_dataset_free(data);
    fth_folder_fini(&folder);
    return err;
}
