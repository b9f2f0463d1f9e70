/* batcher.c: shuffles by counting (shuffle.h), takes a window of sentences and packs it
 * (pack.h); a position is an epoch, a window and a batch in it. */
#include "data/batcher.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "data/direction_draw.h"
#include "data/frames.h"
#include "data/items.h"
#include "data/pack.h"
#include "data/shuffle.h"

enum {
    WINDOW_ITEMS = 1 << 16, /* at least, */
    WINDOW_BATCHES = 256,   /* and so many batches, */
    WINDOW_MOST = 1 << 20,  /* but not more items than these */
    NEIGHBOURS = 64,        /* items that stay together when a data set is shuffled that */
    SPREAD_MOST = 1 << 24,  /* has more items than these: reads from the disk are long then */
};

struct fth_batcher {
    fth_batch_options options;
    fth_items items;
    fth_direction_draw draw;             /* of data of many languages; zero: none */
    int64_t n;                           /* items of an epoch */
    int64_t window;                      /* items of a window */
    int64_t n_windows;                   /* of an epoch */
    int64_t group;                       /* neighbours that are shuffled as one */
    fth_position at;                     /* of the batch that comes next */
    int64_t loaded_epoch, loaded_window; /* what item and packing hold; epoch 0: nothing */
    fth_pack_item *item;                 /* [window] */
    int32_t n_item;
    fth_packing packing;
    int32_t *order; /* [window] in which the batches of the window come */
    int64_t window_left_out;
    fth_batch_stats stats;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* All rows of an epoch, of the side with more. */
static int64_t epoch_rows(const fth_batcher *b) {
    const fth_dataset *d = b->items.data;
    int64_t rows = 0;
    if (b->items.stream) return b->items.stream + (b->items.n - 1) * b->items.spec.context;
    for (int s = 0; s < d->n_sides; s++) rows = most(rows, d->side[s].tokens + d->sentences);
    if (d->frames) rows = most(rows, fth_frame_rows(d->frames->vectors) + d->sentences / 2);
    return rows;
}

static void choose_window(fth_batcher *b) {
    int64_t n = b->n;
    b->window = b->options.window;
    if (!b->window) {
        double rows = (double)epoch_rows(b) / (double)n; /* of an item */
        double wanted = WINDOW_BATCHES * (double)b->options.max_tokens / rows;
        b->window = wanted > WINDOW_MOST ? WINDOW_MOST : most((int64_t)wanted, WINDOW_ITEMS);
    }
    b->window = least(b->window, n);
    b->group = b->options.neighbours ? b->options.neighbours : n > SPREAD_MOST ? NEIGHBOURS : 1;
    if (b->options.in_order) b->group = 1;
    int64_t groups = (n + b->group - 1) / b->group;
    b->window = (b->window + b->group - 1) / b->group * b->group;
    b->n_windows = (groups * b->group + b->window - 1) / b->window;
}

/* Rows that a sentence may have. */
static int64_t longest_allowed(const fth_batch_options *o) {
    return o->max_length > 0 ? least(o->max_length, o->max_tokens) : o->max_tokens;
}

static const char *limiting_option(const fth_batch_options *o) {
    return longest_allowed(o) < o->max_tokens ? "max-positions" : "max-tokens";
}

/* Rows of the longest sentence of all sides. */
static int64_t longest_of(const fth_dataset *d) {
    int64_t longest = d->frames ? fth_frame_rows(d->frames->longest) : 0;
    for (int s = 0; s < d->n_sides; s++) longest = most(longest, d->side[s].longest + (int64_t)1);
    return longest;
}

static bool has_too_long(const fth_dataset *d, const fth_batch_options *o) {
    return !o->block && longest_of(d) > longest_allowed(o);
}

static fth_err check_options(const fth_dataset *d, const fth_batch_options *o) {
    if (o->max_tokens < 1)
        return fth_fail(FTH_USAGE, "max-tokens %d is not above 0", o->max_tokens);
    if (o->block > o->max_tokens)
        return fth_fail(FTH_USAGE, "a block of %d tokens does not fit max-tokens %d", o->block,
                        o->max_tokens);
    if (d->sentences == 0) return fth_fail(FTH_BAD_INPUT, "%s: has no sentences", d->path);
    if (!o->strict || !has_too_long(d, o)) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: its longest sentence has %lld tokens with the end symbol%s, more than "
                    "--%s %lld",
                    d->path, (long long)longest_of(d), d->frames ? " or rows of sound" : "",
                    limiting_option(o), (long long)longest_allowed(o));
}

fth_err fth_batcher_new(const fth_dataset *data, const fth_batch_options *options,
                        fth_batcher **out) {
    fth_err err;
    FTH_TRY(check_options(data, options));
    fth_batcher *b = calloc(1, sizeof *b);
    if (!b) return fth_fail(FTH_NO_MEMORY, "no memory to make batches");
    b->options = *options;
    b->at = FTH_FIRST_POSITION;
    fth_item_spec item = options->item;
    item.block = options->block;
    item.context = options->context_window;
    FTH_TRY_OR(err, fth_items_init(&b->items, data, &item), fail);
    const double temperature = options->in_order          ? 1
                               : options->temperature > 0 ? options->temperature
                                                          : data->temperature;
    FTH_TRY_OR(err, fth_direction_draw_init(&b->draw, data, temperature, options->seed), fail);
    b->n = b->draw.n ? fth_direction_draw_items(&b->draw) : b->items.n;
    choose_window(b);
    b->item = malloc((size_t)b->window * sizeof *b->item);
    b->order = malloc((size_t)b->window * sizeof *b->order);
    if (!b->item || !b->order) {
        err = fth_fail(FTH_NO_MEMORY, "no memory for a window of %lld sentences",
                       (long long)b->window);
        goto fail;
    }
    *out = b;
    return FTH_OK;
fail:
    fth_batcher_free(b);
    return err;
}

void fth_batcher_free(fth_batcher *b) {
    if (!b) return;
    fth_packing_fini(&b->packing);
    fth_items_fini(&b->items);
    fth_direction_draw_fini(&b->draw);
    free(b->item);
    free(b->order);
    free(b);
}

/* Fisher and Yates; stream keeps the uses apart. */
static void mix(void *things, size_t size, int32_t n, uint64_t seed, uint64_t stream) {
    fth_rng rng;
    char *all = things, kept[sizeof(fth_pack_item)];
    fth_rng_init(&rng, seed ^ UINT64_C(0x77696e646f77), stream);
    for (int32_t i = n - 1; i > 0; i--) {
        size_t k = (size_t)fth_rng_below(&rng, (uint64_t)i + 1);
        memcpy(kept, all + (size_t)i * size, size);
        memcpy(all + (size_t)i * size, all + k * size, size);
        memcpy(all + k * size, kept, size);
    }
}

/* The items of a window and their rows; those that are too long are left out. */
static fth_err gather(fth_batcher *b, int64_t epoch, int64_t window) {
    fth_shuffle shuffle;
    int64_t n = b->n, groups = (n + b->group - 1) / b->group;
    int64_t end = least((window + 1) * b->window, groups * b->group);
    int64_t limit = longest_allowed(&b->options);
    fth_shuffle_init(&shuffle, b->options.seed, epoch, (uint64_t)groups);
    b->n_item = 0;
    b->window_left_out = 0;
    for (int64_t place = window * b->window; place < end; place++) {
        int64_t i = place, src, tgt;
        if (!b->options.in_order) {
            uint64_t group = fth_shuffle_at(&shuffle, (uint64_t)(place / b->group));
            i = (int64_t)group * b->group + place % b->group;
            if (i >= n) continue; /* the last group is not full */
            if (b->draw.n) i = fth_direction_draw_at(&b->draw, epoch, i);
        }
        FTH_TRY(fth_items_rows(&b->items, i, &src, &tgt));
        if (src > limit || tgt > limit) {
            b->window_left_out++;
            continue;
        }
        b->item[b->n_item++] = (fth_pack_item){i, (int32_t)src, (int32_t)tgt};
    }
    return FTH_OK;
}

static fth_err load_window(fth_batcher *b, int64_t epoch, int64_t window) {
    fth_pack_limits limits = {b->options.max_tokens, b->options.max_sentences};
    uint64_t stream = ((uint64_t)epoch << 24 ^ (uint64_t)window) * 2;
    if (b->loaded_epoch == epoch && b->loaded_window == window) return FTH_OK;
    b->loaded_epoch = 0;
    FTH_TRY(gather(b, epoch, window));
    if (b->options.in_order) {
        FTH_TRY(fth_pack_in_order(&b->packing, b->item, b->n_item, limits));
    } else {
        if (b->group > 1) mix(b->item, sizeof *b->item, b->n_item, b->options.seed, stream);
        FTH_TRY(fth_pack(&b->packing, b->item, b->n_item, limits));
    }
    for (int32_t i = 0; i < b->packing.n_batches; i++) b->order[i] = i;
    if (!b->options.in_order)
        mix(b->order, sizeof *b->order, b->packing.n_batches, b->options.seed, stream + 1);
    b->loaded_epoch = epoch;
    b->loaded_window = window;
    return FTH_OK;
}

/* Moves on from the end of a window, to the next epoch if need be. */
static void next_window(fth_batcher *b) {
    b->stats.left_out += b->window_left_out;
    b->at.window++;
    b->at.batch = 0;
    if (b->options.in_order || b->at.window < b->n_windows) return;
    b->at = (fth_position){.epoch = b->at.epoch + 1};
}

/* Makes sure that a batch stands at the position; *ended at the end of a pass in order. */
static fth_err find_batch(fth_batcher *b, int *ended) {
    int64_t empty = 0;
    for (;;) {
        *ended = b->options.in_order && b->at.window >= b->n_windows;
        if (*ended) return FTH_OK;
        FTH_TRY(load_window(b, b->at.epoch, b->at.window));
        if (b->at.batch < b->packing.n_batches) return FTH_OK;
        if (b->packing.n_batches == 0 && ++empty > b->n_windows)
            return fth_fail(FTH_BAD_INPUT, "%s: no sentence is short enough for --%s %lld",
                            b->items.data->path, limiting_option(&b->options),
                            (long long)longest_allowed(&b->options));
        next_window(b);
    }
}

fth_err fth_batcher_too_long(const fth_batcher *b, int64_t *out) {
    int64_t limit = longest_allowed(&b->options);
    *out = 0;
    if (!has_too_long(b->items.data, &b->options)) return FTH_OK;
    for (int64_t i = 0, src, tgt; i < b->items.n; i++) {
        FTH_TRY(fth_items_rows(&b->items, i, &src, &tgt));
        *out += src > limit || tgt > limit;
    }
    return FTH_OK;
}

fth_err fth_batcher_seek(fth_batcher *b, fth_position position) {
    if (position.epoch < 1 || position.window < 0 || position.batch < 0 || position.index < 0 ||
        position.window > b->n_windows - !b->options.in_order)
        return fth_fail(FTH_BAD_INPUT, "%s: there is no window %lld of epoch %lld; it has %lld",
                        b->items.data->path, (long long)position.window, (long long)position.epoch,
                        (long long)b->n_windows);
    if (position.window < b->n_windows) {
        FTH_TRY(load_window(b, position.epoch, position.window));
        if (position.batch > b->packing.n_batches)
            return fth_fail(FTH_BAD_INPUT, "%s: there is no batch %lld of window %lld; it has %d",
                            b->items.data->path, (long long)position.batch,
                            (long long)position.window, b->packing.n_batches);
    }
    b->at = position;
    b->stats = (fth_batch_stats){0};
    return FTH_OK;
}

/* What a batch has beside tokens. */
static fth_err prepare_numbers(const fth_batcher *b, fth_packed *out) {
    const fth_dataset *d = b->items.data;
    const fth_item_spec *spec = &b->items.spec;
    const size_t width = (size_t)fth_items_width(&b->items), room = (size_t)out->max_tokens;
    out->has_src_out = spec->masking || spec->masked > 0 || spec->places;
    out->has_labels = spec->encoder && d->labels && d->classes && !d->places;
    out->has_values = spec->encoder && d->labels && !d->classes;
    out->has_masked = spec->masked > 0 || d->frames;
    out->number_rows = width && !d->frames ? fth_image_patches(&d->image) : 0;
    out->number_width = (int32_t)width;
    if (!width || out->numbers) return FTH_OK;
    out->numbers = malloc(room * width * sizeof *out->numbers);
    out->masked = malloc(room * sizeof *out->masked);
    return out->numbers && out->masked
               ? FTH_OK
               : fth_fail(FTH_NO_MEMORY, "no memory for a batch of %d rows of numbers",
                          out->max_tokens);
}

/* Masks and changes of pictures do not depend on the pass where the order does not. */
static int64_t epoch_of(const fth_batcher *b) {
    return b->options.in_order ? 0 : b->at.epoch;
}

static fth_err fill(const fth_batcher *b, fth_packed *out) {
    int32_t batch = b->order[b->at.batch];
    FTH_TRY(prepare_numbers(b, out));
    for (int32_t k = b->packing.begin[batch]; k < b->packing.begin[batch + 1]; k++) {
        const fth_pack_item *item = &b->item[k];
        const int64_t patch =
            b->items.data->frames ? out->src_rows : (int64_t)out->n_sent * out->number_rows;
        const fth_item_rows to = {.src = out->src + out->src_rows,
                                  .src_out = out->src_out + out->src_rows,
                                  .in = out->tgt_in + out->tgt_rows,
                                  .out = out->tgt_out + out->tgt_rows,
                                  .numbers = out->numbers ? out->numbers + patch * out->number_width
                                                          : NULL,
                                  .masked = out->masked ? out->masked + patch : NULL,
                                  .label = out->labels + out->n_sent,
                                  .value = out->values + out->n_sent};
        FTH_TRY(fth_items_fill(&b->items, item->index, epoch_of(b), &to));
        out->src_offsets[out->n_sent] = out->src_rows;
        out->tgt_offsets[out->n_sent] = out->tgt_rows;
        out->sentences[out->n_sent++] = item->index;
        out->src_rows += item->src;
        out->tgt_rows += item->tgt;
    }
    out->src_offsets[out->n_sent] = out->src_rows;
    out->tgt_offsets[out->n_sent] = out->tgt_rows;
    return FTH_OK;
}

fth_err fth_batcher_next(fth_batcher *b, fth_packed *out) {
    int ended;
    out->n_sent = out->src_rows = out->tgt_rows = 0;
    if (out->max_tokens < b->options.max_tokens)
        return fth_fail(FTH_FAILED, "room for batches of %d tokens, but max-tokens is %d",
                        out->max_tokens, b->options.max_tokens);
    FTH_TRY(find_batch(b, &ended));
    if (ended) return FTH_OK;
    FTH_TRY(fill(b, out));
    out->position = b->at;
    b->at.batch++;
    b->at.index++;
    if (b->at.batch == b->packing.n_batches) next_window(b);
    out->next = b->at;
    b->stats.batches++;
    b->stats.sentences += out->n_sent;
    b->stats.src_rows += out->src_rows;
    b->stats.tgt_rows += out->tgt_rows;
    return FTH_OK;
}

int64_t fth_batcher_count(fth_batcher *b, int64_t n, fth_packed *room, fth_batch_count *count,
                          const void *context) {
    const fth_position at = b->at;
    const fth_batch_stats stats = b->stats;
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (fth_batcher_next(b, room) != FTH_OK || room->n_sent == 0) break;
        sum += count(context, room);
    }
    b->at = at;
    b->stats = stats;
    return sum;
}

fth_batch_stats fth_batcher_stats(const fth_batcher *b) {
    return b->stats;
}

double fth_batcher_fill(const fth_batcher *b) {
    int64_t capacity = b->stats.batches * b->options.max_tokens;
    int64_t rows = most(b->stats.src_rows, b->stats.tgt_rows);
    return capacity ? (double)rows / (double)capacity : 0;
}

int64_t fth_batcher_expected(const fth_batcher *b) {
    const bool bos = b->items.spec.encoder && !b->items.stream; /* of every sentence */
    const int64_t rows = epoch_rows(b) + (bos ? b->items.data->sentences : 0);
    return most(1, (rows + b->options.max_tokens - 1) / b->options.max_tokens);
}

fth_err fth_packed_init(fth_packed *p, int32_t max_tokens) {
    size_t n = (size_t)max_tokens;
    *p = (fth_packed){.max_tokens = max_tokens};
    p->src = malloc(n * sizeof *p->src);
    p->tgt_in = malloc(n * sizeof *p->tgt_in);
    p->tgt_out = malloc(n * sizeof *p->tgt_out);
    p->src_offsets = malloc((n + 1) * sizeof *p->src_offsets);
    p->tgt_offsets = malloc((n + 1) * sizeof *p->tgt_offsets);
    p->sentences = malloc(n * sizeof *p->sentences);
    p->src_out = malloc(n * sizeof *p->src_out);
    p->labels = malloc(n * sizeof *p->labels);
    p->values = malloc(n * sizeof *p->values);
    if (p->src && p->tgt_in && p->tgt_out && p->src_offsets && p->tgt_offsets && p->sentences &&
        p->src_out && p->labels && p->values)
        return FTH_OK;
    fth_packed_fini(p);
    return fth_fail(FTH_NO_MEMORY, "no memory for a batch of %d tokens", max_tokens);
}

void fth_packed_fini(fth_packed *p) {
    free(p->src);
    free(p->tgt_in);
    free(p->tgt_out);
    free(p->src_offsets);
    free(p->tgt_offsets);
    free(p->sentences);
    free(p->src_out);
    free(p->labels);
    free(p->values);
    free(p->numbers);
    free(p->masked);
    *p = (fth_packed){0};
}
