/* plan.c: places values by a rehearsal: operations are walked in order, an output takes the
 * smallest free gap that holds it (or the end of the arena), a value's gap is freed behind its last
 * reader. */
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

enum { ALIGNMENT = 256 };

typedef struct gap {
    int64_t at, bytes;
} gap;

typedef struct rehearsal {
    const fth_graph *g;
    const fth_plan_spec *spec;
    fth_plan *plan;
    int32_t *last; /* [n_values] last operation that touches the value, -1: none */
    bool *placed;  /* [n_values] */
    bool *moved;   /* [n_values] its place went to the output that replaced it */
    gap *gaps;     /* [n_gaps] free places below the end, by address, never touching */
    int32_t n_gaps, cap_gaps;
} rehearsal;

int64_t fth_value_bytes(const fth_graph *g, const fth_plan_spec *spec, fth_val v) {
    const fth_value *value = &g->value[v];
    int64_t rows = value->extent == FTH_ROWS_FIXED ? value->rows : spec->capacity[value->extent];
    const size_t sizes[] = {
        [FTH_REAL] = spec->real_size, [FTH_FULL] = spec->full_size, [FTH_BITS] = 1};
    int64_t size = (int64_t)sizes[value->class];
    return (rows * value->width * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void fth_plan_fini(fth_plan *p) {
    free(p->offset);
    *p = (fth_plan){0};
}

bool fth_is_deferrable(const fth_op *op) {
    return op->kind == FTH_KIND_linear_dw || op->kind == FTH_KIND_update || op->deferrable;
}

int32_t fth_late_by(const fth_op *op, int32_t lag) {
    if (!fth_is_deferrable(op)) return 0;
    return op->kind == FTH_KIND_update ? FTH_UPDATE_LAGS * lag : lag;
}

/* Whether it is a product without more to it. */
static bool is_plain_product(const fth_op *op, fth_kind kind) {
    if (op->kind != kind) return false;
    return kind == FTH_KIND_linear ? op->u.linear.act == FTH_ACT_NONE && !op->out[LINEAR_PRE]
                                   : !op->in[LINEAR_DX_SAVED];
}

static bool reads(const fth_graph *g, const fth_op *op, fth_val v) {
    for (int k = 0; k < op->n_in; k++)
        if (fth_owner(g, op->in[k]) == v) return true;
    return false;
}

int32_t fth_joined_product(const fth_graph *g, int32_t j) {
    const fth_op *op = &g->op[j];
    const bool forward = op->kind == FTH_KIND_join_norm;
    if (!forward && op->kind != FTH_KIND_join_norm_bwd) return -1;
    const fth_val v = op->in[forward ? JOIN_F : JOIN_BWD_DY];
    const int32_t i = v ? g->value[v].producer : -1;
    if (i < 0 || i >= j || fth_owner(g, v) != v) return -1;
    if (!is_plain_product(&g->op[i], forward ? FTH_KIND_linear : FTH_KIND_linear_dx)) return -1;
    for (int32_t k = i + 1; k < j; k++) /* an update might be of its matrix */
        if (g->op[k].kind == FTH_KIND_update || reads(g, &g->op[k], v)) return -1;
    return i;
}

static void note_uses(rehearsal *r, const fth_val *operands, int n, int32_t end) {
    for (int k = 0; k < n; k++) {
        int32_t *last = &r->last[fth_owner(r->g, operands[k])];
        if (end > *last) *last = end;
    }
}

/* The operand of the product that operation i makes, LINEAR_X or LINEAR_DX_DY. */
static const fth_val *operand_of_joined(const rehearsal *r, int32_t i) {
    const int32_t product = r->spec->joined ? fth_joined_product(r->g, i) : -1;
    return product >= 0 ? r->g->op[product].in : NULL;
}

static void find_last_uses(rehearsal *r) {
    for (fth_val v = 0; v < r->g->n_values; v++) r->last[v] = -1;
    for (int32_t i = 0; i < r->g->n_ops; i++) {
        const fth_op *op = &r->g->op[i];
        const int32_t end = i + fth_late_by(op, r->spec->lag);
        note_uses(r, op->in, op->n_in, end);
        note_uses(r, op->out, op->n_out, end);
        if (operand_of_joined(r, i)) note_uses(r, operand_of_joined(r, i), 1, end);
    }
    for (fth_val v = 1; v < r->g->n_values; v++)
        if (r->g->value[v].keep) r->last[fth_owner(r->g, v)] = r->g->n_ops;
}

/* Inputs whose place an output may take over; the kernels read each element before writing it. */
static int replaced_input(const fth_op *op, int output) {
    if (op->kind == FTH_KIND_linear_dx && output == LINEAR_DX_DX) return LINEAR_DX_ADDEND;
    if (op->kind == FTH_KIND_add && output == ADD_Y) return ADD_A;
    if (op->kind == FTH_KIND_mix_bwd && output >= MIX_BWD_DX0) {
        int n = (op->n_in - 2) / 2;
        return MIX_BWD_X0 + n + (output - MIX_BWD_DX0);
    }
    return -1;
}

/* Cuts `bytes` out of the smallest gap that holds them, or grows the arena. */
static int64_t take(rehearsal *r, int64_t bytes) {
    int32_t best = -1;
    for (int32_t i = 0; i < r->n_gaps; i++)
        if (r->gaps[i].bytes >= bytes && (best < 0 || r->gaps[i].bytes < r->gaps[best].bytes))
            best = i;
    if (best < 0) {
        int64_t at = r->plan->bytes;
        if (r->n_gaps && r->gaps[r->n_gaps - 1].at + r->gaps[r->n_gaps - 1].bytes == at)
            at = r->gaps[--r->n_gaps].at; /* the last gap reaches the end: extend it */
        r->plan->bytes = at + bytes;
        return at;
    }
    gap *g = &r->gaps[best];
    int64_t at = g->at;
    g->at += bytes;
    g->bytes -= bytes;
    if (g->bytes == 0) {
        memmove(g, g + 1, sizeof *g * (size_t)(r->n_gaps - best - 1));
        r->n_gaps--;
    }
    return at;
}

/* Gives a place back, joined with the gaps beside it. */
static fth_err give(rehearsal *r, int64_t at, int64_t bytes) {
    if (bytes == 0) return FTH_OK;
    int32_t lo = 0, hi = r->n_gaps;
    while (lo < hi) {
        int32_t mid = (lo + hi) / 2;
        if (r->gaps[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool joins_left = lo > 0 && r->gaps[lo - 1].at + r->gaps[lo - 1].bytes == at;
    bool joins_right = lo < r->n_gaps && at + bytes == r->gaps[lo].at;
    if (joins_left && joins_right) {
        r->gaps[lo - 1].bytes += bytes + r->gaps[lo].bytes;
        memmove(&r->gaps[lo], &r->gaps[lo + 1], sizeof(gap) * (size_t)(r->n_gaps - lo - 1));
        r->n_gaps--;
    } else if (joins_left) {
        r->gaps[lo - 1].bytes += bytes;
    } else if (joins_right) {
        r->gaps[lo].at = at;
        r->gaps[lo].bytes += bytes;
    } else {
        if (r->n_gaps == r->cap_gaps) {
            int32_t capacity = r->cap_gaps ? r->cap_gaps * 2 : 64;
            gap *more = realloc(r->gaps, sizeof *more * (size_t)capacity);
            if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for the plan");
            r->gaps = more;
            r->cap_gaps = capacity;
        }
        memmove(&r->gaps[lo + 1], &r->gaps[lo], sizeof(gap) * (size_t)(r->n_gaps - lo));
        r->gaps[lo] = (gap){at, bytes};
        r->n_gaps++;
    }
    return FTH_OK;
}

static void place_output(rehearsal *r, int32_t i, const fth_op *op, int k) {
    fth_val v = op->out[k] ? fth_owner(r->g, op->out[k]) : 0;
    if (!v || r->g->value[v].storage != FTH_IN_ARENA || r->placed[v]) return;
    int from = replaced_input(op, k);
    fth_val old = from >= 0 ? op->in[from] : 0;
    r->placed[v] = true;
    if (old && r->g->value[old].storage == FTH_IN_ARENA && !r->g->value[old].base &&
        r->last[old] == i && !r->moved[old]) {
        r->plan->offset[v] = r->plan->offset[old];
        r->moved[old] = true;
        return;
    }
    r->plan->offset[v] = take(r, fth_value_bytes(r->g, r->spec, v));
}

static fth_err release_operands(rehearsal *r, int32_t i, const fth_val *operands, int n) {
    for (int k = 0; k < n; k++) {
        fth_val v = operands[k] ? fth_owner(r->g, operands[k]) : 0;
        if (!v || r->last[v] != i || !r->placed[v] || r->moved[v]) continue;
        r->moved[v] = true; /* given back once, even when it is an operand twice */
        FTH_TRY(give(r, r->plan->offset[v], fth_value_bytes(r->g, r->spec, v)));
    }
    return FTH_OK;
}

/* What the operation so many before operation i has kept until now. */
static fth_err release_late(rehearsal *r, int32_t i, int32_t lag) {
    const fth_op *late = i >= lag ? &r->g->op[i - lag] : NULL;
    if (!late || fth_late_by(late, r->spec->lag) != lag) return FTH_OK;
    FTH_TRY(release_operands(r, i, late->in, late->n_in));
    return release_operands(r, i, late->out, late->n_out);
}

static fth_err rehearse(rehearsal *r) {
    find_last_uses(r);
    for (int32_t i = 0; i < r->g->n_ops; i++) {
        const fth_op *op = &r->g->op[i];
        for (int k = 0; k < op->n_out; k++) place_output(r, i, op, k);
        FTH_TRY(release_operands(r, i, op->in, op->n_in));
        FTH_TRY(release_operands(r, i, op->out, op->n_out));
        if (operand_of_joined(r, i)) FTH_TRY(release_operands(r, i, operand_of_joined(r, i), 1));
        FTH_TRY(release_late(r, i, r->spec->lag));
        FTH_TRY(release_late(r, i, FTH_UPDATE_LAGS * r->spec->lag));
    }
    for (fth_val v = 1; v < r->g->n_values; v++) /* views follow their base */
        if (r->g->value[v].base && r->g->value[v].storage == FTH_IN_ARENA)
            r->plan->offset[v] = r->plan->offset[r->g->value[v].base];
    return FTH_OK;
}

fth_err fth_plan_make(const fth_graph *g, const fth_plan_spec *spec, fth_plan *out) {
    size_t n = (size_t)g->n_values;
    *out = (fth_plan){.offset = malloc(sizeof *out->offset * n)};
    rehearsal r = {.g = g,
                   .spec = spec,
                   .plan = out,
                   .last = malloc(sizeof *r.last * n),
                   .placed = calloc(n, 1),
                   .moved = calloc(n, 1)};
    fth_err err = FTH_OK;
    if (!out->offset || !r.last || !r.placed || !r.moved) {
        err = fth_fail(FTH_NO_MEMORY, "no memory for a plan of %d values", g->n_values);
    } else {
        for (size_t v = 0; v < n; v++) out->offset[v] = -1;
        err = rehearse(&r);
    }
    free(r.last);
    free(r.placed);
    free(r.moved);
    free(r.gaps);
    if (err != FTH_OK) fth_plan_fini(out);
    return err;
}
