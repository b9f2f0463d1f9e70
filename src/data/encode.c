/* encode.c: a ring of blocks: the reader fills, the cutters turn text into ids, the writer takes
 * them in their order. */
#include "data/encode.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/philox.h"
#include "base/str.h"
#include "data/masking.h"
#include "data/split_text.h"
#include "data/word_tags.h"

enum { BLOCK_RECORDS = 1024, BLOCK_BYTES = 1 << 20 };
#define NONE SIZE_MAX

/* A record in a block: where its texts stand in block.text, and its tokens in block.ids. */
typedef struct entry {
    int64_t number;            /* in the split, copies of a record counted */
    size_t text[2], length[2]; /* by side */
    size_t ids[2], n[2], words[2];
    size_t references; /* where the first stands; each ends with a NUL */
    int n_references;
    int texts, sides; /* sides: 1 where two texts of a table become one */
    int32_t direction;
    size_t tags;  /* ids before the source */
    bool tagged;  /* the text has a tag in it */
    size_t label; /* where it stands; NONE: there is none */
    const char *file;
    int64_t line;
} entry;

typedef struct block {
    fth_str text;
    fth_ids ids[2];
    entry *entries; /* [BLOCK_RECORDS] */
    int n;
    int64_t bytes; /* of the input, read when it was full */
    int done;      /* cut into tokens, or failed */
    fth_err err;   /* of the thread that cut it */
    char *message; /* what it said */
} block;

/* Blocks go round: read into, cut, written, in order. */
typedef struct ring {
    const fth_encode_options *options;
    pthread_mutex_t lock;
    pthread_cond_t to_cut, cut;
    block *blocks; /* [n_blocks] */
    int n_blocks;
    int64_t filled, taken, written; /* blocks so far */
    int stop;
    pthread_t *threads; /* [n_threads] */
    int n_threads;
} ring;

/* The state of the writing side. */
typedef struct sink {
    const fth_encode_options *options;
    fth_dataset_writer *out;
    fth_split_text texts;
    int64_t *unigram;
    fth_encode_counts *counts;
    uint8_t *word_start; /* of tagged words: of each token; NULL: not needed */
    fth_ids classes;     /* of the record at hand */
} sink;

static size_t count_words(const char *text, size_t length) {
    size_t words = 0;
    int inside = 0;
    for (size_t i = 0; i < length; i++) {
        int space = text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');
        words += !space && !inside;
        inside = !space;
    }
    return words;
}

static fth_err add_ids(fth_ids *list, const fth_ids *more) {
    FTH_TRY(fth_ids_reserve(list, more->n));
    memcpy(list->ids + list->n, more->ids, more->n * sizeof *more->ids);
    list->n += more->n;
    return FTH_OK;
}

/* Text i of an entry, of side s. Draws depend on the record, the copy of it and the text alone. */
static fth_err cut_text(const fth_encode_options *o, fth_word_cache *cache, int s, const char *text,
                        const entry *e, int i, fth_ids *out) {
    if (!(o->bpe_dropout > 0))
        return fth_tokenizer_encode_cached(o->tokenizer[s], cache, text, e->length[i], out);
    fth_rng rng;
    fth_rng_init(&rng, UINT64_C(0x6270652064726f70), (uint64_t)e->number * 2 + (uint64_t)i);
    return fth_tokenizer_encode_dropped(o->tokenizer[s], text, e->length[i], o->bpe_dropout, &rng,
                                        out);
}

static bool has_tag(const fth_encode_options *o, const fth_ids *ids, size_t from) {
    for (size_t i = from; o->is_tag && i < ids->n; i++)
        if (o->is_tag[ids->ids[i]]) return true;
    return false;
}

static fth_err cut_entry(const fth_encode_options *o, fth_word_cache caches[2], block *b,
                         entry *e) {
    for (int i = 0; i < e->texts; i++) {
        const int s = i < e->sides ? i : 0;
        const char *text = b->text.text + e->text[i];
        if (s == i) e->ids[s] = b->ids[s].n;
        if (s != i) FTH_TRY(add_ids(&b->ids[s], o->separator));
        if (s == 0 && o->tags) {
            FTH_TRY(add_ids(&b->ids[s], &o->tags[e->direction]));
            e->tags = o->tags[e->direction].n;
        }
        const size_t begin = b->ids[s].n;
        FTH_TRY(cut_text(o, &caches[s], s, text, e, i, &b->ids[s]));
        e->tagged |= has_tag(o, &b->ids[s], begin);
        e->n[s] = b->ids[s].n - e->ids[s];
        e->words[s] += count_words(text, e->length[i]);
    }
    if (e->sides < e->texts) e->length[0] += e->length[1];
    return FTH_OK;
}

static fth_err cut_block(const fth_encode_options *o, fth_word_cache caches[2], block *b) {
    for (int i = 0; i < b->n; i++) FTH_TRY(cut_entry(o, caches, b, &b->entries[i]));
    return FTH_OK;
}

static void *cutter(void *argument) {
    ring *r = argument;
    fth_word_cache caches[2] = {{0}};
    fth_err started = fth_word_cache_init(&caches[0]);
    if (!started) started = fth_word_cache_init(&caches[1]);
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (r->taken == r->filled && !r->stop) pthread_cond_wait(&r->to_cut, &r->lock);
        if (r->stop) break;
        block *b = &r->blocks[r->taken++ % r->n_blocks];
        pthread_mutex_unlock(&r->lock);
        fth_err err = started ? started : cut_block(r->options, caches, b);
        char *message = err == FTH_OK ? NULL : strdup(fth_error_message());
        pthread_mutex_lock(&r->lock);
        b->err = err;
        b->message = message;
        b->done = 1;
        pthread_cond_signal(&r->cut);
    }
    pthread_mutex_unlock(&r->lock);
    for (int s = 0; s < 2; s++) fth_word_cache_fini(&caches[s]);
    return NULL;
}

static void ring_fini(ring *r) {
    pthread_mutex_lock(&r->lock);
    r->stop = 1;
    pthread_cond_broadcast(&r->to_cut);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->n_threads; i++) pthread_join(r->threads[i], NULL);
    for (int i = 0; r->blocks && i < r->n_blocks; i++) {
        block *b = &r->blocks[i];
        fth_str_fini(&b->text);
        for (int s = 0; s < 2; s++) fth_ids_fini(&b->ids[s]);
        free(b->entries);
        free(b->message);
    }
    free(r->blocks);
    free(r->threads);
    pthread_cond_destroy(&r->to_cut);
    pthread_cond_destroy(&r->cut);
    pthread_mutex_destroy(&r->lock);
}

static fth_err ring_start(ring *r, const fth_encode_options *o) {
    *r = (ring){.options = o, .n_blocks = 2 * o->threads + 2};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->to_cut, NULL);
    pthread_cond_init(&r->cut, NULL);
    r->blocks = calloc((size_t)r->n_blocks, sizeof *r->blocks);
    r->threads = calloc((size_t)o->threads, sizeof *r->threads);
    int ready = r->blocks && r->threads;
    for (int i = 0; ready && i < r->n_blocks; i++) {
        r->blocks[i].entries = malloc(BLOCK_RECORDS * sizeof(entry));
        ready = r->blocks[i].entries != NULL;
    }
    if (!ready) return fth_fail(FTH_NO_MEMORY, "no memory for %d blocks of text", r->n_blocks);
    for (int i = 0; i < o->threads; i++) {
        int result = pthread_create(&r->threads[i], NULL, cutter, r);
        if (result) return fth_fail(FTH_FAILED, "cannot start a thread: %s", strerror(result));
        r->n_threads++;
    }
    return FTH_OK;
}

static fth_err copy_text(block *b, const char *text, size_t length, size_t *at) {
    *at = b->text.length;
    return fth_str_add(&b->text, text, length + 1); /* with its NUL */
}

/* Reads records until the block is full or the input ends. */
static fth_err fill_block(const fth_encode_options *o, fth_records *records, block *b,
                          int64_t *number, int *ended) {
    const int copies = o->segmentations > 1 ? o->segmentations : 1;
    fth_record record;
    fth_str_clear(&b->text);
    b->ids[0].n = b->ids[1].n = 0;
    b->n = 0;
    b->done = 0;
    while (b->n + copies <= BLOCK_RECORDS && b->text.length < BLOCK_BYTES) {
        FTH_TRY(fth_records_next(records, &record));
        *ended = record.sides == 0;
        if (*ended) return FTH_OK;
        entry *e = &b->entries[b->n++];
        *e = (entry){.texts = record.sides,
                     .sides = o->separator ? 1 : record.sides,
                     .label = NONE,
                     .direction = record.direction,
                     .n_references = record.n_references,
                     .file = fth_records_file(records),
                     .line = fth_records_line(records)};
        for (int s = 0; s < record.sides; s++) {
            e->length[s] = record.length[s];
            FTH_TRY(copy_text(b, record.text[s], record.length[s], &e->text[s]));
        }
        if (record.label) FTH_TRY(copy_text(b, record.label, strlen(record.label), &e->label));
        e->references = b->text.length;
        for (int i = 0; i < record.n_references; i++) {
            size_t unused;
            FTH_TRY(copy_text(b, record.references[i], strlen(record.references[i]), &unused));
        }
        e->number = (*number)++;
        for (int copy = 1; copy < copies; copy++) {
            b->entries[b->n] = *e;
            b->entries[b->n++].number = (*number)++;
        }
    }
    return FTH_OK;
}

/* Cuts sides to max_tokens; says whether the record is to be left out. */
static fth_err judge(const sink *k, entry *e, int *leave_out) {
    const fth_encode_options *o = k->options;
    int cut = 0, empty = 0, long_side = -1;
    for (int s = 0; s < e->sides; s++) {
        if (o->max_tokens[s] && (int64_t)e->n[s] + 1 > o->max_tokens[s]) {
            e->n[s] = (size_t)o->max_tokens[s] - 1;
            cut = 1;
        }
        if (e->n[s] == (s == 0 ? e->tags : 0)) empty = 1;
        if (o->max_positions && (int64_t)e->n[s] + 1 > o->max_positions) long_side = s;
    }
    if (long_side >= 0 && o->strict)
        return fth_fail(FTH_BAD_INPUT,
                        "%s:%lld: the %s has %zu tokens with its end symbol, more than "
                        "--max-positions %lld",
                        e->file, (long long)e->line, long_side ? "target" : "source",
                        e->n[long_side] + 1, (long long)o->max_positions);
    *leave_out = e->tagged || long_side >= 0 || (empty && o->drop_empty);
    if (e->tagged) {
        if (!k->counts->tagged++)
            snprintf(k->counts->first_tagged, sizeof k->counts->first_tagged, "%s:%lld", e->file,
                     (long long)e->line);
    } else if (long_side >= 0)
        k->counts->too_long++;
    else if (*leave_out)
        k->counts->empty++;
    else
        k->counts->cut += cut;
    return FTH_OK;
}

static void count_tokens(const sink *k, const entry *e, const int32_t *const ids[2]) {
    for (int s = 0; s < e->sides; s++) {
        fth_special_ids special = fth_tokenizer_special(k->options->tokenizer[s]);
        for (size_t i = 0; i < e->n[s]; i++) k->counts->unknown[s] += ids[s][i] == special.unk;
        if (!k->unigram || s != e->sides - 1) continue;
        for (size_t i = 0; i < e->n[s]; i++) k->unigram[ids[s][i]]++;
        k->unigram[special.eos]++;
    }
}

static fth_err find_class(const sink *k, const entry *e, const char *name, size_t length,
                          int32_t *out) {
    *out = fth_label_set_find_part(k->options->labels, name, length);
    if (*out >= 0) return FTH_OK;
    return fth_fail(
        FTH_BAD_INPUT, "%s:%lld: the label '%.*s' is not among the %d of the training text",
        e->file, (long long)e->line, length < 40 ? (int)length : 40, name, k->options->labels->n);
}

/* What stands between blanks must be the words of the tokenizer too. */
static fth_err other_words(const entry *e) {
    return fth_fail(FTH_BAD_INPUT,
                    "%s:%lld: the sentence that ends here has other words for the tokenizer, which "
                    "parts or joins some; --normalization identity leaves them as they are",
                    e->file, (long long)e->line);
}

/* The classes of the words of a record, each at its word's first token; `whole`: tokens before it
 * was cut. */
static fth_err write_tags(sink *k, const block *b, const entry *e, size_t whole) {
    const int32_t *ids = b->ids[0].ids + e->ids[0];
    const char *tags = b->text.text + e->label, *tag;
    size_t length;
    k->classes.n = 0;
    FTH_TRY(fth_ids_reserve(&k->classes, e->n[0] + 1));
    for (size_t i = 0; i < e->n[0]; i++) {
        int32_t class = -1;
        if (i == 0 || k->word_start[ids[i]]) { /* byte-level BPE has no mark on a line's first */
            tag = fth_tagged_tag(&tags, &length);
            if (length == 0) return other_words(e);
            FTH_TRY(find_class(k, e, tag, length, &class));
        }
        k->classes.ids[k->classes.n++] = class;
    }
    fth_tagged_tag(&tags, &length);
    if (length > 0 && e->n[0] == whole) return other_words(e);
    return fth_vectors_writer_add(k->options->label_out, k->classes.ids, (int64_t)e->n[0]);
}

/* The class or the number of a record. */
static fth_err write_label(sink *k, const block *b, const entry *e, size_t whole) {
    const fth_label_set *labels = k->options->labels;
    const char *text = b->text.text + e->label;
    if (labels->kind == FTH_LABELS_PLACES) return write_tags(k, b, e, whole);
    if (labels->kind == FTH_LABELS_NUMBER) {
        double number;
        if (!fth_parse_number(text, &number))
            return fth_fail(FTH_BAD_INPUT, "%s:%lld: the label '%.40s' is not a number", e->file,
                            (long long)e->line, text);
        const float label = (float)number;
        return fth_vectors_writer_add(k->options->label_out, &label, 1);
    }
    int32_t label;
    FTH_TRY(find_class(k, e, text, strlen(text), &label));
    return fth_vectors_writer_add(k->options->label_out, &label, 1);
}

static fth_err write_entry(sink *k, const block *b, entry *e) {
    int leave_out;
    const size_t whole = e->n[0];
    k->counts->read++;
    FTH_TRY(judge(k, e, &leave_out));
    if (leave_out) return FTH_OK;
    const int32_t *ids[2] = {b->ids[0].ids + e->ids[0], NULL};
    if (e->sides == 2) ids[1] = b->ids[1].ids + e->ids[1];
    FTH_TRY(fth_dataset_writer_add(k->out, ids, e->n, e->words, e->length));
    if (k->options->label_out) FTH_TRY(write_label(k, b, e, whole));
    count_tokens(k, e, ids);
    k->counts->written++;
    if (k->options->written_of) k->options->written_of[e->direction]++;
    if (!k->options->text_prefix || e->sides != 2) return FTH_OK;
    const char *texts[2] = {b->text.text + e->text[0], b->text.text + e->text[1]};
    return fth_split_text_put(&k->texts, texts, b->text.text + e->references, e->n_references);
}

static void show_progress(const sink *k, int64_t bytes) {
    char extra[64];
    if (!k->options->progress) return;
    snprintf(extra, sizeof extra, "%lld lines", (long long)k->counts->read);
    fth_progress_update(k->options->progress, bytes / 1000, extra);
}

/* Waits for the oldest block and writes it. */
static fth_err write_oldest(ring *r, sink *k) {
    block *b = &r->blocks[r->written % r->n_blocks];
    pthread_mutex_lock(&r->lock);
    while (!b->done) pthread_cond_wait(&r->cut, &r->lock);
    r->written++;
    pthread_mutex_unlock(&r->lock);
    if (b->err != FTH_OK)
        return fth_fail(b->err, "%s", b->message ? b->message : "cutting text failed");
    for (int i = 0; i < b->n; i++) FTH_TRY(write_entry(k, b, &b->entries[i]));
    show_progress(k, b->bytes);
    return FTH_OK;
}

static fth_err run(ring *r, fth_records *records, sink *k) {
    int64_t number = 0; /* of entries */
    for (int ended = 0; !ended;) {
        if (r->filled - r->written == r->n_blocks) FTH_TRY(write_oldest(r, k));
        block *b = &r->blocks[r->filled % r->n_blocks];
        FTH_TRY(fill_block(k->options, records, b, &number, &ended));
        b->bytes = fth_records_bytes(records);
        pthread_mutex_lock(&r->lock);
        r->filled++;
        pthread_cond_signal(&r->to_cut);
        pthread_mutex_unlock(&r->lock);
    }
    while (r->written < r->filled) FTH_TRY(write_oldest(r, k));
    return FTH_OK;
}

fth_err fth_encode_split(const fth_text_spec *text, const fth_encode_options *options,
                         fth_dataset_writer *out, int64_t *unigram, fth_encode_counts *counts) {
    ring r;
    fth_records *records = NULL;
    sink k = {.options = options, .out = out, .unigram = unigram, .counts = counts};
    *counts = (fth_encode_counts){0};
    fth_err err = ring_start(&r, options);
    if (err != FTH_OK) goto end;
    FTH_TRY_OR(err, fth_records_new(text, &records), end);
    if (options->label_out && options->labels->kind == FTH_LABELS_PLACES)
        FTH_TRY_OR(err, fth_word_starts(options->tokenizer[0], &k.word_start), end);
    if (options->text_prefix && text->kind != FTH_TEXT_PLAIN)
        FTH_TRY_OR(err, fth_split_text_open(&k.texts, options->text_prefix), end);
    FTH_TRY_OR(err, run(&r, records, &k), end);
    counts->references = k.texts.n_references;
    FTH_TRY_OR(err, fth_split_text_commit(&k.texts), end);
end:
    ring_fini(&r);
    fth_records_free(records);
    fth_split_text_fini(&k.texts);
    free(k.word_start);
    fth_ids_fini(&k.classes);
    return err;
}
