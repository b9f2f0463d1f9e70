/* bench_batch.c: draws tokens, pictures and labels by a fixed seed, as large as the model and
 * the options allow. */
#include "cli/bench_batch.h"

#include <stdlib.h>

#include "base/philox.h"
#include "data/frames.h"
#include "front/front.h"
#include "head/head.h"

static bool has_pictures(const fth_config *c) {
    return c->arch == FTH_ENC && fth_front_of(c)->input == FTH_INPUT_IMAGES;
}

static bool has_frames(const fth_config *c) {
    return c->arch == FTH_ENCDEC && fth_front_of(c)->input == FTH_INPUT_FRAMES;
}

/* Rows of a sentence, a picture or a recording. */
static int64_t length_of(const bench_options *o, const fth_config *c, fth_side side) {
    if (has_frames(c) && side == FTH_SRC) return fth_frame_rows(o->frames);
    return has_pictures(c) ? fth_config_patches(c) + fth_config_has_cls(c) : o->sentence_length;
}

static int64_t longest_of(const bench_options *o, const fth_config *c) {
    const int64_t src = length_of(o, c, FTH_SRC), tgt = length_of(o, c, FTH_TGT);
    return src > tgt ? src : tgt;
}

/* Of so many rows that could have a target, row k has one. */
static bool has_target(const fth_config *c, int64_t k) {
    if (fth_head_rows(c) != FTH_ROWS_PICKED) return true;
    return has_pictures(c) ? k % 5 < 2 : k % 20 < 3;
}

fth_recipe fth_bench_recipe(void) {
    return (fth_recipe){.schedule = {.kind = FTH_CONSTANT, .lr = 1e-5},
                        .beta1 = 0.9,
                        .beta2 = 0.98,
                        .eps = 1e-8,
                        .weight_decay = 1e-4,
                        .smoothing = 0.1,
                        .dropout = true,
                        .seed = 1};
}

fth_trainer_spec fth_bench_size(const bench_options *o, const fth_config *c) {
    const int64_t length = longest_of(o, c), n = o->max_tokens / length;
    fth_trainer_spec size = {.src_tokens = c->arch == FTH_DEC ? 0 : o->max_tokens,
                             .tgt_tokens = c->arch == FTH_ENC ? 0 : o->max_tokens,
                             .max_len = length,
                             .sentences = n,
                             .numbers = has_pictures(c) ? n * fth_config_patches(c) : 0};
    for (int64_t k = 0; c->arch == FTH_ENC && k < n * length; k++) size.picked += has_target(c, k);
    return size;
}

/* One side of n sentences; vocab 0: rows that are no words. */
static fth_err fill_side(fth_bench_batch *b, const bench_options *o, const fth_config *c,
                         fth_side side, int32_t vocab) {
    const int32_t length = (int32_t)length_of(o, c, side);
    const int32_t n = (int32_t)(o->max_tokens / longest_of(o, c));
    const int32_t rows = n * length, classes = fth_config_output_vocab(c);
    const bool top = side == (c->arch == FTH_ENC ? FTH_SRC : FTH_TGT);
    const bool targeted = top && fth_head_rows(c) != FTH_ROWS_SENTENCES;
    const bool words = fth_head_targets(c) == FTH_TARGET_WORDS;
    int32_t *ids = malloc(sizeof *ids * (size_t)(2 * rows + n + 1));
    if (!ids) return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %d tokens", rows);
    int32_t *targets = ids + rows, *offsets = targets + rows;
    fth_rng rng;
    fth_rng_init(&rng, 1, (uint64_t)side);
    for (int32_t i = 0; i < rows && vocab; i++)
        ids[i] = 4 + (int32_t)fth_rng_below(&rng, (uint64_t)(vocab - 4));
    for (int32_t i = 0; i < rows; i++) {
        const int32_t first = words ? 4 : 0;
        targets[i] = first + (int32_t)fth_rng_below(&rng, (uint64_t)(classes - first));
        const bool cls = fth_config_has_cls(c) && i % length == 0;
        if (side == FTH_SRC && (cls || !has_target(c, i))) targets[i] = -1;
    }
    for (int32_t i = 0; i <= n; i++) offsets[i] = i * length;
    fth_err err = fth_batch_store_rows(&b->store, side, n, offsets, vocab ? ids : NULL, vocab,
                                       targeted ? targets : NULL, classes);
    free(ids);
    return err;
}

static fth_err fill_pictures(fth_bench_batch *b, const bench_options *o, const fth_config *c) {
    const int32_t length = (int32_t)longest_of(o, c), n = (int32_t)(o->max_tokens / length);
    const int32_t patches = fth_config_patches(c);
    const int32_t width = fth_front_width(c);
    b->numbers = malloc(sizeof *b->numbers * (size_t)n * (size_t)patches * (size_t)width);
    b->masked = malloc(sizeof *b->masked * (size_t)n * (size_t)patches);
    if (!b->numbers || !b->masked) return fth_fail(FTH_NO_MEMORY, "no memory for %d pictures", n);
    fth_rng rng;
    fth_rng_init(&rng, 1, 3);
    for (int64_t i = 0; i < (int64_t)n * patches * width; i++)
        b->numbers[i] = (float)fth_rng_normal(&rng);
    for (int64_t i = 0; i < (int64_t)n * patches; i++)
        b->masked[i] = has_target(c, i / patches * length + fth_config_has_cls(c) + i % patches);
    return fth_batch_store_pictures(&b->store, n, patches, width, b->numbers, b->masked);
}

static fth_err fill_frames(fth_bench_batch *b, const bench_options *o, const fth_config *c) {
    const fth_packed_side *src = &b->store.batch.side[FTH_SRC];
    const int32_t width = fth_front_width(c), length = (int32_t)length_of(o, c, FTH_SRC);
    const int64_t count = (int64_t)src->rows * width;
    b->numbers = malloc(sizeof *b->numbers * (size_t)count);
    b->masked = calloc((size_t)src->rows, sizeof *b->masked);
    if (!b->numbers || !b->masked)
        return fth_fail(FTH_NO_MEMORY, "no memory for %d rows of frames", src->rows);
    fth_normals(1, 3, count, b->numbers);
    for (int32_t row = length - 1; row < src->rows && fth_frames_lack(o->frames); row += length)
        b->masked[row] = 1;
    return fth_batch_store_numbers(&b->store, b->store.batch.n_sent, src->offsets, width,
                                   b->numbers, b->masked);
}

/* A class or a value of every sentence. */
static fth_err fill_labels(fth_bench_batch *b, const fth_config *c) {
    const int32_t n = b->store.batch.n_sent;
    const bool value = fth_head_targets(c) == FTH_TARGET_VALUE;
    float *values = value ? malloc(sizeof *values * (size_t)(n + 1)) : NULL;
    b->labels = malloc(sizeof *b->labels * (size_t)(n + 1));
    if (!b->labels || (value && !values))
        return fth_fail(FTH_NO_MEMORY, "no memory for the labels of %d sentences", n);
    fth_rng rng;
    fth_rng_init(&rng, 1, 4);
    for (int32_t s = 0; s < n; s++) {
        b->labels[s] = (int32_t)fth_rng_below(&rng, (uint64_t)fth_config_output_vocab(c));
        if (value) values[s] = (float)fth_rng_normal(&rng);
    }
    b->values = values;
    fth_batch_store_labels(&b->store, value ? NULL : b->labels, values);
    return FTH_OK;
}

fth_err fth_bench_batch_init(fth_bench_batch *b, const bench_options *o, const fth_config *c) {
    const fth_trainer_spec size = fth_bench_size(o, c);
    FTH_TRY(fth_batch_store_init(&b->store, (int32_t)size.src_tokens, (int32_t)size.tgt_tokens,
                                 (int32_t)o->max_tokens));
    if (size.src_tokens) FTH_TRY(fill_side(b, o, c, FTH_SRC, c->src_vocab));
    if (size.tgt_tokens) FTH_TRY(fill_side(b, o, c, FTH_TGT, c->tgt_vocab));
    if (has_pictures(c)) FTH_TRY(fill_pictures(b, o, c));
    if (has_frames(c)) FTH_TRY(fill_frames(b, o, c));
    return fth_head_rows(c) == FTH_ROWS_SENTENCES ? fill_labels(b, c) : FTH_OK;
}

void fth_bench_batch_fini(fth_bench_batch *b) {
    fth_batch_store_fini(&b->store);
    free(b->numbers);
    free(b->values);
    free(b->masked);
    free(b->labels);
    *b = (fth_bench_batch){0};
}
