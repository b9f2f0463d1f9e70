/* terminal.c: status, curve and heat map as lines of text, as wide as the terminal. */
#include "watch/terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/canvas.h"

enum { MARGIN = 9 }; /* columns left of a drawing, for numbers */

/* ---- where the runs are ---- */

static fth_err add_status(const fth_terminal *t, const fth_run_view *v, int index, fth_str *out) {
    char line[512];
    const fth_curve *speed = fth_run_view_curve(v, "train.wps");
    const fth_curve *train = fth_run_view_curve(v, "train.nll_loss");
    int64_t at = 0;
    double best = fth_run_view_best(v, &at);
    int n = snprintf(line, sizeof line, "%s: %s", v->name, fth_run_view_state_name(v->state));
    if (v->problem[0])
        n += snprintf(line + n, sizeof line - (size_t)n, ", %.300s", v->problem);
    else
        n += snprintf(line + n, sizeof line - (size_t)n, ", update %lld%s%s", (long long)v->update,
                      fth_run_view_setting(v, "max-update")[0] ? " of " : "",
                      fth_run_view_setting(v, "max-update"));
    if (n > 400) n = 400;
    if (train) n += snprintf(line + n, sizeof line - (size_t)n, ", loss %.4g", train->newest);
    if (isfinite(best)) n += snprintf(line + n, sizeof line - (size_t)n, ", best valid %.4f", best);
    if (speed) snprintf(line + n, sizeof line - (size_t)n, ", %.0f tokens/s", speed->newest);
    const char *begin = t->colour ? fth_canvas_colour(index) : "",
               *end = t->colour ? "\033[0m" : "";
    return fth_str_addf(out, "%s%.*s%s\n", begin, t->columns - 1, line, end);
}

/* ---- the loss ---- */

typedef struct frame {
    double x1, y0, y1; /* updates 0 to x1, values y0 to y1 */
} frame;

static void widen(frame *f, const fth_curve *c) {
    for (int32_t i = 0; c && i < c->n; i++) {
        if (c->point[i].finite == 0) continue;
        f->y0 = fmin(f->y0, c->point[i].mean);
        f->y1 = fmax(f->y1, c->point[i].mean);
        f->x1 = fmax(f->x1, (double)c->point[i].last);
    }
}

static void draw_curve(fth_canvas *canvas, const frame *f, const fth_curve *c, int paint,
                       bool letters) {
    double before_x = NAN, before_y = NAN;
    for (int32_t i = 0; c && i < c->n; i++) {
        const fth_point *p = &c->point[i];
        double x = (double)p->first / f->x1 * (canvas->width - 1);
        double y = (f->y1 - p->mean) / (f->y1 - f->y0) * (canvas->height - 1);
        if (letters)
            fth_canvas_letter(canvas, x, y, 'o', paint);
        else if (p->finite)
            fth_canvas_line(canvas, isnan(before_x) ? x : before_x, isnan(before_y) ? y : before_y,
                            x, y, paint);
        before_x = p->finite ? x : (double)NAN;
        before_y = p->finite ? y : (double)NAN;
    }
}

static fth_err add_frame(const fth_canvas *canvas, const frame *f, fth_str *out) {
    for (int row = 0; row < canvas->rows; row++) {
        bool labelled = row % 4 == 0 || row == canvas->rows - 1;
        double value = f->y1 - (f->y1 - f->y0) * row / fmax(1, canvas->rows - 1);
        if (labelled)
            FTH_TRY(fth_str_addf(out, "%*.4g ", MARGIN - 2, value));
        else
            FTH_TRY(fth_str_addf(out, "%*s ", MARGIN - 2, ""));
        FTH_TRY(fth_str_addf(out, "|"));
        FTH_TRY(fth_canvas_row(canvas, row, out));
        FTH_TRY(fth_str_addf(out, "\n"));
    }
    int room = canvas->columns - 2;
    return fth_str_addf(out, "%*s 0%*.0f\n", MARGIN - 1, "", room, f->x1);
}

static fth_err add_loss(const fth_terminal *t, const fth_run_views *views, int rows, fth_str *out) {
    frame f = {.x1 = 1, .y0 = INFINITY, .y1 = -INFINITY};
    for (int i = 0; i < views->n; i++) {
        widen(&f, fth_run_view_curve(views->view[i], "train.nll_loss"));
        widen(&f, fth_run_view_curve(views->view[i], "valid.nll_loss"));
    }
    if (f.y0 > f.y1) return fth_str_addf(out, "\n  no loss is logged yet\n\n");
    if (f.y0 == f.y1) f.y1 += 1;
    fth_canvas canvas;
    FTH_TRY(fth_canvas_init(&canvas, t->columns - MARGIN - 1, rows, t->unicode, t->colour));
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < views->n; i++)
            draw_curve(
                &canvas, &f,
                fth_run_view_curve(views->view[i], pass ? "valid.nll_loss" : "train.nll_loss"), i,
                pass == 1);
    fth_err err = fth_str_addf(out, "\nloss, nats per token (o validation) against the update\n");
    if (err == FTH_OK) err = add_frame(&canvas, &f, out);
    fth_canvas_fini(&canvas);
    return err;
}

/* ---- a quantity of every layer ---- */

static const fth_heat *find_heat(const fth_terminal *t, const fth_run_views *views,
                                 const fth_run_view **view) {
    for (int i = 0; i < views->n; i++)
        for (int32_t k = 0; k < views->view[i]->n_heats; k++) {
            const fth_heat *h = &views->view[i]->heat[k];
            *view = views->view[i];
            if (h->rows > 0 && (!t->quantity[0] || strcmp(h->name, t->quantity) == 0)) return h;
        }
    return NULL;
}

/* The mean over the kinds of sub-layer that have a value; not finite when one of them is not. */
static double cell_at(const fth_heat *h, int32_t row, int32_t bin) {
    double sum = 0;
    int n = 0;
    for (int32_t k = 0; k < h->kinds; k++) {
        float x =
            h->cell[((size_t)row * (size_t)h->kinds + (size_t)k) * (size_t)h->bins + (size_t)bin];
        if (!isfinite(x)) return (double)x;
        if (x == FTH_HEAT_NONE) continue;
        sum += (double)x;
        n++;
    }
    return n ? sum / n : (double)FTH_HEAT_NONE;
}

/* How colours lie between the smallest and the largest cell. */
typedef struct shades {
    double low, high;
    bool log;
} shades;

static shades find_shades(const fth_heat *h) {
    shades s = {INFINITY, -INFINITY, true};
    for (int32_t r = 0; r < h->rows; r++)
        for (int32_t b = 0; b < h->bins; b++) {
            double x = cell_at(h, r, b);
            if (!isfinite(x) || x == (double)FTH_HEAT_NONE) continue;
            s.low = fmin(s.low, x);
            s.high = fmax(s.high, x);
        }
    s.log = s.low > 0 && s.high > 20 * s.low;
    return s;
}

/* 0 to 1; -1 no value, 2 not finite. */
static double shade_of(const shades *s, double x) {
    if (x == (double)FTH_HEAT_NONE) return -1;
    if (!isfinite(x)) return 2;
    if (!(s->high > s->low)) return 0.5;
    return s->log ? log(x / s->low) / log(s->high / s->low) : (x - s->low) / (s->high - s->low);
}

/* From dark blue over grey to yellow, in the colours that every terminal has. */
static int colour_of(double shade) {
    static const unsigned char ramp[] = {17, 18, 24, 60, 59, 102, 101, 144, 143, 185, 221, 227};
    if (shade < 0) return 234;
    if (shade > 1) return 198;
    return ramp[(int)(shade * (sizeof ramp - 1) + 0.5)];
}

static fth_err add_cell(const fth_terminal *t, double upper, double lower, fth_str *out) {
    static const char letters[] = ".:-=+*%@";
    if (t->colour && t->unicode) /* the upper half of a letter and its ground */
        return fth_str_addf(out, "\033[38;5;%d;48;5;%dm\xe2\x96\x80", colour_of(upper),
                            colour_of(lower));
    if (t->colour) return fth_str_addf(out, "\033[48;5;%dm ", colour_of(upper));
    char letter = upper < 0 ? ' ' : upper > 1 ? '!' : letters[(int)(upper * 7 + 0.5)];
    return fth_str_add(out, &letter, 1);
}

static fth_err add_cells(const fth_terminal *t, const fth_heat *h, int rows, fth_str *out) {
    bool halves = t->colour && t->unicode;
    shades s = find_shades(h);
    int columns = t->columns - MARGIN - 1, lines = halves ? 2 * rows : rows;
    if (columns > h->rows) columns = h->rows;
    if (lines > h->bins) lines = h->bins;
    for (int y = 0; y < lines; y += halves ? 2 : 1) {
        int bin = (int)((int64_t)(lines - 1 - y) * h->bins / lines);
        int below = y + 1 < lines ? (int)((int64_t)(lines - 2 - y) * h->bins / lines) : -1;
        FTH_TRY(fth_str_addf(out, "%*d |", MARGIN - 2, bin * h->per_bin + 1));
        for (int x = 0; x < columns; x++) {
            int row = (int)((int64_t)x * h->rows / columns);
            double lower = below >= 0 ? shade_of(&s, cell_at(h, row, below)) : -1;
            FTH_TRY(add_cell(t, shade_of(&s, cell_at(h, row, bin)), lower, out));
        }
        FTH_TRY(fth_str_addf(out, "%s\n", t->colour ? "\033[0m" : ""));
    }
    return fth_str_addf(out, "%*s updates %lld to %lld, values %.3g to %.3g%s%s\n", MARGIN - 1, "",
                        (long long)h->update[0], (long long)h->update[h->rows - 1], s.low, s.high,
                        s.log ? " (log)" : "", h->stride > 1 ? ", thinned" : "");
}

static fth_err add_heat(const fth_terminal *t, const fth_run_views *views, int rows, fth_str *out) {
    const fth_run_view *view = NULL;
    const fth_heat *h = find_heat(t, views, &view);
    if (!h && t->quantity[0]) return fth_str_addf(out, "\n  no run has logged %s\n", t->quantity);
    if (!h) return fth_str_addf(out, "\n  no layers are logged (train with --telemetry)\n");
    FTH_TRY(fth_str_addf(out, "\n%s of the %s's layers, %s\n", h->name, h->stack, view->name));
    return add_cells(t, h, rows, out);
}

fth_err fth_terminal_draw(const fth_terminal *t, const fth_run_views *views, fth_str *out) {
    fth_terminal fit = *t;
    if (fit.columns < 40) fit.columns = 40;
    int left = fit.rows - views->n - 7;
    int heat = left * 2 / 5 < 4 ? 4 : left * 2 / 5, loss = left - heat < 5 ? 5 : left - heat;
    for (int i = 0; i < views->n; i++) FTH_TRY(add_status(&fit, views->view[i], i, out));
    FTH_TRY(add_loss(&fit, views, loss, out));
    return add_heat(&fit, views, heat, out);
}
