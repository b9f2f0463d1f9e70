/* recompute_layers.c: trades work for memory. Single values that are cheap to make again come first
 * (recompute_values.c). Where that is not enough, layers are taken in groups; of a recomputed group
 * only the values that others read are kept, and its forward operations are run again right before
 * its backward. Masks are counted and kernels deterministic, so the values are the same to the bit.
 *
 * The bottom layers are recomputed first: the peak is where the backward starts, and they are the
 * ones whose second copy is made when everything above has been freed. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"

/* Which layers are recomputed, in groups of `group` layers: the `count` lowest groups of all. */
typedef struct choice {
    int32_t group, count;
} choice;

typedef struct rewrite {
    fth_graph *g;
    int32_t depth[2]; /* layers of each stack */
    choice how;
    int32_t *segment; /* [n_ops] group of an operation, -1: kept */
    int32_t *home;    /* [n_values] group that makes it, -1 */
    bool *shared;     /* [n_values] read outside of its group: kept */
    fth_val *copy;    /* [n_values] its second copy, 0: none */
    bool *wanted;     /* [n_ops] to be run again */
    fth_op *out;      /* the new list */
    int32_t n_out, cap_out;
} rewrite;

/* Groups are numbered from the bottom of the model: the encoder's, then the decoder's. An update
 * may stand among the operations of another layer and reads nothing of its own layer's forward. */
static int32_t segment_of(const rewrite *w, const fth_op *op) {
    if (op->layer < 0 || op->stack == FTH_NO_STACK || op->kind == FTH_KIND_update) return -1;
    int32_t before = 0;
    if (op->stack == FTH_DECODER) before = (w->depth[0] + w->how.group - 1) / w->how.group;
    int32_t s = before + op->layer / w->how.group;
    return s < w->how.count ? s : -1;
}

static int32_t groups_in(const rewrite *w, int32_t group) {
    return (w->depth[0] + group - 1) / group + (w->depth[1] + group - 1) / group;
}

/* Finds the group of every operation and the values that leave their group. */
static void survey(rewrite *w) {
    fth_graph *g = w->g;
    for (fth_val v = 0; v < g->n_values; v++) w->home[v] = -1;
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *op = &g->op[i];
        w->segment[i] = segment_of(w, op);
        if (op->backward) continue;
        for (int k = 0; k < op->n_out; k++)
            if (op->out[k]) w->home[fth_owner(g, op->out[k])] = w->segment[i];
    }
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int k = 0; k < g->op[i].n_in; k++) {
            fth_val v = fth_owner(g, g->op[i].in[k]);
            if (v && w->segment[i] != w->home[v]) w->shared[v] = true;
        }
    for (fth_val v = 1; v < g->n_values; v++)
        if (g->value[v].keep) w->shared[fth_owner(g, v)] = true;
}

/* Whether value v must be made again for the backward of group s. */
static bool is_inner(const rewrite *w, fth_val v, int32_t s) {
    return v && s >= 0 && w->home[v] == s && !w->shared[v] &&
           w->g->value[v].storage == FTH_IN_ARENA;
}

static void want(rewrite *w, fth_val v, int32_t s) {
    int32_t maker = w->g->value[v].producer;
    if (!is_inner(w, v, s) || maker < 0 || w->wanted[maker]) return;
    w->wanted[maker] = true;
    for (int k = 0; k < w->g->op[maker].n_in; k++)
        want(w, fth_owner(w->g, w->g->op[maker].in[k]), s);
}

static fth_err append(rewrite *w, const fth_op *op) {
    if (w->n_out == w->cap_out) {
        int32_t capacity = w->cap_out ? w->cap_out * 2 : 1024;
        fth_op *more = realloc(w->out, sizeof *more * (size_t)capacity);
        if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for a plan with recomputation");
        w->out = more;
        w->cap_out = capacity;
    }
    w->out[w->n_out++] = *op;
    return FTH_OK;
}

/* The second copy of an owning value, made at first sight. */
static fth_val second(rewrite *w, fth_val v) {
    if (!w->copy[v]) w->copy[v] = fth_graph_like(w->g, v);
    return w->copy[v];
}

/* An operand as the second run and the backward of group s see it. */
static fth_val renamed(rewrite *w, fth_val v, int32_t s, bool is_output) {
    fth_val base = fth_owner(w->g, v);
    if (!v || (!is_output && !is_inner(w, base, s))) return v;
    fth_val copy = second(w, base);
    if (base == v) return copy;
    return fth_graph_columns(w->g, copy, w->g->value[v].column, w->g->value[v].width);
}

static fth_err append_renamed(rewrite *w, int32_t i, int32_t s, bool rerun) {
    fth_op op = w->g->op[i];
    fth_val *operands =
        fth_arena_alloc(&w->g->arena, sizeof *operands * (size_t)(op.n_in + op.n_out));
    if (!operands) return fth_fail(FTH_NO_MEMORY, "no memory for a plan with recomputation");
    for (int k = 0; k < op.n_in; k++) operands[k] = renamed(w, op.in[k], s, false);
    for (int k = 0; k < op.n_out; k++)
        operands[op.n_in + k] = rerun ? renamed(w, op.out[k], s, true) : op.out[k];
    op.in = operands;
    op.out = operands + op.n_in;
    return append(w, &op);
}

/* Runs the wanted operations of group s again, in their order. [first, end) holds them. */
static fth_err append_rerun(rewrite *w, int32_t s, int32_t first, int32_t end) {
    for (int32_t i = first; i < end; i++)
        if (w->segment[i] == s && w->wanted[i]) FTH_TRY(append_renamed(w, i, s, true));
    return FTH_OK;
}

static fth_err rewrite_ops(rewrite *w) {
    int32_t n = w->g->n_ops, open = -1;
    int32_t groups = groups_in(w, w->how.group);
    int32_t *first = malloc(sizeof *first * (size_t)(groups + 1) * 2);
    if (!first) return fth_fail(FTH_NO_MEMORY, "no memory for a plan with recomputation");
    int32_t *end = first + groups + 1;
    for (int32_t s = 0; s <= groups; s++) first[s] = n, end[s] = 0;
    survey(w);
    for (int32_t i = 0; i < n; i++) {
        int32_t s = w->segment[i];
        if (w->g->op[i].backward) {
            for (int k = 0; s >= 0 && k < w->g->op[i].n_in; k++)
                want(w, fth_owner(w->g, w->g->op[i].in[k]), s);
        } else if (s >= 0) {
            if (first[s] > i) first[s] = i;
            end[s] = i + 1;
        }
    }
    fth_err err = FTH_OK;
    for (int32_t i = 0; i < n && err == FTH_OK; i++) {
        int32_t s = w->segment[i];
        if (!w->g->op[i].backward || s < 0) {
            err = append(w, &w->g->op[i]);
            continue;
        }
        if (s != open) err = append_rerun(w, s, first[s], end[s]);
        open = s;
        if (err == FTH_OK) err = append_renamed(w, i, s, false);
    }
    free(first);
    return err != FTH_OK ? err : w->g->err;
}

/* A second graph of the same operations, so that the first stays as it is. */
static fth_err fork_graph(const fth_graph *g, fth_graph *copy) {
    fth_graph_init(copy);
    copy->n_values = 0;
    for (fth_val v = 0; v < g->n_values && copy->err == FTH_OK; v++)
        fth_graph_value(copy, g->value[v]);
    for (int32_t i = 0; i < g->n_ops; i++) {
        const fth_op *from = &g->op[i];
        fth_op *op = fth_graph_op(copy, from->kind, from->n_in, from->n_out);
        if (!op) break;
        fth_val *in = op->in, *out = op->out;
        memcpy(in, from->in, sizeof *in * (size_t)from->n_in);
        memcpy(out, from->out, sizeof *out * (size_t)from->n_out);
        *op = *from;
        op->in = in;
        op->out = out;
    }
    return copy->err;
}

/* Rewrites `copy` by a choice and plans it. */
static fth_err try_choice(fth_graph *copy, const int32_t depth[2], choice how,
                          const fth_plan_spec *spec, fth_plan *plan) {
    size_t n_ops = (size_t)copy->n_ops, n_values = (size_t)copy->n_values;
    rewrite w = {.g = copy,
                 .depth = {depth[0], depth[1]},
                 .how = how,
                 .segment = malloc(sizeof *w.segment * n_ops),
                 .home = malloc(sizeof *w.home * n_values),
                 .shared = calloc(n_values, 1),
                 .copy = calloc(n_values, sizeof *w.copy),
                 .wanted = calloc(n_ops, 1)};
    fth_err err = FTH_OK;
    if (!w.segment || !w.home || !w.shared || !w.copy || !w.wanted)
        err = fth_fail(FTH_NO_MEMORY, "no memory for a plan with recomputation");
    else
        err = rewrite_ops(&w);
    free(w.segment);
    free(w.home);
    free(w.shared);
    free(w.copy);
    free(w.wanted);
    if (err != FTH_OK) {
        free(w.out);
        return err;
    }
    free(copy->op);
    copy->op = w.out;
    copy->n_ops = w.n_out;
    copy->cap_ops = w.cap_out;
    fth_graph_find_producers(copy);
    return fth_plan_make(copy, spec, plan);
}

/* Peak of a choice; keep: the rewritten graph and its plan are handed over. */
static fth_err measure(const fth_graph *g, const int32_t depth[2], choice how,
                       const fth_plan_spec *spec, int64_t *bytes, fth_graph *keep,
                       fth_plan *keep_plan) {
    fth_graph copy = {0};
    fth_plan plan = {0};
    fth_err err = fork_graph(g, &copy);
    if (err == FTH_OK) err = try_choice(&copy, depth, how, spec, &plan);
    if (err == FTH_OK) *bytes = plan.bytes;
    if (err == FTH_OK && keep) {
        *keep = copy;
        *keep_plan = plan;
        return FTH_OK;
    }
    fth_plan_fini(&plan);
    fth_graph_fini(&copy);
    return err;
}

/* For one size of groups: the fewest groups whose recomputation fits, by bisection. count is 0 when
 * even all of them do not fit; *smallest is lowered to the peak seen with all. */
static fth_err fewest_groups(const fth_graph *g, const int32_t depth[2], int32_t group,
                             const fth_plan_spec *spec, int64_t budget, choice *found,
                             int64_t *smallest) {
    rewrite shape = {.depth = {depth[0], depth[1]}};
    int32_t all = groups_in(&shape, group), lo = 0, hi = all;
    int64_t bytes = 0;
    *found = (choice){group, 0};
    FTH_TRY(measure(g, depth, (choice){group, all}, spec, &bytes, NULL, NULL));
    if (bytes < *smallest) *smallest = bytes;
    if (bytes > budget) return FTH_OK;
    while (hi - lo > 1) {
        int32_t mid = (lo + hi) / 2;
        FTH_TRY(measure(g, depth, (choice){group, mid}, spec, &bytes, NULL, NULL));
        if (bytes <= budget)
            hi = mid;
        else
            lo = mid;
    }
    found->count = hi;
    return FTH_OK;
}

static int32_t layers_of(const int32_t depth[2], choice how) {
    rewrite shape = {.depth = {depth[0], depth[1]}, .how = how};
    int32_t n = 0;
    for (int stack = 0; stack < 2; stack++)
        for (int32_t l = 0; l < depth[stack]; l++) {
            fth_op op = {.stack = (fth_stack)stack, .layer = l};
            if (segment_of(&shape, &op) >= 0) n++;
        }
    return n;
}

/* ---- single values that are made again (recompute_values.c) ---- */

/* Makes the values of `how` again in a copy of the graph. *fits: the copy and its plan are handed
 * over; else nothing is. */
static fth_err try_values(const fth_graph *g, fth_recompute_counts how, const fth_plan_spec *spec,
                          int64_t budget, bool *fits, fth_graph *keep, fth_plan *keep_plan) {
    fth_graph copy = {0};
    fth_plan plan = {0};
    fth_err err = fork_graph(g, &copy);
    if (err == FTH_OK) err = fth_graph_recompute_values(&copy, how);
    if (err == FTH_OK) err = fth_plan_make(&copy, spec, &plan);
    *fits = err == FTH_OK && plan.bytes <= budget;
    if (*fits) {
        *keep = copy;
        *keep_plan = plan;
        return FTH_OK;
    }
    fth_plan_fini(&plan);
    fth_graph_fini(&copy);
    return err;
}

/* So much of it: attention first, then products. */
static fth_recompute_counts part_of(fth_recompute_counts all, int32_t amount) {
    const int32_t attention = amount < all.attention ? amount : all.attention;
    return (fth_recompute_counts){attention, amount - attention};
}

/* The least of it that fits, by bisection: norms, then as few attentions as it takes, then
 * products. *fits: g is replaced. */
static fth_err fewest_values(fth_graph *g, const fth_plan_spec *spec, int64_t budget, bool *fits,
                             fth_plan *out) {
    const fth_recompute_counts all = fth_graph_recomputable(g);
    int32_t lo = 0, hi = all.attention + all.products;
    fth_graph found = {0};
    FTH_TRY(try_values(g, (fth_recompute_counts){0}, spec, budget, fits, &found, out));
    if (*fits)
        hi = 0;
    else
        FTH_TRY(try_values(g, all, spec, budget, fits, &found, out));
    while (*fits && hi - lo > 1) {
        const int32_t mid = (lo + hi) / 2;
        fth_graph fewer = {0};
        fth_plan plan = {0};
        bool enough;
        fth_err err = try_values(g, part_of(all, mid), spec, budget, &enough, &fewer, &plan);
        if (err != FTH_OK) {
            fth_plan_fini(out);
            fth_graph_fini(&found);
            return err;
        }
        if (!enough) {
            lo = mid;
            continue;
        }
        hi = mid;
        fth_plan_fini(out);
        fth_graph_fini(&found);
        found = fewer;
        *out = plan;
    }
    if (!*fits) return FTH_OK;
    fth_graph_fini(g);
    *g = found;
    return FTH_OK;
}

fth_err fth_plan_within(fth_graph *g, const fth_plan_spec *spec, int64_t budget, fth_plan *out,
                        int32_t *layers) {
    *layers = 0;
    if (!spec->recompute_norms) {
        FTH_TRY(fth_plan_make(g, spec, out));
        if (out->bytes <= budget) return FTH_OK;
        fth_plan_fini(out);
    }
    bool fits;
    FTH_TRY(fewest_values(g, spec, budget, &fits, out));
    if (fits) return FTH_OK;
    FTH_TRY(fth_graph_recompute_values(g, (fth_recompute_counts){.attention = INT32_MAX}));
    FTH_TRY(fth_plan_make(g, spec, out));
    int64_t smallest = out->bytes;
    fth_plan_fini(out);
    int32_t depth[2] = {0, 0};
    for (int32_t i = 0; i < g->n_ops; i++)
        if (g->op[i].stack < 2 && g->op[i].layer >= depth[g->op[i].stack])
            depth[g->op[i].stack] = g->op[i].layer + 1;
    choice best = {0, 0};
    int32_t deepest = depth[0] > depth[1] ? depth[0] : depth[1];
    for (int32_t group = 1; group <= deepest; group *= 2) {
        choice found;
        FTH_TRY(fewest_groups(g, depth, group, spec, budget, &found, &smallest));
        if (found.count && (!best.count || layers_of(depth, found) < layers_of(depth, best)))
            best = found;
    }
    if (!best.count)
        return fth_fail(FTH_NO_MEMORY,
                        "activations need at least %.1f MiB even when every layer is recomputed, "
                        "the budget leaves %.1f MiB: raise --memory-budget or lower --max-tokens",
                        (double)smallest / 1048576.0,
                        budget > 0 ? (double)budget / 1048576.0 : 0.0);
    int64_t bytes;
    fth_graph rewritten = {0};
    FTH_TRY(measure(g, depth, best, spec, &bytes, &rewritten, out));
    *layers = layers_of(depth, best);
    fth_graph_fini(g);
    *g = rewritten;
    return FTH_OK;
}
