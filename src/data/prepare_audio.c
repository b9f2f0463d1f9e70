/* prepare_audio.c: blocks of rows are computed by all threads and written in their order, so the
 * result does not depend on how many there are. */
#include "data/prepare_audio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/writer.h"
#include "data/audio_batch.h"
#include "data/audio_list.h"
#include "data/speech_facts.h"
#include "data/vectors.h"

enum { ROWS_OF_THREAD = 16 }; /* of a block */

typedef struct work {
    const fth_prepare_audio *a;
    const char *folder;
    fth_speech_facts facts;
    fth_filter_bank *bank;
    fth_audio_item *items; /* [room] */
    int64_t room, n;
    /* the split at hand */
    int split;
    fth_audio_counts *counts;
    fth_vectors_writer *frames;
    fth_writer texts;
    /* with a norm of the training set */
    double sum[FTH_MOST_FEATURES], squares[FTH_MOST_FEATURES];
} work;

/* ---- rows ---- */

static void clear(work *w) {
    for (int64_t i = 0; i < w->n; i++) fth_audio_item_fini(&w->items[i]);
    w->n = 0;
}

/* Copies of each recording of the split at hand, at different speeds. */
static int copies_of(const work *w) {
    return w->split == FTH_TRAIN && w->a->n_speeds > 0 ? w->a->n_speeds : 1;
}

static fth_err add_item(work *w, const fth_audio_list *list, const fth_audio_row *row, int copy) {
    fth_audio_item *item = &w->items[w->n++];
    *item = (fth_audio_item){.clip = row->clip, .text = strdup(row->text)};
    item->clip.path = strdup(row->clip.path);
    item->clip.speed = w->split == FTH_TRAIN ? w->a->speeds[copy] : 0;
    item->place = strdup(fth_audio_list_place(list));
    return item->clip.path && item->text && item->place ? FTH_OK
                                                        : fth_no_memory("preparing recordings");
}

/* Takes rows until the block is full; *ended at the end of the manifest. */
static fth_err fill_block(work *w, fth_audio_list *list, bool *ended) {
    fth_audio_row row;
    while (w->n + copies_of(w) <= w->room) {
        FTH_TRY(fth_audio_list_next(list, &row));
        *ended = row.clip.path == NULL;
        if (*ended) return FTH_OK;
        for (int copy = 0; copy < copies_of(w); copy++) FTH_TRY(add_item(w, list, &row, copy));
    }
    return FTH_OK;
}

/* What is done with each recording that is used. */
typedef fth_err take_item(work *w, const fth_audio_item *item);

/* Is it used? Counts why not, or says why none may be left out. */
static fth_err judge(work *w, const fth_audio_item *item, bool *used) {
    fth_audio_counts *c = w->counts;
    const fth_features *f = &item->features;
    *used = false;
    c->read++;
    if (item->err != FTH_OK) {
        const char *why = item->message ? item->message : "cannot be read";
        if (!w->a->skip_bad)
            return fth_fail(item->err, "%s: %s; --skip-bad-audio leaves such recordings out",
                            item->place, why);
        fth_log_warn(w->a->log, "%s: %s; left out", item->place, why);
        c->unreadable++;
        return FTH_OK;
    }
    if (f->state == FTH_FEATURES_TOO_LONG && w->a->strict)
        return fth_fail(FTH_BAD_INPUT, "%s: %s: has more frames than --max-frames %lld",
                        item->place, item->clip.path, (long long)w->a->max_frames);
    const bool train = w->split == FTH_TRAIN;
    c->too_long += f->state == FTH_FEATURES_TOO_LONG;
    c->too_short += f->state == FTH_FEATURES_TOO_SHORT;
    if (f->state != FTH_FEATURES_THERE) return FTH_OK;
    c->silent += f->silent;
    if (f->silent && train) return FTH_OK;
    if (train && fth_utf8_is_blank(item->text, strlen(item->text))) {
        c->empty++;
        return FTH_OK;
    }
    c->resampled += f->file_rate != w->facts.rate;
    c->mixed += f->channels > 1;
    *used = true;
    return FTH_OK;
}

/* Every row of a manifest, in their order. */
static fth_err walk(work *w, const char *title, take_item *take) {
    const char *path = w->a->manifest[w->split];
    fth_audio_list *list = NULL;
    fth_progress progress;
    int64_t total = 0;
    bool ended = false;
    *w->counts = (fth_audio_counts){0};
    FTH_TRY(fth_audio_list_count(path, &total));
    FTH_TRY(fth_audio_list_open(path, &list));
    fth_err err = FTH_OK;
    fth_progress_init(&progress, w->a->log, fth_real_clock(), title, "recordings", 0,
                      total * copies_of(w));
    while (err == FTH_OK && !ended) {
        FTH_TRY_OR(err, fill_block(w, list, &ended), end);
        FTH_TRY_OR(err,
                   fth_audio_batch_read(w->items, w->n, w->bank, &w->facts, w->a->max_frames,
                                        w->a->threads),
                   end);
        for (int64_t i = 0; i < w->n; i++) {
            bool used;
            FTH_TRY_OR(err, judge(w, &w->items[i], &used), end);
            if (used) FTH_TRY_OR(err, take(w, &w->items[i]), end);
        }
        fth_progress_update(&progress, w->counts->read, NULL);
        clear(w);
    }
    if (err == FTH_OK) fth_progress_end(&progress);
end:
    clear(w);
    fth_audio_list_free(list);
    return err;
}

/* ---- what all recordings have in common ---- */

static fth_err check_manifests(const work *w) {
    for (int i = 0; i < FTH_N_SPLITS; i++) {
        const char *path = w->a->manifest[i];
        fth_audio_list *list = NULL;
        if (!path) continue;
        FTH_TRY(fth_audio_list_open(path, &list));
        const bool fine = fth_audio_list_has_texts(list);
        fth_audio_list_free(list);
        if (!fine)
            return fth_fail(FTH_BAD_INPUT,
                            "%s: a manifest begins with a line of column names, tabs between them; "
                            "'audio' and 'tgt_text' must be among them",
                            path);
    }
    return FTH_OK;
}

/* The first recording that can be read says how many samples a second they have. */
static fth_err find_rate(work *w) {
    int split = 0;
    fth_audio_list *list = NULL;
    fth_audio_row row;
    double seconds;
    w->facts.rate = w->a->rate;
    while (split < FTH_N_SPLITS && !w->a->manifest[split]) split++;
    if (w->facts.rate) return FTH_OK;
    FTH_TRY(fth_audio_list_open(w->a->manifest[split], &list));
    fth_err err;
    while ((err = fth_audio_list_next(list, &row)) == FTH_OK && row.clip.path && !w->facts.rate) {
        err = fth_sound_look(&row.clip, &seconds, &w->facts.rate);
        if (err == FTH_OK || w->a->skip_bad) continue;
        err = fth_fail_in(err, "%s", fth_audio_list_place(list));
        break;
    }
    fth_audio_list_free(list);
    if (err == FTH_OK && !w->facts.rate)
        err = fth_fail(FTH_BAD_INPUT, "%s: names no recording that can be read",
                       w->a->manifest[split]);
    return err;
}

static fth_err measure(work *w, const fth_audio_item *item) {
    const int32_t bins = w->facts.features;
    const fth_features *f = &item->features;
    w->counts->frames += f->n;
    for (int64_t i = 0; i < f->n; i++)
        for (int32_t b = 0; b < bins; b++) {
            const double x = (double)fth_half_to_float(f->frames[i * bins + b]);
            w->sum[b] += x;
            w->squares[b] += x * x;
        }
    return FTH_OK;
}

/* Mean and deviation of each value over the training recordings. */
static fth_err find_norm(work *w) {
    fth_speech_facts *f = &w->facts;
    if (w->a->norm != FTH_FEATURE_NORM_GLOBAL) {
        f->norm = w->a->norm;
        return FTH_OK;
    }
    if (!w->a->manifest[FTH_TRAIN])
        return fth_fail(FTH_USAGE, "--feature-norm global: needs --train-audio");
    f->norm = FTH_FEATURE_NORM_NONE;
    w->split = FTH_TRAIN;
    FTH_TRY(walk(w, "mean and deviation", measure));
    f->norm = FTH_FEATURE_NORM_GLOBAL;
    const double n = (double)w->counts->frames;
    for (int32_t b = 0; b < f->features && n > 0; b++) {
        f->mean[b] = w->sum[b] / n;
        const double variance = w->squares[b] / n - f->mean[b] * f->mean[b];
        f->deviation[b] = variance > 1e-10 ? sqrt(variance) : 1;
    }
    return n > 0 ? FTH_OK
                 : fth_fail(FTH_BAD_INPUT, "%s: none of its recordings can be used",
                            w->a->manifest[FTH_TRAIN]);
}

/* ---- splits ---- */

static fth_err write_item(work *w, const fth_audio_item *item) {
    w->counts->frames += item->features.n;
    w->counts->written++;
    FTH_TRY(fth_writer_put(&w->texts, item->text, strlen(item->text)));
    FTH_TRY(fth_writer_put(&w->texts, "\n", 1));
    return fth_vectors_writer_add(w->frames, item->features.frames, item->features.n);
}

/* One line for everything that a user should know of. */
static void say(const work *w) {
    const fth_audio_counts *c = w->counts;
    const char *name = fth_split_name(w->split);
    const struct {
        int64_t n;
        const char *what;
    } left_out[] = {{c->too_long, "longer than --max-frames"},
                    {c->too_short, "shorter than a window of 25 ms"},
                    {c->empty, "without a text"},
                    {c->unreadable, "not to be read"},
                    {w->split == FTH_TRAIN ? c->silent : 0, "silent throughout"}};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (left_out[i].n)
            fth_log_warn(w->a->log, "%s: %lld of %lld recordings left out: %s", name,
                         (long long)left_out[i].n, (long long)c->read, left_out[i].what);
    if (c->silent && w->split != FTH_TRAIN)
        fth_log_warn(w->a->log, "%s: %lld recordings are silent throughout", name,
                     (long long)c->silent);
    if (c->resampled)
        fth_log_info(w->a->log, "%s: %lld recordings resampled to %d samples a second", name,
                     (long long)c->resampled, w->facts.rate);
    if (c->mixed)
        fth_log_info(w->a->log, "%s: %lld recordings have several channels; their mean is taken",
                     name, (long long)c->mixed);
}

static fth_err write_split(work *w, int split, fth_audio_counts *counts) {
    w->split = split;
    w->counts = counts;
    char *frames = fth_strdup_printf("%s/%s.frames", w->folder, fth_split_name(split));
    char *texts = fth_strdup_printf("%s/%s.tgt.txt", w->folder, fth_split_name(split));
    fth_err err = frames && texts ? fth_vectors_writer_new(frames, FTH_VECTOR_F16,
                                                           w->facts.features, 0, &w->frames)
                                  : fth_no_memory("preparing recordings");
    if (err == FTH_OK) err = fth_writer_open(&w->texts, texts);
    if (err == FTH_OK) err = walk(w, fth_split_name(split), write_item);
    if (err == FTH_OK && counts->written == 0)
        err = fth_fail(FTH_BAD_INPUT, "%s: none of its %lld recordings can be used",
                       w->a->manifest[split], (long long)counts->read);
    if (err == FTH_OK) err = fth_vectors_writer_finish(w->frames);
    if (err == FTH_OK) err = fth_writer_commit(&w->texts);
    if (err == FTH_OK) say(w);
    fth_vectors_writer_free(w->frames);
    fth_writer_fini(&w->texts);
    w->frames = NULL;
    w->texts = (fth_writer){0};
    free(frames);
    free(texts);
    return err;
}

static fth_err run(work *w, fth_audio_counts counts[FTH_N_SPLITS]) {
    static const int order[] = {FTH_VALID, FTH_TEST, FTH_TRAIN};
    w->facts.features = w->a->features;
    w->counts = &counts[FTH_TRAIN];
    FTH_TRY(check_manifests(w));
    FTH_TRY(find_rate(w));
    FTH_TRY(fth_filter_bank_new(w->facts.rate, w->facts.features, &w->bank));
    w->room = ROWS_OF_THREAD * (int64_t)(w->a->threads > 1 ? w->a->threads : 1);
    w->items = calloc((size_t)w->room, sizeof *w->items);
    if (!w->items) return fth_no_memory("preparing recordings");
    FTH_TRY(find_norm(w));
    for (int i = 0; i < FTH_N_SPLITS; i++)
        if (w->a->manifest[order[i]]) FTH_TRY(write_split(w, order[i], &counts[order[i]]));
    return fth_speech_facts_write(&w->facts, w->folder);
}

fth_err fth_prepare_audio_splits(const fth_prepare_audio *a, const char *folder,
                                 fth_audio_counts counts[FTH_N_SPLITS]) {
    work *w = calloc(1, sizeof *w);
    if (!w) return fth_no_memory("preparing recordings");
    w->a = a;
    w->folder = folder;
    fth_err err = run(w, counts);
    fth_filter_bank_free(w->bank);
    free(w->items);
    free(w);
    return err;
}

fth_err fth_prepare_audio_describe(const char *folder, int split, const fth_audio_counts *c,
                                   json_t *entry) {
    fth_vectors *v = NULL;
    char hash[FTH_HASH_TEXT];
    char *path = fth_strdup_printf("%s/%s.frames", folder, fth_split_name(split));
    fth_err err = path ? fth_vectors_open(path, &v) : fth_no_memory("preparing recordings");
    free(path);
    FTH_TRY(err);
    fth_hash_text(v->hash, hash);
    fth_vectors_free(v);
    json_t *audio =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "read", (json_int_t)c->read,
                  "frames", (json_int_t)c->frames, "too_long", (json_int_t)c->too_long, "too_short",
                  (json_int_t)c->too_short, "empty", (json_int_t)c->empty, "unreadable",
                  (json_int_t)c->unreadable, "silent", (json_int_t)c->silent, "resampled",
                  (json_int_t)c->resampled, "mixed", (json_int_t)c->mixed, "hash", hash);
    return json_object_set_new(entry, "audio", audio) == 0 ? FTH_OK
                                                           : fth_no_memory("preparing recordings");
}
