/* watch.c: fathom watch RUN...: runs while they go on, in a browser or in the terminal. */
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "cli/verb.h"
#include "inspect/page.h"
#include "inspect/run_view_json.h"
#include "inspect/run_views.h"
#include "watch/host.h"
#include "watch/server.h"
#include "watch/terminal.h"

#define WATCH_OPTIONS(X)                                                                           \
    X(STR, host, "localhost", FTH_SHOWN_AS("ADDRESS"),                                             \
      "address to serve at: localhost is for this machine alone, 0.0.0.0 for everyone who can "    \
      "reach it; there is no password")                                                            \
    X(I64, port, "8765", FTH_RANGE(0, 65535), "port to serve at; 0 takes any that is free")        \
    X(LIST, allow_host, "", FTH_SHOWN_AS("NAME"),                                                  \
      "a further name by which browsers may call this machine")                                    \
    X(F64, interval, "1", FTH_RANGE(0.1, 3600), "seconds between looks at the runs")               \
    X(BOOL, terminal, "false", FTH_ANY,                                                            \
      "draw in the terminal instead; once, without escape codes, when that is a file or a pipe")   \
    X(STR, quantity, "", FTH_SHOWN_AS("NAME"),                                                     \
      "with --terminal: what the heat map shows, as grad_norm; default: what was logged first")
FTH_OPTIONS(watch_options, "watch", WATCH_OPTIONS)

static void wait_for(double seconds) {
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* ---- in a browser ---- */

static fth_err publish(fth_server *server, const fth_run_views *views) {
    fth_str data = {0}, page = {0};
    fth_err err =
        fth_run_views_json((const fth_run_view *const *)views->view, views->n, true, &data);
    if (err == FTH_OK) err = fth_page(&data, &page);
    if (err == FTH_OK)
        err = fth_server_publish(server, page.text, page.length, data.text, data.length);
    fth_str_fini(&data);
    fth_str_fini(&page);
    return err;
}

static fth_err open_server(const watch_options *o, fth_server **server) {
    char name[256] = "";
    const char *names[64] = {name};
    size_t n = 1;
    if (o->allow_host.count > 62)
        return fth_fail(FTH_USAGE, "--allow-host: at most 62 names, not %zu", o->allow_host.count);
    gethostname(name, sizeof name - 1);
    for (size_t i = 0; i < o->allow_host.count; i++) names[n++] = o->allow_host.items[i];
    fth_str policy = {0};
    fth_err err = fth_page_policy("'self'; frame-ancestors 'none'", &policy);
    fth_server_spec spec = {
        .host = o->host, .port = (int)o->port, .names = names, .n_names = n, .policy = policy.text};
    if (err == FTH_OK) err = fth_server_new(&spec, server);
    fth_str_fini(&policy);
    return err;
}

static fth_err serve(const watch_options *o, fth_run_views *views) {
    fth_server *server = NULL;
    bool changed;
    FTH_TRY(fth_run_views_poll(views, &changed));
    FTH_TRY(open_server(o, &server));
    fth_err err = publish(server, views);
    const char *shown =
        strcmp(o->host, "0.0.0.0") == 0 || strcmp(o->host, "::") == 0 ? "localhost" : o->host;
    bool six = strchr(shown, ':') != NULL;
    printf("http://%s%s%s:%d/\n", six ? "[" : "", shown, six ? "]" : "", fth_server_port(server));
    fflush(stdout);
    if (!fth_host_is_loopback(o->host))
        fprintf(stderr, "fathom: everyone who can reach %s sees these runs\n", o->host);
    fprintf(stderr, "watching %d run%s; Ctrl-C ends it\n", views->n, views->n > 1 ? "s" : "");
    double since_beat = 0;
    while (err == FTH_OK && !fth_signals_pending()) {
        wait_for(o->interval);
        if ((since_beat += o->interval) >= 10) {
            fth_server_beat(server);
            since_beat = 0;
        }
        err = fth_run_views_poll(views, &changed);
        if (err == FTH_OK && changed) err = publish(server, views);
    }
    fth_server_free(server);
    return err;
}

/* ---- in the terminal ---- */

static fth_terminal terminal_of(const watch_options *o, bool screen) {
    struct winsize size = {0};
    fth_terminal t = {.columns = 100, .rows = 40, .quantity = o->quantity};
    if (screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        t.columns = size.ws_col;
        t.rows = size.ws_row;
    }
    const char *no_colour = getenv("NO_COLOR");
    t.colour = screen && !(no_colour && no_colour[0]);
    setlocale(LC_CTYPE, "");
    t.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    return t;
}

static fth_err draw(const watch_options *o, fth_run_views *views, bool screen) {
    fth_str text = {0};
    fth_terminal t = terminal_of(o, screen);
    fth_err err = FTH_OK;
    if (screen) err = fth_str_addf(&text, "\033[H\033[2J");
    if (err == FTH_OK) err = fth_terminal_draw(&t, views, &text);
    if (err == FTH_OK) fwrite(text.text, 1, text.length, stdout);
    fflush(stdout);
    fth_str_fini(&text);
    return err;
}

/* Quantities of sub-layers have names that are known. */
static fth_err check_quantity(const char *name) {
    static const char *const names[] = {
#define QUANTITY(id, text, about) text,
#include "run/quantities.def"
#undef QUANTITY
        "position_cosine"};
    const size_t n = sizeof names / sizeof *names;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return FTH_OK;
    const char *near = fth_nearest(name, names, n);
    return fth_fail(FTH_USAGE,
                    "--quantity %.60s: must be a name that --telemetry writes, as grad_norm "
                    "(doc/telemetry.md)%s%s%s",
                    name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static fth_err show(const watch_options *o, fth_run_views *views) {
    bool changed, screen = isatty(STDOUT_FILENO);
    if (o->quantity[0]) FTH_TRY(check_quantity(o->quantity));
    FTH_TRY(fth_run_views_poll(views, &changed));
    FTH_TRY(draw(o, views, screen));
    while (screen && !fth_signals_pending()) {
        wait_for(o->interval);
        FTH_TRY(fth_run_views_poll(views, &changed));
        if (changed && !fth_signals_pending()) FTH_TRY(draw(o, views, true));
    }
    return FTH_OK;
}

static fth_err watch(const watch_options *o, const fth_parsed *parsed) {
    fth_run_views views;
    FTH_TRY(fth_run_views_init(&views, parsed->positionals, (int)parsed->n_positionals));
    fth_signals before;
    fth_signals_catch_all(&before);
    signal(SIGPIPE, SIG_IGN);
    fth_err err = o->terminal ? show(o, &views) : serve(o, &views);
    fth_signals_release(&before);
    fth_run_views_fini(&views);
    return err;
}

fth_err fth_verb_watch(int argc, char **argv) {
    watch_options options;
    fth_option_group groups[] = {watch_options_group(&options)};
    const fth_usage usage = {"fathom watch", "RUN...",
                             "Shows runs while they go on: the page of fathom report, which "
                             "follows them, at the address "
                             "that is printed. It reads the run folders and nothing else, and "
                             "changes nothing. Runs that "
                             "do not exist yet are waited for. Ctrl-C ends it.",
                             1, -1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) err = watch(&options, &parsed);
    fth_parsed_fini(&parsed);
    return err;
}
