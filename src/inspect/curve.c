/* curve.c: when the points are full, neighbours are joined and the stride doubles. */
#include "inspect/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

fth_err fth_curve_init(fth_curve *c, const char *name) {
    *c = (fth_curve){.stride = 1, .newest = NAN};
    snprintf(c->name, sizeof c->name, "%s", name);
    c->point = malloc(FTH_CURVE_POINTS * sizeof *c->point);
    return c->point ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a curve");
}

void fth_curve_fini(fth_curve *c) {
    free(c->point);
    *c = (fth_curve){0};
}

static void join(fth_point *a, const fth_point *b) {
    if (b->finite > 0 && a->finite > 0) {
        double n = (double)(a->finite + b->finite);
        a->mean += (b->mean - a->mean) * ((double)b->finite / n);
        a->low = fmin(a->low, b->low);
        a->high = fmax(a->high, b->high);
    } else if (b->finite > 0) {
        a->mean = b->mean;
        a->low = b->low;
        a->high = b->high;
    }
    a->last = b->last;
    a->finite += b->finite;
    a->faults += b->faults;
}

static void halve(fth_curve *c) {
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i += 2, n++) {
        c->point[n] = c->point[i];
        if (i + 1 < c->n) join(&c->point[n], &c->point[i + 1]);
    }
    c->n = n;
    c->stride *= 2;
}

void fth_curve_add(fth_curve *c, int64_t update, double value) {
    if (!c->point) return; /* a curve that was never made keeps nothing */
    int fine = isfinite(value);
    fth_point p = {update, update, fine ? value : NAN, fine ? value : NAN, fine ? value : NAN,
                   fine,   !fine};
    c->newest = value;
    fth_point *last = c->n ? &c->point[c->n - 1] : NULL;
    if (last && last->finite + last->faults < c->stride) {
        join(last, &p);
        return;
    }
    if (c->n == FTH_CURVE_POINTS) halve(c);
    c->point[c->n++] = p;
}

void fth_curve_rewind(fth_curve *c, int64_t update) {
    while (c->n > 0 && c->point[c->n - 1].first > update) c->n--;
    c->newest = c->n ? c->point[c->n - 1].mean : NAN;
}

double fth_curve_lowest(const fth_curve *c, int64_t *update) {
    double lowest = NAN;
    for (int32_t i = 0; i < c->n; i++) {
        const fth_point *p = &c->point[i];
        if (p->finite == 0 || p->low >= lowest) continue;
        lowest = p->low;
        if (update) *update = p->first;
    }
    return lowest;
}
