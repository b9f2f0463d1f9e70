/* result.c: reads each run's folder as the report does and keeps its best and last values, or why
 * it failed. */
#include "sweep/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/measure.h"

static double depth_of(const fth_run_view *v) {
    const char *arch = fth_run_view_setting(v, "arch");
    double encoder = strtod(fth_run_view_setting(v, "encoder-layers"), NULL);
    double decoder = strtod(fth_run_view_setting(v, "decoder-layers"), NULL);
    return (strcmp(arch, "dec") == 0 ? 0 : encoder) + (strcmp(arch, "enc") == 0 ? 0 : decoder);
}

/* Why a run failed, in the words of its log. */
static const char *reason_of(const fth_run_view *v) {
    const char *reason = json_string_value(json_object_get(v->end, "reason"));
    const char *where = json_string_value(json_object_get(v->end, "where"));
    return reason ? reason : where ? where : "not finite";
}

fth_err fth_sweep_result_read(const char *folder, fth_sweep_result *out) {
    fth_run_view view;
    bool changed;
    *out = (fth_sweep_result){.best = NAN, .final = NAN, .last = NAN};
    FTH_TRY(fth_run_view_init(&view, folder));
    fth_err err = fth_run_view_poll(&view, &changed);
    if (err == FTH_OK) {
        out->state = view.state;
        out->update = view.update;
        out->best = fth_run_view_best(&view, NULL);
        out->final = fth_run_view_final(&view);
        out->last = fth_run_view_last(&view);
        out->depth = depth_of(&view);
    }
    if (err == FTH_OK && view.state == FTH_VIEW_FAILED) {
        out->reason = strdup(reason_of(&view));
        if (!out->reason) err = fth_no_memory("the results of a sweep");
    }
    fth_run_view_fini(&view);
    return err;
}

void fth_sweep_result_fini(fth_sweep_result *r) {
    free(r->reason);
    *r = (fth_sweep_result){0};
}

/* Room for the measures of all runs and rows; nothing is measured yet. */
static fth_err make_room(fth_sweep_results *r) {
    const size_t n = r->spec->n_measures, runs = r->grid->n, rows = r->grid->rows;
    r->spare = calloc((runs + rows) * n + 1, sizeof *r->spare);
    r->spreads = calloc(rows * n + 1, sizeof *r->spreads);
    if (!r->spare || !r->spreads) return fth_no_memory("the results of a sweep");
    for (size_t i = 0; i < (runs + rows) * n; i++) r->spare[i] = NAN;
    return FTH_OK;
}

/* Mean and deviation of each measure of a row, over the runs that have it. */
static fth_err spread_measures(fth_sweep_results *r) {
    const size_t n = r->spec->n_measures;
    double *x = calloc(r->grid->n + 1, sizeof *x);
    if (!x) return fth_no_memory("the results of a sweep");
    for (size_t row = 0; row < r->grid->rows; row++) {
        r->row[row].measure = r->spreads + row * n;
        r->row[row].p = r->spare + (r->grid->n + row) * n;
        for (size_t m = 0; m < n; m++) {
            size_t count = 0;
            for (size_t i = 0; i < r->grid->n; i++)
                if (r->grid->run[i].row == row && !isnan(r->result[i].measure[m]))
                    x[count++] = r->result[i].measure[m];
            r->row[row].measure[m] = fth_spread_of(x, count);
        }
    }
    free(x);
    return FTH_OK;
}

static fth_err make_rows(fth_sweep_results *r) {
    double *best = calloc(r->grid->n + 1, sizeof *best);
    double *final = calloc(r->grid->n + 1, sizeof *final);
    double *last = calloc(r->grid->n + 1, sizeof *last);
    fth_err err = best && final && last ? FTH_OK : fth_no_memory("the results of a sweep");
    for (size_t i = 0; i < r->grid->n && err == FTH_OK;) {
        fth_sweep_row *row = &r->row[r->grid->run[i].row];
        size_t healthy = 0, failed = 0;
        *row = (fth_sweep_row){.run = &r->grid->run[i]};
        for (; i < r->grid->n && r->grid->run[i].row == row->run->row; i++) {
            const fth_sweep_result *one = &r->result[i];
            row->runs++;
            row->failed += one->state == FTH_VIEW_FAILED;
            row->done += one->state == FTH_VIEW_FAILED || one->state == FTH_VIEW_ENDED;
            if (one->depth > 0) row->depth = one->depth;
            if (one->state == FTH_VIEW_FAILED && isfinite(one->last)) last[failed++] = one->last;
            if (one->state != FTH_VIEW_ENDED || isnan(one->best)) continue;
            best[healthy] = one->best;
            final[healthy++] = one->final;
        }
        row->best = fth_spread_of(best, healthy);
        row->final = fth_spread_of(final, healthy);
        row->last = fth_spread_of(last, failed);
    }
    free(best);
    free(final);
    free(last);
    return err;
}

fth_err fth_sweep_results_read(const fth_sweep_spec *spec, const fth_sweep_grid *grid,
                               const char *out_dir, fth_sweep_results *out) {
    *out = (fth_sweep_results){.spec = spec, .grid = grid};
    out->result = calloc(grid->n + 1, sizeof *out->result);
    out->row = calloc(grid->rows + 1, sizeof *out->row);
    fth_err err =
        out->result && out->row ? make_room(out) : fth_no_memory("the results of a sweep");
    for (size_t i = 0; i < grid->n && err == FTH_OK; i++) {
        char *folder = fth_strdup_printf("%s/runs/%s", out_dir, grid->run[i].name);
        err = folder ? fth_sweep_result_read(folder, &out->result[i])
                     : fth_no_memory("the results of a sweep");
        out->result[i].measure = out->spare + i * spec->n_measures;
        if (err == FTH_OK && out->result[i].state == FTH_VIEW_ENDED)
            err = fth_measure_values(spec, out_dir, &grid->run[i], out->result[i].measure);
        free(folder);
    }
    if (err == FTH_OK) err = make_rows(out);
    if (err == FTH_OK) err = spread_measures(out);
    if (err != FTH_OK) fth_sweep_results_fini(out);
    return err;
}

void fth_sweep_results_fini(fth_sweep_results *r) {
    for (size_t i = 0; r->result && i < r->grid->n; i++) fth_sweep_result_fini(&r->result[i]);
    free(r->result);
    free(r->row);
    free(r->spare);
    free(r->spreads);
    *r = (fth_sweep_results){0};
}
