#include "backend/cpu/quantize.h"

#include <stdlib.h>
#include <string.h>

typedef struct packing {
    const fth_tensor *from;
    fth_int8 *to;
    float *rows; /* [threads][width] */
} packing;

static float number(const fth_tensor *t, int64_t row, int64_t column) {
    const int64_t i = row * t->ld + column;
    if (t->dtype == FTH_F32) return ((const float *)t->data)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)t->data)[i] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void pack_part(const fth_team *team, void *context) {
    const packing *p = context;
    const int64_t k = p->to->k;
    float *row = p->rows + team->thread * k;
    const fth_share mine = fth_team_share(team, p->to->n, FTH_INT8_COLUMNS);
    for (int64_t j = mine.begin; j < mine.end; j++) {
        for (int64_t l = 0; l < k; l++) row[l] = number(p->from, j, l);
        fth_int8_pack_row(p->to, j, row);
    }
}

/* Whether a value is the weights of a linear map. */
static bool is_weights(const fth_exec *ex, const fth_op *op) {
    return op->kind == FTH_KIND_linear &&
           ex->graph->value[op->in[LINEAR_W]].storage == FTH_IN_PARAM;
}

/* Notes the sizes of all maps; returns the bytes of all of them. */
static int64_t find_maps(const fth_exec *ex, fth_quantized *q, int64_t *widest) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < ex->graph->n_ops; i++) {
        const fth_op *op = &ex->graph->op[i];
        if (!is_weights(ex, op)) continue;
        const fth_tensor *w = &ex->tensor[op->in[LINEAR_W]];
        fth_int8 *map = &q->map[op->in[LINEAR_W]];
        if (map->n) continue; /* a second reader */
        map->n = w->rows;
        bytes += fth_int8_bytes(w->rows, w->width);
        if (w->width > *widest) *widest = w->width;
    }
    return bytes;
}

fth_err fth_cpu_quantize(fth_exec *ex) {
    fth_cpu *cpu = (fth_cpu *)ex->device;
    if (!cpu->int8) return FTH_OK;
    fth_quantized *q = calloc(1, sizeof *q);
    ex->own = q;
    if (q) q->map = calloc((size_t)ex->graph->n_values, sizeof *q->map);
    if (!q || !q->map) return fth_fail(FTH_NO_MEMORY, "no memory for 8-bit weights");
    q->path = cpu->int8;
    int64_t widest = 0;
    const int64_t bytes = find_maps(ex, q, &widest);
    if (bytes == 0) return FTH_OK;
    FTH_TRY(fth_cpu_alloc(ex->device, bytes, &q->data));
    float *rows = malloc(sizeof *rows * (size_t)(widest * ex->device->threads + 1));
    if (!rows) return fth_fail(FTH_NO_MEMORY, "no memory for 8-bit weights");
    char *at = q->data;
    for (fth_val v = 1; v < ex->graph->n_values; v++) {
        if (!q->map[v].n) continue;
        const fth_tensor *w = &ex->tensor[v];
        fth_int8_place(&q->map[v], w->rows, w->width, at);
        at += fth_int8_bytes(w->rows, w->width);
        fth_pool_run(cpu->pool, pack_part, &(packing){w, &q->map[v], rows});
    }
    free(rows);
    return FTH_OK;
}

void fth_cpu_unquantize(fth_exec *ex) {
    fth_quantized *q = ex->own;
    if (!q) return;
    if (q->data) fth_cpu_release(ex->device, q->data);
    free(q->map);
    free(q);
    ex->own = NULL;
}
