/* onnx.c: ONNX, written from the graph of the model itself, so it holds every method. Inputs are
 * padded ids, src [batch, S] and tgt [batch, T]; the output is logits, those of padded words mean
 * nothing. Parameters keep their names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/format.h"
#include "exchange/onnx_graph.h"
#include "graph/op.h"

static const char *lacks(const fth_model *m, fth_norm_place norm) {
    (void)norm;
    return fth_config_is_adaptive(&m->config) ? "is not written for words in bands" : NULL;
}

/* The way from one graph to the other. */
typedef struct writing {
    fth_onnx g;
    const fth_model *m;
    const float *flat;
    const fth_graph *graph;
    fth_onnx_name *name; /* [n_values] of values that are there; "" else */
    double slots[FTH_STEP_SLOTS];
    fth_onnx_name mask[2]; /* by fth_side: [batch, 1, 1, length], 0 or a large negative number */
    fth_onnx_name future;  /* [T, T], the same for what a decoder must not see */
    fth_onnx_name kept;    /* [batch, S, 1] 1 where a source word is no pad */
    float *positions;      /* [max_positions, d] of the sinusoids */
} writing;

static const char *const inputs[] = {"src", "tgt"};
static const double FAR = -1e30; /* what is added to scores that must not count */

/* ---- parameters ---- */

/* Part of a parameter, counted in its elements. */
static fth_onnx_name part_of(writing *w, const fth_param *p, int64_t begin, int64_t end) {
    const int64_t all[] = {-1}, from[] = {begin}, to[] = {end};
    const fth_onnx_name line = fth_onnx_numbers(&w->g, all, 1);
    const fth_onnx_name flat = fth_onnx_node(&w->g, "Reshape", p->name, line.text, NULL, NULL);
    return fth_onnx_node(&w->g, "Slice", flat.text, fth_onnx_numbers(&w->g, from, 1).text,
                         fth_onnx_numbers(&w->g, to, 1).text, NULL);
}

/* A range of the arena: one parameter, several, or a part of one. */
static fth_onnx_name param_value(writing *w, const fth_value *v) {
    const int64_t begin = v->offset, end = v->offset + v->rows * v->width;
    fth_onnx_name sum = {""};
    for (int32_t i = 0; i < w->m->params.n; i++) {
        const fth_param *p = &w->m->params.param[i];
        const int64_t first = p->offset, last = p->offset + fth_param_size(p);
        if (last <= begin || first >= end) continue;
        fth_onnx_name one;
        snprintf(one.text, sizeof one.text, "%s", p->name);
        if (first < begin || last > end) {
            const int64_t shape[] = {v->rows, v->width};
            one = part_of(w, p, begin - first, end - first);
            if (v->rows > 1)
                one = fth_onnx_node(&w->g, "Reshape", one.text,
                                    fth_onnx_numbers(&w->g, shape, 2).text, NULL, NULL);
        }
        if (sum.text[0]) {
            fth_onnx_int(&w->g, "axis", 0);
            sum = fth_onnx_node(&w->g, "Concat", sum.text, one.text, NULL, NULL);
        } else {
            sum = one;
        }
    }
    return sum;
}

static fth_onnx_name positions_of(writing *w, const fth_value *v) {
    const int64_t shape[] = {v->rows, v->width};
    fth_onnx_name name = {"_positions"};
    if (w->positions) return name;
    w->positions = malloc(sizeof *w->positions * (size_t)(v->rows * v->width));
    if (!w->positions) {
        w->g.err = fth_fail(FTH_NO_MEMORY, "no memory for positions");
        return name;
    }
    for (int64_t i = 0; i < v->rows * v->width; i++)
        w->positions[i] = (float)v->constant(i / v->width, i % v->width, v->width);
    fth_onnx_store(&w->g, name.text, 2, shape, w->positions);
    return name;
}

/* The name of a value, with the nodes that it takes. */
static const char *use(writing *w, fth_val id) {
    const fth_value *v = &w->graph->value[id];
    fth_onnx_name *name = &w->name[id];
    if (!id) return NULL;
    if (name->text[0]) return name->text;
    if (v->storage == FTH_IN_PARAM) {
        *name = param_value(w, v);
    } else if (v->storage == FTH_IN_CONST) {
        *name = positions_of(w, v);
    } else if (v->base) {
        const int64_t from[] = {v->column}, to[] = {v->column + v->width}, axis[] = {-1};
        const char *base = use(w, v->base);
        *name = fth_onnx_node(&w->g, "Slice", base, fth_onnx_numbers(&w->g, from, 1).text,
                              fth_onnx_numbers(&w->g, to, 1).text,
                              fth_onnx_numbers(&w->g, axis, 1).text);
    } else if (w->g.err == FTH_OK) {
        w->g.err = fth_fail(FTH_FAILED, "a value of the graph has no node in ONNX");
    }
    return name->text;
}

static void give(writing *w, fth_val id, fth_onnx_name name) {
    if (id) w->name[id] = name;
}

/* ---- small pieces ---- */

static fth_onnx_name two(writing *w, const char *kind, const char *a, const char *b) {
    return fth_onnx_node(&w->g, kind, a, b, NULL, NULL);
}

static fth_onnx_name times(writing *w, const char *x, double factor) {
    fth_onnx_name same;
    snprintf(same.text, sizeof same.text, "%s", x);
    return factor == 1 ? same : two(w, "Mul", x, fth_onnx_scalar(&w->g, factor).text);
}

static fth_onnx_name reshaped(writing *w, const char *x, const int64_t *shape, int n) {
    return two(w, "Reshape", x, fth_onnx_numbers(&w->g, shape, n).text);
}

static fth_onnx_name turned(writing *w, const char *x, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t order[] = {a, b, c, d};
    fth_onnx_ints(&w->g, "perm", order, 4);
    return fth_onnx_node(&w->g, "Transpose", x, NULL, NULL, NULL);
}

static fth_onnx_name activated(writing *w, const char *x, fth_act act) {
    if (act == FTH_ACT_RELU) return fth_onnx_node(&w->g, "Relu", x, NULL, NULL, NULL);
    if (act == FTH_ACT_TANH) return fth_onnx_node(&w->g, "Tanh", x, NULL, NULL, NULL);
    if (act == FTH_ACT_NONE) return times(w, x, 1);
    const fth_onnx_name inner = times(w, x, 1 / sqrt(2.0));
    const fth_onnx_name erf = fth_onnx_node(&w->g, "Erf", inner.text, NULL, NULL, NULL);
    const fth_onnx_name sum = two(w, "Add", erf.text, fth_onnx_scalar(&w->g, 1).text);
    return two(w, "Mul", times(w, x, 0.5).text, sum.text);
}

/* ---- masks ---- */

/* The length of an input as [1]. */
static fth_onnx_name length_of(writing *w, int side) {
    fth_onnx_int(&w->g, "start", 1);
    fth_onnx_int(&w->g, "end", 2);
    return fth_onnx_node(&w->g, "Shape", inputs[side], NULL, NULL, NULL);
}

static void make_masks(writing *w, int side) {
    const int64_t pad[] = {w->m->config.pad}, middle[] = {1, 2}, last[] = {2};
    const fth_onnx_name is_pad =
        two(w, "Equal", inputs[side], fth_onnx_numbers(&w->g, pad, 1).text);
    fth_onnx_int(&w->g, "to", 1);
    const fth_onnx_name one = fth_onnx_node(&w->g, "Cast", is_pad.text, NULL, NULL, NULL);
    w->mask[side] =
        times(w, two(w, "Unsqueeze", one.text, fth_onnx_numbers(&w->g, middle, 2).text).text, FAR);
    if (side == FTH_SRC) {
        const fth_onnx_name kept = two(w, "Sub", fth_onnx_scalar(&w->g, 1).text, one.text);
        w->kept = two(w, "Unsqueeze", kept.text, fth_onnx_numbers(&w->g, last, 1).text);
        return;
    }
    const fth_onnx_name length = length_of(w, side);
    fth_onnx_int(&w->g, "axis", 0);
    const fth_onnx_name square = two(w, "Concat", length.text, length.text);
    const fth_onnx_name all =
        fth_onnx_node(&w->g, "Expand", fth_onnx_scalar(&w->g, FAR).text, square.text, NULL, NULL);
    const int64_t above[] = {1}, none[] = {0};
    const fth_onnx_name k = two(w, "Squeeze", fth_onnx_numbers(&w->g, above, 1).text,
                                fth_onnx_numbers(&w->g, none, 1).text);
    fth_onnx_int(&w->g, "upper", 1);
    w->future = two(w, "Trilu", all.text, k.text);
}

/* ---- operations ---- */

static void embed(writing *w, const fth_op *op) {
    const int64_t zero[] = {0};
    const fth_onnx_name row =
        two(w, "Gather", use(w, op->in[EMBED_TABLE]), inputs[op->u.embed.side]);
    const fth_onnx_name words = times(w, row.text, (double)op->u.embed.scale);
    const fth_onnx_name here = fth_onnx_node(&w->g, "Slice", use(w, op->in[EMBED_POS]),
                                             fth_onnx_numbers(&w->g, zero, 1).text,
                                             length_of(w, op->u.embed.side).text, NULL);
    give(w, op->out[EMBED_Y], two(w, "Add", words.text, here.text));
}

static void linear(writing *w, const fth_op *op) {
    const fth_onnx_name weight =
        fth_onnx_node(&w->g, "Transpose", use(w, op->in[LINEAR_W]), NULL, NULL, NULL);
    fth_onnx_name y = two(w, "MatMul", use(w, op->in[LINEAR_X]), weight.text);
    if (op->in[LINEAR_B]) y = two(w, "Add", y.text, use(w, op->in[LINEAR_B]));
    if (op->out[LINEAR_PRE]) give(w, op->out[LINEAR_PRE], y);
    give(w, op->out[LINEAR_Y], activated(w, y.text, op->u.linear.act));
}

/* [batch, length, d] as [batch, heads, length, d / heads]; keys: the last two turned. */
static fth_onnx_name heads_of(writing *w, const char *x, int32_t heads, bool keys) {
    const int64_t shape[] = {0, 0, heads, -1};
    const fth_onnx_name split = reshaped(w, x, shape, 4);
    return keys ? turned(w, split.text, 0, 2, 3, 1) : turned(w, split.text, 0, 2, 1, 3);
}

static void attention(writing *w, const fth_op *op) {
    const int32_t heads = op->u.attention.heads;
    const int64_t whole[] = {0, 0, -1};
    const fth_onnx_name q = heads_of(w, use(w, op->in[ATT_Q]), heads, false);
    const fth_onnx_name k = heads_of(w, use(w, op->in[ATT_K]), heads, true);
    const fth_onnx_name v = heads_of(w, use(w, op->in[ATT_V]), heads, false);
    fth_onnx_name s =
        times(w, two(w, "MatMul", q.text, k.text).text, (double)op->u.attention.scale);
    if (op->in[ATT_PREV]) s = two(w, "Add", s.text, use(w, op->in[ATT_PREV]));
    if (op->out[ATT_SCORES]) give(w, op->out[ATT_SCORES], s);
    s = times(w, s.text, 1 / (double)op->u.attention.divisor);
    s = two(w, "Add", s.text, w->mask[op->u.attention.k_side].text);
    if (op->u.attention.causal) s = two(w, "Add", s.text, w->future.text);
    fth_onnx_int(&w->g, "axis", -1);
    const fth_onnx_name p = fth_onnx_node(&w->g, "Softmax", s.text, NULL, NULL, NULL);
    const fth_onnx_name o = turned(w, two(w, "MatMul", p.text, v.text).text, 0, 2, 1, 3);
    give(w, op->out[ATT_O], reshaped(w, o.text, whole, 3));
}

/* A term of a join. */
static fth_onnx_name term(writing *w, const fth_coef *coef, fth_val param, fth_val x) {
    const char *name = use(w, x);
    if (coef->kind == FTH_COEF_CONST) return times(w, name, coef->value);
    if (coef->kind == FTH_COEF_STEP) return times(w, name, coef->value * w->slots[coef->slot]);
    return times(w, two(w, "Mul", name, use(w, param)).text, coef->value);
}

static fth_onnx_name normed(writing *w, const fth_op *op, const char *x) {
    fth_onnx_int(&w->g, "axis", -1);
    fth_onnx_real(&w->g, "epsilon", op->u.join.eps);
    return fth_onnx_node(&w->g, "LayerNormalization", x, use(w, op->in[JOIN_GAIN]),
                         use(w, op->in[JOIN_BIAS]), NULL);
}

static void join(writing *w, const fth_op *op) {
    fth_onnx_name z = term(w, &op->u.join.r, op->in[JOIN_R], op->in[JOIN_X]);
    if (op->in[JOIN_F])
        z = two(w, "Add", z.text, term(w, &op->u.join.a, op->in[JOIN_A], op->in[JOIN_F]).text);
    if (op->in[JOIN_E])
        z = two(w, "Add", z.text, term(w, &op->u.join.c, op->in[JOIN_C], op->in[JOIN_E]).text);
    give(w, op->out[JOIN_Z], z);
    if (op->kind == FTH_KIND_join_norm) give(w, op->out[JOIN_Y], normed(w, op, z.text));
}

static void scale_shift(writing *w, const fth_op *op) {
    fth_onnx_name y = times(w, use(w, op->in[SHIFT_X]), 1);
    if (op->in[SHIFT_C]) y = two(w, "Sub", y.text, use(w, op->in[SHIFT_C]));
    if (op->in[SHIFT_S]) y = two(w, "Mul", y.text, use(w, op->in[SHIFT_S]));
    give(w, op->out[SHIFT_Y], times(w, y.text, (double)op->u.scale_shift.factor));
}

static void head_scale(writing *w, const fth_op *op) {
    const int64_t split[] = {0, 0, op->u.head_scale.heads, -1}, column[] = {-1, 1},
                  whole[] = {0, 0, -1};
    const fth_onnx_name x = reshaped(w, use(w, op->in[HEADS_X]), split, 4);
    const fth_onnx_name gamma = reshaped(w, use(w, op->in[HEADS_GAMMA]), column, 2);
    give(w, op->out[HEADS_Y], reshaped(w, two(w, "Mul", x.text, gamma.text).text, whole, 3));
}

static void mix(writing *w, const fth_op *op) {
    const int64_t line[] = {-1};
    const fth_onnx_name weights = reshaped(w, use(w, op->in[MIX_W]), line, 1);
    fth_onnx_name sum = {""};
    for (int32_t k = 0; k + MIX_X0 < op->n_in; k++) {
        const int64_t at[] = {k};
        const fth_onnx_name one =
            two(w, "Gather", weights.text, fth_onnx_numbers(&w->g, at, 1).text);
        const fth_onnx_name x = two(w, "Mul", use(w, op->in[MIX_X0 + k]), one.text);
        sum = k ? two(w, "Add", sum.text, x.text) : x;
    }
    give(w, op->out[MIX_Y], sum);
}

/* The first row of a sentence, as [batch, d]; or all rows, where heads look at those with a target
 * alone. */
static void pick(writing *w, const fth_op *op) {
    const int64_t first[] = {0}, one[] = {1};
    const char *x = use(w, op->in[PICK_X]);
    if (op->u.pick.what == FTH_PICK_TARGETS) {
        give(w, op->out[PICK_Y], times(w, x, 1));
        return;
    }
    const fth_onnx_name index = fth_onnx_numbers(&w->g, first, 1);
    fth_onnx_int(&w->g, "axis", 1);
    const fth_onnx_name row = two(w, "Gather", x, index.text);
    give(w, op->out[PICK_Y], two(w, "Squeeze", row.text, fth_onnx_numbers(&w->g, one, 1).text));
}

static fth_onnx_name sum_rows(writing *w, const char *x) {
    const int64_t one[] = {1};
    const fth_onnx_name axis = fth_onnx_numbers(&w->g, one, 1);
    fth_onnx_int(&w->g, "keepdims", 0);
    return two(w, "ReduceSum", x, axis.text);
}

static void mean(writing *w, const fth_op *op) {
    const fth_onnx_name x = two(w, "Mul", use(w, op->in[MEAN_X]), w->kept.text);
    give(w, op->out[MEAN_Y],
         two(w, "Div", sum_rows(w, x.text).text, sum_rows(w, w->kept.text).text));
}

static void operation(writing *w, const fth_op *op) {
    switch (op->kind) {
    case FTH_KIND_embed: embed(w, op); break;
    case FTH_KIND_linear: linear(w, op); break;
    case FTH_KIND_attention: attention(w, op); break;
    case FTH_KIND_join:
    case FTH_KIND_join_norm: join(w, op); break;
    case FTH_KIND_norm: give(w, op->out[JOIN_Y], normed(w, op, use(w, op->in[JOIN_X]))); break;
    case FTH_KIND_activation:
        give(w, op->out[ACT_Y], activated(w, use(w, op->in[ACT_X]), op->u.linear.act));
        break;
    case FTH_KIND_scale_shift: scale_shift(w, op); break;
    case FTH_KIND_head_scale: head_scale(w, op); break;
    case FTH_KIND_mix: mix(w, op); break;
    case FTH_KIND_add:
        give(w, op->out[ADD_Y], two(w, "Add", use(w, op->in[ADD_A]), use(w, op->in[ADD_B])));
        break;
    case FTH_KIND_pick: pick(w, op); break;
    case FTH_KIND_mean: mean(w, op); break;
    case FTH_KIND_xent:
    case FTH_KIND_square: break; /* the loss is for training */
    default:
        if (w->g.err == FTH_OK)
            w->g.err = fth_fail(FTH_BAD_CONFIG, "ONNX: operation %s has no nodes yet",
                                fth_kind_name(op->kind));
    }
}

/* ---- the file ---- */

static void declare(writing *w, const fth_outputs *out) {
    static const char *const src[] = {"batch", "src_length", NULL};
    static const char *const tgt[] = {"batch", "tgt_length", NULL};
    static const char *const sample[] = {"batch", NULL};
    const fth_config *c = &w->m->config;
    if (c->arch != FTH_DEC) fth_onnx_value(&w->g, false, "src", src, 0);
    if (c->arch != FTH_ENC) fth_onnx_value(&w->g, false, "tgt", tgt, 0);
    const char *const *dims = out->rows == FTH_ROWS_TGT         ? tgt
                              : out->rows == FTH_ROWS_SENTENCES ? sample
                                                                : src;
    fth_onnx_value(&w->g, true, "logits", dims, fth_config_output_vocab(c));
}

static void store_params(writing *w) {
    for (int32_t i = 0; i < w->m->params.n; i++) {
        const fth_param *p = &w->m->params.param[i];
        int64_t shape[3];
        const int rank = fth_param_file_shape(p, shape);
        fth_onnx_store(&w->g, p->name, rank, shape, w->flat + p->offset);
    }
}

static fth_err write_graph(writing *w, const fth_outputs *out, const char *folder) {
    w->name = calloc((size_t)w->graph->n_values, sizeof *w->name);
    if (!w->name) return fth_fail(FTH_NO_MEMORY, "no memory for a graph");
    store_params(w);
    declare(w, out);
    if (w->m->config.arch != FTH_DEC) make_masks(w, FTH_SRC);
    if (w->m->config.arch != FTH_ENC) make_masks(w, FTH_TGT);
    for (int32_t i = 0; i < w->graph->n_ops && w->g.err == FTH_OK; i++)
        operation(w, &w->graph->op[i]);
    if (w->g.err == FTH_OK)
        fth_onnx_named(&w->g, "logits", "Identity", use(w, out->logits), NULL, NULL, NULL);
    return fth_onnx_save(&w->g, folder);
}

static fth_err write(const fth_export_job *job) {
    fth_graph graph;
    fth_outputs out;
    const fth_graph_spec what = {.logits = true};
    writing w = {.m = job->model, .flat = job->flat, .graph = &graph};
    if (job->storage != FTH_STORE_F32)
        return fth_fail(FTH_USAGE, "--storage bf16: ONNX is written in fp32 alone");
    fth_method_step(&job->model->method, job->model->config.step, w.slots);
    fth_err err = fth_model_graph(job->model, &what, &graph, &out);
    if (err == FTH_OK) err = write_graph(&w, &out, job->folder);
    fth_graph_fini(&graph);
    fth_onnx_fini(&w.g);
    free(w.name);
    free(w.positions);
    if (err == FTH_OK) err = fth_copy_config(job);
    return err == FTH_OK ? fth_copy_tokenizers(job) : err;
}

/* ---- reading back: the parameters, under their own names ---- */

static const fth_row rows[] = {{"encoder.", {"encoder."}, false, 0, false},
                               {"decoder.", {"decoder."}, false, 0, false},
                               {"embed_tokens.", {"embed_tokens."}, false, 0, false},
                               {"output_projection.", {"output_projection."}, false, 0, false},
                               {"head.", {"head."}, false, 0, false},
                               {NULL, {NULL}, false, 0, false}};

static fth_err read_file(const char *folder, const fth_onnx_file *file, fth_weighted *out) {
    static const char *const ignored[] = {"_positions", NULL};
    fth_config config;
    FTH_TRY(fth_read_config(folder, &config));
    FTH_TRY(fth_model_init(&out->model, &config));
    out->there = true;
    out->flat = malloc(sizeof *out->flat * (size_t)out->model.params.size);
    if (!out->flat) return fth_fail(FTH_NO_MEMORY, "no memory for the model read back");
    const fth_rows_in in = {.rows = rows, .ignored = ignored, .copied = -1};
    return fth_rows_in_read(&in, &file->file, &out->model, out->flat);
}

static fth_err read(const char *folder, fth_weighted *out) {
    fth_onnx_file file = {0};
    fth_err err = fth_onnx_open(folder, &file);
    if (err == FTH_OK) err = read_file(folder, &file, out);
    fth_onnx_close(&file);
    return err;
}

const fth_format fth_format_onnx = {
    .name = "onnx",
    .title = "ONNX",
    .any_method = true,
    .lacks = lacks,
    .write = write,
    .read = read,
    .example = "import json, onnxruntime\n"
               "model = onnxruntime.InferenceSession(\"model.onnx\")\n"
               "ids = {i.name: [[5, 6, json.load(open(\"config.json\"))[\"eos\"]]] "
               "for i in model.get_inputs()}\n"
               "print(model.run([\"logits\"], ids)[0].shape)\n",
};
