/* padded.c: counts the entries that are no pads, and copies them into packed rows and back. */
#include "train/padded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/front.h"
#include "head/head.h"
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

/* ---- words ---- */

static fth_err read_words(const fth_st_file *f, fth_side side, bool targets, fth_padded *p) {
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

/* The target of an entry, -1: none. Words end with the pad, classes have -1 for none. */
static fth_err target_of(const fth_padded *p, fth_side side, const fth_config *c, int64_t row,
                         int64_t column, int32_t *out) {
    const fth_padded_side *s = &p->side[side];
    const int32_t target = s->targets[row * s->width + column],
                  classes = fth_config_output_vocab(c);
    const bool words = fth_head_targets(c) == FTH_TARGET_WORDS;
    const bool none = target == (words ? c->pad : -1);
    *out = none ? -1 : target;
    if (none) return FTH_OK;
    if (words) return check_id(target, classes, tensor_name(side, true), row, column);
    if (target >= 0 && target < classes) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "tensor %s: [%lld, %lld] is %d, must be -1 (none) to %d",
                    tensor_name(side, true), (long long)row, (long long)column, target,
                    classes - 1);
}

/* Packed arrays of a side, as they are made. */
typedef struct packed {
    int32_t *ids, *targets; /* [cells]; targets NULL: there are none */
    int32_t *offsets;       /* [n + 1] */
} packed;

static void packed_free(packed *k) {
    free(k->ids);
    free(k->targets);
    free(k->offsets);
}

static fth_err packed_init(packed *k, fth_padded *p, fth_padded_side *s, size_t cells) {
    *k = (packed){.ids = malloc(sizeof *k->ids * (cells + 1)),
                  .targets = s->targets ? malloc(sizeof *k->targets * (cells + 1)) : NULL,
                  .offsets = calloc((size_t)p->n + 1, sizeof *k->offsets)};
    s->cell = malloc(sizeof *s->cell * (cells + 1));
    return k->ids && k->offsets && s->cell && (k->targets || !s->targets)
               ? FTH_OK
               : fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu entries", cells);
}

static void end_sentence(packed *k, fth_padded_side *s, int64_t i) {
    k->offsets[i + 1] = s->rows;
    const int32_t length = s->rows - k->offsets[i];
    if (length > s->longest) s->longest = length;
}

/* Leaves the pads out. */
static fth_err pack_words(const fth_config *c, fth_side side, fth_padded *p, packed *k) {
    fth_padded_side *s = &p->side[side];
    const int32_t vocab = side == FTH_SRC ? c->src_vocab : c->tgt_vocab;
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t column = 0; column < s->width; column++) {
            const int32_t cell = (int32_t)(i * s->width + column), id = s->ids[cell];
            if (id == c->pad) continue;
            FTH_TRY(check_id(id, vocab, tensor_name(side, false), i, column));
            if (s->targets) FTH_TRY(target_of(p, side, c, i, column, &k->targets[s->rows]));
            k->ids[s->rows] = id;
            s->cell[s->rows++] = cell;
        }
        end_sentence(k, s, i);
        if (s->rows == k->offsets[i] && fth_head_rows(c) == FTH_ROWS_SENTENCES)
            return fth_fail(FTH_BAD_INPUT, "tensor %s: row %lld is empty, it has pads alone",
                            tensor_name(side, false), (long long)i);
    }
    return FTH_OK;
}

/* ---- pictures ---- */

/* A patch, channel by channel, rows, columns. */
static void cut_patch(const fth_config *c, const float *picture, int32_t number, float *out) {
    const int32_t height = c->image_size[0], width = c->image_size[1], p = c->patch;
    const int32_t across = width / p, top = number / across * p, left = number % across * p;
    for (int32_t channel = 0; channel < c->channels; channel++)
        for (int32_t y = 0; y < p; y++, out += p)
            memcpy(out, picture + ((int64_t)channel * height + top + y) * width + left,
                   sizeof *out * (size_t)p);
}

static fth_err check_pictures(const fth_st_file *f, const fth_st_tensor *t, const fth_config *c) {
    const int64_t *s = t->shape;
    if (t->rank == 4 && s[1] == c->channels && s[2] == c->image_size[0] &&
        s[3] == c->image_size[1] && s[0] <= MAX_EDGE && s[0] * s[1] * s[2] * s[3] <= MAX_CELLS)
        return FTH_OK;
    char found[96] = "";
    for (int i = 0; i < t->rank; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld", i ? ", " : "",
                 (long long)s[i]);
    return fth_fail(
        FTH_BAD_INPUT, "%s: tensor %s is [%s], must be [B, %d, %d, %d] with at most %d numbers",
        f->path, t->name, found, c->channels, c->image_size[0], c->image_size[1], MAX_CELLS);
}

/* Reads image, masked and src_out. */
static fth_err read_pictures(const fth_st_file *f, const fth_config *c, bool targets,
                             fth_padded *p) {
    const fth_st_tensor *t = NULL;
    FTH_TRY(fth_st_get(f, "image", &t));
    FTH_TRY(check_pictures(f, t, c));
    const int32_t patches = fth_config_patches(c), width = fth_front_width(c);
    const size_t count = fth_st_count(t);
    p->n = t->shape[0];
    int64_t per_picture = patches;
    p->side[FTH_SRC].width = patches;
    float *pictures = malloc(sizeof *pictures * (count + 1));
    p->numbers = malloc(sizeof *p->numbers * (count + 1));
    if (!pictures || !p->numbers) {
        free(pictures);
        return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu entries", count);
    }
    fth_err err = fth_st_to_f32(f, t, pictures);
    for (int64_t i = 0; err == FTH_OK && i < p->n * patches; i++)
        cut_patch(c, pictures + i / patches * patches * width, (int32_t)(i % patches),
                  p->numbers + i * width);
    free(pictures);
    if (err == FTH_OK && fth_config_has(c, "visual_tokens"))
        err = read_matrix(f, "masked", &p->n, &per_picture, &p->masked);
    for (int64_t i = 0; err == FTH_OK && p->masked && i < p->n * patches; i++)
        if (p->masked[i] != 0 && p->masked[i] != 1)
            err =
                fth_fail(FTH_BAD_INPUT, "%s: tensor masked: [%lld, %lld] is %d, must be 0 or 1",
                         f->path, (long long)(i / patches), (long long)(i % patches), p->masked[i]);
    if (err == FTH_OK && targets)
        err = read_matrix(f, "src_out", &p->n, &per_picture, &p->side[FTH_SRC].targets);
    return err;
}

/* A row for every patch, and one before them for the class token. */
static fth_err pack_pictures(const fth_config *c, fth_padded *p, packed *k) {
    fth_padded_side *s = &p->side[FTH_SRC];
    const int32_t patches = fth_config_patches(c), cls = fth_config_has_cls(c);
    for (int64_t i = 0; i < p->n; i++) {
        for (int32_t row = 0; row < patches + cls; row++, s->rows++) {
            const int32_t patch = row - cls;
            s->cell[s->rows] = patch < 0 ? -1 : (int32_t)(i * patches + patch);
            if (s->targets) k->targets[s->rows] = -1;
            if (s->targets && patch >= 0)
                FTH_TRY(target_of(p, FTH_SRC, c, i, patch, &k->targets[s->rows]));
        }
        end_sentence(k, s, i);
    }
    return fth_batch_store_pictures(&p->store, (int32_t)p->n, patches, fth_front_width(c),
                                    p->numbers, p->masked);
}

/* ---- speech ---- */

enum { FRAMES_OF_ROW = 4 }; /* the front's stride, twice 2 */

static int32_t rows_of_frames(int32_t frames) {
    return (frames + FRAMES_OF_ROW - 1) / FRAMES_OF_ROW;
}

static fth_err check_frames(const fth_st_file *f, const fth_st_tensor *t, const fth_config *c) {
    const int64_t *s = t->shape;
    if (t->rank == 3 && s[2] == c->features && s[0] <= MAX_EDGE && s[1] <= MAX_EDGE &&
        s[0] * s[1] <= MAX_CELLS / c->features)
        return FTH_OK;
    return fth_fail(
        FTH_BAD_INPUT,
        "%s: tensor frames has %d dimensions, the last of %lld; must be [B, F, %d] with at "
        "most %d numbers",
        f->path, t->rank, t->rank ? (long long)s[t->rank - 1] : 0LL, c->features, MAX_CELLS);
}

/* Reads frame_count; the side is as wide as the longest utterance has rows. */
static fth_err read_frame_counts(const fth_st_file *f, int64_t most, fth_padded *p) {
    const fth_st_tensor *t = NULL;
    FTH_TRY(fth_st_get(f, "frame_count", &t));
    if (t->rank != 1 || t->shape[0] != p->n)
        return fth_fail(FTH_BAD_INPUT, "%s: tensor frame_count must be [%lld]", f->path,
                        (long long)p->n);
    p->frames = malloc(sizeof *p->frames * ((size_t)p->n + 1));
    if (!p->frames)
        return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu entries", (size_t)p->n);
    FTH_TRY(fth_st_to_i32(f, t, p->frames));
    for (int64_t i = 0; i < p->n; i++) {
        if (p->frames[i] < 1 || p->frames[i] > most)
            return fth_fail(FTH_BAD_INPUT,
                            "%s: tensor frame_count: [%lld] is %d, must be 1 to %lld", f->path,
                            (long long)i, p->frames[i], (long long)most);
        const int32_t rows = rows_of_frames(p->frames[i]);
        if (rows > p->side[FTH_SRC].width) p->side[FTH_SRC].width = rows;
        p->side[FTH_SRC].rows += rows;
    }
    return FTH_OK;
}

/* Reads frames: an utterance's fill whole rows, with zeros behind the last; a row that then lacks
 * its odd step is masked (front/speech.c). */
static fth_err read_frames(const fth_st_file *f, const fth_config *c, fth_padded *p) {
    const fth_st_tensor *t = NULL;
    FTH_TRY(fth_st_get(f, "frames", &t));
    FTH_TRY(check_frames(f, t, c));
    p->n = t->shape[0];
    FTH_TRY(read_frame_counts(f, t->shape[1], p));
    const size_t width = (size_t)fth_front_width(c), rows = (size_t)p->side[FTH_SRC].rows;
    const size_t count = fth_st_count(t), features = (size_t)c->features;
    float *all = malloc(sizeof *all * (count + 1));
    p->numbers = calloc(rows * width + 1, sizeof *p->numbers);
    p->masked = calloc(rows + 1, sizeof *p->masked);
    fth_err err = all && p->numbers && p->masked
                      ? fth_st_to_f32(f, t, all)
                      : fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu entries", count);
    size_t row = 0;
    for (int64_t i = 0; err == FTH_OK && i < p->n; i++) {
        const int32_t frames = p->frames[i];
        memcpy(p->numbers + row * width, all + (size_t)(i * t->shape[1]) * features,
               sizeof *all * (size_t)frames * features);
        row += (size_t)rows_of_frames(frames);
        p->masked[row - 1] = frames % FRAMES_OF_ROW == 1 || frames % FRAMES_OF_ROW == 2;
    }
    free(all);
    p->side[FTH_SRC].rows = 0; /* counted again while they are packed */
    return err;
}

static fth_err pack_frames(const fth_config *c, fth_padded *p, packed *k) {
    fth_padded_side *s = &p->side[FTH_SRC];
    for (int64_t i = 0; i < p->n; i++) {
        for (int32_t row = 0; row < rows_of_frames(p->frames[i]); row++)
            s->cell[s->rows++] = (int32_t)(i * s->width + row);
        end_sentence(k, s, i);
    }
    return fth_batch_store_numbers(&p->store, (int32_t)p->n, k->offsets, fth_front_width(c),
                                   p->numbers, p->masked);
}

/* ---- labels ---- */

static fth_err read_labels(const fth_st_file *f, const fth_config *c, fth_padded *p) {
    const fth_st_tensor *t = NULL;
    const bool value = fth_head_targets(c) == FTH_TARGET_VALUE;
    const fth_st_dtype dtype = value ? FTH_ST_F32 : FTH_ST_I32;
    FTH_TRY(fth_st_get(f, "label", &t));
    if (t->rank != 1 || t->shape[0] != p->n || t->dtype != dtype)
        return fth_fail(
            FTH_BAD_INPUT, "%s: tensor label is %s of %d dimensions (%lld), must be %s [%lld]",
            f->path, fth_st_dtype_name(t->dtype), t->rank, t->rank ? (long long)t->shape[0] : 0LL,
            fth_st_dtype_name(dtype), (long long)p->n);
    const size_t room = (size_t)p->n + 1;
    p->labels = value ? NULL : malloc(sizeof *p->labels * room);
    p->values = value ? malloc(sizeof *p->values * room) : NULL;
    if (!p->labels && !p->values)
        return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %zu entries", room);
    if (value) {
        FTH_TRY(fth_st_to_f32(f, t, p->values));
        for (int64_t i = 0; i < p->n; i++)
            if (!isfinite(p->values[i]))
                return fth_fail(FTH_BAD_INPUT, "%s: tensor label: [%lld] is %g, must be finite",
                                f->path, (long long)i, (double)p->values[i]);
        return FTH_OK;
    }
    FTH_TRY(fth_st_to_i32(f, t, p->labels));
    for (int64_t i = 0; i < p->n; i++)
        if (p->labels[i] < 0 || p->labels[i] >= c->classes)
            return fth_fail(FTH_BAD_INPUT, "%s: tensor label: [%lld] is %d, must be 0 to %d",
                            f->path, (long long)i, p->labels[i], c->classes - 1);
    return FTH_OK;
}

/* ---- both ---- */

static bool targets_of_rows(const fth_config *c) {
    return fth_head_rows(c) != FTH_ROWS_SENTENCES;
}

/* What both sides have in the file; its errors name it. */
static fth_err read_sides(const fth_st_file *f, const fth_config *c, fth_padded *p) {
    const bool has_src = c->arch != FTH_DEC, has_tgt = c->arch != FTH_ENC;
    const bool targets = !has_tgt && targets_of_rows(c);
    p->n = -1;
    if (has_src && fth_front_of(c)->input == FTH_INPUT_IMAGES)
        FTH_TRY(read_pictures(f, c, targets, p));
    else if (has_src && fth_front_of(c)->input == FTH_INPUT_FRAMES)
        FTH_TRY(read_frames(f, c, p));
    else if (has_src)
        FTH_TRY(read_words(f, FTH_SRC, targets, p));
    if (has_tgt) FTH_TRY(read_words(f, FTH_TGT, true, p));
    return targets_of_rows(c) ? FTH_OK : read_labels(f, c, p);
}

static fth_err pack_side(const fth_config *c, fth_side side, fth_padded *p) {
    fth_padded_side *s = &p->side[side];
    const fth_input_form input = side == FTH_TGT ? FTH_INPUT_TOKENS : fth_front_of(c)->input;
    const bool words = input == FTH_INPUT_TOKENS;
    const int32_t vocab = side == FTH_SRC ? c->src_vocab : c->tgt_vocab;
    const size_t cells = (size_t)(p->n * (s->width + (words ? 0 : 1)));
    packed k;
    fth_err err = packed_init(&k, p, s, cells);
    if (err == FTH_OK)
        err = words                       ? pack_words(c, side, p, &k)
              : input == FTH_INPUT_FRAMES ? pack_frames(c, p, &k)
                                          : pack_pictures(c, p, &k);
    if (err == FTH_OK && s->longest > c->max_positions)
        err = fth_fail(FTH_BAD_INPUT, "a sentence has %d rows, max_positions is %d", s->longest,
                       c->max_positions);
    if (err == FTH_OK)
        err = fth_batch_store_rows(&p->store, side, (int32_t)p->n, k.offsets, words ? k.ids : NULL,
                                   vocab, k.targets, fth_config_output_vocab(c));
    packed_free(&k);
    return err;
}

static fth_err pack_sides(const fth_config *c, fth_padded *p) {
    int64_t most[2];
    for (int s = 0; s < 2; s++)
        most[s] = p->n * (p->side[s].width > 0 ? p->side[s].width + fth_config_has_cls(c) : 0);
    FTH_TRY(fth_batch_store_init(&p->store, (int32_t)most[0], (int32_t)most[1], (int32_t)p->n));
    if (c->arch != FTH_DEC) FTH_TRY(pack_side(c, FTH_SRC, p));
    if (c->arch != FTH_ENC) FTH_TRY(pack_side(c, FTH_TGT, p));
    fth_batch_store_labels(&p->store, p->labels, p->values);
    return FTH_OK;
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
    free(p->numbers);
    free(p->masked);
    free(p->frames);
    free(p->labels);
    free(p->values);
    fth_batch_store_fini(&p->store);
    memset(p, 0, sizeof *p);
}

int fth_padded_shape(const fth_padded *p, const fth_config *c, fth_extent rows, bool all,
                     int64_t width, int64_t shape[3]) {
    const fth_side side = rows == FTH_ROWS_TGT ? FTH_TGT : FTH_SRC;
    const bool sentences = rows == FTH_ROWS_SENTENCES;
    shape[0] = p->n;
    shape[1] = sentences ? width : p->side[side].width + (all && fth_config_has_cls(c));
    shape[2] = width;
    return sentences ? 2 : 3;
}

/* Which entry of the padded matrix row r of an extent is; -1: none. */
static int64_t cell_of(const fth_padded *p, fth_extent rows, bool all, int64_t r) {
    if (rows == FTH_ROWS_SENTENCES) return r;
    const fth_padded_side *s = &p->side[rows == FTH_ROWS_TGT ? FTH_TGT : FTH_SRC];
    const int64_t row = rows == FTH_ROWS_PICKED ? p->store.batch.picked[r] : r;
    return all && p->numbers && !p->frames ? row : s->cell[row]; /* pictures are all of one size */
}

void fth_padded_spread(const fth_padded *p, fth_extent rows, bool all, const double *numbers,
                       int64_t n, int64_t width, float *out) {
    for (int64_t r = 0; r < n; r++) {
        const int64_t cell = cell_of(p, rows, all, r);
        for (int64_t c = 0; c < width && cell >= 0; c++)
            out[cell * width + c] = (float)numbers[r * width + c];
    }
}
