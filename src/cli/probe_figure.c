#include "cli/probe_figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/gnuplot.h"

/* A figure while it is put together. */
typedef struct figure {
    const fth_table *t;
    fth_str data;   /* data blocks $b0, $b1, ... */
    fth_str panels; /* commands that draw the panels, in the order of reading */
    int blocks, n_panels, columns;
    bool plotted; /* the panel at hand has a curve */
    fth_err err;  /* the first one: sticky */
} figure;

/* Appends to one of the texts. */
#define SAY(f, ...)                                                                                \
    do {                                                                                           \
        if ((f)->err == FTH_OK) (f)->err = fth_str_addf(__VA_ARGS__);                              \
    } while (0)

/* ---- parts ---- */

static void begin_block(figure *f) {
    SAY(f, &f->data, "$b%d << EOD\n", f->blocks);
}

/* Ends a data block; its number. */
static int end_block(figure *f) {
    SAY(f, &f->data, "EOD\n");
    return f->blocks++;
}

/* Numbers that are not finite leave a gap. */
static void point(figure *f, double x, double y) {
    if (isfinite(y)) SAY(f, &f->data, "%.9g %.9g\n", x, y);
}

static void point3(figure *f, double x, double y, double z) {
    if (isfinite(z))
        SAY(f, &f->data, "%.9g %.9g %.9g\n", x, y, z);
    else
        SAY(f, &f->data, "%.9g %.9g NaN\n", x, y);
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
    if (more) SAY(f, p, ", ");
    if (more) quoted(f, p, more);
    SAY(f, p, "'\nset xlabel '%s'\nset ylabel '%s'\nset grid lc rgb '#cccccc'\n", x, y);
    SAY(f, p, "set key top right samplen 3\n");
    f->n_panels++;
    f->plotted = false;
}

static void end_panel(figure *f) {
    SAY(f, &f->panels, f->plotted ? "\n" : "plot [0:1] [0:1] NaN notitle\n");
}

/* Colour, dashes and marks all differ: one of them is seen on any paper. */
static void curve(figure *f, int block, int style, const char *title) {
    fth_str *p = &f->panels;
    SAY(f, p, "%s $b%d with linespoints lt %d lw 2 dt %d pt %d ps 0.7 title '",
        f->plotted ? "," : "plot", block, style % 8 + 1, style % 5 + 1, style % 7 + 4);
    quoted(f, p, title);
    SAY(f, p, "'");
    f->plotted = true;
}

static void log_scale(figure *f) {
    SAY(f, &f->panels, "set logscale y\nset format y '%%.0e'\n");
}

static void whole_steps(figure *f) {
    SAY(f, &f->panels, "set xtics nomirror\nset mxtics 1\n");
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

/* Number `k` of every row of a subject and stack against the layer, as a curve. */
static void layer_curve(figure *f, int32_t subject, fth_stack stack, int k) {
    int64_t n = 0;
    begin_block(f);
    for (int64_t i = 0; i < f->t->n; i++) {
        const fth_probe_row *r = &f->t->row[i];
        if (r->subject != subject || r->stack != stack) continue;
        point(f, r->index, r->number[k]);
        n++;
    }
    int block = end_block(f);
    if (n) curve(f, block, subject, title_of(f->t, subject));
}

static void layer_panel(figure *f, fth_stack stack, int k, const char *title, const char *y,
                        bool logarithmic) {
    begin_panel(f, title, fth_stack_name(stack), "layer, bottom to top", y);
    whole_steps(f);
    if (logarithmic) log_scale(f);
    for (int32_t s = 0; s < f->t->n_subjects; s++) layer_curve(f, s, stack, k);
    end_panel(f);
}

/* ---- the figures ---- */

static void gradnorm(figure *f) {
    f->columns = 2;
    for (int stack = 0; stack < 2; stack++) {
        if (!has_stack(f->t, (fth_stack)stack)) continue;
        layer_panel(f, (fth_stack)stack, 0, "Gradient of the parameters", "gradient norm", true);
        layer_panel(f, (fth_stack)stack, 1, "Gradient of the layer output", "gradient norm", true);
    }
}

static void sparsity(figure *f) {
    f->columns = has_stack(f->t, FTH_ENCODER) && has_stack(f->t, FTH_DECODER) ? 2 : 1;
    for (int stack = 0; stack < 2; stack++)
        if (has_stack(f->t, (fth_stack)stack))
            layer_panel(f, (fth_stack)stack, 0, "Non-zero entries behind the ReLU",
                        "non-zero entries (%)", false);
}

/* Layer norms in the order of the rows. */
static void lninput(figure *f) {
    f->columns = has_stack(f->t, FTH_ENCODER) && has_stack(f->t, FTH_DECODER) ? 2 : 1;
    for (int stack = 0; stack < 2; stack++) {
        if (!has_stack(f->t, (fth_stack)stack)) continue;
        begin_panel(f, "Norm of what enters each LN", fth_stack_name((fth_stack)stack),
                    "layer norm, bottom to top", "mean L2 norm");
        log_scale(f);
        for (int32_t s = 0; s < f->t->n_subjects; s++) {
            int64_t n = 0;
            begin_block(f);
            for (int64_t i = 0; i < f->t->n; i++) {
                const fth_probe_row *r = &f->t->row[i];
                if (r->subject == s && (int)r->stack == stack) point(f, (double)++n, r->number[0]);
            }
            int block = end_block(f);
            if (n) curve(f, block, s, title_of(f->t, s));
        }
        int32_t d = f->t->subject[0].d;
        SAY(f, &f->panels, ", %.9g with lines lw 1 dt 3 lc rgb '#000000' title 'sqrt(%d)'", sqrt(d),
            d);
        end_panel(f);
    }
}

/* The lowest, the middle and the highest layer across the places. */
static void places_panel(figure *f, int32_t subject, fth_stack stack) {
    int32_t layers = f->t->subject[subject].layers[stack];
    const int32_t shown[3] = {1, (layers + 1) / 2, layers};
    begin_panel(f, title_of(f->t, subject), fth_stack_name(stack),
                "place: 1 into LN1, 2 out of it, 3 into LN2, 4 out of it, 5 into the last LN",
                "gradient norm");
    log_scale(f);
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

/* Cosine of every two layers as a map. */
static void similarity_panel(figure *f, int32_t subject, fth_stack stack) {
    begin_panel(f, title_of(f->t, subject), fth_stack_name(stack), "layer", "layer");
    begin_block(f);
    for (int64_t i = 0; i < f->t->n; i++) {
        const fth_probe_row *r = &f->t->row[i];
        if (r->subject == subject && r->stack == stack)
            point3(f, r->index, r->number[0], r->number[1]);
    }
    SAY(f, &f->panels,
        "unset grid\nset palette cividis\nset cbrange [:1]\nset cblabel 'mean cosine'\n"
        "set size ratio 1\nset autoscale fix\nset tics out nomirror\n"
        "plot $b%d using 1:2:3 with image notitle",
        end_block(f));
    f->plotted = true;
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

static void update(figure *f) {
    static const char *const titles[] = {"Output of the top layer", "Logits"};
    f->columns = 2;
    for (int k = 0; k < 2; k++) {
        begin_panel(f, titles[k], NULL, "update", "mean L2 distance from the start");
        for (int32_t s = 0; s < f->t->n_subjects; s++) {
            begin_block(f);
            for (int64_t i = 0; i < f->t->n; i++)
                if (f->t->row[i].subject == s)
                    point(f, (double)f->t->row[i].step, f->t->row[i].number[k]);
            curve(f, end_block(f), s, title_of(f->t, s));
        }
        end_panel(f);
    }
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

static void surface(figure *f) {
    f->columns = f->t->n_subjects > 1 ? 2 : 1;
    for (int32_t s = 0; s < f->t->n_subjects; s++) {
        int block = grid_block(f, s, NULL);
        begin_panel(f, title_of(f->t, s), NULL, "a: first direction", "b: second direction");
        SAY(f, &f->panels,
            "set zlabel 'loss (nats per token)' rotate parallel\nset palette cividis\n"
            "set cblabel 'loss (nats per token)'\nset view 55,40\nset xyplane 0.1\n"
            "set pm3d depthorder border lc rgb '#404040' lw 0.4\n"
            "splot $b%d using 1:2:3 with pm3d notitle",
            block);
        f->plotted = true;
        end_panel(f);
    }
}

static void trajectory_panel(figure *f, int32_t s) {
    begin_panel(f, title_of(f->t, s), NULL, "along the way from start to end",
                "first principal component beside it");
    int map = grid_block(f, s, "surface");
    int64_t n = 0;
    begin_block(f);
    for (int64_t i = 0; i < f->t->n; i++) {
        const fth_probe_row *r = &f->t->row[i];
        if (r->subject != s || strcmp(r->word, "point") != 0) continue;
        point(f, r->number[0], r->number[1]);
        n++;
    }
    int way = end_block(f);
    bool mapped = n < f->t->n && f->t->row[f->t->n - 1].word[0] == 's';
    SAY(f, &f->panels,
        "set palette cividis\nset cblabel 'loss (nats per token)'\n"
        "set autoscale fix\nset tics out nomirror\n");
    if (mapped) SAY(f, &f->panels, "unset grid\nplot $b%d using 1:2:3 with image notitle, ", map);
    SAY(f, &f->panels, "%s$b%d with linespoints lw 2 pt 7 ps 0.6 lc rgb '%s' title 'checkpoints'",
        mapped ? "" : "plot ", way, mapped ? "#ffffff" : "#0072b2");
    f->plotted = true;
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

fth_err fth_probe_figure(const char *what, const fth_table *t, const char *out) {
    figure f = {.t = t, .columns = 1};
    fth_str script = {0};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (strcmp(figures[i].name, what) == 0) figures[i].draw(&f);
    if (f.err == FTH_OK) f.err = fth_gnuplot_style(&script);
    if (f.err == FTH_OK) f.err = fth_str_add(&script, f.data.text, f.data.length);
    add_page(&f, &script, "pngcairo font 'sans,11'", out, "png");
    add_page(&f, &script, "svg font 'sans,13' background '#ffffff'", out, "svg");
    if (f.err == FTH_OK) f.err = fth_gnuplot_run(&script);
    fth_str_fini(&f.data);
    fth_str_fini(&f.panels);
    fth_str_fini(&script);
    return f.err;
}
