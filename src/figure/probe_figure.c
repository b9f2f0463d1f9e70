/* probe_figure.c: one panel for each quantity and stack, curves by method and depth; every analysis
 * has its own axes. */
#include "figure/probe_figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "figure/gnuplot.h"

/* A figure while it is put together. */
typedef struct figure {
    const fth_table *t;
    fth_str data;   /* data blocks $b0, $b1, ... */
    fth_str panels; /* commands that draw the panels, in the order of reading */
    fth_str curves; /* of the panel at hand */
    int blocks, n_panels, columns;
    int64_t points, all_points; /* of the block at hand, of all: those that are finite */
    bool logarithmic;           /* the panel at hand may be, where its numbers ask for it */
    bool ranged;                /* it has a range of its own */
    double low, high, from, to; /* range of its curves: y, x */
    fth_err err;                /* the first one: sticky */
} figure;

/* Appends to one of the texts. */
#define SAY(f, ...)                                                                                \
    do {                                                                                           \
        if ((f)->err == FTH_OK) (f)->err = fth_str_addf(__VA_ARGS__);                              \
    } while (0)

/* From dark to light, told apart without colours too. */
#define PALETTE                                                                                    \
    "set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n"

/* ---- parts ---- */

static void begin_block(figure *f) {
    SAY(f, &f->data, "$b%d << EOD\n", f->blocks);
    f->points = 0;
}

/* Ends a data block; its number, or -1 where it has no point: gnuplot cannot draw it then. */
static int end_block(figure *f) {
    SAY(f, &f->data, "EOD\n");
    f->all_points += f->points;
    const int block = f->blocks++;
    return f->points ? block : -1;
}

/* Numbers that are not finite leave a gap. */
static void point(figure *f, double x, double y) {
    if (!isfinite(x) || !isfinite(y)) return;
    SAY(f, &f->data, "%.9g %.9g\n", x, y);
    f->points++;
    f->low = fmin(f->low, y);
    f->high = fmax(f->high, y);
    f->from = fmin(f->from, x);
    f->to = fmax(f->to, x);
}

static void point3(figure *f, double x, double y, double z) {
    if (!isfinite(x) || !isfinite(y)) return;
    if (isfinite(z))
        SAY(f, &f->data, "%.9g %.9g %.9g\n", x, y, z);
    else
        SAY(f, &f->data, "%.9g %.9g NaN\n", x, y);
    f->points += isfinite(z);
}

/* A text between single quotes of gnuplot. */
static void quoted(figure *f, fth_str *out, const char *text) {
    for (; *text; text++) SAY(f, out, "%c", *text == '\'' || *text == '\n' ? ' ' : *text);
}

static void begin_panel(figure *f, const char *title, const char *more, const char *x,
                        const char *y) {
    fth_str *p = &f->panels;
    SAY(f, p, "reset\nset title '");
    quoted(f, p, title);
    if (more) SAY(f, p, ", %s", more);
    SAY(f, p, "'\nset xlabel '%s'\nset ylabel '%s'\n", x, y);
    SAY(f, p,
        "set grid lc rgb '#bbbbbb'\nset key below samplen 3 height 1\n"
        "set tics nomirror\n");
    f->n_panels++;
    f->logarithmic = f->ranged = false;
    f->low = f->from = INFINITY;
    f->high = f->to = -INFINITY;
    fth_str_clear(&f->curves);
}

/* Whole numbers along an axis from 1 to n, not too many of them. */
static void whole_tics(figure *f, const char *axis, int64_t n) {
    int64_t step = n / 12 + 1;
    SAY(f, &f->panels, "set %stics %lld,%lld\n", axis, (long long)(step > 1 ? 0 : 1),
        (long long)step);
}

/* The curves along whole numbers, with a little room on both sides. */
static void whole_axis(figure *f) {
    double room = 0.03 * (f->to - f->from) + 0.1;
    if (isfinite(room)) SAY(f, &f->panels, "set xrange [%g:%g]\n", f->from - room, f->to + room);
    if (isfinite(room)) whole_tics(f, "x", (int64_t)f->to);
}

/* A logarithmic axis; few powers of ten have 2 and 5 between them. */
static void logarithmic_axis(figure *f) {
    double low = f->low / 1.3, high = f->high * 1.3;
    SAY(f, &f->panels, "set logscale y\nset format y '%%.0e'\nset yrange [%g:%g]\n", low, high);
    if (high > 1000 * low) return;
    SAY(f, &f->panels, "set format y '%%g'\n");
    for (int exponent = (int)floor(log10(low)); exponent <= (int)floor(log10(high)); exponent++) {
        const double power = pow(10, exponent);
        SAY(f, &f->panels, "set ytics add (%g, %g, %g)\n", power, 2 * power, 5 * power);
    }
}

/* Curves follow each other with commas. */
static void next_curve(figure *f) {
    if (f->curves.length) SAY(f, &f->curves, ", ");
}

static void end_panel(figure *f) {
    fth_str *p = &f->panels;
    if (f->logarithmic && f->low > 0 && f->high > 10 * f->low) logarithmic_axis(f);
    if (f->low == f->high && !f->ranged) { /* one number alone makes no range */
        const double room = f->low == 0 ? 1 : 0.05 * fabs(f->low);
        SAY(f, p, "set yrange [%g:%g]\n", f->low - room, f->high + room);
    }
    if (f->curves.length == 0)
        SAY(f, p, "plot [0:1] [0:1] NaN notitle\n");
    else
        SAY(f, p, "plot %s\n", f->curves.text);
}

/* Colour, dashes and marks all differ: one of them is seen on any paper. Points are joined from
 * left to right, and the mean of those at one place. */
static void curve(figure *f, int block, int style, const char *title) {
    if (block < 0) return;
    next_curve(f);
    SAY(f, &f->curves,
        "$b%d using 1:2 smooth unique with linespoints lt %d lw 2 dt %d pt %d ps 0.7 title '",
        block, style % 8 + 1, style % 5 + 1, style % 7 + 4);
    quoted(f, &f->curves, title);
    SAY(f, &f->curves, "'");
}

/* The norm of what a layer norm gives, beside curves of what enters it. */
static void root_of_width(figure *f) {
    const int32_t d = f->t->subject[0].d;
    if (f->curves.length == 0) return;
    next_curve(f);
    SAY(f, &f->curves, "%.9g with lines lw 1 dt 3 lc rgb '#000000' title 'sqrt(%d)'", sqrt(d), d);
    f->low = fmin(f->low, sqrt(d));
}

/* ---- which rows ---- */

static bool has_stack(const fth_table *t, fth_stack stack) {
    for (int64_t i = 0; i < t->n; i++)
        if (t->row[i].stack == stack) return true;
    return false;
}

static const char *title_of(const fth_table *t, int32_t subject) {
    return t->subject[subject].label;
}

/* A panel of one model: its name and what is shown of it. */
static void begin_subject_panel(figure *f, int32_t subject, const char *what, const char *more,
                                const char *x, const char *y) {
    char title[128];
    snprintf(title, sizeof title, "%s: %s", title_of(f->t, subject), what);
    begin_panel(f, title, more, x, y);
}

/* Number `k` of every row of a subject and stack against the layer, as a curve. */
static void layer_curve(figure *f, int32_t subject, fth_stack stack, int k) {
    begin_block(f);
    for (int64_t i = 0; i < f->t->n; i++) {
        const fth_probe_row *r = &f->t->row[i];
        if (r->subject == subject && r->stack == stack) point(f, r->index, r->number[k]);
    }
    curve(f, end_block(f), subject, title_of(f->t, subject));
}

static void layer_panel(figure *f, fth_stack stack, int k, const char *title, const char *y,
                        bool logarithmic) {
    begin_panel(f, title, fth_stack_name(stack), "layer, bottom to top", y);
    f->logarithmic = logarithmic;
    for (int32_t s = 0; s < f->t->n_subjects; s++) layer_curve(f, s, stack, k);
    whole_axis(f);
    end_panel(f);
}

/* ---- models that belong together: one at several steps, one method at several depths ---- */

static bool same_method(const fth_table *t, int32_t a, int32_t b) {
    return strcmp(t->subject[a].method, t->subject[b].method) == 0;
}

static bool same_model(const fth_table *t, int32_t a, int32_t b) {
    const fth_probe_name *x = &t->subject[a], *y = &t->subject[b];
    return same_method(t, a, b) && x->d == y->d && x->layers[0] == y->layers[0] &&
           x->layers[1] == y->layers[1];
}

/* The first subject that is alike. */
static int32_t first_like(const fth_table *t, int32_t s,
                          bool (*alike)(const fth_table *, int32_t, int32_t)) {
    int32_t first = 0;
    while (!alike(t, first, s)) first++;
    return first;
}

static int64_t step_of(const fth_table *t, int32_t subject) {
    int64_t i = 0;
    while (i < t->n - 1 && t->row[i].subject != subject) i++;
    return t->row[i].step;
}

/* Is there a model at three steps or more? */
static bool over_time(const fth_table *t) {
    for (int32_t s = 0; s < t->n_subjects; s++) {
        int32_t steps = 0;
        for (int32_t k = 0; k < t->n_subjects; k++)
            steps += same_model(t, s, k) && (k == s || step_of(t, k) != step_of(t, s));
        if (steps >= 3) return true;
    }
    return false;
}

/* Is there a method at so many depths? */
static bool over_depth(const fth_table *t, int32_t least) {
    for (int32_t s = 0; s < t->n_subjects; s++) {
        int32_t depths = 0;
        for (int32_t k = 0; k < t->n_subjects; k++)
            depths += same_method(t, s, k) && first_like(t, k, same_model) == k;
        if (depths >= least) return true;
    }
    return false;
}

/* METHOD 18-18: what the subjects of one model or, without layers, of one method are called. */
static void curve_of(figure *f, int block, int style, int32_t subject, bool layers) {
    const fth_probe_name *s = &f->t->subject[subject];
    char title[96];
    if (layers)
        snprintf(title, sizeof title, "%s %d-%d", s->method, s->layers[0], s->layers[1]);
    else
        snprintf(title, sizeof title, "%s", s->method);
    curve(f, block, style, title);
}

/* Number `k` of the top layer against the number of layers, a curve for each method. */
static void depth_panel(figure *f, fth_stack stack, int k, const char *title) {
    int style = 0;
    begin_panel(f, title, fth_stack_name(stack), "layers of the stack", "gradient norm");
    f->logarithmic = true;
    for (int32_t s = 0; s < f->t->n_subjects; s++) {
        if (first_like(f->t, s, same_method) != s) continue;
        begin_block(f);
        for (int64_t i = 0; i < f->t->n; i++) {
            const fth_probe_row *r = &f->t->row[i];
            int32_t layers = f->t->subject[r->subject].layers[stack];
            if (same_method(f->t, r->subject, s) && r->stack == stack && r->index == layers)
                point(f, layers, r->number[k]);
        }
        curve_of(f, end_block(f), style++, s, false);
    }
    whole_axis(f);
    end_panel(f);
}

/* Gradient of the parameters of the lowest, the middle and the highest layer in the course of the
 * updates, a panel for each model. */
static void time_panel(figure *f, int32_t subject, fth_stack stack) {
    int32_t layers = f->t->subject[subject].layers[stack];
    const int32_t shown[3] = {1, (layers + 1) / 2, layers};
    char title[96];
    snprintf(title, sizeof title, "%s %d-%d: gradient of the parameters",
             f->t->subject[subject].method, f->t->subject[subject].layers[0],
             f->t->subject[subject].layers[1]);
    begin_panel(f, title, fth_stack_name(stack), "update", "gradient norm");
    f->logarithmic = true;
    for (int k = 0; k < 3; k++) {
        if (k && shown[k] == shown[k - 1]) continue;
        begin_block(f);
        for (int64_t i = 0; i < f->t->n; i++) {
            const fth_probe_row *r = &f->t->row[i];
            if (same_model(f->t, r->subject, subject) && r->stack == stack && r->index == shown[k])
                point(f, (double)r->step, r->number[0]);
        }
        snprintf(title, sizeof title, "layer %d", shown[k]);
        curve(f, end_block(f), k, title);
    }
    end_panel(f);
}

/* ---- the figures ---- */

static void gradnorm(figure *f) {
    static const char *const titles[] = {"Gradient of the parameters",
                                         "Gradient of the layer output"};
    static const char *const tops[] = {"Gradient of the parameters, top layer",
                                       "Gradient of the output, top layer"};
    f->columns = 2;
    for (int32_t s = 0; s < f->t->n_subjects && over_time(f->t); s++)
        for (int stack = 0; stack < 2 && first_like(f->t, s, same_model) == s; stack++)
            if (f->t->subject[s].layers[stack]) time_panel(f, s, (fth_stack)stack);
    bool deep = over_depth(f->t, 3);
    for (int stack = 0; stack < 2 && !over_time(f->t); stack++)
        for (int k = 0; k < 2 && has_stack(f->t, (fth_stack)stack); k++)
            if (deep)
                depth_panel(f, (fth_stack)stack, k, tops[k]);
            else
                layer_panel(f, (fth_stack)stack, k, titles[k], "gradient norm", true);
}

static void sparsity(figure *f) {
    f->columns = has_stack(f->t, FTH_ENCODER) && has_stack(f->t, FTH_DECODER) ? 2 : 1;
    for (int stack = 0; stack < 2; stack++)
        if (has_stack(f->t, (fth_stack)stack))
            layer_panel(f, (fth_stack)stack, 0, "Non-zero entries after the ReLU",
                        "non-zero entries (%)", false);
}

/* Mean over the LNs around attention or of the FFNs in the course of the updates. */
static void ln_time_panel(figure *f, fth_stack stack, const char *part, const char *title) {
    int style = 0;
    begin_panel(f, title, fth_stack_name(stack), "update", "mean norm of the LN inputs");
    for (int32_t s = 0; s < f->t->n_subjects; s++) {
        if (first_like(f->t, s, same_model) != s) continue;
        begin_block(f);
        for (int32_t k = s; k < f->t->n_subjects; k++) {
            double sum = 0, n = 0;
            for (int64_t i = 0; i < f->t->n; i++) {
                const fth_probe_row *r = &f->t->row[i];
                if (r->subject != k || r->stack != stack || !strstr(r->word, part)) continue;
                sum += r->number[0];
                n++;
            }
            if (same_model(f->t, s, k) && n) point(f, (double)step_of(f->t, k), sum / n);
        }
        curve_of(f, end_block(f), style++, s, true);
    }
    root_of_width(f);
    double room = 0.05 * (f->high - f->low);
    if (room > 0) SAY(f, &f->panels, "set yrange [%g:%g]\n", f->low - room, f->high + room);
    end_panel(f);
}

static void lninput_over_time(figure *f) {
    f->columns = 2;
    for (int stack = 0; stack < 2; stack++) {
        if (!has_stack(f->t, (fth_stack)stack)) continue;
        ln_time_panel(f, (fth_stack)stack, "attn", "LNs around attention");
        ln_time_panel(f, (fth_stack)stack, "ffn", "LNs around the FFN");
    }
}

/* Layer norms in the order of the rows. */
static void lninput(figure *f) {
    if (over_time(f->t)) {
        lninput_over_time(f);
        return;
    }
    f->columns = has_stack(f->t, FTH_ENCODER) && has_stack(f->t, FTH_DECODER) ? 2 : 1;
    for (int stack = 0; stack < 2; stack++) {
        if (!has_stack(f->t, (fth_stack)stack)) continue;
        begin_panel(f, "Norm of what enters each LN", fth_stack_name((fth_stack)stack),
                    "layer norm, bottom to top", "mean L2 norm");
        f->logarithmic = true;
        for (int32_t s = 0; s < f->t->n_subjects; s++) {
            int64_t n = 0;
            begin_block(f);
            for (int64_t i = 0; i < f->t->n; i++) {
                const fth_probe_row *r = &f->t->row[i];
                if (r->subject == s && (int)r->stack == stack) point(f, (double)++n, r->number[0]);
            }
            curve(f, end_block(f), s, title_of(f->t, s));
        }
        root_of_width(f);
        whole_axis(f);
        end_panel(f);
    }
}

/* The lowest, the middle and the highest layer across the places. */
static void places_panel(figure *f, int32_t subject, fth_stack stack) {
    int32_t layers = f->t->subject[subject].layers[stack];
    const int32_t shown[3] = {1, (layers + 1) / 2, layers};
    begin_subject_panel(
        f, subject, "gradient norm by place", fth_stack_name(stack),
        "place: 1 into LN1, 2 out of it, 3 into LN2, 4 out of it, 5 into the last LN",
        "gradient norm");
    f->logarithmic = true;
    SAY(f, &f->panels, "set xrange [0.8:5.2]\nset xtics 1,1,5\n");
    for (int k = 0; k < 3; k++) {
        if (k && shown[k] == shown[k - 1]) continue;
        char title[32];
        begin_block(f);
        for (int64_t i = 0; i < f->t->n; i++) {
            const fth_probe_row *r = &f->t->row[i];
            if (r->subject == subject && r->stack == stack && r->index == shown[k])
                point(f, r->number[0], r->number[1]);
        }
        snprintf(title, sizeof title, "layer %d", shown[k]);
        curve(f, end_block(f), k, title);
    }
    end_panel(f);
}

/* How a map of so many cells along its edge is drawn. Browsers blur a small image that they
 * enlarge, so its cells are shapes of their own; many of them would make a large file. */
static const char *map_style(int64_t cells) {
    return cells <= 40 ? "image pixels" : "image";
}

/* Cosine of every two layers as a map; all maps have the same colours. */
static void similarity_panel(figure *f, int32_t subject, fth_stack stack) {
    double low = 0.99; /* so that there is a range */
    begin_subject_panel(f, subject, "cosine between layers", fth_stack_name(stack), "layer",
                        "layer");
    begin_block(f);
    for (int64_t i = 0; i < f->t->n; i++) {
        const fth_probe_row *r = &f->t->row[i];
        low = fmin(low, r->number[1]);
        if (r->subject == subject && r->stack == stack)
            point3(f, r->index, r->number[0], r->number[1]);
    }
    whole_tics(f, "x", f->t->subject[subject].layers[stack]);
    whole_tics(f, "y", f->t->subject[subject].layers[stack]);
    SAY(f, &f->panels,
        "unset grid\n" PALETTE "set cbrange [%g:1]\nset cblabel 'mean cosine'\nset size ratio 1\n"
        "set autoscale fix\nset tics out\n",
        floor(low * 10) / 10);
    const int block = end_block(f);
    if (block >= 0)
        SAY(f, &f->curves, "$b%d using 1:2:3 with %s notitle", block,
            map_style(f->t->subject[subject].layers[stack]));
    end_panel(f);
}

/* A panel for each model and each of its stacks. */
static void by_stack(figure *f, void (*panel)(figure *, int32_t, fth_stack)) {
    f->columns = has_stack(f->t, FTH_ENCODER) && has_stack(f->t, FTH_DECODER) ? 2 : 1;
    for (int32_t s = 0; s < f->t->n_subjects; s++)
        for (int stack = 0; stack < 2; stack++)
            if (f->t->subject[s].layers[stack] > 0) panel(f, s, (fth_stack)stack);
}

static void places(figure *f) {
    by_stack(f, places_panel);
}

static void similarity(figure *f) {
    by_stack(f, similarity_panel);
}

/* Number `k` of all subjects, or of those with the method of one, over the updates. */
static void update_panel(figure *f, int k, int32_t method, double high) {
    static const char *const titles[] = {"output of the top layer", "logits"};
    int style = 0;
    begin_panel(f, method < 0 ? "Model update" : f->t->subject[method].method, titles[k], "update",
                "mean L2 distance from the start");
    f->ranged = isfinite(high) && high > 0;
    if (f->ranged) SAY(f, &f->panels, "set yrange [0:%g]\n", high * 1.05);
    for (int32_t s = 0; s < f->t->n_subjects; s++) {
        if (method >= 0 && !same_method(f->t, s, method)) continue;
        begin_block(f);
        for (int64_t i = 0; i < f->t->n; i++)
            if (f->t->row[i].subject == s)
                point(f, (double)f->t->row[i].step, f->t->row[i].number[k]);
        curve(f, end_block(f), style++, title_of(f->t, s));
    }
    end_panel(f);
}

/* Methods at several depths have panels of their own, with the same axis. */
static void update(figure *f) {
    bool apart = over_depth(f->t, 2);
    double high[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < f->t->n && apart; i++)
        for (int k = 0; k < 2; k++) high[k] = fmax(high[k], f->t->row[i].number[k]);
    f->columns = 2;
    for (int32_t s = 0; s < (apart ? f->t->n_subjects : 1); s++)
        for (int k = 0; k < 2 && first_like(f->t, s, same_method) == s; k++)
            update_panel(f, k, apart ? s : -1, high[k]);
}

/* The grid of a subject, its lines apart; word NULL: all rows. */
static int grid_block(figure *f, int32_t subject, const char *word) {
    double line = NAN;
    begin_block(f);
    for (int64_t i = 0; i < f->t->n; i++) {
        const fth_probe_row *r = &f->t->row[i];
        if (r->subject != subject || (word && strcmp(r->word, word) != 0)) continue;
        if (r->number[1] != line && !isnan(line)) SAY(f, &f->data, "\n");
        line = r->number[1];
        point3(f, r->number[0], r->number[1], r->number[2]);
    }
    return end_block(f);
}

/* All have the same axis, so that steep and flat can be told apart. */
static void surface(figure *f) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < f->t->n; i++) {
        double loss = f->t->row[i].number[2];
        if (isfinite(loss)) low = fmin(low, loss);
        if (isfinite(loss)) high = fmax(high, loss);
    }
    f->columns = f->t->n_subjects > 1 ? 2 : 1;
    for (int32_t s = 0; s < f->t->n_subjects; s++) {
        int block = grid_block(f, s, NULL);
        begin_subject_panel(f, s, "loss around it", NULL, "a: first direction",
                            "b: second direction");
        if (block < 0) {
            end_panel(f);
            continue;
        }
        SAY(f, &f->panels,
            "set zlabel 'loss (nats per token)' rotate parallel\n" PALETTE
            "set cblabel 'loss (nats per token)'\nset view 55,40\nset xyplane 0.1\n"
            "set pm3d depthorder border lc rgb '#404040' lw 0.4\n");
        if (high > low)
            SAY(f, &f->panels, "set zrange [%g:%g]\nset cbrange [%g:%g]\n", low, high, low, high);
        SAY(f, &f->panels, "splot $b%d using 1:2:3 with pm3d notitle\n", block);
    }
}

static void trajectory_panel(figure *f, int32_t s) {
    int64_t cells = 0;
    for (int64_t i = 0; i < f->t->n; i++)
        cells += f->t->row[i].subject == s && strcmp(f->t->row[i].word, "surface") == 0;
    int64_t edge = (int64_t)sqrt((double)cells);
    int map = grid_block(f, s, "surface");
    bool mapped = map >= 0;
    begin_subject_panel(f, s, "loss around the run", mapped ? "white: its checkpoints" : NULL,
                        "along the way from start to end", "beside it");
    begin_block(f);
    for (int64_t i = 0; i < f->t->n; i++) {
        const fth_probe_row *r = &f->t->row[i];
        if (r->subject == s && strcmp(r->word, "point") == 0) point(f, r->number[0], r->number[1]);
    }
    int way = end_block(f);
    SAY(f, &f->panels,
        PALETTE "set cblabel 'loss (nats per token)'\nset autoscale fix\n"
                "set tics out\n");
    if (mapped) {
        SAY(f, &f->panels, "unset grid\n");
        SAY(f, &f->curves, "$b%d using 1:2:3 with %s notitle", map, map_style(edge));
    }
    if (way >= 0 && mapped) /* seen on light and dark */
        SAY(f, &f->curves, ", $b%d with linespoints lw 5 pt 7 ps 1 lc rgb '#000000' notitle", way);
    if (way >= 0) {
        next_curve(f);
        SAY(f, &f->curves, "$b%d with linespoints lw 2 pt 7 ps 0.6 lc rgb '%s' notitle", way,
            mapped ? "#ffffff" : "#0072b2");
    }
    end_panel(f);
}

static void trajectory(figure *f) {
    f->columns = f->t->n_subjects > 1 ? 2 : 1;
    for (int32_t s = 0; s < f->t->n_subjects; s++) trajectory_panel(f, s);
}

static const struct {
    const char *name;
    void (*draw)(figure *f);
} figures[] = {{"gradnorm", gradnorm}, {"places", places},        {"update", update},
               {"lninput", lninput},   {"sparsity", sparsity},    {"similarity", similarity},
               {"surface", surface},   {"trajectory", trajectory}};

/* ---- the whole ---- */

static void add_page(figure *f, fth_str *script, const char *terminal, const char *out,
                     const char *ending) {
    int rows = (f->n_panels + f->columns - 1) / f->columns;
    SAY(f, script, "set terminal %s size %d,%d noenhanced\nset output '", terminal,
        f->columns * 700, rows * 480);
    quoted(f, script, out);
    SAY(f, script, ".%s'\nset multiplot layout %d,%d\n%sunset multiplot\nset output\n", ending,
        rows, f->columns, f->panels.text);
}

fth_err fth_probe_figure(const char *what, const fth_table *t, const char *out, bool *drawn) {
    figure f = {.t = t, .columns = 1};
    fth_str script = {0};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].name, what) == 0) figures[i].draw(&f);
    if (f.err == FTH_OK) f.err = fth_gnuplot_style(&script);
    if (f.err == FTH_OK) f.err = fth_str_add(&script, f.data.text, f.data.length);
    add_page(&f, &script, "pngcairo font 'sans,11'", out, "png");
    add_page(&f, &script, "svg font 'sans,13' background '#ffffff'", out, "svg");
    *drawn = f.all_points > 0;
    if (f.err == FTH_OK && *drawn) f.err = fth_gnuplot_run(&script);
    fth_str_fini(&f.data);
    fth_str_fini(&f.panels);
    fth_str_fini(&f.curves);
    fth_str_fini(&script);
    return f.err;
}
