/* schedule.c: warm-up in a line, then inverse square root, a line down, or nothing. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

/* The no-warm-up schedule is T-Fixup's: it starts as if this many updates had passed. */
#define NOWARMUP_OFFSET 4000.0

fth_err fth_schedule_find(const char *name, fth_schedule_kind *out) {
    static const char *const names[] = {
        "inverse_sqrt", "inverse_sqrt_nowarmup", "constant", "linear", "cosine", "polynomial",
        "wsd"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (fth_schedule_kind)i;
            return FTH_OK;
        }
    return fth_fail(FTH_USAGE,
                    "--lr-scheduler %s: must be inverse_sqrt, inverse_sqrt_nowarmup, constant, "
                    "linear, cosine, polynomial or wsd",
                    name);
}

/* 1 until the last s->decay updates, then straight down to 0 at the end. */
static double still_to_fall(const fth_schedule *s, double now) {
    const double left = (double)s->total - now;
    return s->decay > 0 ? fmax(0, fmin(1, left / (double)s->decay)) : left > 0;
}

double fth_schedule_lr(const fth_schedule *s, int64_t t) {
    double now = (double)t, warmup = (double)s->warmup;
    if (s->kind == FTH_INVERSE_SQRT_NOWARMUP)
        return s->lr * sqrt(NOWARMUP_OFFSET / (NOWARMUP_OFFSET + now));
    if (t < s->warmup) return s->lr_start + now * (s->lr - s->lr_start) / warmup;
    double left = (double)s->total - warmup;
    double u = left > 0 ? fmin(1, (now - warmup) / left) : 1;
    switch (s->kind) {
    case FTH_INVERSE_SQRT: return s->lr * sqrt((s->warmup > 0 ? warmup : 1) / now);
    case FTH_LINEAR: return s->lr * (1 - u);
    case FTH_COSINE: return s->lr * (1 + cos(M_PI * u)) / 2;
    case FTH_POLYNOMIAL: return s->lr_end + (s->lr - s->lr_end) * pow(1 - u, s->power);
    case FTH_WSD: return s->lr_end + (s->lr - s->lr_end) * still_to_fall(s, now);
    case FTH_CONSTANT:
    case FTH_INVERSE_SQRT_NOWARMUP: break;
    }
    return s->lr;
}
