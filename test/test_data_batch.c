/* links: data base */
/* Batches: every sentence once an epoch, full, the same for the same seed, and resumed exactly. */
#include "test_files.h"

#include <math.h>

#include <time.h>

#include "base/hash.h"
#include "base/philox.h"
#include "data/batcher.h"
#include "data/pack.h"
#include "data/image_facts.h"
#include "data/prefetch.h"
#include "data/shuffle.h"

static const fth_data_side SIDE = {.vocab = 1000, .special = {0, 1, 2, 3}};

/* Lengths like those of real text: many short, few long; the target follows the source. */
static size_t draw_length(fth_rng *rng, double mean, size_t most) {
    double length = mean * (0.4 + 0.5 * fth_rng_uniform(rng) - 0.6 * (fth_rng_uniform(rng) < 0.1) +
                            1.2 * fth_rng_uniform(rng) * fth_rng_uniform(rng));
    return length < 0 ? 0 : length > (double)most ? most : (size_t)length;
}

/* The k-th token of sentence i on a side, so that content can be told from its number. */
static int32_t token_of(int64_t i, int side, size_t k) {
    return (int32_t)(4 + (i * 131 + side * 17 + (int64_t)k * 7) % 996);
}

static fth_dataset *make_set(const char *folder, int64_t sentences, int n_sides, double mean,
                             size_t most) {
    char path[512];
    fth_dataset_writer *w = NULL;
    fth_dataset *d = NULL;
    fth_rng rng;
    int32_t *ids[2] = {malloc((most + 8) * 4), malloc((most + 8) * 4)};
    fth_rng_init(&rng, 5, 0);
    PATH(path, folder, "set.fds");
    assert_ok(fth_dataset_writer_new(path, n_sides, (fth_data_side[]){SIDE, SIDE}, &w));
    for (int64_t i = 0; i < sentences; i++) {
        size_t n[2] = {draw_length(&rng, mean, most), 0}, zero[2] = {0, 0};
        n[1] = (size_t)((double)n[0] * (0.8 + 0.5 * fth_rng_uniform(&rng)));
        if (n[1] > most) n[1] = most;
        for (int s = 0; s < n_sides; s++)
            for (size_t k = 0; k < n[s]; k++) ids[s][k] = token_of(i, s, k);
        assert_ok(
            fth_dataset_writer_add(w, (const int32_t *const[]){ids[0], ids[1]}, n, zero, zero));
    }
    assert_ok(fth_dataset_writer_finish(w));
    fth_dataset_writer_free(w);
    assert_ok(fth_dataset_open(path, &d));
    free(ids[0]);
    free(ids[1]);
    return d;
}

/* The rows of a batch are those of its sentences. */
static void assert_content(const fth_dataset *d, const fth_packed *p) {
    int t = d->n_sides - 1;
    assert_int_equal(p->src_offsets[0], 0);
    assert_int_equal(p->tgt_offsets[0], 0);
    assert_int_equal(p->src_offsets[p->n_sent], p->src_rows);
    assert_int_equal(p->tgt_offsets[p->n_sent], p->tgt_rows);
    for (int32_t j = 0; j < p->n_sent; j++) {
        int64_t i = p->sentences[j];
        if (d->n_sides == 2) {
            int32_t at = p->src_offsets[j], n = p->src_offsets[j + 1] - at;
            assert_int_equal(n, fth_dataset_length(d, 0, i) + 1);
            for (int32_t k = 0; k + 1 < n; k++)
                assert_int_equal(p->src[at + k], token_of(i, 0, (size_t)k));
            assert_int_equal(p->src[at + n - 1], 2);
        } else
            assert_int_equal(p->src_offsets[j + 1], 0);
        int32_t at = p->tgt_offsets[j], n = p->tgt_offsets[j + 1] - at;
        assert_int_equal(n, fth_dataset_length(d, t, i) + 1);
        assert_int_equal(p->tgt_in[at], 0);
        for (int32_t k = 0; k + 1 < n; k++) {
            assert_int_equal(p->tgt_out[at + k], token_of(i, t, (size_t)k));
            assert_int_equal(p->tgt_in[at + k + 1], p->tgt_out[at + k]);
        }
        assert_int_equal(p->tgt_out[at + n - 1], 2);
    }
}

static uint64_t hash_batch(const fth_packed *p) {
    uint64_t parts[] = {fth_hash64(p->src, (size_t)p->src_rows * 4),
                        fth_hash64(p->tgt_out, (size_t)p->tgt_rows * 4),
                        fth_hash64(p->tgt_in, (size_t)p->tgt_rows * 4),
                        fth_hash64(p->sentences, (size_t)p->n_sent * 8)};
    return fth_hash64(parts, sizeof parts);
}

static void every_order_is_a_permutation(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097};
    char seen[5000];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t epoch = 1; epoch < 4; epoch++) {
            fth_shuffle s;
            uint64_t moved = 0, n = sizes[i];
            memset(seen, 0, sizeof seen);
            fth_shuffle_init(&s, 7, epoch, n);
            for (uint64_t k = 0; k < n; k++) {
                uint64_t at = fth_shuffle_at(&s, k);
                assert_true(at < n && !seen[at]);
                seen[at] = 1;
                moved += at != k;
            }
            if (n > 100) assert_true(moved > n - 20); /* about one stays where it is */
        }
}

/* Neighbours do not stay neighbours, and places are used evenly. */
static void orders_are_random(void **state) {
    (void)state;
    enum { N = 1000, SEEDS = 400 };
    int first_half = 0, next_to = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        fth_shuffle s;
        fth_shuffle_init(&s, seed, 1, N);
        first_half += fth_shuffle_at(&s, 3) < N / 2;
        int64_t gap = (int64_t)fth_shuffle_at(&s, 10) - (int64_t)fth_shuffle_at(&s, 11);
        next_to += gap == 1 || gap == -1;
    }
    assert_in_range(first_half, 150, 250); /* five standard deviations around 200 */
    assert_true(next_to < 8);              /* 0.8 expected */
}

static void packing_uses_everything_once(void **state) {
    (void)state;
    fth_packing packing = {0};
    fth_rng rng;
    fth_rng_init(&rng, 3, 0);
    for (int round = 0; round < 200; round++) {
        fth_pack_item items[300];
        char seen[300] = {0};
        int32_t n = (int32_t)fth_rng_below(&rng, 300), cap = 1 + (int32_t)fth_rng_below(&rng, 100);
        fth_pack_limits limits = {cap, round % 3 ? 0 : 1 + (int32_t)fth_rng_below(&rng, 5)};
        for (int32_t i = 0; i < n; i++)
            items[i] = (fth_pack_item){i, (int32_t)fth_rng_below(&rng, (uint64_t)cap + 1),
                                       1 + (int32_t)fth_rng_below(&rng, (uint64_t)cap)};
        if (round % 2)
            assert_ok(fth_pack(&packing, items, n, limits));
        else
            assert_ok(fth_pack_in_order(&packing, items, n, limits));
        if (n == 0) assert_int_equal(packing.n_batches, 0);
        for (int32_t b = 0; b < packing.n_batches; b++) {
            int64_t src = 0, tgt = 0;
            int32_t begin = packing.begin[b], end = packing.begin[b + 1];
            assert_true(begin < end);
            for (int32_t k = begin; k < end; k++) {
                assert_false(seen[items[k].index]);
                seen[items[k].index] = 1;
                src += items[k].src;
                tgt += items[k].tgt;
                if (round % 2 == 0) assert_int_equal(items[k].index, k);
            }
            assert_true(src <= cap && tgt <= cap);
            if (limits.sentences) assert_true(end - begin <= limits.sentences);
        }
        for (int32_t i = 0; i < n; i++) assert_true(seen[i]);
    }
    fth_packing_fini(&packing);
}

/* One epoch of a batcher: each sentence once, the content right, within the bound. */
static void assert_epoch(fth_batcher *b, const fth_dataset *d, fth_packed *p, int64_t epoch,
                         int64_t expected) {
    char *seen = calloc((size_t)d->sentences, 1);
    int64_t total = 0;
    for (int64_t index = 0;; index++) {
        assert_ok(fth_batcher_next(b, p));
        assert_true(p->n_sent > 0 && p->src_rows <= p->max_tokens && p->tgt_rows <= p->max_tokens);
        assert_int_equal(p->position.epoch, epoch);
        assert_int_equal(p->position.index, index);
        assert_content(d, p);
        for (int32_t j = 0; j < p->n_sent; j++) {
            assert_false(seen[p->sentences[j]]);
            seen[p->sentences[j]] = 1;
        }
        total += p->n_sent;
        if (p->next.epoch != epoch) break;
    }
    assert_int_equal(total, expected);
    free(seen);
}

static void every_sentence_once_an_epoch(void **state) {
    static const struct {
        int64_t sentences;
        int n_sides, max_tokens;
        int64_t window;
    } cases[] = {{3000, 2, 512, 0}, {3000, 2, 512, 700}, {1000, 1, 300, 64},
                 {1, 2, 100, 0},    {50, 2, 60, 1},      {777, 2, 4096, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fth_dataset *d = make_set(*state, cases[c].sentences, cases[c].n_sides, 15, 50);
        fth_batch_options o = {
            .max_tokens = cases[c].max_tokens, .seed = 9, .window = cases[c].window};
        fth_batcher *b = NULL;
        fth_packed p;
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_packed_init(&p, o.max_tokens));
        for (int64_t epoch = 1; epoch <= 3; epoch++) assert_epoch(b, d, &p, epoch, d->sentences);
        assert_int_equal(fth_batcher_stats(b).sentences, 3 * d->sentences);
        fth_batcher_free(b);
        fth_packed_fini(&p);
        fth_dataset_free(d);
    }
}

/* Large data sets are shuffled in groups; the batches cover the data all the same, and groups do
 * not come as groups. */
static void groups_of_neighbours(void **state) {
    enum { N = 20077 }; /* not a multiple of the group */
    fth_dataset *d = make_set(*state, N, 2, 15, 50);
    for (int64_t window = 0; window < 5000; window += 1999) {
        fth_batch_options o = {.max_tokens = 2000, .seed = 2, .neighbours = 64, .window = window};
        fth_batcher *b = NULL;
        fth_packed p;
        int64_t far = 0;
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_packed_init(&p, o.max_tokens));
        assert_epoch(b, d, &p, 1, N);
        do {
            assert_ok(fth_batcher_next(b, &p));
            for (int32_t j = 1; j < p.n_sent; j++)
                far += llabs(p.sentences[j] - p.sentences[j - 1]) > 64;
        } while (p.next.epoch == 2);
        assert_true(far > N / 10 * 9);
        fth_batcher_free(b);
        fth_packed_fini(&p);
    }
    fth_dataset_free(d);
}

/* At least 95 % of the capacity on lengths like those of captions, sentences and long text. */
static void batches_are_full(void **state) {
    static const struct {
        int64_t sentences;
        double mean;
        size_t most;
        int max_tokens;
    } cases[] = {{20000, 14, 60, 2048},
                 {20000, 14, 60, 4096},
                 {20000, 28, 250, 4096},
                 {6000, 150, 512, 4096},
                 {20000, 6, 20, 1024}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fth_dataset *d = make_set(*state, cases[c].sentences, 2, cases[c].mean, cases[c].most);
        fth_batch_options o = {.max_tokens = cases[c].max_tokens, .seed = 1};
        fth_batcher *b = NULL;
        fth_packed p;
        int32_t smallest = INT32_MAX;
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_packed_init(&p, o.max_tokens));
        do {
            assert_ok(fth_batcher_next(b, &p));
            int32_t rows = p.src_rows > p.tgt_rows ? p.src_rows : p.tgt_rows;
            if (rows < smallest) smallest = rows;
        } while (p.next.epoch == 1);
        if (fth_batcher_fill(b) < 0.97) fail_msg("case %zu: fill %.4f", c, fth_batcher_fill(b));
        assert_true(smallest > o.max_tokens / 2); /* no tiny rest */
        int64_t expected = fth_batcher_expected(b), made = fth_batcher_stats(b).batches;
        assert_true(made >= expected && (double)made < 1.03 * (double)expected + 1);
        fth_batcher_free(b);
        fth_packed_fini(&p);
        fth_dataset_free(d);
    }
}

static void seeds_and_epochs_differ(void **state) {
    fth_dataset *d = make_set(*state, 500, 2, 15, 50);
    uint64_t first[4];
    for (int run = 0; run < 4; run++) { /* the last run repeats the first */
        fth_batch_options o = {.max_tokens = 400, .seed = run == 3 ? 0 : (uint64_t)run};
        fth_batcher *b = NULL;
        fth_packed p;
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_packed_init(&p, 400));
        assert_ok(fth_batcher_next(b, &p));
        first[run] = hash_batch(&p);
        while (p.next.epoch == 1) assert_ok(fth_batcher_next(b, &p));
        assert_ok(fth_batcher_next(b, &p));
        assert_true(hash_batch(&p) != first[run]);
        fth_batcher_free(b);
        fth_packed_fini(&p);
    }
    assert_true(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
    assert_true(first[0] == first[3]);
    fth_dataset_free(d);
}

/* From the position after any batch, a fresh batcher gives the very same batches. */
static void resuming_is_exact(void **state) {
    enum { BATCHES = 120 };
    fth_dataset *d = make_set(*state, 900, 2, 15, 50);
    fth_batch_options o = {.max_tokens = 400, .seed = 6, .window = 250};
    fth_position next[BATCHES];
    uint64_t hash[BATCHES];
    fth_packed p;
    fth_batcher *b = NULL;
    assert_ok(fth_packed_init(&p, 400));
    assert_ok(fth_batcher_new(d, &o, &b));
    for (int i = 0; i < BATCHES; i++) {
        assert_ok(fth_batcher_next(b, &p));
        hash[i] = hash_batch(&p);
        next[i] = p.next;
    }
    assert_true(next[BATCHES - 1].epoch >= 3); /* several epochs and windows were crossed */
    fth_batcher_free(b);
    for (int i = 0; i + 1 < BATCHES; i++) {
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_batcher_seek(b, next[i]));
        for (int k = i + 1; k < BATCHES && k < i + 4; k++) {
            assert_ok(fth_batcher_next(b, &p));
            assert_true(hash_batch(&p) == hash[k]);
            assert_memory_equal(&p.next, &next[k], sizeof p.next);
        }
        fth_batcher_free(b);
    }
    assert_ok(fth_batcher_new(d, &o, &b));
    static const fth_position wrong[] = {
        {0, 0, 0, 0}, {1, 4, 0, 0}, {1, 0, 99, 0}, {1, -1, 0, 0}, {1, 0, -1, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_failed(fth_batcher_seek(b, wrong[i]), FTH_BAD_INPUT, (const char *[]){"no ", NULL});
    assert_ok(fth_batcher_next(b, &p));
    assert_true(hash_batch(&p) == hash[0]); /* a refused seek changes nothing */
    fth_batcher_free(b);
    fth_packed_fini(&p);
    fth_dataset_free(d);
}

static void in_order_for_evaluation(void **state) {
    fth_dataset *d = make_set(*state, 500, 2, 15, 50);
    for (int64_t window = 0; window < 200; window += 64) {
        fth_batch_options o = {.max_tokens = 400, .in_order = 1, .window = window};
        fth_batcher *b = NULL;
        fth_packed p;
        int64_t next = 0;
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_packed_init(&p, 400));
        for (;;) {
            assert_ok(fth_batcher_next(b, &p));
            if (p.n_sent == 0) break;
            assert_content(d, &p);
            for (int32_t j = 0; j < p.n_sent; j++) assert_int_equal(p.sentences[j], next++);
        }
        assert_int_equal(next, 500);
        assert_ok(fth_batcher_next(b, &p)); /* the end stays the end */
        assert_int_equal(p.n_sent, 0);
        assert_ok(fth_batcher_seek(b, FTH_FIRST_POSITION)); /* and the pass can be made again */
        assert_ok(fth_batcher_next(b, &p));
        assert_int_equal(p.sentences[0], 0);
        fth_batcher_free(b);
        fth_packed_fini(&p);
    }
    fth_dataset_free(d);
}

static void too_long_sentences(void **state) {
    fth_dataset *d = make_set(*state, 300, 2, 15, 50);
    fth_batch_options o = {.max_tokens = 20, .seed = 1, .window = 50};
    fth_batcher *b = NULL;
    fth_packed p;
    int64_t fitting = 0;
    for (int64_t i = 0; i < 300; i++)
        fitting += fth_dataset_length(d, 0, i) < 20 && fth_dataset_length(d, 1, i) < 20;
    assert_in_range(fitting, 50, 290);
    assert_ok(fth_batcher_new(d, &o, &b));
    assert_ok(fth_packed_init(&p, 20));
    for (int64_t epoch = 1; epoch <= 2; epoch++) {
        assert_epoch(b, d, &p, epoch, fitting);
        assert_int_equal(fth_batcher_stats(b).left_out, epoch * (300 - fitting));
    }
    int64_t too_long;
    assert_ok(fth_batcher_too_long(b, &too_long));
    assert_int_equal(too_long, 300 - fitting);
    fth_batcher_free(b);
    /* the length of a sentence has a bound of its own */
    fth_batch_options longer = o;
    longer.max_tokens = 64;
    longer.max_length = 20;
    assert_ok(fth_batcher_new(d, &longer, &b));
    assert_ok(fth_batcher_too_long(b, &too_long));
    assert_int_equal(too_long, 300 - fitting);
    fth_batcher_free(b);
    longer.strict = o.strict = 1;
    assert_failed(fth_batcher_new(d, &o, &b), FTH_BAD_INPUT,
                  (const char *[]){"set.fds", "longest", "--max-tokens 20", NULL});
    assert_failed(fth_batcher_new(d, &longer, &b), FTH_BAD_INPUT,
                  (const char *[]){"set.fds", "longest", "--max-positions 20", NULL});
    fth_packed_fini(&p);
    fth_dataset_free(d);
}

/* Five sentences of ten tokens. */
static fth_dataset *make_tens(const char *folder) {
    char path[512];
    fth_dataset_writer *w = NULL;
    fth_dataset *d = NULL;
    int32_t ids[10] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    size_t n[2] = {10, 0};
    PATH(path, folder, "set.fds");
    assert_ok(fth_dataset_writer_new(path, 1, &SIDE, &w));
    for (int i = 0; i < 5; i++)
        assert_ok(fth_dataset_writer_add(w, (const int32_t *const[]){ids, NULL}, n, n, n));
    assert_ok(fth_dataset_writer_finish(w));
    fth_dataset_writer_free(w);
    assert_ok(fth_dataset_open(path, &d));
    return d;
}

static void nothing_fits(void **state) {
    fth_dataset *d = make_tens(*state);
    fth_packed p;
    fth_batcher *b = NULL;
    assert_ok(fth_packed_init(&p, 10));
    fth_batch_options o = {.max_tokens = 10, .seed = 1, .window = 2};
    assert_ok(fth_batcher_new(d, &o, &b));
    assert_failed(fth_batcher_next(b, &p), FTH_BAD_INPUT,
                  (const char *[]){"set.fds", "max-tokens 10", NULL});
    fth_batcher_free(b);
    o.max_tokens = 0;
    assert_int_equal(fth_batcher_new(d, &o, &b), FTH_USAGE);
    o = (fth_batch_options){.max_tokens = 10, .block = 11};
    assert_failed(fth_batcher_new(d, &o, &b), FTH_USAGE, (const char *[]){"11", "10", NULL});
    o = (fth_batch_options){.max_tokens = 10, .block = 5, .context_window = 5};
    assert_failed(fth_batcher_new(d, &o, &b), FTH_USAGE,
                  (const char *[]){"context-window 5", NULL});
    fth_packed_fini(&p);
    fth_dataset_free(d);
    d = make_set(*state, 5, 2, 10, 20);
    o = (fth_batch_options){.max_tokens = 10, .block = 5};
    assert_failed(fth_batcher_new(d, &o, &b), FTH_BAD_INPUT, (const char *[]){"pairs", NULL});
    fth_dataset_free(d);
}

/* The whole stream of a text: its lines with an end symbol behind each. */
static int32_t *whole_stream(const fth_dataset *d, int64_t *n) {
    int32_t *stream = malloc((size_t)(d->side[0].tokens + d->sentences) * 4);
    *n = 0;
    for (int64_t i = 0; i < d->sentences; i++) {
        int64_t length = fth_dataset_length(d, 0, i);
        assert_ok(fth_dataset_copy(d, 0, i, 0, length, stream + *n));
        *n += length;
        stream[(*n)++] = 2;
    }
    return stream;
}

/* Blocks in order give every token of the stream once, with its context. */
static void blocks_of_text(void **state) {
    static const struct {
        int32_t block, context;
    } cases[] = {{1, 0}, {7, 0}, {64, 0}, {64, 16}, {64, 63}, {10, 9}, {100000, 0}};
    fth_dataset *d = make_set(*state, 200, 1, 12, 40);
    int64_t n;
    int32_t *stream = whole_stream(d, &n);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fth_batch_options o = {.max_tokens = 100000,
                               .in_order = 1,
                               .block = cases[c].block,
                               .context_window = cases[c].context};
        fth_batcher *b = NULL;
        fth_packed p;
        int64_t at = 0; /* the next token that has to carry loss */
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_packed_init(&p, o.max_tokens));
        for (;;) {
            assert_ok(fth_batcher_next(b, &p));
            if (p.n_sent == 0) break;
            for (int32_t j = 0; j < p.n_sent; j++) {
                int32_t begin = p.tgt_offsets[j], end = p.tgt_offsets[j + 1], k = begin;
                assert_true(end - begin <= cases[c].block);
                while (p.tgt_out[k] == -1) k++;
                int64_t seen_before = at < cases[c].context ? at : cases[c].context;
                assert_int_equal(k - begin, seen_before);
                for (int32_t r = begin; r < end; r++) {
                    int64_t token = at + (r - k); /* of the stream */
                    assert_int_equal(p.tgt_in[r], token == 0 ? 2 : stream[token - 1]);
                    if (r >= k) assert_int_equal(p.tgt_out[r], stream[token]);
                }
                at += end - k;
            }
        }
        assert_int_equal(at, n);
        fth_batcher_free(b);
        fth_packed_fini(&p);
    }
    free(stream);
    fth_dataset_free(d);
}

/* Shuffled blocks for training: every token once an epoch, batches full. */
static void shuffled_blocks(void **state) {
    fth_dataset *d = make_set(*state, 3000, 1, 20, 60);
    fth_batch_options o = {.max_tokens = 512, .seed = 3, .block = 64};
    fth_batcher *b = NULL;
    fth_packed p;
    int64_t n, total = 0;
    int32_t *stream = whole_stream(d, &n);
    assert_ok(fth_batcher_new(d, &o, &b));
    assert_ok(fth_packed_init(&p, 512));
    do {
        assert_ok(fth_batcher_next(b, &p));
        assert_int_equal(p.src_rows, 0);
        for (int32_t j = 0; j < p.n_sent; j++)
            for (int32_t r = p.tgt_offsets[j]; r < p.tgt_offsets[j + 1]; r++)
                assert_int_equal(p.tgt_out[r], stream[p.sentences[j] * 64 + r - p.tgt_offsets[j]]);
        total += p.tgt_rows;
    } while (p.next.epoch == 1);
    assert_int_equal(total, n);
    assert_true(fth_batcher_fill(b) > 0.98);
    free(stream);
    fth_batcher_free(b);
    fth_packed_fini(&p);
    fth_dataset_free(d);
}

static void pictures_are_normalised(void **state) {
    (void)state;
    const fth_image_facts f = {
        .height = 1, .width = 2, .channels = 2, .mean = {100, 10}, .deviation = {50, 4}};
    const uint8_t from[] = {200, 75, 10, 18};
    static const float wanted[] = {2, -0.5f, 0, 2};
    float to[4];
    fth_image_normalise(&f, from, to);
    for (int i = 0; i < 4; i++) assert_true(fabsf(to[i] - wanted[i]) < 1e-6f);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a test takes of the batches that are made ahead. */
typedef struct taken {
    uint64_t hash[16];
    int n;
} taken;

static fth_err take_hash(void *context, int k, const fth_packed *packed) {
    taken *t = context;
    t->hash[k] = hash_batch(packed);
    return FTH_OK;
}

static fth_err refuse_third(void *context, int k, const fth_packed *packed) {
    taken *t = context;
    (void)packed;
    return t->n++ < 2 ? FTH_OK : fth_fail(FTH_BAD_INPUT, "slot %d is full", k);
}

static int64_t count_rows(const void *context, const fth_packed *packed) {
    (void)context;
    return packed->tgt_rows;
}

static void prefetched_batches_are_the_same(void **state) {
    fth_dataset *d = make_set(*state, 800, 2, 15, 50);
    fth_batch_options o = {.max_tokens = 300, .seed = 4, .window = 200};
    double waited = 0;
    for (int depth = 1; depth < 6; depth += 2) {
        const double start = seconds();
        const int held = depth == 3 ? 4 : 1;
        int64_t group_rows = 0;
        uint64_t expected[4];
        int slots[4];
        taken t = {0};
        fth_prefetch_spec spec = {300, depth, held, take_hash, &t, depth, count_rows};
        fth_batcher *a = NULL, *b = NULL;
        fth_prefetch *ahead = NULL;
        fth_packed p;
        fth_prefetched q;
        assert_ok(fth_packed_init(&p, 300));
        assert_ok(fth_batcher_new(d, &o, &a));
        assert_ok(fth_batcher_new(d, &o, &b));
        assert_ok(fth_prefetch_new(b, &spec, &ahead));
        for (int i = 0; i < 100; i++) {
            assert_ok(fth_batcher_next(a, &p));
            assert_ok(fth_prefetch_next(ahead, &q));
            expected[i % held] = hash_batch(&p);
            slots[i % held] = q.slot;
            assert_int_equal(q.n_sent, p.n_sent);
            assert_memory_equal(&p.next, &q.next, sizeof p.next);
            group_rows = i % depth == 0 ? p.tgt_rows : group_rows + p.tgt_rows;
            if (depth > 1 && i % depth == depth - 1) assert_int_equal(q.counted, group_rows);
            if (i % 10 == 9) usleep(1000); /* time to overwrite what is held */
            for (int k = 0; k < held && k <= i; k++) assert_true(t.hash[slots[k]] == expected[k]);
        }
        assert_true(fth_prefetch_waited(ahead) <= seconds() - start);
        waited += fth_prefetch_waited(ahead);
        fth_prefetch_free(ahead); /* in the middle of its work */
        fth_batcher_free(a);
        fth_batcher_free(b);
        fth_packed_fini(&p);
    }
    assert_true(waited > 0); /* for the first batches at least, which nothing could make ahead */
    fth_dataset_free(d);
}

/* Counting ahead, over ends of windows and epochs, changes nothing of what comes. */
static void counted_batches_come_all_the_same(void **state) {
    fth_dataset *d = make_set(*state, 60, 2, 15, 50);
    fth_batch_options o = {.max_tokens = 300, .seed = 4, .window = 20};
    fth_batcher *a = NULL, *b = NULL;
    fth_packed p, q;
    assert_ok(fth_packed_init(&p, 300));
    assert_ok(fth_packed_init(&q, 300));
    assert_ok(fth_batcher_new(d, &o, &a));
    assert_ok(fth_batcher_new(d, &o, &b));
    for (int n = 0; n < 40; n += 3) {
        int64_t rows = 0;
        const int64_t counted = fth_batcher_count(b, n, &q, count_rows, NULL);
        for (int i = 0; i < n; i++) {
            assert_ok(fth_batcher_next(a, &p));
            assert_ok(fth_batcher_next(b, &q));
            assert_true(hash_batch(&p) == hash_batch(&q));
            assert_memory_equal(&p.next, &q.next, sizeof p.next);
            rows += p.tgt_rows;
        }
        assert_int_equal(counted, rows);
        const fth_batch_stats one = fth_batcher_stats(a), other = fth_batcher_stats(b);
        assert_memory_equal(&one, &other, sizeof one);
    }
    assert_true(p.next.epoch > 3);
    fth_batcher_free(a);
    fth_batcher_free(b);
    fth_packed_fini(&p);
    fth_packed_fini(&q);
    fth_dataset_free(d);
}

static void prefetching_ends_and_fails(void **state) {
    fth_dataset *d = make_set(*state, 100, 2, 15, 50);
    fth_batch_options o = {.max_tokens = 300, .in_order = 1};
    fth_batcher *b = NULL;
    fth_prefetch *ahead = NULL;
    taken t = {0};
    fth_prefetch_spec spec = {300, 2, 1, take_hash, &t, 0, NULL};
    fth_prefetched q;
    int64_t total = 0;
    assert_ok(fth_batcher_new(d, &o, &b));
    assert_ok(fth_prefetch_new(b, &spec, &ahead));
    do {
        assert_ok(fth_prefetch_next(ahead, &q));
        total += q.n_sent;
    } while (q.n_sent);
    assert_int_equal(total, 100);
    assert_ok(fth_prefetch_next(ahead, &q));
    assert_int_equal(q.n_sent, 0);
    fth_prefetch_free(ahead);
    fth_batcher_free(b);
    assert_ok(fth_batcher_new(d, &o, &b));
    spec.fill = refuse_third;
    assert_ok(fth_prefetch_new(b, &spec, &ahead));
    for (int i = 0; i < 2; i++) assert_ok(fth_prefetch_next(ahead, &q));
    for (int i = 0; i < 2; i++)
        assert_failed(fth_prefetch_next(ahead, &q), FTH_BAD_INPUT,
                      (const char *[]){"slot 2 is full", NULL});
    fth_prefetch_free(ahead);
    fth_batcher_free(b);
    fth_dataset_free(d);
    d = make_tens(*state);
    o = (fth_batch_options){.max_tokens = 10, .seed = 1}; /* no sentence fits */
    spec = (fth_prefetch_spec){10, 2, 1, take_hash, &t, 0, NULL};
    assert_ok(fth_batcher_new(d, &o, &b));
    assert_ok(fth_prefetch_new(b, &spec, &ahead));
    for (int i = 0; i < 2; i++)
        assert_failed(fth_prefetch_next(ahead, &q), FTH_BAD_INPUT,
                      (const char *[]){"set.fds", "max-tokens 10", NULL});
    fth_prefetch_free(ahead);
    fth_batcher_free(b);
    fth_dataset_free(d);
}

/* A data set that is damaged after its header gives an error with the batch that meets it. */
static void damaged_data_is_an_error(void **state) {
    static const struct {
        size_t at; /* 512: six offsets, 576: fifty ids of two bytes */
        unsigned char byte;
        const char *words[3];
    } cases[] = {{512 + 8, 200, {"set.fds", "offsets"}},
                 {512 + 16 + 7, 255, {"set.fds", "offsets"}},
                 {576 + 21, 255, {"set.fds", "token id"}}};
    char path[512], *data;
    size_t size;
    PATH(path, *state, "set.fds");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int32_t block = 0; block < 8; block += 7) {
            fth_batcher *b = NULL;
            fth_packed p;
            fth_err err = FTH_OK;
            fth_dataset *d = make_tens(*state);
            fth_dataset_free(d);
            assert_ok(fth_file_read(path, &data, &size));
            data[cases[c].at] = (char)cases[c].byte;
            put_bytes(path, data, size);
            free(data);
            assert_ok(fth_dataset_open(path, &d));
            fth_batch_options o = {.max_tokens = 100, .in_order = 1, .block = block};
            assert_ok(fth_batcher_new(d, &o, &b));
            assert_ok(fth_packed_init(&p, 100));
            p.n_sent = 1;
            while (!err && p.n_sent) err = fth_batcher_next(b, &p);
            assert_failed(err, FTH_BAD_INPUT, cases[c].words);
            fth_batcher_free(b);
            fth_packed_fini(&p);
            fth_dataset_free(d);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_order_is_a_permutation),
        TEST(orders_are_random),
        TEST(packing_uses_everything_once),
        TEST(every_sentence_once_an_epoch),
        TEST(groups_of_neighbours),
        TEST(batches_are_full),
        TEST(seeds_and_epochs_differ),
        TEST(resuming_is_exact),
        TEST(in_order_for_evaluation),
        TEST(too_long_sentences),
        TEST(nothing_fits),
        TEST(blocks_of_text),
        TEST(shuffled_blocks),
        TEST(prefetched_batches_are_the_same),
        TEST(pictures_are_normalised),
        TEST(counted_batches_come_all_the_same),
        TEST(prefetching_ends_and_fails),
        TEST(damaged_data_is_an_error),
    };
    return cmocka_run_group_tests_name("data: batches", tests, NULL, NULL);
}
