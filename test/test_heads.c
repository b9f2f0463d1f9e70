/* links: train */
/* Heads and fronts as parts of training: the same gradients under a small memory budget, in
 * micro-batches with dropout, and for batches without a target; every head learns a batch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/device/device.h"
#include "base/philox.h"
#include "front/front.h"
#include "graph/batch_store.h"
#include "head/head.h"
#include "train/trainer.h"

enum { SENTENCES = 4, MOST = 9, CLASSES = 3, LAYERS = 6 };

static void assert_ok(fth_err err) {
    if (err != FTH_OK) fail_msg("%s", fth_error_message());
}

static fth_config config_of(fth_front_id front, fth_head_id head, fth_pool pool) {
    fth_config c = fth_config_default();
    c.arch = FTH_ENC;
    c.front = front;
    c.head = head;
    memcpy(c.method, "deepnorm", sizeof "deepnorm");
    c.encoder_layers = LAYERS;
    c.decoder_layers = c.tgt_vocab = 0;
    c.d_model = 8, c.ffn_dim = 16, c.heads = 2;
    c.src_vocab = front == FTH_FRONT_TEXT ? 11 : 0;
    c.positions = FTH_LEARNED;
    c.max_positions = 16;
    c.dropout = 0.3;
    if (front == FTH_FRONT_IMAGE) {
        c.share = FTH_SHARE_NONE;
        c.image_size[0] = 4, c.image_size[1] = 8;
        c.channels = 1, c.patch = 2;
    }
    if (fth_config_has(&c, "classes")) c.classes = CLASSES;
    if (fth_config_has(&c, "visual_tokens")) c.visual_tokens = 5;
    if (fth_config_has(&c, "pool")) c.pool = pool;
    return c;
}

/* Every front with every head. */
static bool config_at(int i, fth_config *c) {
    static const struct {
        fth_front_id front;
        fth_head_id head;
        fth_pool pool;
    } all[] = {{FTH_FRONT_TEXT, FTH_HEAD_NEXT_TOKEN, FTH_POOL_FIRST},
               {FTH_FRONT_TEXT, FTH_HEAD_MASKED_TOKEN, FTH_POOL_FIRST},
               {FTH_FRONT_TEXT, FTH_HEAD_CLASS, FTH_POOL_MEAN},
               {FTH_FRONT_TEXT, FTH_HEAD_REGRESSION, FTH_POOL_FIRST},
               {FTH_FRONT_TEXT, FTH_HEAD_TOKEN_CLASS, FTH_POOL_FIRST},
               {FTH_FRONT_IMAGE, FTH_HEAD_MASKED_TOKEN, FTH_POOL_FIRST},
               {FTH_FRONT_IMAGE, FTH_HEAD_CLASS, FTH_POOL_FIRST},
               {FTH_FRONT_IMAGE, FTH_HEAD_REGRESSION, FTH_POOL_MEAN},
               {FTH_FRONT_IMAGE, FTH_HEAD_TOKEN_CLASS, FTH_POOL_FIRST}};
    if (i >= (int)(sizeof all / sizeof *all)) return false;
    *c = config_of(all[i].front, all[i].head, all[i].pool);
    return true;
}

/* The whole data: sentences or pictures, the same for every test. */
typedef struct data {
    int32_t offsets[SENTENCES + 1], ids[SENTENCES * MOST], targets[SENTENCES * MOST];
    int32_t labels[SENTENCES], masked[SENTENCES * MOST], length[SENTENCES];
    float values[SENTENCES], numbers[SENTENCES * MOST * 4];
} data;

static void make_data(data *d, const fth_config *c) {
    static const int32_t lengths[SENTENCES] = {5, 1, 9, 3};
    const bool pictures = c->front == FTH_FRONT_IMAGE;
    const int32_t patches = fth_config_patches(c), cls = fth_config_has_cls(c);
    fth_rng rng;
    fth_rng_init(&rng, 11, 0);
    d->offsets[0] = 0;
    for (int32_t s = 0, row = 0; s < SENTENCES; s++) {
        d->length[s] = pictures ? patches + cls : lengths[s];
        d->labels[s] = (int32_t)fth_rng_below(&rng, CLASSES);
        d->values[s] = (float)fth_rng_normal(&rng);
        for (int32_t k = 0; k < d->length[s]; k++, row++) {
            d->ids[row] = 4 + (int32_t)fth_rng_below(&rng, 7);
            d->targets[row] = (int32_t)fth_rng_below(&rng, CLASSES);
            if ((pictures && cls && k == 0) || row % 3 == 1) d->targets[row] = -1;
        }
        d->offsets[s + 1] = row;
    }
    for (int i = 0; i < SENTENCES * MOST; i++) d->masked[i] = i % 4 == 0;
    for (int i = 0; i < SENTENCES * MOST * 4; i++) d->numbers[i] = (float)fth_rng_normal(&rng);
}

/* Sentences [first, end) as a batch. */
static void fill(fth_batch_store *store, const data *d, const fth_config *c, int first, int end,
                 bool targets) {
    int32_t offsets[SENTENCES + 1], none[SENTENCES * MOST];
    const int32_t from = d->offsets[first], n = end - first, patches = fth_config_patches(c);
    const bool pictures = c->front == FTH_FRONT_IMAGE;
    for (int i = 0; i <= n; i++) offsets[i] = d->offsets[first + i] - from;
    for (int i = 0; i < SENTENCES * MOST; i++) none[i] = -1;
    assert_ok(fth_batch_store_rows(store, FTH_SRC, n, offsets, pictures ? NULL : d->ids + from,
                                   c->src_vocab, targets ? d->targets + from : none,
                                   fth_config_output_vocab(c) > 1 ? fth_config_output_vocab(c)
                                                                  : CLASSES));
    if (pictures)
        assert_ok(fth_batch_store_pictures(store, n, patches, 4, d->numbers + first * patches * 4,
                                           d->masked + first * patches));
    fth_batch_store_labels(store, d->labels + first,
                           c->head == FTH_HEAD_REGRESSION ? d->values + first : NULL);
}

typedef struct subject {
    fth_model model;
    fth_device *device;
    fth_trainer trainer;
    data data;
} subject;

static void begin_with(subject *s, const fth_config *c, const char *device, bool dropout,
                       int64_t budget) {
    memset(s, 0, sizeof *s);
    const fth_recipe recipe = {.schedule = {.kind = FTH_CONSTANT, .lr = 1e-2},
                               .beta1 = 0.9,
                               .beta2 = 0.98,
                               .eps = 1e-8,
                               .dropout = dropout,
                               .seed = 3};
    const fth_trainer_spec size = {.src_tokens = SENTENCES * MOST,
                                   .max_len = MOST,
                                   .sentences = SENTENCES,
                                   .batches = SENTENCES,
                                   .memory_budget = budget};
    assert_ok(fth_model_init(&s->model, c));
    assert_ok(fth_device_open(device, "fp32", 2, &s->device));
    assert_ok(fth_trainer_init(&s->trainer, &s->model, s->device, &recipe, &size));
    assert_ok(fth_trainer_draw(&s->trainer, 5));
    make_data(&s->data, c);
}

static void end_of(subject *s) {
    fth_trainer_fini(&s->trainer);
    fth_device_close(s->device);
    fth_model_fini(&s->model);
}

/* Gradients over batches that begin at the given sentences; grad [params.size]. */
static double gradients(subject *s, const int *begin, int n, bool targets, float *grad) {
    fth_batch_store store[SENTENCES];
    const fth_batch *batches[SENTENCES] = {NULL};
    fth_update u;
    for (int i = 0; i < n; i++) {
        assert_ok(fth_batch_store_init(&store[i], SENTENCES * MOST, 0, SENTENCES));
        fill(&store[i], &s->data, &s->model.config, begin[i], begin[i + 1], targets);
        batches[i] = &store[i].batch;
    }
    assert_ok(fth_trainer_gradients(&s->trainer, 2, batches, n, &u));
    assert_ok(fth_arena_get(s->device, s->trainer.arenas.grad, s->model.params.size, grad));
    for (int i = 0; i < n; i++) fth_batch_store_fini(&store[i]);
    return u.loss;
}

static float *room(const subject *s) {
    float *grad = calloc((size_t)s->model.params.size, sizeof *grad);
    assert_non_null(grad);
    return grad;
}

static const int whole[] = {0, SENTENCES}, parts[] = {0, 2, 3, SENTENCES};

static void less_memory_has_the_same_bits(void **state) {
    (void)state;
    fth_config c;
    for (int i = 0; config_at(i, &c); i++) {
        subject plain, tight;
        begin_with(&plain, &c, "cpu", true, 0);
        const int64_t all = fth_trainer_bytes(&plain.trainer);
        const int64_t arena = fth_program_arena_bytes(plain.trainer.program);
        begin_with(&tight, &c, "cpu", true, all - arena / 5);
        assert_true(fth_trainer_bytes(&tight.trainer) < all);
        float *a = room(&plain), *b = room(&tight);
        const double loss = gradients(&plain, whole, 1, true, a);
        assert_true(loss > 0);
        assert_true(loss == gradients(&tight, whole, 1, true, b));
        assert_memory_equal(a, b, sizeof *a * (size_t)plain.model.params.size);
        free(a);
        free(b);
        end_of(&plain);
        end_of(&tight);
    }
}

/* Dropout counts rows, sentences and picked rows through micro-batches. */
static void micro_batches_make_one_update(void **state) {
    (void)state;
    fth_config c;
    for (int i = 0; config_at(i, &c); i++) {
        subject s;
        begin_with(&s, &c, "ref", true, 0);
        float *a = room(&s), *b = room(&s);
        const double loss = gradients(&s, whole, 1, true, a);
        assert_true(fabs(gradients(&s, parts, 3, true, b) - loss) < 1e-12 * fabs(loss));
        double difference = 0, norm = 0;
        for (int64_t k = 0; k < s.model.params.size; k++) {
            difference += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
            norm += (double)a[k] * (double)a[k];
        }
        assert_true(norm > 0 && difference < 1e-12 * norm);
        free(a);
        free(b);
        end_of(&s);
    }
}

static void no_target_is_no_loss(void **state) {
    (void)state;
    fth_config c;
    for (int i = 0; config_at(i, &c); i++) {
        if (fth_head_rows(&c) == FTH_ROWS_SENTENCES) continue;
        subject s;
        begin_with(&s, &c, "cpu", true, 0);
        float *grad = room(&s);
        assert_true(gradients(&s, whole, 1, false, grad) == 0);
        for (int64_t k = 0; k < s.model.params.size; k++) assert_true(grad[k] == 0);
        free(grad);
        end_of(&s);
    }
}

static void every_head_learns(void **state) {
    (void)state;
    fth_config c;
    for (int i = 0; config_at(i, &c); i++) {
        subject s;
        fth_batch_store store;
        begin_with(&s, &c, "cpu", false, 0);
        assert_ok(fth_batch_store_init(&store, SENTENCES * MOST, 0, SENTENCES));
        fill(&store, &s.data, &c, 0, SENTENCES, true);
        const fth_batch *batch = &store.batch;
        fth_update first, u;
        assert_ok(fth_trainer_update(&s.trainer, 1, &batch, 1, &first));
        for (int t = 2; t <= 60; t++) assert_ok(fth_trainer_update(&s.trainer, t, &batch, 1, &u));
        if (!(u.loss < 0.5 * first.loss))
            fail_msg("%s, %s: loss %g, first %g", fth_front_name(c.front), fth_head_name(c.head),
                     u.loss, first.loss);
        fth_batch_store_fini(&store);
        end_of(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(less_memory_has_the_same_bits),
                                       cmocka_unit_test(micro_batches_make_one_update),
                                       cmocka_unit_test(no_target_is_no_loss),
                                       cmocka_unit_test(every_head_learns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
