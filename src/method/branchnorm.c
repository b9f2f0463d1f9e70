/* branchnorm.c: x <- LN(x + alpha_t D(G(x))), alpha_t growing from 1/T to its end value in the
 * first T updates; initialised with the gain of depth_init.h. */
#include <math.h>
#include <string.h>

#include "method/depth_init.h"
#include "method/fold_hooks.h"

enum { SLOT = 0 }; /* of the step: alpha_t */
enum { STEPS, END };

static fth_err resolve(fth_method_state *s) {
    s->number[STEPS] = fth_option_number(s, "steps");
    s->number[END] = fth_option_number(s, "end");
    return FTH_OK;
}

static double sigmoid(double z) {
    return 1 / (1 + exp(-10 * (z - 0.5)));
}

/* The growth curves, each from (0, 0) to (1, 1). */
static double growth(const char *curve, double u) {
    if (strcmp(curve, "exp") == 0) return expm1(4 * u) / expm1(4);
    if (strcmp(curve, "sigmoid") == 0) return (sigmoid(u) - sigmoid(0)) / (sigmoid(1) - sigmoid(0));
    return u;
}

/* Share of the end value that update t has reached. Evaluation after t updates uses t too, and a
 * fresh model the first update's: never exactly 0. */
static double reached(const fth_method_state *s, int64_t t) {
    double u = (double)(t > 1 ? t : 1) / s->number[STEPS];
    return u >= 1 ? 1 : fmin(1, growth(fth_option_text(s, "growth"), u));
}

static void step(const fth_method_state *s, int64_t t, double *slots) {
    slots[SLOT] = s->number[END] * reached(s, t);
}

static fth_val join(fth_builder *b, const fth_site *s, fth_val x, fth_val f) {
    return fth_norm(b, fth_join(b, fth_const(1), x, fth_slot(SLOT), f), s->norm);
}

static fth_init init(const fth_method_state *s, const fth_param *p, fth_init base) {
    if (p->layer < 0) return base;
    return fth_depth_rule(p, base, fth_depth_beta(s->config, p->stack));
}

/* branch_lr "alpha": Adam undoes the factor alpha_t in the gradients, so without this the branches
 * travel at full speed while they hardly show. */
static double lr_scale(const fth_method_state *s, fth_role role, int64_t t) {
    if (!fth_role_is_branch(role) || strcmp(fth_option_text(s, "branch_lr"), "alpha") != 0)
        return 1;
    return reached(s, t);
}

/* Exact at any step: the branch's last map takes alpha over. */
static fth_err fold(fth_fold *f) {
    double slots[FTH_STEP_SLOTS];
    fth_method_step(f->state, f->state->config->step, slots);
    for (int stack = FTH_ENCODER; stack <= FTH_DECODER; stack++)
        fth_fold_scale_branches(f, (fth_stack)stack, slots[SLOT]);
    return FTH_OK;
}

static void settle(fth_config *c) {
    fth_method_option *o = c->options;
    while (o < c->options + c->n_options && strcmp(o->key, "steps") != 0) o++;
    if (o == c->options + FTH_MAX_METHOD_OPTIONS) return;
    if (o == c->options + c->n_options) c->n_options++;
    *o = (fth_method_option){.key = "steps", .type = FTH_OPT_NUMBER, .number = 1};
}

/* Measured at 18-18 layers of width 512 with 32,768 tokens an update, 600 updates and a warm-up of
 * 600: ramps of 240 and 600 updates collapse at the full rate, one of 24 trains, and so does 600
 * with "alpha". Smaller batches change nothing of it. */
enum { LONG_RAMP = 100 };

static const char *warn(const fth_method_state *s) {
    if (s->config->arch == FTH_DEC || fth_option_number(s, "steps") <= LONG_RAMP ||
        strcmp(fth_option_text(s, "branch_lr"), "full") != 0)
        return NULL;
    return "branch_lr=full with a ramp of more than 100 updates can collapse the encoder: the "
           "branches learn at the full rate while they hardly show; --method-option "
           "branch_lr=alpha trains there, or a short ramp, --method-option steps=24";
}

static const fth_option_spec options[] = {
    {"steps", "number", "4000", 1, 1e12, "T: updates until the branch has its full weight"},
    {"growth", "linear|exp|sigmoid", "linear", 0, 0, "the curve of alpha_t"},
    {"end", "number", "1", 1e-6, 1e6, "alpha after T updates"},
    {"branch_lr", "full|alpha", "full", 0, 0,
     "\"alpha\" slows the branches' learning rate by alpha_t / end during the ramp"},
    {0}};

const fth_method fth_method_branchnorm = {
    .id = "branchnorm",
    .title = "BranchNorm",
    .paper = "Liu et al. 2023, arXiv 2305.02790",
    .equation = "x <- LN(x + alpha_t D(G(x))), alpha_t = min(1, t/T)",
    .extra = "none",
    .export_to = "plain Post-LN, exact at any step",
    .advice =
        "a long warm-up; branch_lr=alpha unless the ramp is short, and from 50-50 on T = warm-up",
    .norm = FTH_NORM_POST,
    .options = options,
    .resolve = resolve,
    .join = join,
    .init = init,
    .step = step,
    .lr_scale = lr_scale,
    .warn = warn,
    .fold = fold,
    .settle = settle,
};
