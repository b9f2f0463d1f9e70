/* report.c: fathom report RUN...: one HTML file that shows what happened in runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/verb.h"
#include "inspect/page.h"
#include "inspect/run_view_json.h"
#include "inspect/run_views.h"

#define REPORT_OPTIONS(X)                                                                          \
    X(STR, out, "report.html", FTH_SHOWN_AS("FILE"), "the page to write; - is standard output")    \
    X(BOOL, json, "false", FTH_ANY, "write the data alone, as JSON, instead of a page")
FTH_OPTIONS(report_options, "report", REPORT_OPTIONS)

static fth_err write_out(const report_options *o, const fth_str *text) {
    if (strcmp(o->out, "-") != 0) return fth_file_write(o->out, text->text, text->length);
    if (fwrite(text->text, 1, text->length, stdout) == text->length) return FTH_OK;
    return fth_fail(FTH_IO, "standard output: cannot write");
}

/* A run of which nothing can be shown is said here too, since nobody may look at the page. */
static int tell_problems(const fth_run_views *views) {
    int shown = 0;
    for (int i = 0; i < views->n; i++) {
        const fth_run_view *v = views->view[i];
        if (v->problem[0]) fprintf(stderr, "fathom: %s\n", v->problem);
        if (v->broken)
            fprintf(stderr, "fathom: %s/log.jsonl: %lld lines left out; the first, line %lld: %s\n",
                    v->folder, (long long)v->broken, (long long)v->broken_line, v->broken_reason);
        shown += v->state != FTH_VIEW_MISSING;
    }
    return shown;
}

static fth_err report(const report_options *o, const fth_parsed *parsed) {
    fth_run_views views = {0};
    fth_str data = {0}, page = {0};
    bool changed;
    fth_err err = fth_run_views_init(&views, parsed->positionals, (int)parsed->n_positionals);
    if (err == FTH_OK) err = fth_run_views_poll(&views, &changed);
    if (err == FTH_OK && tell_problems(&views) == 0)
        err = fth_fail(FTH_NOT_FOUND,
                       "%s: %s has a log.jsonl that can be read; a run folder is "
                       "what fathom train --save-dir names",
                       parsed->positionals[0], views.n > 1 ? "none of the runs" : "no run folder");
    if (err == FTH_OK)
        err = fth_run_views_json((const fth_run_view *const *)views.view, views.n, false, &data);
    if (err == FTH_OK && !o->json) err = fth_page(&data, &page);
    if (err == FTH_OK) err = write_out(o, o->json ? &data : &page);
    if (err == FTH_OK && strcmp(o->out, "-") != 0)
        fprintf(stderr, "%s: %d run%s, %zu KiB\n", o->out, views.n, views.n > 1 ? "s" : "",
                ((o->json ? &data : &page)->length + 1023) / 1024);
    fth_str_fini(&data);
    fth_str_fini(&page);
    fth_run_views_fini(&views);
    return err;
}

fth_err fth_verb_report(int argc, char **argv) {
    report_options options;
    fth_option_group groups[] = {report_options_group(&options)};
    const fth_usage usage = {
        "fathom report", "RUN...",
        "Makes one HTML file of one or more run folders, finished or not: configuration, curves, "
        "heat maps of every quantity that --telemetry measured, a comparison of the runs, what "
        "went "
        "wrong, sample outputs. It needs no network and can be mailed, archived and printed.",
        1, -1};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 1, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) err = report(&options, &parsed);
    fth_parsed_fini(&parsed);
    return err;
}
