#include "train/padded.h"

#include <stdlib.h>
#include <string.h>

#include "store/safetensors.h"

/* Bounds of a batch: its numbers of sentences and entries, and what is made of them, are counted in
 * 32 bits; and a matrix without columns takes no room in its file, but its sentences do here. */
enum { MAX_EDGE = 1 << 24, MAX_CELLS = 1 << 28 };

static const char *tensor_name(fth_side side, bool targets) {
    static const char *const names[2][2] = {{"src", "src_out"}, {"tgt_in", "tgt_out"}};
    return names[side == FTH_TGT][targets];
}

static fth_err check_size(const fth_st_file *f, const fth_st_tensor *t) {
    if (t->rank != 2)
        return fth_fail(FTH_BAD_INPUT, "%s: tensor %s has %d dimensions, must have 2", f->path,
                        t->name, t->rank);
    const int64_t n = t->shape[0], width = t->shape[1];
    if (n <= MAX_EDGE && width <= MAX_EDGE && n * width <= MAX_CELLS) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: tensor %s is [%lld, %lld], must have at most %d rows, %d columns and %d "
                    "entries",
                    f->path, t->name, (long long)n, (long long)width, MAX_EDGE, MAX_EDGE,
                    MAX_CELLS);
}

/* Reads one matrix [n, width] of token ids; *n and *width are set by the first one. */
static fth_err read_matrix(const fth_st_file *f, const char *name, int64_t *n, int64_t *width,
                           int32_t **out) {
    const fth_st_tensor *t = NULL;
    FTH_TRY(fth_st_get(f, name, &t));
    FTH_TRY(check_size(f, t));
    if (*n < 0) *n = t->shape[0];
    if (*width < 0) *width = t->shape[1];
    if (t->shape[0] != *n || t->shape[1] != *width)
        return fth_fail(FTH_BAD_INPUT, "%s: tensor %s is [%lld, %lld], must be [%lld, %lld]",
                        f->path, name, (long long)t->shape[0], (long long)t->shape[1],
                        (long long)*n, (long long)*width);
    *out = malloc(sizeof **out * (fth_st_count(t) + 1));
    if (!*out) return fth_fail(FTH_NO_MEMORY, "no memory for %s", name);
    return fth_st_to_i32(f, t, *out);
}

static fth_err read_side(const fth_st_file *f, fth_side side, bool targets, fth_padded *p) {
    fth_padded_side *s = &p->side[side];
    s->width = -1;
    FTH_TRY(read_matrix(f, tensor_name(side, false), &p->n, &s->width, &s->ids));
    if (!targets) return FTH_OK;
    return read_matrix(f, tensor_name(side, true), &p->n, &s->width, &s->targets);
}

static fth_err check_id(int32_t id, int32_t vocab, const char *name, int64_t row, int64_t column) {
    if (id >= 0 && id < vocab) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "tensor %s: [%lld, %lld] is %d, outside of the vocabulary of %d",
                    name, (long long)row, (long long)column, id, vocab);
}

/* What is no pad must be a word. */
static fth_err check_ids(const fth_padded *p, fth_side side, const fth_config *c) {
    const fth_padded_side *s = &p->side[side];
    const int32_t vocab = side == FTH_SRC ? c->src_vocab : c->tgt_vocab;
    for (int64_t i = 0, at = 0; i < p->n; i++)
        for (int64_t k = 0; k < s->width; k++, at++) {
            if (s->ids[at] == c->pad) continue;
            FTH_TRY(check_id(s->ids[at], vocab, tensor_name(side, false), i, k));
            if (s->targets && s->targets[at] != c->pad)
                FTH_TRY(check_id(s->targets[at], vocab, tensor_name(side, true), i, k));
        }
    return FTH_OK;
}

/* Leaves the pads out. */
static fth_err pack(fth_padded *p, fth_side side, const fth_config *c) {
    fth_padded_side *s = &p->side[side];
    int32_t vocab = side == FTH_SRC ? c->src_vocab : c->tgt_vocab;
    FTH_TRY(check_ids(p, side, c));
    size_t cells = (size_t)(p->n * s->width);
    int32_t *ids = malloc(sizeof *ids * (cells + 1)), *targets = malloc(sizeof *ids * (cells + 1));
    int32_t *offsets = calloc((size_t)p->n + 1, sizeof *offsets);
    s->cell = malloc(sizeof *s->cell * (cells + 1));
    fth_err err = FTH_OK;
    if (!ids || !targets || !offsets || !s->cell) {
        err = fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu tokens", cells);
        goto done;
    }
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t k = 0; k < s->width; k++) {
            int32_t at = (int32_t)(i * s->width + k);
            if (s->ids[at] == c->pad) continue;
            ids[s->rows] = s->ids[at];
            if (s->targets) targets[s->rows] = s->targets[at] == c->pad ? -1 : s->targets[at];
            s->cell[s->rows++] = at;
        }
        offsets[i + 1] = s->rows;
        int32_t length = offsets[i + 1] - offsets[i];
        if (length > s->longest) s->longest = length;
    }
    if (s->longest > c->max_positions)
        err = fth_fail(FTH_BAD_INPUT, "a sentence has %d tokens, max_positions is %d", s->longest,
                       c->max_positions);
    else
        err = fth_batch_store_fill(&p->store, side, (int32_t)p->n, offsets, ids,
                                   s->targets ? targets : NULL, vocab);
done:
    free(ids);
    free(targets);
    free(offsets);
    return err;
}

/* What both sides have in the file; its errors name it. */
static fth_err read_sides(const fth_st_file *f, const fth_config *c, fth_padded *p) {
    bool has_src = c->arch != FTH_DEC, has_tgt = c->arch != FTH_ENC;
    p->n = -1;
    if (has_src) FTH_TRY(read_side(f, FTH_SRC, !has_tgt, p));
    return has_tgt ? read_side(f, FTH_TGT, true, p) : FTH_OK;
}

static fth_err pack_sides(const fth_config *c, fth_padded *p) {
    int64_t most[2];
    for (int s = 0; s < 2; s++) most[s] = p->n * (p->side[s].width > 0 ? p->side[s].width : 0);
    FTH_TRY(fth_batch_store_init(&p->store, (int32_t)most[0], (int32_t)most[1], (int32_t)p->n));
    if (c->arch != FTH_DEC) FTH_TRY(pack(p, FTH_SRC, c));
    return c->arch != FTH_ENC ? pack(p, FTH_TGT, c) : FTH_OK;
}

fth_err fth_padded_read(const char *path, const fth_config *config, fth_padded *out) {
    memset(out, 0, sizeof *out);
    fth_st_file *f = NULL;
    FTH_TRY(fth_st_open(path, &f));
    fth_err err = read_sides(f, config, out);
    fth_st_close(f);
    if (err == FTH_OK) {
        err = pack_sides(config, out);
        if (err != FTH_OK) err = fth_fail_in(err, "%s", path);
    }
    if (err != FTH_OK) fth_padded_fini(out);
    return err;
}

void fth_padded_fini(fth_padded *p) {
    for (int s = 0; s < 2; s++) {
        free(p->side[s].ids);
        free(p->side[s].targets);
        free(p->side[s].cell);
    }
    fth_batch_store_fini(&p->store);
    memset(p, 0, sizeof *p);
}

void fth_padded_spread(const fth_padded *p, fth_side side, const double *rows, int64_t width,
                       float *out) {
    const fth_padded_side *s = &p->side[side];
    memset(out, 0, sizeof *out * (size_t)(p->n * s->width * width));
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t c = 0; c < width; c++)
            out[s->cell[r] * width + c] = (float)rows[r * width + c];
}
