/* generate_input.c: reads a line and, where wanted, a prefix for it; a line that cannot be answered
 * is said and answered by an empty one. */
#include "cli/generate_input.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void clear(fth_generate_input *in) {
    for (int64_t i = 0; i < in->n; i++) {
        free((char *)in->lines[i].text);
        free((char *)in->lines[i].prefix);
        free((char *)in->lines[i].constraints);
    }
    in->n = 0;
}

/* A file of lines that belong to those of the text; "": none. */
static fth_err open_beside(fth_text_file *file, const char *path, fth_lines **out) {
    *file = (fth_text_file){path, path};
    if (!path[0]) return FTH_OK;
    FTH_TRY(fth_lines_new(file, 1, out));
    fth_lines_lenient(*out);
    return FTH_OK;
}

fth_err fth_generate_input_open(fth_generate_input *in, const char *text, const char *prefix,
                                const char *constraints, fth_on_bad_line on_bad_line) {
    in->text_file = (fth_text_file){text, strcmp(text, "-") == 0 ? "standard input" : text};
    in->on_bad_line = on_bad_line;
    FTH_TRY(fth_lines_new(&in->text_file, 1, &in->text));
    fth_lines_lenient(in->text);
    FTH_TRY(open_beside(&in->prefix_file, prefix, &in->prefix));
    return open_beside(&in->constraint_file, constraints, &in->constraints);
}

void fth_generate_input_fini(fth_generate_input *in) {
    clear(in);
    fth_lines_free(in->text);
    fth_lines_free(in->prefix);
    fth_lines_free(in->constraints);
}

/* A line with a fault, by what was asked for. */
static fth_err take_bad(fth_generate_input *in, const char *fault, const char *line, size_t length,
                        fth_input *out, fth_log *log) {
    static const char *const fate[] = {"its answer is an empty line", "U+FFFD stands for it"};
    if (in->on_bad_line == FTH_BAD_LINE_STOP)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: %s", in->text_file.name, (long long)in->number + 1,
                        fault);
    const bool skip = in->on_bad_line == FTH_BAD_LINE_SKIP;
    fth_log_warn(log, "%s:%lld: %s; %s", in->text_file.name, (long long)in->number + 1, fault,
                 fate[!skip]);
    fth_str sound = {0};
    FTH_TRY(fth_utf8_repair(line, skip ? 0 : length, &sound));
    *out = (fth_input){.text = sound.text, .skip = skip};
    in->skipped += skip;
    in->replaced += !skip;
    return FTH_OK;
}

static fth_err take_text(fth_generate_input *in, const char *line, size_t length, fth_input *out,
                         fth_log *log) {
    const char *fault = fth_lines_fault(in->text);
    if (fault) return take_bad(in, fault, line, length, out, log);
    *out = (fth_input){.text = strdup(line)};
    return out->text ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a line");
}

/* The line of a file beside the text, malloc'd; both end together. */
static fth_err take_beside(fth_generate_input *in, fth_lines *lines, const char *option, bool more,
                           const char **out) {
    const char *line = NULL;
    size_t length;
    if (!lines) return FTH_OK;
    FTH_TRY(fth_lines_next(lines, &line, &length));
    if ((line != NULL) != more)
        return fth_fail(FTH_BAD_INPUT, "%s: has %s lines than --input", option,
                        more ? "fewer" : "more");
    const char *fault = line ? fth_lines_fault(lines) : NULL;
    if (fault)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: %s", fth_lines_file(lines),
                        (long long)in->number + 1, fault);
    *out = line ? strdup(line) : NULL;
    return !line || *out ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a line");
}

/* Adds the next line of all files; *more is false at their end. */
static fth_err take_line(fth_generate_input *in, fth_log *log, bool *more) {
    const char *line = NULL;
    size_t length;
    fth_input *out = &in->lines[in->n];
    FTH_TRY(fth_lines_next(in->text, &line, &length));
    *more = line != NULL;
    if (line) {
        FTH_TRY(take_text(in, line, length, out, log));
        in->n++;
        out->number = in->number;
    } else {
        *out = (fth_input){0};
    }
    FTH_TRY(take_beside(in, in->prefix, "--prefix", *more, &out->prefix));
    FTH_TRY(take_beside(in, in->constraints, "--constraints", *more, &out->constraints));
    in->number += *more;
    return FTH_OK;
}

fth_err fth_generate_input_next(fth_generate_input *in, int64_t most, fth_log *log) {
    bool more = true;
    clear(in);
    while (more && in->n < most && in->n < FTH_MOST_LINES) {
        bool ready = true;
        if (in->n > 0) FTH_TRY(fth_lines_ready(in->text, &ready));
        if (!ready) break;
        FTH_TRY(take_line(in, log, &more));
    }
    return FTH_OK;
}
