/* training.c: reads the logs of runs into columns and draws loss, gradient norm and rates against
 * the update. */
#include "figure/training.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "figure/gnuplot.h"

/* What the figure needs of one run, as gnuplot data. */
typedef struct series {
    const char *name;
    fth_str train, valid, gradient[2]; /* gradient: at the first and the last measured update */
    int64_t measured[2];
    int64_t sublayers; /* of the gradient being read */
} series;

static void series_fini(series *s) {
    fth_str_fini(&s->train);
    fth_str_fini(&s->valid);
    fth_str_fini(&s->gradient[0]);
    fth_str_fini(&s->gradient[1]);
}

/* A point "x y"; a number that is not finite leaves a gap. */
static fth_err add_point(fth_str *out, double x, const json_t *y) {
    double value;
    if (!y || fth_json_to_double(y, &value) != FTH_OK) return FTH_OK;
    return fth_str_addf(out, "%g %.9g\n", x, value);
}

/* Both stacks of one update follow each other: the encoder's sub-layers, then the decoder's. */
static fth_err add_layers(series *s, int64_t update, const json_t *values) {
    size_t i;
    json_t *value;
    bool first = s->measured[0] == 0 || s->measured[0] == update;
    fth_str *out = &s->gradient[first ? 0 : 1];
    if (first) s->measured[0] = update;
    if (!first && s->measured[1] != update) fth_str_clear(out);
    if (s->measured[first ? 0 : 1] != update || out->length == 0) s->sublayers = 0;
    if (!first) s->measured[1] = update;
    json_array_foreach(values, i, value) FTH_TRY(add_point(out, (double)++s->sublayers, value));
    return FTH_OK;
}

/* Removes the points behind an update; they lie in order. */
static void cut_points(fth_str *points, int64_t update) {
    char *at = points->text;
    while (at && *at && strtod(at, NULL) <= (double)update) at += strcspn(at, "\n") + 1;
    if (!at) return;
    points->length = (size_t)(at - points->text);
    *at = '\0';
}

/* A process began, or went on from a checkpoint: what an earlier one did beyond it is void. */
static void rewind_to(series *s, int64_t update) {
    cut_points(&s->train, update);
    cut_points(&s->valid, update);
    for (int k = 0; k < 2; k++)
        if (s->measured[k] > update) {
            fth_str_clear(&s->gradient[k]);
            s->measured[k] = 0;
        }
}

static fth_err add_line(series *s, const json_t *line) {
    const char *type = json_string_value(json_object_get(line, "type"));
    int64_t update = json_integer_value(json_object_get(line, "update"));
    if (!type) return FTH_OK;
    if (strcmp(type, "start") == 0) rewind_to(s, update);
    if (strcmp(type, "train") == 0)
        return add_point(&s->train, (double)update, json_object_get(line, "nll_loss"));
    if (strcmp(type, "valid") == 0 && !json_object_get(line, "direction"))
        return add_point(&s->valid, (double)update, json_object_get(line, "nll_loss"));
    const char *name = json_string_value(json_object_get(line, "name"));
    if (strcmp(type, "layers") == 0 && name && strcmp(name, "grad_norm") == 0)
        return add_layers(s, update, json_object_get(line, "values"));
    return FTH_OK;
}

/* A line that is cut or broken (a run that is being written) is passed over. */
static fth_err read_run(const char *run, series *s) {
    const char *slash = strrchr(run, '/');
    s->name = slash ? slash + 1 : run;
    char *path = fth_strdup_printf("%s/log.jsonl", run), *text = NULL;
    size_t size;
    fth_err err = path ? fth_file_read(path, &text, &size) : fth_fail(FTH_NO_MEMORY, "no memory");
    for (char *at = text; err == FTH_OK && at && *at;) {
        size_t length = strcspn(at, "\n");
        json_t *line = NULL;
        if (fth_json_parse(path, at, length, &line) == FTH_OK) err = add_line(s, line);
        json_decref(line);
        at += length + (at[length] == '\n');
    }
    free(path);
    free(text);
    return err;
}

static fth_err add_block(fth_str *script, const char *kind, int run, const fth_str *data) {
    if (data->length == 0) return FTH_OK;
    return fth_str_addf(script, "$%s%d << EOD\n%sEOD\n", kind, run, data->text);
}

static fth_err add_data(fth_str *script, const series *s, int n) {
    for (int i = 0; i < n; i++) {
        FTH_TRY(add_block(script, "train", i, &s[i].train));
        FTH_TRY(add_block(script, "valid", i, &s[i].valid));
        FTH_TRY(add_block(script, "first", i, &s[i].gradient[0]));
        FTH_TRY(add_block(script, "last", i, &s[i].gradient[1]));
    }
    return FTH_OK;
}

/* "plot" with the curves that have points; nothing when there are none. */
static fth_err add_plot(fth_str *script, const series *s, int n, bool loss) {
    const char *before = "plot";
    for (int i = 0; i < n; i++) {
        const fth_str *data[] = {loss ? &s[i].train : &s[i].gradient[0],
                                 loss ? &s[i].valid : &s[i].gradient[1]};
        static const char *const kinds[2][2] = {{"first", "last"}, {"train", "valid"}};
        for (int k = 0; k < 2; k++) {
            if (data[k]->length == 0) continue;
            FTH_TRY(fth_str_addf(script, "%s $%s%d with ", before, kinds[loss][k], i));
            if (loss)
                FTH_TRY(fth_str_addf(script, "%s lc %d title '%s, %s'",
                                     k ? "points pt 7 ps 0.7" : "lines lw 2", i + 1, s[i].name,
                                     k ? "validation" : "training"));
            else
                FTH_TRY(fth_str_addf(script, "lines lw 2 dt %d lc %d title '%s, update %lld'",
                                     k ? 1 : 2, i + 1, s[i].name, (long long)s[i].measured[k]));
            before = ",";
        }
    }
    return fth_str_addf(script, "\n");
}

static fth_err add_figure(fth_str *script, const char *terminal, const char *out,
                          const char *ending, const series *s, int n) {
    FTH_TRY(fth_str_addf(script, "set terminal %s\nset output '%s.%s'\n", terminal, out, ending));
    FTH_TRY(fth_str_addf(script, "unset logscale\nset format y '%%g'\nset multiplot layout 1,2\n"
                                 "set key bmargin center horizontal maxrows 2\nset bmargin 7\n"
                                 "set title 'Loss by update'\nset xlabel 'update'\n"
                                 "set ylabel 'negative log-likelihood (nats per token)'\n"));
    FTH_TRY(add_plot(script, s, n, true));
    FTH_TRY(fth_str_addf(script, "set title 'Gradient norm by sub-layer, first and last update'\n"
                                 "set xlabel 'sub-layer: encoder, then decoder, bottom to top'\n"
                                 "set ylabel 'norm of the gradient of its parameters'\n"
                                 "set logscale y\nset format y '10^{%%T}'\n"));
    FTH_TRY(add_plot(script, s, n, false));
    return fth_str_addf(script, "unset multiplot\nset output\n");
}

static fth_err make_script(fth_str *script, const char *out, const series *s, int n) {
    FTH_TRY(fth_gnuplot_style(script));
    FTH_TRY(add_data(script, s, n));
    FTH_TRY(add_figure(script, "pngcairo size 1400,560 font 'sans,11'", out, "png", s, n));
    FTH_TRY(add_figure(script, "svg size 1400,560 font 'sans,13' background '#ffffff'", out, "svg",
                       s, n));
    FTH_TRY(fth_str_addf(script, "set terminal dumb 92 22\nunset logscale\nset format y '%%g'\n"
                                 "set title 'loss (nats per token)'\nset xlabel 'update'\n"
                                 "unset ylabel\n"));
    return add_plot(script, s, n, true);
}

fth_err fth_plot_runs(const char *out, const char *const *runs, int n) {
    series *s = calloc((size_t)n, sizeof *s);
    fth_str script = {0};
    fth_err err = s ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a figure");
    for (int i = 0; i < n && err == FTH_OK; i++) err = read_run(runs[i], &s[i]);
    if (err == FTH_OK) err = make_script(&script, out, s, n);
    if (err == FTH_OK) err = fth_gnuplot_run(&script);
    for (int i = 0; s && i < n; i++) series_fini(&s[i]);
    free(s);
    fth_str_fini(&script);
    return err;
}
