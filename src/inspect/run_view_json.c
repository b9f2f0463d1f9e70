/* run_view_json.c: writes curves as numbers and heat maps as base64 bytes on a scale of their
 * own. */
#include "inspect/run_view_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/json.h"
#include "inspect/base64.h"
#include "inspect/extras.h"

/* Cells of all heat maps of a page: about 8 MB of it. */
enum { MAX_CELLS = 3000000, FIRST_CODE = 5, LAST_CODE = 65535 };

/* Appends a JSON value that is built here, and frees it. "<" would end a script element. */
static fth_err add_value(fth_str *out, const char *key, json_t *value) {
    fth_str text = {0};
    fth_err err = value ? fth_json_write(value, 0, &text) : fth_no_memory("the page of a run");
    if (err == FTH_OK) err = fth_str_addf(out, ",\"%s\":", key);
    for (size_t at = 0; err == FTH_OK && at < text.length;) {
        const char *open = memchr(text.text + at, '<', text.length - at);
        size_t n = open ? (size_t)(open - text.text) - at : text.length - at;
        err = fth_str_add(out, text.text + at, n);
        if (err == FTH_OK && open) err = fth_str_add(out, "\\u003c", 6);
        at += n + (open != NULL);
    }
    fth_str_fini(&text);
    json_decref(value);
    return err;
}

static json_t *text_of(const char *text) {
    return fth_run_view_text(text, strlen(text));
}

/* ---- curves ---- */

static fth_err add_number(fth_str *out, double x, bool first) {
    const char *comma = first ? "" : ",";
    return isfinite(x) ? fth_str_addf(out, "%s%.6g", comma, x) : fth_str_addf(out, "%snull", comma);
}

static double part(const fth_point *p, int which) {
    return which == 0 ? p->mean : which == 1 ? p->low : p->high;
}

static fth_err add_curve(fth_str *out, const fth_curve *c, bool first) {
    static const char *const parts[] = {"m", "lo", "hi"};
    FTH_TRY(fth_str_addf(out, "%s{\"stride\":%lld", first ? "" : ",", (long long)c->stride));
    FTH_TRY(add_value(out, "name", text_of(c->name)));
    FTH_TRY(fth_str_addf(out, ",\"u\":["));
    for (int32_t i = 0; i < c->n; i++)
        FTH_TRY(fth_str_addf(out, "%s%lld", i ? "," : "", (long long)c->point[i].first));
    for (int k = 0; k < (c->stride > 1 ? 3 : 1); k++) {
        FTH_TRY(fth_str_addf(out, "],\"%s\":[", parts[k]));
        for (int32_t i = 0; i < c->n; i++) FTH_TRY(add_number(out, part(&c->point[i], k), i == 0));
    }
    FTH_TRY(fth_str_addf(out, "],\"bad\":["));
    bool none = true;
    for (int32_t i = 0; i < c->n; i++) {
        if (c->point[i].faults == 0) continue;
        FTH_TRY(fth_str_addf(out, "%s%lld", none ? "" : ",", (long long)c->point[i].first));
        none = false;
    }
    return fth_str_addf(out, "]}");
}

/* ---- heat maps ---- */

typedef struct scale {
    bool log;
    double low, high; /* of the finite values; on a log scale the logarithms of the positive ones */
} scale;

static scale find_scale(const fth_heat *h) {
    size_t n = (size_t)h->rows * (size_t)h->kinds * (size_t)h->bins;
    double low = INFINITY, high = -INFINITY, positive = INFINITY;
    for (size_t i = 0; i < n; i++) {
        double x = (double)h->cell[i];
        if (!isfinite(x) || h->cell[i] == FTH_HEAT_NONE) continue;
        low = fmin(low, x);
        high = fmax(high, x);
        if (x > 0) positive = fmin(positive, x);
    }
    if (low > high) return (scale){false, 0, 0};
    if (low >= 0 && isfinite(positive) && high > 20 * positive)
        return (scale){true, log10(positive), log10(high)};
    return (scale){false, low, high};
}

static unsigned code_of(float cell, const scale *s) {
    double x = (double)cell;
    if (cell == FTH_HEAT_NONE) return 0;
    if (isnan(x)) return 1;
    if (isinf(x)) return x > 0 ? 2 : 3;
    if (s->log && x <= 0) return 4;
    if (s->log) x = log10(x);
    double share = s->high > s->low ? (x - s->low) / (s->high - s->low) : 0;
    return FIRST_CODE + (unsigned)lrint(fmin(fmax(share, 0), 1) * (LAST_CODE - FIRST_CODE));
}

static fth_err add_cells(fth_str *out, const fth_heat *h, int32_t step, const scale *s) {
    size_t row = (size_t)h->kinds * (size_t)h->bins, n = 0;
    size_t rows = ((size_t)h->rows + (size_t)step - 1) / (size_t)step;
    unsigned char *bytes = malloc(2 * row * rows + 1);
    if (!bytes) return fth_no_memory("the page of a run");
    for (int32_t r = 0; r < h->rows; r += step)
        for (size_t i = 0; i < row; i++) {
            unsigned code = code_of(h->cell[(size_t)r * row + i], s);
            bytes[n++] = (unsigned char)(code & 255);
            bytes[n++] = (unsigned char)(code >> 8);
        }
    fth_err err = fth_base64_add(out, bytes, n);
    free(bytes);
    return err;
}

/* Of the rows kept every step-th goes into the page. */
static fth_err add_heat(fth_str *out, const fth_heat *h, int32_t step, bool first) {
    scale s = find_scale(h);
    FTH_TRY(fth_str_addf(out,
                         "%s{\"layers\":%d,\"kinds\":%d,\"bins\":%d,\"per_bin\":%d,\"seen\":%lld,"
                         "\"every\":%lld,\"log\":%s,\"low\":%.9g,\"high\":%.9g",
                         first ? "" : ",", h->layers, h->kinds, h->bins, h->per_bin,
                         (long long)h->seen, (long long)(h->stride * step),
                         s.log ? "true" : "false", s.low, s.high));
    FTH_TRY(add_value(out, "stack", text_of(h->stack)));
    FTH_TRY(add_value(out, "name", text_of(h->name)));
    FTH_TRY(fth_str_addf(out, ",\"u\":["));
    for (int32_t r = 0; r < h->rows; r += step)
        FTH_TRY(fth_str_addf(out, "%s%lld", r ? "," : "", (long long)h->update[r]));
    FTH_TRY(fth_str_addf(out, "],\"cells\":\""));
    FTH_TRY(add_cells(out, h, step, &s));
    return fth_str_addf(out, "\"}");
}

static int64_t count_cells(const fth_run_view *v) {
    int64_t n = 0;
    for (int32_t i = 0; i < v->n_heats; i++)
        n += (int64_t)v->heat[i].rows * v->heat[i].kinds * v->heat[i].bins;
    return n;
}

/* ---- the whole ---- */

static fth_err add_facts(fth_str *out, const fth_run_view *v) {
    json_t *broken = json_pack("{s:I, s:I, s:I, s:o}", "count", (json_int_t)v->broken, "line",
                               (json_int_t)v->broken_line, "long", (json_int_t)v->tail.skipped,
                               "reason", text_of(v->broken_reason));
    FTH_TRY(add_value(out, "folder", text_of(v->folder)));
    FTH_TRY(add_value(out, "state", text_of(fth_run_view_state_name(v->state))));
    FTH_TRY(add_value(out, "update", json_integer(v->update)));
    FTH_TRY(add_value(out, "modified", json_real(v->tail.modified)));
    FTH_TRY(add_value(out, "problem", text_of(v->problem)));
    FTH_TRY(add_value(out, "settings", json_incref(v->settings)));
    FTH_TRY(add_value(out, "start", v->start ? json_incref(v->start) : json_null()));
    FTH_TRY(add_value(out, "end", v->end ? json_incref(v->end) : json_null()));
    FTH_TRY(add_value(out, "warnings", json_incref(v->warnings)));
    FTH_TRY(add_value(out, "n_warnings", json_integer(v->n_warnings)));
    FTH_TRY(add_value(out, "broken", broken));
    FTH_TRY(add_value(out, "diverged", fth_extras_diverged(v->folder)));
    return add_value(out, "samples", fth_extras_samples(v->folder));
}

static fth_err add_run(fth_str *out, const fth_run_view *v, int32_t step) {
    FTH_TRY(fth_str_addf(out, "{\"format\":1"));
    FTH_TRY(add_value(out, "name", text_of(v->name)));
    FTH_TRY(add_facts(out, v));
    FTH_TRY(fth_str_addf(out, ",\"curves\":["));
    for (int32_t i = 0; i < v->n_curves; i++) FTH_TRY(add_curve(out, &v->curve[i], i == 0));
    FTH_TRY(fth_str_addf(out, "],\"heats\":["));
    for (int32_t i = 0; i < v->n_heats; i++) FTH_TRY(add_heat(out, &v->heat[i], step, i == 0));
    return fth_str_addf(out, "]}");
}

fth_err fth_run_views_json(const fth_run_view *const *views, int n, bool live, fth_str *out) {
    int64_t cells = 0;
    for (int i = 0; i < n; i++) cells += count_cells(views[i]);
    int32_t step = (int32_t)(1 + (cells - 1) / MAX_CELLS);
    FTH_TRY(fth_str_addf(out, "{\"version\":\"%s\",\"made\":%lld,\"live\":%s,\"runs\":[",
                         FATHOM_VERSION, (long long)time(NULL), live ? "true" : "false"));
    for (int i = 0; i < n; i++) {
        if (i) FTH_TRY(fth_str_add(out, ",", 1));
        FTH_TRY(add_run(out, views[i], step));
    }
    return fth_str_add(out, "]}", 2);
}
