/* diverged.c: reads diverged.json and draws the loss, the gradients and the sub-layers around the
 * place where the run failed. */
#include "figure/diverged.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "figure/gnuplot.h"

/* A number as gnuplot reads it: one that is not finite, or is missing, leaves a gap. */
static fth_err add_number(fth_str *out, const json_t *value) {
    double x = NAN;
    if (value && !json_is_null(value)) FTH_TRY(fth_json_to_double(value, &x));
    return isfinite(x) ? fth_str_addf(out, " %.6g", x) : fth_str_addf(out, " NaN");
}

/* $curves: update, loss, gradient norm. */
static fth_err add_curves(fth_str *out, const json_t *rows) {
    size_t i;
    json_t *row;
    FTH_TRY(fth_str_addf(out, "$curves << EOD\n"));
    json_array_foreach(rows, i, row) {
        FTH_TRY(add_number(out, json_object_get(row, "update")));
        FTH_TRY(add_number(out, json_object_get(row, "nll_loss")));
        FTH_TRY(add_number(out, json_object_get(row, "gnorm")));
        FTH_TRY(fth_str_addf(out, "\n"));
    }
    return fth_str_addf(out, "EOD\n");
}

/* A block of a quantity: a line "row sub-layer value" for each, a blank line after each row. */
static fth_err add_grid(fth_str *out, const json_t *rows, const char *quantity, const char *block) {
    static const char *const stacks[] = {"encoder", "decoder"};
    size_t i, k;
    json_t *row, *value;
    FTH_TRY(fth_str_addf(out, "$%s << EOD\n", block));
    json_array_foreach(rows, i, row) {
        int sublayer = 0;
        for (int s = 0; s < 2; s++) {
            const json_t *values = json_object_get(json_object_get(row, stacks[s]), quantity);
            json_array_foreach(values, k, value) {
                FTH_TRY(fth_str_addf(out, "%zu %d", i, ++sublayer));
                FTH_TRY(add_number(out, value));
                FTH_TRY(fth_str_addf(out, "\n"));
            }
        }
        FTH_TRY(fth_str_addf(out, "\n"));
    }
    return fth_str_addf(out, "EOD\n");
}

static long long update_of(const json_t *rows, size_t i) {
    return (long long)json_integer_value(json_object_get(json_array_get(rows, i), "update"));
}

/* Gradient norms of all sub-layers in the first, a middle and the last row. */
static fth_err add_profiles(fth_str *out, const char *block, const json_t *rows) {
    size_t n = json_array_size(rows);
    const size_t at[] = {0, n / 2, n - 1};
    const char *before = "plot";
    for (int k = 0; k < 3; k++) {
        if (k > 0 && at[k] == at[k - 1]) continue;
        FTH_TRY(fth_str_addf(out,
                             "%s $%s every :::%zu::%zu using 2:3 with linespoints pt 7 ps 0.4 "
                             "lw 2 lc %d title 'update %lld'",
                             before, block, at[k], at[k], k + 1, update_of(rows, at[k])));
        before = ",";
    }
    return fth_str_addf(out, "\n");
}

static fth_err add_panels(fth_str *out, const json_t *rows) {
    size_t n = json_array_size(rows);
    FTH_TRY(fth_str_addf(
        out, "set multiplot layout 2,2\nunset logscale\nset format y '%%g'\n"
             "set title 'Loss and gradient norm'\nset xlabel 'update'\n"
             "set ylabel 'nats per token'\nset y2label 'gradient norm'\nset y2tics\n"
             "set logscale y2\nset ytics nomirror\n"
             "plot $curves using 1:2 with linespoints pt 7 ps 0.5 lw 2 lc 1 title 'loss', "
             "$curves using 1:3 axes x1y2 with linespoints pt 5 ps 0.5 lw 2 lc 2 title "
             "'gradient norm (right)'\n"
             "unset y2label\nunset y2tics\nset ytics mirror\n"
             "set xlabel 'sub-layer: encoder, then decoder, bottom to top'\n"
             "set logscale y\nset format y '10^{%%T}'\n"
             "set title 'Gradient of the parameters'\nset ylabel 'norm'\n"));
    FTH_TRY(add_profiles(out, "grads", rows));
    FTH_TRY(
        fth_str_addf(out, "set title 'Update against parameter'\nset ylabel 'ratio of norms'\n"));
    FTH_TRY(add_profiles(out, "changes", rows));
    FTH_TRY(
        fth_str_addf(out,
                     "unset logscale\nset format y '%%g'\nset title 'Gradient of the outputs'\n"
                     "set xlabel 'measured updates %lld to %lld'\n"
                     "set ylabel 'sub-layer, bottom to top'\nset cblabel 'log_{10} of the norm'\n"
                     "unset xtics\nset autoscale xfix\nset autoscale yfix\nset palette defined (0 "
                     "'#440154', 1 '#3b528b', 2 '#21918c', 3 "
                     "'#5ec962', 4 '#fde725')\n"
                     "plot $outputs using 1:2:(log10($3)) with image notitle\nset xtics\n",
                     update_of(rows, 0), update_of(rows, n - 1)));
    return fth_str_addf(out, "unset multiplot\nset output\n");
}

static fth_err add_figure(fth_str *out, const char *terminal, const char *run, const char *ending,
                          const json_t *rows) {
    FTH_TRY(
        fth_str_addf(out, "set terminal %s\nset output '%s/diverged.%s'\n", terminal, run, ending));
    return add_panels(out, rows);
}

static fth_err make_script(fth_str *out, const char *run, const json_t *rows) {
    FTH_TRY(fth_gnuplot_style(out));
    FTH_TRY(add_curves(out, rows));
    FTH_TRY(add_grid(out, rows, "grad_norm", "grads"));
    FTH_TRY(add_grid(out, rows, "update_ratio", "changes"));
    FTH_TRY(add_grid(out, rows, "output_grad_norm", "outputs"));
    FTH_TRY(add_figure(out, "pngcairo size 1400,900 font 'sans,11'", run, "png", rows));
    return add_figure(out, "svg size 1400,900 font 'sans,13' background '#ffffff'", run, "svg",
                      rows);
}

fth_err fth_plot_diverged(const char *run) {
    fth_str script = {0};
    json_t *report = NULL;
    char *path = fth_strdup_printf("%s/diverged.json", run);
    fth_err err = path ? fth_json_load(path, &report) : fth_fail(FTH_NO_MEMORY, "no memory");
    const json_t *rows = json_object_get(report, "rows");
    if (err == FTH_OK && json_array_size(rows) > 0) {
        err = make_script(&script, run, rows);
        if (err == FTH_OK) err = fth_gnuplot_run(&script);
    }
    fth_str_fini(&script);
    json_decref(report);
    free(path);
    return err;
}
