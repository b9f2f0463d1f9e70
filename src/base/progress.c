/* progress.c: draws the bar in place on a terminal, and says a line from time to time where there
 * is none. */
#include "base/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"

enum { SMALLEST_BAR = 10, LARGEST_BAR = 40, TEXT = 512 };

static double monotonic_seconds(void *context) {
    (void)context;
    return fth_now();
}

fth_clock fth_real_clock(void) {
    return (fth_clock){monotonic_seconds, NULL};
}

static int columns(FILE *out) {
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
}

void fth_progress_init(fth_progress *p, fth_log *log, fth_clock clock, const char *title,
                       const char *unit, int64_t first, int64_t total) {
    *p = (fth_progress){.log = log, .title = title, .unit = unit, .first = first, .total = total};
    p->done = first;
    p->clock = clock;
    p->started = p->shown = clock.now(clock.context);
    p->width = log && log->terminal ? columns(log->out) : 80;
}

/* 28:33 or 3:07:12. */
static void duration_text(double seconds, char text[32]) {
    long long s = seconds > 0 && seconds < 1e15 ? llround(seconds) : 0;
    if (s < 3600)
        snprintf(text, 32, "%lld:%02lld", s / 60, s % 60);
    else
        snprintf(text, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

/* Three digits: 0.0512, 3.21, 45.1k, 1.2M. */
static void rate_text(double rate, char text[32]) {
    static const char *const suffixes[] = {"", "k", "M", "G"};
    size_t power = 0;
    while (power < 3 && rate >= 999.5) rate /= 1000, power++;
    snprintf(text, 32, "%.3g%s", rate, suffixes[power]);
}

typedef struct parts {
    char count[64], rate[64], time[48]; /* 4500/10000 updates; 3.21 updates/s; 28:33 left */
    double share;                       /* 0 to 1; negative when the end is unknown */
} parts;

static void make_parts(const fth_progress *p, double now, bool last, parts *t) {
    double elapsed = now - p->started, work = (double)(p->done - p->first);
    double rate = elapsed > 0 ? work / elapsed : 0;
    char number[32];
    t->share = p->total > 0 ? fmin((double)p->done / (double)p->total, 1) : -1;
    if (p->total > 0)
        snprintf(t->count, sizeof t->count, "%lld/%lld %s", (long long)p->done, (long long)p->total,
                 p->unit);
    else
        snprintf(t->count, sizeof t->count, "%lld %s", (long long)p->done, p->unit);
    rate_text(rate, number);
    snprintf(t->rate, sizeof t->rate, "%s %s/s", number, p->unit);
    if (!last && p->total > 0 && rate > 0) {
        duration_text((double)(p->total - p->done) / rate, number);
        snprintf(t->time, sizeof t->time, "%s left", number);
    } else {
        duration_text(elapsed, number);
        snprintf(t->time, sizeof t->time, "in %s", number);
    }
}

/* [=====>    ], inner characters wide, with a blank before it. */
static void make_bar(double share, int inner, char *text /* [inner + 4] */) {
    int full = (int)(share * inner);
    text[0] = ' ', text[1] = '[';
    for (int i = 0; i < inner; i++) text[2 + i] = i < full ? '=' : i == full ? '>' : ' ';
    memcpy(text + 2 + inner, "]", 2);
}

static void draw(fth_progress *p, const parts *t) {
    char right[TEXT], bar[LARGEST_BAR + 4] = "", line[2 * TEXT];
    int used = 0;
    if (t->share >= 0) used = snprintf(right, sizeof right, " %3d%%", (int)(100 * t->share));
    snprintf(right + used, sizeof right - (size_t)used, "  %s  %s  %s%s%s", t->count, t->rate,
             t->time, *p->extra ? "  " : "", p->extra);
    int room = p->width - 1 - (int)(strlen(p->title) + strlen(right)) - 3;
    if (t->share >= 0 && room >= SMALLEST_BAR)
        make_bar(t->share, room < LARGEST_BAR ? room : LARGEST_BAR, bar);
    snprintf(line, sizeof line, "%.60s%s%s", p->title, bar, right);
    fprintf(p->log->out, "\r%.*s\033[K", p->width > 1 ? p->width - 1 : 1, line);
    p->log->line_open = true;
}

static void print_line(fth_progress *p, const parts *t) {
    FILE *out = p->log->out;
    fprintf(out, "%s: %s", p->title, t->count);
    if (t->share >= 0) fprintf(out, " (%d%%)", (int)(100 * t->share));
    fprintf(out, ", %s, %s%s%s\n", t->rate, t->time, *p->extra ? ", " : "", p->extra);
}

static void show(fth_progress *p, double now, bool last) {
    parts t;
    make_parts(p, now, last, &t);
    if (p->log->terminal)
        draw(p, &t);
    else
        print_line(p, &t);
    p->shown = now;
}

void fth_progress_update(fth_progress *p, int64_t done, const char *extra) {
    p->done = done;
    if (!p->log || p->log->quiet) return;
    if (extra) snprintf(p->extra, sizeof p->extra, "%s", extra);
    double now = p->clock.now(p->clock.context);
    double pause = p->log->terminal ? 0.1 : fmin(fmax(5, (now - p->started) / 20), 60);
    if (now - p->shown < pause) return;
    show(p, now, false);
    fflush(p->log->out);
}

void fth_progress_end(fth_progress *p) {
    if (!p->log || p->log->quiet) return;
    show(p, p->clock.now(p->clock.context), true);
    if (p->log->terminal) fputc('\n', p->log->out);
    p->log->line_open = false;
    fflush(p->log->out);
}
