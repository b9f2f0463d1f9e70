/* links: modelcase run decode */
/* Generation: cached steps equal the full forward for every method, beams share and leave caches,
 * greedy is beam 1, nothing depends on the batch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/device/device.h"
#include "backend/top_words.h"
#include "close.h"
#include "decode/mixed_list.h"
#include "decode/pick.h"
#include "decode/search.h"
#include "gpu.h"
#include "model_case.h"

enum { VOCAB = 11, LENGTH = 6 };

static void compare_rows(const char *what, double tolerance, const float *got,
                         const double *wanted) {
    for (int v = 0; v < VOCAB; v++)
        if (!is_close(got[v], wanted[v], tolerance))
            fail_msg("%s: logit %d is %g, the full forward says %g", what, v, got[v], wanted[v]);
}

/* Two sentences; the first has two hypotheses that part at the third token, and the second of them
 * is continued from the first from then on. */
static void check_steps(const char *method, fth_arch arch, const char *device, double tolerance) {
    static const int32_t src[] = {4, 5, 6, 2, 7, 2}, src_offsets[] = {0, 4, 6};
    static const int32_t a[LENGTH] = {0, 4, 9, 8, 7, 5}, b[LENGTH] = {0, 4, 6, 6, 10, 3},
                         c[LENGTH] = {0, 9, 9, 4, 5, 8};
    fth_config config = model_case_config(method, arch);
    config.step = 100;
    model_case m;
    model_case_init(&m, &config, device, 2, 0.2, 0);
    bool encdec = arch == FTH_ENCDEC;
    double full[3][LENGTH * VOCAB];
    model_case_logits(&m, src, encdec ? 4 : 0, a, LENGTH, full[0]);
    model_case_logits(&m, src, encdec ? 4 : 0, b, LENGTH, full[1]);
    model_case_logits(&m, src + 4, encdec ? 2 : 0, c, LENGTH, full[2]);
    fth_stepper_spec spec = {
        .sentences = 2, .src_tokens = encdec ? 6 : 0, .rows = 3, .length = LENGTH};
    fth_stepper *s = NULL;
    const float *logits = NULL;
    assert_int_equal(fth_stepper_new(&m.model, m.device, &m.trainer.arenas, &spec, &s), FTH_OK);
    for (int again = 0; again < 2; again++) { /* a second batch finds clean caches */
        assert_int_equal(fth_stepper_begin(s, 2, encdec ? src_offsets : NULL, src), FTH_OK);
        for (int t = 0; t < LENGTH; t++) {
            bool parted = t >= 2, gone = t >= 4; /* sentence 2 leaves at step 4 */
            fth_step_row rows[3];
            int32_t n = 0;
            rows[n++] = (fth_step_row){0, a[t], 0, -1};
            if (parted) rows[n++] = (fth_step_row){0, b[t], t == 2 ? 0 : 1, -1};
            if (!gone) {
                rows[n] = (fth_step_row){1, c[t], t <= 2 ? 1 : 2, -1};
                n++;
            }
            assert_int_equal(fth_stepper_step(s, rows, n, &logits), FTH_OK);
            compare_rows(method, tolerance, logits, full[0] + t * VOCAB);
            if (parted) compare_rows(method, tolerance, logits + VOCAB, full[1] + t * VOCAB);
            if (!gone)
                compare_rows(method, tolerance, logits + (n - 1) * VOCAB, full[2] + t * VOCAB);
        }
    }
    fth_stepper_free(s);
    model_case_fini(&m);
}

static void steps_equal_the_full_forward(void **state) {
    (void)state;
    for (const fth_method *const *m = fth_methods(); *m; m++) {
        check_steps((*m)->id, FTH_ENCDEC, "cpu", 1e-4);
        check_steps((*m)->id, FTH_DEC, "cpu", 1e-4);
        check_steps((*m)->id, FTH_ENCDEC, "ref", 1e-4);
    }
}

/* Weights are packed for the steps: on each way of products that any machine has. */
static void steps_on_every_path(void **state) {
    (void)state;
    static const char *const isas[] = {NULL, "plain", "plain-bf16", "plain-amx"};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (isas[i]) setenv("FATHOM_CPU_ISA", isas[i], 1);
        for (const fth_method *const *m = fth_methods(); *m; m++) {
            check_steps((*m)->id, FTH_ENCDEC, "cpu-bf16", 2e-2);
            if (isas[i]) check_steps((*m)->id, FTH_DEC, "cpu", 1e-4);
        }
        unsetenv("FATHOM_CPU_ISA");
    }
}

/* ---- search ---- */

static fth_search_spec plain_search(int32_t beam) {
    return (fth_search_spec){.beam = beam,
                             .lenpen = 1,
                             .max_len_b = 8,
                             .temperature = 1,
                             .bos = 0,
                             .pad = 1,
                             .eos = 2,
                             .unk = 3,
                             .max_positions = 16,
                             .seed = 5};
}

static const int32_t sources[] = {4, 5, 6, 2, 7, 2, 10, 9, 8, 7, 2};
static const int32_t source_offsets[] = {0, 4, 6, 11};

/* Room for the three sentences, where the device chooses `top` words of a row. */
static fth_stepper *new_stepper(model_case *m, int32_t beam, int32_t top) {
    fth_stepper_spec size = {
        .sentences = 3, .src_tokens = 11, .rows = 3 * beam, .length = 12, .top = top};
    fth_stepper *s = NULL;
    assert_int_equal(fth_stepper_new(&m->model, m->device, &m->trainer.arenas, &size, &s), FTH_OK);
    return s;
}

/* score = sum of log-probabilities / length^lenpen, the end symbol counted. */
static void check_score(const fth_hypothesis *h, double lenpen) {
    double sum = 0;
    for (int k = 0; k < h->n; k++) sum += (double)h->logp[k];
    assert_close(h->score, sum / pow(h->n, lenpen), 1e-5 * fabs(h->score));
}

static fth_search_result search_with(fth_stepper *const *s, int n_steppers, const model_case *m,
                                     fth_search_spec spec, fth_search_batch batch) {
    fth_search_result r;
    assert_int_equal(fth_search(s, n_steppers, m->model.config.tgt_vocab, &spec, &batch, &r),
                     FTH_OK);
    for (int32_t i = 0; i < batch.n_sent && spec.unkpen == 0; i++) /* which is not in logp */
        for (int32_t k = 0; k < r.count[i]; k++) check_score(&r.found[i][k], spec.lenpen);
    return r;
}

static fth_search_result search_batch(fth_stepper *s, const model_case *m, fth_search_spec spec,
                                      fth_search_batch batch) {
    return search_with(&s, 1, m, spec, batch);
}

/* Searches some sentences of the three; the stepper holds all. */
static fth_search_result search_some(model_case *m, fth_search_spec spec, int first, int n) {
    int32_t offsets[4];
    int64_t number[3];
    for (int i = 0; i <= n; i++) offsets[i] = source_offsets[first + i] - source_offsets[first];
    for (int i = 0; i < n; i++) number[i] = first + i;
    fth_search_batch batch = {
        .n_sent = n, .offsets = offsets, .ids = sources + source_offsets[first], .number = number};
    fth_stepper *s = new_stepper(m, spec.beam, fth_search_top(&spec, 1, VOCAB));
    fth_search_result r = search_batch(s, m, spec, batch);
    fth_stepper_free(s);
    return r;
}

static model_case search_model(void) {
    fth_config c = model_case_config("preln", FTH_ENCDEC);
    model_case m;
    model_case_init(&m, &c, "cpu", 1, 0.5, 0);
    return m;
}

/* A score is what the full forward says of the tokens. */
static void scores_are_those_of_the_model(void **state) {
    (void)state;
    model_case m = search_model();
    for (int beam = 1; beam <= 4; beam++) {
        fth_search_spec spec = plain_search(beam);
        spec.max_len_b = LENGTH - 1;
        fth_search_result r = search_some(&m, spec, 0, 3);
        for (int i = 0; i < 3; i++) {
            assert_true(r.count[i] >= 1);
            const fth_hypothesis *h = &r.found[i][0];
            int32_t tgt[16] = {0};
            double logits[16 * VOCAB], sum = 0;
            float row[VOCAB], logp[VOCAB];
            for (int k = 0; k + 1 < h->n; k++) tgt[k + 1] = h->tokens[k];
            int32_t first = source_offsets[i], n_src = source_offsets[i + 1] - first;
            assert_in_range(h->n, 1, LENGTH);
            model_case_logits(&m, sources + first, n_src, tgt, h->n, logits);
            for (int k = 0; k < h->n; k++) {
                for (int v = 0; v < VOCAB; v++) row[v] = (float)logits[k * VOCAB + v];
                fth_log_softmax(row, VOCAB, 1, logp);
                assert_close(logp[h->tokens[k]], h->logp[k], 1e-4);
                sum += logp[h->tokens[k]];
            }
            assert_close(sum / h->n, h->score, 1e-4);
        }
        fth_search_result_fini(&r);
    }
    model_case_fini(&m);
}

static void beam_one_is_greedy(void **state) {
    (void)state;
    model_case m = search_model();
    fth_search_result r = search_some(&m, plain_search(1), 0, 3);
    fth_search_spec draw = plain_search(1);
    draw.sampling = true;
    draw.topk = 1;
    fth_search_result g = search_some(&m, draw, 0, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r.found[i][0].n, g.found[i][0].n);
        assert_memory_equal(r.found[i][0].tokens, g.found[i][0].tokens,
                            sizeof(int32_t) * (size_t)r.found[i][0].n);
    }
    fth_search_result_fini(&r);
    fth_search_result_fini(&g);
    model_case_fini(&m);
}

static void results_do_not_depend_on_the_batch(void **state) {
    (void)state;
    model_case m = search_model();
    for (int sampling = 0; sampling < 2; sampling++) {
        fth_search_spec spec = plain_search(3);
        spec.sampling = sampling;
        fth_search_result all = search_some(&m, spec, 0, 3);
        for (int i = 0; i < 3; i++) {
            fth_search_result one = search_some(&m, spec, i, 1);
            assert_int_equal(one.count[0], all.count[i]);
            for (int k = 0; k < one.count[0]; k++) {
                assert_int_equal(one.found[0][k].n, all.found[i][k].n);
                assert_memory_equal(one.found[0][k].tokens, all.found[i][k].tokens,
                                    sizeof(int32_t) * (size_t)one.found[0][k].n);
                assert_close(one.found[0][k].score, all.found[i][k].score, 1e-5);
            }
            fth_search_result_fini(&one);
        }
        fth_search_result_fini(&all);
    }
    model_case_fini(&m);
}

static void rules_are_kept(void **state) {
    (void)state;
    model_case m = search_model();
    fth_search_spec spec = plain_search(4);
    spec.min_len = 4;
    spec.no_repeat_ngram = 2;
    fth_search_result r = search_some(&m, spec, 0, 3);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < r.count[i]; k++) {
            const fth_hypothesis *h = &r.found[i][k];
            assert_true(h->n >= 5 && h->n <= 9); /* 4 tokens and the end; 8 at most */
            assert_int_equal(h->tokens[h->n - 1], 2);
            for (int x = 0; x + 1 < h->n; x++) {
                assert_true(h->tokens[x] > 2); /* neither bos, pad nor eos inside */
                for (int y = 0; y < x; y++)
                    assert_false(h->tokens[x] == h->tokens[y] &&
                                 h->tokens[x + 1] == h->tokens[y + 1] && x + 2 < h->n);
            }
            if (k > 0) assert_true(h->score <= r.found[i][k - 1].score);
        }
    fth_search_result_fini(&r);
    model_case_fini(&m);
}

static void forced_prefixes(void **state) {
    (void)state;
    model_case m = search_model();
    fth_stepper_spec size = {.sentences = 3, .src_tokens = 11, .rows = 6, .length = 12};
    fth_stepper *s = NULL;
    static const int32_t prefix_offsets[] = {0, 2, 2, 3}, prefix[] = {9, 9, 3};
    fth_search_spec spec = plain_search(2);
    fth_search_batch batch = {.n_sent = 3,
                              .offsets = source_offsets,
                              .ids = sources,
                              .prefix_offsets = prefix_offsets,
                              .prefix_ids = prefix};
    fth_search_result r;
    assert_int_equal(fth_stepper_new(&m.model, m.device, &m.trainer.arenas, &size, &s), FTH_OK);
    assert_int_equal(fth_search(&s, 1, VOCAB, &spec, &batch, &r), FTH_OK);
    for (int k = 0; k < r.count[0]; k++)
        assert_true(r.found[0][k].tokens[0] == 9 && r.found[0][k].tokens[1] == 9);
    for (int k = 0; k < r.count[2]; k++) assert_int_equal(r.found[2][k].tokens[0], 3);
    fth_search_result_fini(&r);
    fth_stepper_free(s);
    model_case_fini(&m);
}

/* The mean of a model with itself is the model. */
static void an_ensemble_of_twins(void **state) {
    (void)state;
    model_case m = search_model();
    fth_stepper_spec size = {.sentences = 3, .src_tokens = 11, .rows = 6, .length = 12};
    fth_stepper *s[2];
    fth_search_spec spec = plain_search(2);
    fth_search_batch batch = {.n_sent = 3, .offsets = source_offsets, .ids = sources};
    fth_search_result twins, one = search_some(&m, spec, 0, 3);
    for (int i = 0; i < 2; i++)
        assert_int_equal(fth_stepper_new(&m.model, m.device, &m.trainer.arenas, &size, &s[i]),
                         FTH_OK);
    assert_int_equal(fth_search(s, 2, VOCAB, &spec, &batch, &twins), FTH_OK);
    for (int i = 0; i < 3; i++) assert_close(twins.found[i][0].score, one.found[i][0].score, 1e-4);
    for (int i = 0; i < 2; i++) fth_stepper_free(s[i]);
    fth_search_result_fini(&twins);
    fth_search_result_fini(&one);
    model_case_fini(&m);
}

/* ---- words that the device chooses ---- */

/* Rules of a search that strike out words, or need words that are not among the best. */
typedef struct rules {
    const char *name;
    double lenpen, unkpen;
    int64_t min_len;
    int32_t no_repeat;
    bool forced, sampling;
} rules;

static const rules all_rules[] = {
    {"plain", .lenpen = 1},
    {"min-len", .lenpen = 1, .min_len = 4},
    {"lenpen", .lenpen = 0.4},
    {"unkpen", .lenpen = 1, .unkpen = 0.7, .min_len = 2},
    {"bonus for unk", .lenpen = 1, .unkpen = -2},
    {"no word twice", .lenpen = 1, .min_len = 8, .no_repeat = 1},
    {"no pair twice", .lenpen = 1, .min_len = 8, .no_repeat = 2},
    {"forced", .lenpen = 1, .unkpen = 0.3, .min_len = 5, .no_repeat = 2, .forced = true},
    {"drawn", .lenpen = 1, .forced = true, .sampling = true},
};
enum { N_RULES = sizeof all_rules / sizeof *all_rules };

static fth_search_result search_by(fth_stepper *const *s, int n_steppers, const model_case *m,
                                   const rules *by, int32_t beam) {
    static const int32_t prefix_offsets[] = {0, 2, 2, 3}, prefix[] = {9, 9, 3};
    fth_search_spec spec = plain_search(beam);
    spec.lenpen = by->lenpen;
    spec.unkpen = by->unkpen;
    spec.min_len = by->min_len;
    spec.no_repeat_ngram = by->no_repeat;
    spec.sampling = by->sampling;
    fth_search_batch batch = {.n_sent = 3, .offsets = source_offsets, .ids = sources};
    if (by->forced) {
        batch.prefix_offsets = prefix_offsets;
        batch.prefix_ids = prefix;
    }
    return search_with(s, n_steppers, m, spec, batch);
}

/* tolerance: of scores; tokens are the same. */
static void assert_same(const char *what, int32_t top, double tolerance, const fth_search_result *a,
                        const fth_search_result *b) {
    for (int i = 0; i < a->n_sent; i++) {
        if (a->count[i] != b->count[i])
            fail_msg("%s, %d words: %d hypotheses, not %d", what, top, a->count[i], b->count[i]);
        for (int k = 0; k < a->count[i]; k++) {
            const fth_hypothesis *x = &a->found[i][k], *y = &b->found[i][k];
            if (x->n != y->n || memcmp(x->tokens, y->tokens, (size_t)y->n * sizeof *y->tokens) != 0)
                fail_msg("%s, %d words: hypothesis %d of sentence %d is another", what, top, k, i);
            for (int t = 0; t < x->n; t++)
                assert_close((double)x->logp[t], (double)y->logp[t], tolerance);
            assert_close(x->score, y->score, tolerance);
        }
    }
}

enum { MOST_MODELS = 3 };

/* By every rule, one after the other on the same steppers. */
static void search_by_all(model_case *m, int models, int32_t beam, int32_t top,
                          fth_search_result *out) {
    fth_stepper *s[MOST_MODELS];
    for (int k = 0; k < models; k++) s[k] = new_stepper(&m[k], beam, top);
    for (int i = 0; i < N_RULES; i++) out[i] = search_by(s, models, m, &all_rules[i], beam);
    for (int k = 0; k < models; k++) fth_stepper_free(s[k]);
}

/* Whatever the devices choose, the search finds what it finds among all words: where a list is too
 * short for the rules, the row is looked at whole. */
static void check_lists(const char *device, int models, int32_t vocab, double tolerance) {
    static const int32_t tops[] = {1, 2, 6, 12, FTH_TOP_MOST}, beams[] = {1, 2, 4, 14, 15};
    fth_config c = model_case_config("preln", FTH_ENCDEC);
    model_case m[MOST_MODELS];
    c.src_vocab = c.tgt_vocab = vocab;
    for (int k = 0; k < models; k++) model_case_init(&m[k], &c, device, 2, 0.5 - 0.1 * k, 0);
    for (size_t b = 0; b < sizeof beams / sizeof *beams; b++) {
        fth_search_result whole[N_RULES], r[N_RULES];
        search_by_all(m, models, beams[b], 0, whole);
        for (size_t t = 0; t < sizeof tops / sizeof *tops; t++) {
            search_by_all(m, models, beams[b], tops[t], r);
            for (int i = 0; i < N_RULES; i++) {
                assert_same(all_rules[i].name, tops[t], tolerance, &r[i], &whole[i]);
                fth_search_result_fini(&r[i]);
            }
        }
        for (int i = 0; i < N_RULES; i++) fth_search_result_fini(&whole[i]);
    }
    for (int k = 0; k < models; k++) model_case_fini(&m[k]);
}

static void lists_give_what_whole_rows_give(void **state) {
    (void)state;
    for (int large = 0; large < 2; large++) {
        for (int models = 1; models <= MOST_MODELS; models++)
            check_lists("cpu", models, large ? 67 : VOCAB, 0);
        check_lists("cpu-bf16", 1, large ? 67 : VOCAB, 0);
    }
}

/* ---- lists of several models ---- */

enum { LIST_MODELS = 3, LIST_WORDS = 40 };

/* What a device would choose of the logits of one row. */
static void choose(const float *logits, int32_t k, float *list) {
    float best[FTH_TOP_MOST];
    int32_t word[FTH_TOP_MOST];
    const int32_t n = fth_row_best(logits, LIST_WORDS, k, best, word);
    list[TOP_LSE] = fth_row_lse(logits, LIST_WORDS);
    list[TOP_ASKED] = logits[7];
    for (int32_t i = 0; i < k; i++) {
        list[TOP_BEST + i] = i < n ? best[i] : 0;
        list[TOP_BEST + k + i] = i < n ? (float)word[i] : -1;
    }
}

/* The list is a beginning of all words in their order, whichever words the models prefer. */
static void check_mixed(fth_rng *rng, int models, int32_t k, bool few) {
    float logits[LIST_MODELS][LIST_WORDS], list[LIST_MODELS][TOP_BEST + 2 * FTH_TOP_MOST];
    float each[LIST_MODELS][LIST_WORDS], mean[LIST_WORDS], best[LIST_WORDS], asked;
    const float *at[LIST_MODELS], *row[LIST_MODELS];
    fth_best chosen[LIST_MODELS];
    fth_mixed_list l;
    int32_t word[LIST_WORDS];
    for (int m = 0; m < models; m++) {
        for (int32_t w = 0; w < LIST_WORDS; w++)
            logits[m][w] = few && w % 8 != m ? -INFINITY : (float)fth_rng_below(rng, 12) / 2;
        choose(logits[m], k, list[m]);
        for (int32_t w = 0; w < LIST_WORDS; w++) each[m][w] = logits[m][w] - list[m][TOP_LSE];
        chosen[m] = (fth_best){k, list[m]};
        at[m] = logits[m];
        row[m] = each[m];
    }
    fth_row_mix(row, models, LIST_WORDS, mean);
    const int32_t n = fth_row_best(mean, LIST_WORDS, LIST_WORDS, best, word);
    assert_int_equal(fth_mixed_list_init(&l, models), FTH_OK);
    assert_true(fth_mixed_list_fill(&l, chosen, at, LIST_WORDS, 0));
    assert_true(l.n <= n);
    for (int32_t i = 0; i < l.n; i++) {
        assert_int_equal(l.word[i], word[i]);
        assert_true(l.logp[i] == best[i]);
    }
    assert_int_equal(l.all, few && k > LIST_WORDS / 8);
    if (l.all) assert_int_equal(l.n, n);
    if (k == FTH_TOP_MOST) assert_true(l.n > 0);
    if (!few) {
        assert_true(fth_mixed_list_asked(&l, chosen, 0, &asked));
        assert_true(asked == mean[7]);
    }
    list[models - 1][TOP_LSE] = NAN;
    assert_false(fth_mixed_list_fill(&l, chosen, at, LIST_WORDS, 0));
    assert_false(fth_mixed_list_asked(&l, chosen, 0, &asked));
    fth_mixed_list_fini(&l);
}

static void lists_of_several_models(void **state) {
    (void)state;
    fth_rng rng;
    fth_rng_init(&rng, 5, 0);
    for (int trial = 0; trial < 200; trial++)
        for (int models = 1; models <= LIST_MODELS; models++)
            for (int32_t k = 1; k <= FTH_TOP_MOST; k += k < 8 ? 1 : 8)
                check_mixed(&rng, models, k, trial % 4 == 3);
}

static void lists_of_a_gpu(void **state) {
    (void)state;
    if (!gpu_is_there()) skip();
    for (int models = 1; models <= MOST_MODELS; models++)
        check_lists("cuda", models, 67, 1e-5); /* it sums up exponentials in another order */
}

/* How many words a search asks for, and which searches want all. */
static void words_asked_for(void **state) {
    (void)state;
    for (int beam = 1; beam <= 20; beam++) {
        fth_search_spec spec = plain_search(beam);
        const int32_t k = beam <= 14 ? 2 * beam + 4 : 0;
        assert_int_equal(fth_search_top(&spec, 1, VOCAB), k);
        assert_int_equal(fth_search_top(&spec, 2, VOCAB), !k          ? 0
                                                          : beam < 10 ? k + beam
                                                                      : FTH_TOP_MOST);
        assert_int_equal(fth_search_top(&spec, 1, FTH_TOP_VOCAB), k);
        assert_int_equal(fth_search_top(&spec, 1, FTH_TOP_VOCAB + 1), 0);
        spec.unkpen = -1;
        assert_int_equal(fth_search_top(&spec, 1, VOCAB), 0);
        spec.unkpen = 1;
        assert_int_equal(fth_search_top(&spec, 1, VOCAB), k);
        spec.sampling = true;
        assert_int_equal(fth_search_top(&spec, 1, VOCAB), 0);
    }
}

/* ---- picking ---- */

static void picking(void **state) {
    (void)state;
    const float logits[] = {0, 1, 2, -INFINITY, 1};
    float logp[5];
    fth_candidate best[5], scratch[5];
    fth_log_softmax(logits, 5, 1, logp);
    double sum = 0;
    for (int i = 0; i < 5; i++) sum += exp(logp[i]);
    assert_close(sum, 1, 1e-6);
    assert_int_equal(fth_pick_best(logp, 5, 3, 0, 0, best), 3);
    assert_int_equal(best[0].token, 2);
    assert_int_equal(best[1].token, 1); /* ties go to the smaller token */
    assert_int_equal(best[2].token, 4);
    assert_int_equal(fth_pick_best(logp, 5, 9, 0, 0, best),
                     4); /* what is forbidden is no candidate */
    assert_int_equal(fth_pick_random(logp, 5, 1, 0, 0.99, scratch), 2);
    assert_int_equal(fth_pick_random(logp, 5, 0, 0.3, 0.99, scratch), 2);
    int counts[5] = {0};
    for (int i = 0; i < 1000; i++) counts[fth_pick_random(logp, 5, 0, 0, i / 1000.0, scratch)]++;
    for (int i = 0; i < 5; i++) assert_close(counts[i] / 1000.0, exp(logp[i]), 0.002);
}

/* However low the temperature, the best of the words that the rules leave is drawn; where they
 * leave none, that is said. */
static void a_low_temperature_is_greedy(void **state) {
    (void)state;
    static const double temperatures[] = {1e-6, 1e-30, 1e-38, 1e-45, 5e-324};
    const float logits[] = {80, -3, 95.5f, 95, -INFINITY};
    const int32_t order[] = {2, 3, 0, 1};
    for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++) {
        float logp[5];
        fth_candidate scratch[5];
        assert_true(fth_log_softmax(logits, 5, temperatures[t], logp));
        assert_true(logp[2] == 0);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(fth_pick_random(logp, 5, 0, 0, 0.99, scratch), order[i]);
            logp[order[i]] = -INFINITY;
        }
        assert_int_equal(fth_pick_random(logp, 5, 0, 0, 0.99, scratch), -1);
    }
}

static void a_softmax_of_no_numbers(void **state) {
    (void)state;
    static const float bad[] = {NAN, -NAN, INFINITY};
    for (int n = 2; n <= 40; n += 19)
        for (int i = 0; i < 9; i++) {
            float logits[40] = {0}, logp[40];
            logits[n - 1] = bad[i % 3];
            assert_false(fth_log_softmax(logits, n, i < 3 ? 1 : i < 6 ? 0.5 : 1e-38, logp));
        }
}

/* A search says that a model gives no numbers, on each way to the words. */
static void logits_that_are_not_finite(void **state) {
    (void)state;
    static const char *const devices[] = {"cpu", "cpu-bf16", "ref"};
    static const int32_t prefix_offsets[] = {0, 2, 2, 3}, prefix[] = {9, 9, 3};
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        fth_config c = model_case_config("preln", FTH_ENCDEC);
        model_case m;
        model_case_init(&m, &c, devices[d], 1, 0.5, 0);
        m.flat[m.model.params.param[fth_params_find(&m.model.params, "embed_tokens.weight")]
                   .offset +
               4 * c.d_model] = NAN;
        assert_int_equal(fth_arenas_load(m.device, &m.trainer.arenas, m.flat), FTH_OK);
        for (int way = 0; way < 8; way++) {
            const bool forced = way & 1, sampling = way & 2, twins = way & 4;
            fth_search_spec spec = plain_search(2);
            spec.sampling = sampling;
            fth_search_batch batch = {.n_sent = 3, .offsets = source_offsets, .ids = sources};
            if (forced) batch.prefix_offsets = prefix_offsets, batch.prefix_ids = prefix;
            const int32_t top = fth_search_top(&spec, twins ? 2 : 1, VOCAB);
            fth_stepper *s[2] = {new_stepper(&m, 2, top), new_stepper(&m, 2, top)};
            fth_search_result r;
            assert_int_equal(fth_search(s, twins ? 2 : 1, VOCAB, &spec, &batch, &r), FTH_FAILED);
            assert_non_null(strstr(fth_error_message(), "gives logits that are not finite"));
            for (int i = 0; i < 2; i++) fth_stepper_free(s[i]);
        }
        model_case_fini(&m);
    }
}

/* No word is left where none may come twice and the end may not come yet. */
static void rules_that_leave_no_word(void **state) {
    (void)state;
    model_case m = search_model();
    for (int sampling = 0; sampling < 2; sampling++) {
        fth_search_spec spec = plain_search(2);
        spec.sampling = sampling;
        spec.no_repeat_ngram = 1;
        spec.min_len = spec.max_len_b = 11;
        fth_search_result r = search_some(&m, spec, 0, 3);
        for (int i = 0; i < 3; i++) assert_int_equal(r.count[i], 0);
        fth_search_result_fini(&r);
    }
    model_case_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_equal_the_full_forward),
        cmocka_unit_test(steps_on_every_path),
        cmocka_unit_test(scores_are_those_of_the_model),
        cmocka_unit_test(beam_one_is_greedy),
        cmocka_unit_test(results_do_not_depend_on_the_batch),
        cmocka_unit_test(rules_are_kept),
        cmocka_unit_test(forced_prefixes),
        cmocka_unit_test(an_ensemble_of_twins),
        cmocka_unit_test(lists_of_several_models),
        cmocka_unit_test(lists_give_what_whole_rows_give),
        cmocka_unit_test(lists_of_a_gpu),
        cmocka_unit_test(words_asked_for),
        cmocka_unit_test(picking),
        cmocka_unit_test(a_low_temperature_is_greedy),
        cmocka_unit_test(a_softmax_of_no_numbers),
        cmocka_unit_test(logits_that_are_not_finite),
        cmocka_unit_test(rules_that_leave_no_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
