/* sweep_figure.c: a value against the factor with numbers, a line for each setting of the others,
 * bars over seeds, crosses for runs that failed. */
#include "figure/sweep_figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "figure/gnuplot.h"
#include "sweep/table.h"

typedef struct figure {
    const fth_sweep_results *r;
    size_t x;     /* factor of the horizontal axis */
    bool numeric; /* its values are numbers; otherwise they are places 0, 1, ... */
    bool log;
    double low, high; /* of the horizontal axis */
    bool *skip;       /* [n_factors] all but the lines' own */
} figure;

static bool all_numbers(const fth_factor *f) {
    for (size_t i = 0; i < f->n; i++) {
        char *end;
        double x = strtod(f->value[i], &end);
        if (end == f->value[i] || *end || !isfinite(x)) return false;
    }
    return true;
}

/* The axis with the most values, numbers before words. */
static fth_err choose_x(figure *g, bool *found) {
    const fth_sweep_spec *s = g->r->spec;
    size_t best = 0;
    *found = false;
    for (size_t i = 0; i < s->n_factors; i++) {
        const fth_factor *f = &s->factor[i];
        if (!fth_factor_varies(f)) continue;
        size_t worth = f->n + (all_numbers(f) ? 1000000 : 0);
        if (s->x && strcmp(s->x, f->label) == 0) worth = (size_t)-1;
        if (worth > best) {
            best = worth;
            g->x = i;
            *found = true;
        }
    }
    if (s->x && best != (size_t)-1)
        return fth_fail(FTH_BAD_INPUT, "%s: x: %.80s is no axis of this sweep", s->file, s->x);
    if (!*found) return FTH_OK;
    const fth_factor *f = &s->factor[g->x];
    g->numeric = all_numbers(f);
    g->low = g->numeric ? INFINITY : 0;
    g->high = g->numeric ? -INFINITY : (double)f->n - 1;
    for (size_t i = 0; g->numeric && i < f->n; i++) {
        g->low = fmin(g->low, strtod(f->value[i], NULL));
        g->high = fmax(g->high, strtod(f->value[i], NULL));
    }
    g->log = g->low > 0 && g->high >= 16 * g->low;
    double room = g->log ? pow(g->high / g->low, 0.05) : 0.05 * (g->high - g->low);
    g->low = g->log ? g->low / room : g->low - room;
    g->high = g->log ? g->high * room : g->high + room;
    return FTH_OK;
}

static double x_of(const figure *g, const fth_sweep_row *row) {
    int32_t at = row->run->choice[g->x];
    return g->numeric ? strtod(g->r->spec->factor[g->x].value[at], NULL) : at;
}

/* Rows that a line of the figure begins with, in order; (size_t)-1: no more. */
static size_t next_line(const figure *g, size_t after) {
    for (size_t i = after; i < g->r->grid->rows; i++) {
        if (g->r->row[i].run->choice[g->x] < 0) continue;
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first =
                g->r->row[k].run->choice[g->x] < 0 || !fth_sweep_table_same(g->r, i, k, g->skip);
        if (first) return i;
    }
    return (size_t)-1;
}

/* Does row k belong to the line that begins with row i? */
static bool in_line(const figure *g, size_t i, size_t k) {
    return g->r->row[k].run->choice[g->x] >= 0 && fth_sweep_table_same(g->r, i, k, g->skip);
}

/* A point: x, mean, deviation, 1 where all failed, and a word where some did. */
static fth_err add_point(const figure *g, const fth_sweep_row *row, fth_str *s) {
    double deviation = isnan(row->best.deviation) ? 0 : row->best.deviation;
    if (row->best.n == 0)
        return row->failed > 0 && row->failed == row->done
                   ? fth_str_addf(s, "%.9g NaN 0 1 \"\"\n", x_of(g, row))
                   : FTH_OK;
    FTH_TRY(fth_str_addf(s, "%.9g %.9g %.9g 0 \"", x_of(g, row), row->best.mean, deviation));
    if (row->failed > 0) FTH_TRY(fth_str_addf(s, "%zu of %zu failed", row->failed, row->done));
    return fth_str_addf(s, "\"\n");
}

/* Is there a point in the line that stands for fewer runs than were made? */
static bool has_words(const figure *g, size_t i) {
    for (size_t k = i; k < g->r->grid->rows; k++)
        if (in_line(g, i, k) && g->r->row[k].best.n > 0 && g->r->row[k].failed > 0) return true;
    return false;
}

static fth_err add_data(const figure *g, fth_str *s) {
    size_t line = 0;
    for (size_t i = next_line(g, 0); i != (size_t)-1; i = next_line(g, i + 1), line++) {
        FTH_TRY(fth_str_addf(s, "$line%zu << EOD\n", line));
        for (size_t k = i; k < g->r->grid->rows; k++)
            if (in_line(g, i, k)) FTH_TRY(add_point(g, &g->r->row[k], s));
        FTH_TRY(fth_str_addf(s, "EOD\n"));
    }
    return FTH_OK;
}

/* doc/analyses.md#scaling-law through a line over the depth: its curve as a plot of its own; n = 0:
 * none. */
static fth_err add_fit(const figure *g, size_t first, size_t line, fth_str *s) {
    fth_fit fit = {0};
    size_t n = 0;
    double *depth = calloc(2 * g->r->grid->rows + 1, sizeof *depth), last = 0;
    if (!depth) return fth_fail(FTH_NO_MEMORY, "no memory for a figure");
    double *y = depth + g->r->grid->rows;
    for (size_t k = first; k < g->r->grid->rows; k++) {
        const fth_sweep_row *row = &g->r->row[k];
        if (!in_line(g, first, k) || row->best.n == 0 || !(row->depth > 0)) continue;
        depth[n] = row->depth;
        y[n++] = -row->best.mean;
        last = row->depth / x_of(g, row); /* layers of both stacks for one of the axis */
    }
    bool fits = n > 2 && g->numeric && isfinite(last) && fth_fit_depth(depth, y, n, &fit) == FTH_OK;
    free(depth);
    if (!fits) return FTH_OK;
    return fth_str_addf(s,
                        ", -(%.9g * log(%.9g * x) + %.9g) with lines lw 1 lc %zu dt 3 title "
                        "'fit: A = %.3g, R2 = %.2f'",
                        fit.a, last, fit.b, line % 8 + 1, fit.a, fit.r2);
}

/* What tells a line from the others: the values of the axes that are not x. */
static fth_err add_title(const figure *g, size_t row, fth_str *s) {
    const fth_sweep_spec *spec = g->r->spec;
    bool any = false;
    for (size_t i = 0; i < spec->n_factors; i++) {
        if (i == g->x || !fth_factor_varies(&spec->factor[i])) continue;
        const char *value = fth_sweep_table_value(g->r, g->r->row[row].run, i);
        if (!value[0]) continue;
        FTH_TRY(fth_str_addf(s, "%s", any ? ", " : ""));
        if (strcmp(spec->factor[i].label, "method") != 0) {
            FTH_TRY(fth_gnuplot_quoted(s, spec->factor[i].label));
            FTH_TRY(fth_str_addf(s, " "));
        }
        FTH_TRY(fth_gnuplot_quoted(s, value));
        any = true;
    }
    return any ? FTH_OK : fth_str_addf(s, "best dev NLL");
}

static fth_err add_plot(const figure *g, fth_str *s) {
    size_t line = 0;
    FTH_TRY(fth_str_addf(s, "plot"));
    for (size_t i = next_line(g, 0); i != (size_t)-1; i = next_line(g, i + 1), line++) {
        FTH_TRY(
            fth_str_addf(s,
                         "%s $line%zu using 1:2:3 with yerrorbars lc %zu pt %zu ps 0.9 notitle, "
                         "$line%zu using 1:2 with linespoints lw 2 lc %zu dt %zu pt %zu ps 0.9 "
                         "title '",
                         line ? "," : "", line, line % 8 + 1, 2 * (line % 4) + 5, line,
                         line % 8 + 1, line % 5 + 1, 2 * (line % 4) + 5));
        FTH_TRY(add_title(g, i, s));
        FTH_TRY(fth_str_addf(s, "'"));
        if (has_words(g, i))
            FTH_TRY(fth_str_addf(s,
                                 ", $line%zu using 1:2:5 with labels center offset 0,1 font ',9' "
                                 "textcolor lt %zu notitle",
                                 line, line % 8 + 1));
        if (fth_factor_is_depth(&g->r->spec->factor[g->x])) FTH_TRY(add_fit(g, i, line, s));
    }
    return fth_str_addf(s, "\n");
}

/* A cross for each combination of which every run failed, each line at its own height: there is no
 * number to it, so it stands in a strip above the axes. */
static fth_err add_strip(const figure *g, fth_str *s) {
    size_t lines = 0;
    for (size_t i = next_line(g, 0); i != (size_t)-1; i = next_line(g, i + 1)) lines++;
    FTH_TRY(fth_str_addf(s,
                         "set bmargin at screen 0.845\nset tmargin at screen 0.925\nset yrange "
                         "[-0.7:%zu - 0.3]\nunset ytics\nunset xtics\nset ylabel 'failed' "
                         "font ',10'\nset xlabel ''\nplot",
                         lines));
    size_t line = 0;
    for (size_t i = next_line(g, 0); i != (size_t)-1; i = next_line(g, i + 1), line++)
        FTH_TRY(
            fth_str_addf(s,
                         "%s $line%zu using 1:($4 == 1 ? %zu : NaN) with points pt 2 ps 1.2 lw 2 "
                         "lc %zu notitle",
                         line ? "," : "", line, lines - 1 - line, line % 8 + 1));
    return fth_str_addf(s,
                        "\nunset title\nset bmargin at screen 0.12\nset tmargin at screen 0.835\n");
}

static fth_err add_axes(const figure *g, fth_str *s) {
    const fth_factor *f = &g->r->spec->factor[g->x];
    FTH_TRY(fth_str_addf(s, "set title '"));
    FTH_TRY(fth_gnuplot_quoted(s, g->r->spec->title));
    FTH_TRY(fth_str_addf(s, "' noenhanced\nset xlabel '"));
    FTH_TRY(fth_gnuplot_quoted(s, f->label));
    FTH_TRY(fth_str_addf(s,
                         "' noenhanced\nset ylabel 'best dev NLL (nats per token)'\n"
                         "set key noenhanced outside right\nset offsets 0, 0, graph 0.12, graph "
                         "0.05\nset xrange [%.9g:%.9g]\n",
                         g->low, g->high));
    if (g->log) FTH_TRY(fth_str_addf(s, "set logscale x\n"));
    FTH_TRY(fth_str_addf(s, "set xtics noenhanced ("));
    for (size_t i = 0; i < f->n; i++) {
        FTH_TRY(fth_str_addf(s, "%s'", i ? ", " : ""));
        FTH_TRY(fth_gnuplot_quoted(s, f->value[i]));
        FTH_TRY(fth_str_addf(s, "' %.9g", g->numeric ? strtod(f->value[i], NULL) : (double)i));
    }
    return fth_str_addf(s, ")\n");
}

/* Is there anything to draw, and does a strip of failed combinations belong to it? */
static void find_points(const figure *g, bool *any, bool *strip) {
    *any = *strip = false;
    for (size_t i = 0; i < g->r->grid->rows; i++) {
        const fth_sweep_row *row = &g->r->row[i];
        *strip = *strip || (row->failed > 0 && row->failed == row->done);
        *any = *any || row->best.n > 0;
    }
    *any = *any || *strip;
}

/* Numbers of the healthy runs alone set the range; without any there is an empty box. */
static fth_err add_range(const figure *g, fth_str *s) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < g->r->grid->rows; i++) {
        const fth_spread *best = &g->r->row[i].best;
        if (best->n == 0) continue;
        low = fmin(low, best->mean);
        high = fmax(high, best->mean);
    }
    if (low < high) return fth_str_addf(s, "set yrange [0<*:*]\n");
    if (low > high) return fth_str_addf(s, "set yrange [0:1]\n");
    return fth_str_addf(s, "set yrange [%.9g:%.9g]\n", 0.9 * low, 1.1 * low + 1e-9);
}

static fth_err add_figure(const figure *g, bool strip, fth_str *s) {
    if (!strip) {
        FTH_TRY(add_range(g, s));
        FTH_TRY(add_axes(g, s));
        return add_plot(g, s);
    }
    FTH_TRY(
        fth_str_addf(s, "set lmargin at screen 0.09\nset rmargin at screen 0.72\nset multiplot\n"));
    FTH_TRY(add_axes(g, s));
    FTH_TRY(add_strip(g, s));
    FTH_TRY(fth_str_addf(s, "set ytics\nset ylabel font ''\n"));
    FTH_TRY(add_axes(g, s));
    FTH_TRY(fth_str_addf(s, "unset title\n"));
    FTH_TRY(add_range(g, s));
    FTH_TRY(add_plot(g, s));
    return fth_str_addf(s, "unset multiplot\n");
}

static fth_err make_script(const figure *g, const char *out_dir, fth_str *s, bool *any) {
    static const char *const terminals[][2] = {
        {"svg size 900,520 font 'sans,13' background '#ffffff'", "svg"},
        {"pngcairo size 900,520 font 'sans,11'", "png"}};
    bool strip;
    find_points(g, any, &strip);
    FTH_TRY(fth_gnuplot_style(s));
    FTH_TRY(add_data(g, s));
    for (int i = 0; i < 2; i++) {
        FTH_TRY(fth_str_addf(s, "set terminal %s\nset output '", terminals[i][0]));
        FTH_TRY(fth_gnuplot_quoted(s, out_dir));
        FTH_TRY(fth_str_addf(s, "/figure.%s'\n", terminals[i][1]));
        FTH_TRY(add_figure(g, strip, s));
    }
    return fth_str_addf(s, "set output\n");
}

fth_err fth_sweep_figure(const fth_sweep_results *r, const char *out_dir) {
    figure g = {.r = r};
    bool found, any = false;
    FTH_TRY(choose_x(&g, &found));
    if (!found) return FTH_OK;
    g.skip = calloc(r->spec->n_factors + 1, sizeof *g.skip);
    if (!g.skip) return fth_fail(FTH_NO_MEMORY, "no memory for a figure");
    g.skip[g.x] = true;
    fth_str script = {0};
    fth_err err = make_script(&g, out_dir, &script, &any);
    if (err == FTH_OK && any) err = fth_gnuplot_run(&script);
    fth_str_fini(&script);
    free(g.skip);
    return err;
}
