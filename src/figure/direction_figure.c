/* direction_figure.c: a cell for each direction, with its number where there is room for it. */
#include "figure/direction_figure.h"

#include <math.h>

#include "base/str.h"
#include "figure/gnuplot.h"

enum { CELL = 46, MOST_NUMBERED = 24 }; /* pixels of a cell; languages of a map with numbers */

static int cell_of(const fth_direction_map *m) {
    return m->n <= MOST_NUMBERED ? CELL : CELL / 2;
}

static fth_err add_cells(const fth_direction_map *m, fth_str *s, double *high) {
    FTH_TRY(fth_str_addf(s, "$cells << EOD\n"));
    for (int32_t a = 0; a < m->n; a++)
        for (int32_t b = 0; b < m->n; b++) {
            const double score = m->score[a * m->n + b];
            if (isnan(score)) continue;
            *high = fmax(*high, score);
            FTH_TRY(fth_str_addf(s, "%d %d %.6g\n", b, a, score));
        }
    return fth_str_addf(s, "EOD\n");
}

/* The languages' codes are letters, digits, - and _: no quotes. */
static fth_err add_tics(const fth_direction_map *m, char axis, fth_str *s) {
    FTH_TRY(fth_str_addf(s, "set %ctics noenhanced %s(", axis, axis == 'x' ? "rotate " : ""));
    for (int32_t i = 0; i < m->n; i++)
        FTH_TRY(fth_str_addf(s, "%s'%s' %d", i ? ", " : "", m->languages[i], i));
    return fth_str_addf(s, ") scale 0\n");
}

static fth_err add_plot(const fth_direction_map *m, const char *path, double high, fth_str *s) {
    const int cell = cell_of(m), edge = cell * m->n;
    FTH_TRY(fth_str_addf(s, "set terminal svg size %d,%d font 'sans,12' background '#ffffff'\n",
                         edge + 190, edge + 130));
    FTH_TRY(fth_str_addf(s, "set output '"));
    FTH_TRY(fth_gnuplot_quoted(s, path));
    FTH_TRY(fth_str_addf(s, "'\nset title '"));
    FTH_TRY(fth_gnuplot_quoted(s, m->title));
    FTH_TRY(
        fth_str_addf(s,
                     "' noenhanced\nset xlabel 'target'\nset ylabel 'source'\nset size ratio 1\n"
                     "set xrange [-0.5:%d.5]\nset yrange [%d.5:-0.5]\nset cbrange [0:%.6g]\n"
                     "set palette defined (0 '#ffffff', 1 '#0072b2')\nunset key\nset grid "
                     "noxtics noytics\n",
                     m->n - 1, m->n - 1, high > 0 ? high : 1));
    FTH_TRY(add_tics(m, 'x', s));
    FTH_TRY(add_tics(m, 'y', s));
    FTH_TRY(
        fth_str_addf(s, "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror fs solid lc palette"));
    if (m->n <= MOST_NUMBERED)
        FTH_TRY(fth_str_addf(s,
                             ", $cells using 1:2:(sprintf('%%.1f', $3)):($3 > %.6g ? 0xffffff : 0) "
                             "with labels font ',11' tc rgb variable",
                             high * 0.6));
    return fth_str_addf(s, "\nset output\n");
}

fth_err fth_direction_figure(const fth_direction_map *map, const char *path) {
    fth_str script = {0};
    double high = 0;
    fth_err err = fth_gnuplot_style(&script);
    if (err == FTH_OK) err = add_cells(map, &script, &high);
    if (err == FTH_OK) err = add_plot(map, path, high, &script);
    if (err == FTH_OK) err = fth_gnuplot_run(&script);
    fth_str_fini(&script);
    return err;
}
