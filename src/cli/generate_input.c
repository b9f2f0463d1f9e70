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
    }
    in->n = 0;
}

fth_err fth_generate_input_open(fth_generate_input *in, const char *text, const char *prefix,
                                fth_on_bad_line on_bad_line) {
    in->text_file = (fth_text_file){text, strcmp(text, "-") == 0 ? "standard input" : text};
    in->prefix_file = (fth_text_file){prefix, prefix};
    in->on_bad_line = on_bad_line;
    FTH_TRY(fth_lines_new(&in->text_file, 1, &in->text));
    fth_lines_lenient(in->text);
    if (!prefix[0]) return FTH_OK;
    FTH_TRY(fth_lines_new(&in->prefix_file, 1, &in->prefix));
    fth_lines_lenient(in->prefix);
    return FTH_OK;
}

void fth_generate_input_fini(fth_generate_input *in) {
    clear(in);
    fth_lines_free(in->text);
    fth_lines_free(in->prefix);
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

static fth_err take_prefix(fth_generate_input *in, const char *line, fth_input *out) {
    const char *fault = line ? fth_lines_fault(in->prefix) : NULL;
    if (fault)
        return fth_fail(FTH_BAD_INPUT, "%s:%lld: %s", in->prefix_file.name,
                        (long long)in->number + 1, fault);
    out->prefix = line ? strdup(line) : NULL;
    return !line || out->prefix ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a line");
}

/* Adds the next line of both files; *more is false at their end. */
static fth_err take_line(fth_generate_input *in, fth_log *log, bool *more) {
    const char *line = NULL, *begin = NULL;
    size_t length, begin_length;
    FTH_TRY(fth_lines_next(in->text, &line, &length));
    if (in->prefix) FTH_TRY(fth_lines_next(in->prefix, &begin, &begin_length));
    if (in->prefix && (line == NULL) != (begin == NULL))
        return fth_fail(FTH_BAD_INPUT, "--prefix: has %s lines than --input",
                        line ? "fewer" : "more");
    *more = line != NULL;
    if (!line) return FTH_OK;
    fth_input *out = &in->lines[in->n];
    FTH_TRY(take_text(in, line, length, out, log));
    in->n++;
    out->number = in->number;
    FTH_TRY(take_prefix(in, begin, out));
    in->number++;
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
