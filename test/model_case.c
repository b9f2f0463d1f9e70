/* model_case.c: a small model of any method with a ragged batch, for tests of whole models. */
#include "model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"

fth_config model_case_config(const char *method, fth_arch arch) {
    fth_config c = fth_config_default();
    c.arch = arch;
    snprintf(c.method, sizeof c.method, "%s", method);
    c.encoder_layers = arch == FTH_DEC ? 0 : 2;
    c.decoder_layers = arch == FTH_ENC ? 0 : 2;
    c.d_model = 8;
    c.ffn_dim = 16;
    c.heads = 2;
    c.src_vocab = arch == FTH_DEC ? 0 : 11;
    c.tgt_vocab = arch == FTH_ENC ? 0 : 11;
    c.share = FTH_SHARE_ALL;
    c.max_positions = 16;
    c.dropout = 0;
    return c;
}

void model_case_option(fth_config *c, const char *key, const char *text, double number) {
    fth_method_option *o = &c->options[c->n_options++];
    *o = (fth_method_option){.type = text ? FTH_OPT_STRING : FTH_OPT_NUMBER, .number = number};
    snprintf(o->key, sizeof o->key, "%s", key);
    if (text && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        o->type = FTH_OPT_BOOL;
        o->number = text[0] == 't';
    } else if (text) {
        snprintf(o->text, sizeof o->text, "%s", text);
    }
}

static void fill_batch(model_case *m) {
    static const int32_t src_offsets[] = {0, 5, 6, 9}, tgt_offsets[] = {0, 3, 7, 8};
    static const int32_t src[] = {4, 5, 6, 5, 2, 2, 7, 10, 2}, tgt[] = {0, 4, 5, 0, 9, 8, 5, 0},
                         out[] = {4, 5, 2, 9, 8, -1, 2, 2},
                         src_out[] = {5, -1, 4, 4, 2, 3, 7, 10, 2};
    const fth_config *c = &m->model.config;
    bool has_tgt = c->arch != FTH_ENC;
    assert_int_equal(fth_batch_store_init(&m->store, 9, 8, 3), FTH_OK);
    if (c->arch != FTH_DEC)
        assert_int_equal(fth_batch_store_fill(&m->store, FTH_SRC, 3, src_offsets, src,
                                              has_tgt ? NULL : src_out, c->src_vocab),
                         FTH_OK);
    if (has_tgt)
        assert_int_equal(
            fth_batch_store_fill(&m->store, FTH_TGT, 3, tgt_offsets, tgt, out, c->tgt_vocab),
            FTH_OK);
}

void model_case_init(model_case *m, const fth_config *c, const char *device, int threads,
                     double noise, int64_t memory_budget) {
    memset(m, 0, sizeof *m);
    fth_recipe recipe = {.schedule = {.kind = FTH_CONSTANT, .lr = 1e-2},
                         .beta1 = 0.9,
                         .beta2 = 0.98,
                         .eps = 1e-8,
                         .smoothing = 0.1,
                         .dropout = true,
                         .seed = 3};
    fth_trainer_spec size = {
        .src_tokens = 9, .tgt_tokens = 8, .max_len = 9, .memory_budget = memory_budget};
    if (fth_model_init(&m->model, c) != FTH_OK) fail_msg("%s", fth_error_message());
    const bool bf16 = strcmp(device, "cpu-bf16") == 0;
    if (fth_device_open(bf16 ? "cpu" : device, bf16 ? "bf16" : "fp32", threads, &m->device) !=
        FTH_OK)
        fail_msg("%s", fth_error_message());
    if (fth_trainer_init(&m->trainer, &m->model, m->device, &recipe, &size) != FTH_OK)
        fail_msg("%s: %s", c->method, fth_error_message());
    m->flat = malloc(sizeof *m->flat * (size_t)m->model.params.size);
    fth_model_draw(&m->model, 5, m->flat);
    fth_rng rng;
    fth_rng_init(&rng, 7, 0);
    for (int32_t i = 0; i < m->model.params.n; i++) {
        const fth_param *p = &m->model.params.param[i];
        for (int64_t k = 0; k < fth_param_size(p); k++)
            m->flat[p->offset + k] += (float)(noise * fth_rng_normal(&rng));
    }
    assert_int_equal(fth_arenas_load(m->device, &m->trainer.arenas, m->flat), FTH_OK);
    fill_batch(m);
}

void model_case_fini(model_case *m) {
    fth_trainer_fini(&m->trainer);
    fth_batch_store_fini(&m->store);
    fth_device_close(m->device);
    fth_model_fini(&m->model);
    free(m->flat);
}

fth_update model_case_gradients(model_case *m, int64_t t, float *grad) {
    const fth_batch *batch = &m->store.batch;
    fth_update u;
    if (fth_trainer_gradients(&m->trainer, t, &batch, 1, &u) != FTH_OK)
        fail_msg("%s: %s", m->model.config.method, fth_error_message());
    if (grad)
        assert_int_equal(
            fth_arena_get(m->device, m->trainer.arenas.grad, m->model.params.size, grad), FTH_OK);
    return u;
}

void model_case_logits(model_case *m, const int32_t *src, int32_t n_src, const int32_t *tgt,
                       int32_t n, double *out) {
    enum { MOST = 9 };
    fth_graph g;
    fth_outputs o;
    fth_program *p = NULL;
    fth_batch_store store;
    const fth_config *c = &m->model.config;
    fth_graph_spec what = {.logits = true};
    fth_program_spec how = {.arenas = &m->trainer.arenas};
    fth_trainer_spec size = {.src_tokens = MOST, .tgt_tokens = MOST, .max_len = MOST};
    fth_capacities(&size, how.capacity);
    const int32_t src_offsets[] = {0, n_src}, tgt_offsets[] = {0, n}, targets[MOST] = {0};
    assert_int_equal(fth_model_graph(&m->model, &what, &g, &o), FTH_OK);
    assert_int_equal(fth_program_new(m->device, &g, &how, &p), FTH_OK);
    assert_int_equal(fth_batch_store_init(&store, MOST, MOST, 1), FTH_OK);
    if (n_src)
        assert_int_equal(
            fth_batch_store_fill(&store, FTH_SRC, 1, src_offsets, src, NULL, c->src_vocab), 0);
    assert_int_equal(
        fth_batch_store_fill(&store, FTH_TGT, 1, tgt_offsets, tgt, targets, c->tgt_vocab), 0);
    fth_step step = {.update = 1};
    fth_method_step(&m->model.method, c->step, step.slots);
    assert_int_equal(fth_program_run(p, &store.batch, &step), FTH_OK);
    assert_int_equal(fth_program_read(p, o.logits, out), FTH_OK);
    fth_program_free(p);
    fth_batch_store_fini(&store);
}
