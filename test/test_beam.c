/* links: modelcase run decode */
/* Beam search against one that is written down plainly: no cache, no list of the device, all
 * sentences alone, every hypothesis by a forward over all of its tokens. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "close.h"
#include "decode/search.h"
#include "model_case.h"

enum { VOCAB = 11, LENGTH = 6, MOST_BEAM = 4 };
enum { BOS = 0, PAD = 1, EOS = 4 };

/* Logits of a whole target, computed at once: [n, VOCAB]. */
static void full_logits(model_case *m, const int32_t *src, int32_t n_src, const int32_t *tgt,
                        int32_t n, double *out) {
    fth_graph g;
    fth_outputs o;
    fth_program *p = NULL;
    fth_batch_store store;
    fth_graph_spec what = {.logits = true};
    fth_program_spec how = {.arenas = &m->trainer.arenas};
    fth_trainer_spec size = {.src_tokens = 9, .tgt_tokens = 9, .max_len = 9};
    fth_capacities(&size, how.capacity);
    const int32_t src_offsets[] = {0, n_src}, tgt_offsets[] = {0, n}, targets[LENGTH] = {0};
    assert_int_equal(fth_model_graph(&m->model, &what, &g, &o), FTH_OK);
    assert_int_equal(fth_program_new(m->device, &g, &how, &p), FTH_OK);
    assert_int_equal(fth_batch_store_init(&store, 9, 9, 1), FTH_OK);
    if (n_src)
        assert_int_equal(fth_batch_store_fill(&store, FTH_SRC, 1, src_offsets, src, NULL, VOCAB),
                         0);
    assert_int_equal(fth_batch_store_fill(&store, FTH_TGT, 1, tgt_offsets, tgt, targets, VOCAB), 0);
    fth_step step = {.update = 1};
    fth_method_step(&m->model.method, m->model.config.step, step.slots);
    assert_int_equal(fth_program_run(p, &store.batch, &step), FTH_OK);
    assert_int_equal(fth_program_read(p, o.logits, out), FTH_OK);
    fth_program_free(p);
    fth_batch_store_fini(&store);
}

typedef struct path {
    int32_t token[LENGTH];
    int n;
    double sum;
} path;

static int by_sum(const void *a, const void *b) {
    const double x = ((const path *)a)->sum, y = ((const path *)b)->sum;
    return (x < y) - (x > y);
}

static int by_score(const void *a, const void *b) {
    const path *x = a, *y = b;
    return (x->sum / x->n < y->sum / y->n) - (x->sum / x->n > y->sum / y->n);
}

/* All words that may follow a path, at its end; how many. */
static int words_after(model_case *m, const int32_t *src, int32_t n_src, const path *p, path *out) {
    double logits[LENGTH * VOCAB], sum = 0;
    int32_t tgt[LENGTH] = {BOS};
    for (int k = 0; k < p->n; k++) tgt[k + 1] = p->token[k];
    full_logits(m, src, n_src, tgt, p->n + 1, logits);
    const double *row = logits + p->n * VOCAB;
    for (int v = 0; v < VOCAB; v++) sum += exp(row[v]);
    int n = 0;
    for (int32_t v = 0; v < VOCAB; v++) {
        if (p->n == LENGTH - 1 ? v != EOS : v == PAD || v == BOS)
            continue; /* the last is the end */
        out[n] = *p;
        out[n].token[out[n].n++] = v;
        out[n++].sum += row[v] - log(sum);
    }
    return n;
}

/* The finished paths of one sentence, best first; how many. */
static int plain_beam(model_case *m, const int32_t *src, int32_t n_src, int beam, path *found) {
    path live[MOST_BEAM] = {{.n = 0}}, next[MOST_BEAM * VOCAB];
    int n_live = 1, n_found = 0;
    while (n_live > 0 && n_found < beam) {
        int n = 0, kept = 0;
        for (int i = 0; i < n_live; i++) n += words_after(m, src, n_src, &live[i], next + n);
        qsort(next, (size_t)n, sizeof *next, by_sum);
        for (int i = 0; i < n && i < 2 * beam && kept < beam && n_found < beam; i++) {
            const bool ends = next[i].token[next[i].n - 1] == EOS;
            if (!ends)
                live[kept++] = next[i];
            else if (i < beam) /* an end counts among the best only */
                found[n_found++] = next[i];
        }
        n_live = kept;
    }
    qsort(found, (size_t)n_found, sizeof *found, by_score);
    return n_found;
}

static void compare(const fth_hypothesis *h, const path *expected, int beam, int sentence, int k) {
    if (h->n != expected->n ||
        memcmp(h->tokens, expected->token, sizeof *h->tokens * (size_t)h->n) != 0)
        fail_msg("beam %d, sentence %d: hypothesis %d has other tokens", beam, sentence, k);
    assert_close(h->score, expected->sum / expected->n, 1e-4);
}

static void beams_are_those_of_the_plain_search(void **state) {
    (void)state;
    static const int32_t ids[] = {4, 5, 6, 2, 7, 2, 10, 9, 8, 7, 2}, offsets[] = {0, 4, 6, 11};
    static const int64_t number[] = {0, 1, 2};
    const fth_search_batch batch = {.n_sent = 3, .offsets = offsets, .ids = ids, .number = number};
    fth_config c = model_case_config("preln", FTH_ENCDEC);
    model_case m;
    model_case_init(&m, &c, "cpu", 1, 0.5, 0);
    int early = 0; /* ends before the last place, which are what a search has to weigh */
    for (int beam = 1; beam <= MOST_BEAM; beam++) {
        const fth_search_spec spec = {.beam = beam,
                                      .lenpen = 1,
                                      .max_len_b = LENGTH - 1,
                                      .temperature = 1,
                                      .bos = BOS,
                                      .pad = PAD,
                                      .eos = EOS,
                                      .unk = 3,
                                      .max_positions = 16};
        const fth_stepper_spec size = {.sentences = 3,
                                       .src_tokens = 11,
                                       .rows = 3 * beam,
                                       .length = 12,
                                       .top = fth_search_top(&spec, 1, VOCAB)};
        fth_stepper *s = NULL;
        fth_search_result r;
        assert_int_equal(fth_stepper_new(&m.model, m.device, &m.trainer.arenas, &size, &s), FTH_OK);
        assert_int_equal(fth_search(&s, 1, VOCAB, &spec, &batch, &r), FTH_OK);
        for (int i = 0; i < 3; i++) {
            path found[MOST_BEAM];
            const int n =
                plain_beam(&m, ids + offsets[i], offsets[i + 1] - offsets[i], beam, found);
            assert_int_equal(r.count[i], n);
            for (int k = 0; k < n; k++) {
                compare(&r.found[i][k], &found[k], beam, i, k);
                early += found[k].n < LENGTH;
            }
        }
        fth_search_result_fini(&r);
        fth_stepper_free(s);
    }
    assert_true(early > 0);
    model_case_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(beams_are_those_of_the_plain_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
