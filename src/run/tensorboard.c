/* tensorboard.c: the messages Event, Summary and HistogramProto of TensorFlow's event files. */
#include "run/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/protobuf.h"

enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_HISTOGRAM = 5, VALUE_TENSOR = 8, VALUE_META = 9 };
enum { BUCKETS = 30, SESSION_START = 1, TYPE_STRING = 7 };

uint32_t fth_crc32c(const void *data, size_t size) {
    const uint8_t *at = data;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* A sum of a sum is easily right by chance: TFRecord turns and moves it. */
static uint32_t masked(const void *data, size_t size) {
    const uint32_t crc = fth_crc32c(data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Frames an event: its length, the length's sum, the event, its sum. */
static fth_err frame(const fth_pb *event, fth_str *out) {
    const uint64_t length = event->text.length;
    const uint32_t sums[] = {masked(&length, sizeof length),
                             masked(event->text.text, event->text.length)};
    if (event->err != FTH_OK) return event->err;
    FTH_TRY(fth_str_add(out, (const char *)&length, sizeof length));
    FTH_TRY(fth_str_add(out, (const char *)&sums[0], sizeof sums[0]));
    FTH_TRY(fth_str_add(out, event->text.text, event->text.length));
    return fth_str_add(out, (const char *)&sums[1], sizeof sums[1]);
}

/* ---- values ---- */

static void add_scalar(fth_pb *summary, const char *tag, double x) {
    fth_pb value = {0};
    fth_pb_text(&value, VALUE_TAG, tag);
    fth_pb_float(&value, VALUE_SIMPLE, (float)x);
    fth_pb_message(summary, 1, &value);
    fth_pb_fini(&value);
}

static void add_text(fth_pb *summary, const char *tag, const char *text) {
    fth_pb value = {0}, meta = {0}, plugin = {0}, tensor = {0}, shape = {0}, dim = {0};
    fth_pb_text(&plugin, 1, "text");
    fth_pb_message(&meta, 1, &plugin);
    fth_pb_int(&dim, 1, 1);
    fth_pb_message(&shape, 2, &dim);
    fth_pb_int(&tensor, 1, TYPE_STRING);
    fth_pb_message(&tensor, 2, &shape);
    fth_pb_text(&tensor, 8, text);
    fth_pb_text(&value, VALUE_TAG, tag);
    fth_pb_message(&value, VALUE_TENSOR, &tensor);
    fth_pb_message(&value, VALUE_META, &meta);
    fth_pb_message(summary, 1, &value);
    fth_pb *all[] = {&value, &meta, &plugin, &tensor, &shape, &dim};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fth_pb_fini(all[i]);
}

/* Of n finite numbers. */
static void add_histogram(fth_pb *summary, const char *tag, const double *x, size_t n) {
    double low = x[0], high = x[0], sum = 0, squares = 0, limit[BUCKETS], count[BUCKETS] = {0};
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
        sum += x[i];
        squares += x[i] * x[i];
    }
    const double step = high > low ? (high - low) / BUCKETS : 1;
    for (int b = 0; b < BUCKETS; b++)
        limit[b] = b + 1 < BUCKETS ? low + step * (b + 1) : low + step * BUCKETS;
    for (size_t i = 0; i < n; i++) {
        const int b = (int)((x[i] - low) / step);
        count[b < BUCKETS ? b : BUCKETS - 1]++;
    }
    fth_pb value = {0}, h = {0};
    const double facts[] = {low, high, (double)n, sum, squares};
    for (int i = 0; i < 5; i++) fth_pb_double(&h, i + 1, facts[i]);
    fth_pb_doubles(&h, 6, limit, BUCKETS);
    fth_pb_doubles(&h, 7, count, BUCKETS);
    fth_pb_text(&value, VALUE_TAG, tag);
    fth_pb_message(&value, VALUE_HISTOGRAM, &h);
    fth_pb_message(summary, 1, &value);
    fth_pb_fini(&h);
    fth_pb_fini(&value);
}

/* ---- lines ---- */

static const char *text_of(const json_t *line, const char *key) {
    const char *text = json_string_value(json_object_get(line, key));
    return text ? text : "";
}

/* Every number of a line but those that say where it belongs. */
static void add_numbers(fth_pb *summary, const json_t *line, const char *group) {
    const char *key;
    json_t *value;
    char tag[128];
    double x;
    json_object_foreach((json_t *)line, key, value) {
        const bool number = json_is_number(value) || json_is_string(value);
        if (!number || strcmp(key, "update") == 0 || fth_json_to_double(value, &x) != FTH_OK)
            continue;
        snprintf(tag, sizeof tag, "%s/%s", group, key);
        add_scalar(summary, tag, x);
    }
}

static fth_err add_layers(fth_pb *summary, const json_t *line) {
    const json_t *values = json_object_get(line, "values");
    double *x = malloc(sizeof *x * (json_array_size(values) + 1));
    char tag[128];
    size_t n = 0;
    if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for a histogram");
    for (size_t i = 0; i < json_array_size(values); i++)
        if (fth_json_to_double(json_array_get(values, i), &x[n]) == FTH_OK && isfinite(x[n])) n++;
    snprintf(tag, sizeof tag, "%s/%s", text_of(line, "stack"), text_of(line, "name"));
    if (n) add_histogram(summary, tag, x, n);
    free(x);
    return FTH_OK;
}

static fth_err add_line(fth_pb *summary, const json_t *line) {
    const char *type = text_of(line, "type");
    char group[96];
    if (strcmp(type, "train") == 0) {
        add_numbers(summary, line, type);
    } else if (strcmp(type, "valid") == 0) {
        const char *direction = text_of(line, "direction");
        snprintf(group, sizeof group, "%s%s%s", text_of(line, "split"), *direction ? "/" : "",
                 direction);
        add_numbers(summary, line, group);
    } else if (strcmp(type, "layers") == 0) {
        return add_layers(summary, line);
    } else if (strcmp(type, "start") == 0) { /* a fenced block, as TensorBoard shows Markdown */
        fth_str text = {0};
        fth_err err = fth_str_addf(&text, "```\n");
        if (err == FTH_OK) err = fth_json_write(line, 2, &text);
        if (err == FTH_OK) err = fth_str_addf(&text, "\n```");
        if (err == FTH_OK) add_text(summary, "start", text.text);
        fth_str_fini(&text);
        return err;
    } else if (strcmp(type, "warn") == 0 || strcmp(type, "diverged") == 0) {
        const char *reason = text_of(line, "reason");
        add_text(summary, type, *reason ? reason : text_of(line, "text"));
    }
    return FTH_OK;
}

/* What was logged after this update by a process that is gone does not count any more. */
static fth_err add_restart(const json_t *line, double time, int64_t update, fth_str *out) {
    fth_pb event = {0}, session = {0};
    if (strcmp(text_of(line, "type"), "start") != 0 || update < 1) return FTH_OK;
    fth_pb_int(&session, 1, SESSION_START);
    fth_pb_double(&event, EVENT_TIME, time);
    fth_pb_int(&event, EVENT_STEP, update + 1);
    fth_pb_message(&event, EVENT_SESSION, &session);
    fth_err err = frame(&event, out);
    fth_pb_fini(&session);
    fth_pb_fini(&event);
    return err;
}

fth_err fth_events_record(const json_t *line, double time, fth_str *out) {
    fth_pb summary = {0}, event = {0};
    const int64_t update = json_integer_value(json_object_get(line, "update"));
    FTH_TRY(add_restart(line, time, update, out));
    fth_err err = add_line(&summary, line);
    const bool empty = summary.text.length == 0;
    fth_pb_double(&event, EVENT_TIME, time);
    fth_pb_int(&event, EVENT_STEP, update);
    fth_pb_message(&event, EVENT_SUMMARY, &summary);
    if (err == FTH_OK && !empty) err = frame(&event, out);
    fth_pb_fini(&summary);
    fth_pb_fini(&event);
    return err;
}

/* ---- the file ---- */

static fth_err write_all(const fth_events *e, const fth_str *text) {
    for (size_t done = 0; done < text->length;) {
        const ssize_t n = write(e->fd, text->text + done, text->length - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fth_fail(FTH_IO, "%s: cannot write: %s", e->path, strerror(errno));
        done += (size_t)n;
    }
    return FTH_OK;
}

static fth_err write_version(const fth_events *e) {
    fth_pb event = {0};
    fth_str text = {0};
    fth_pb_double(&event, EVENT_TIME, fth_seconds(CLOCK_REALTIME));
    fth_pb_text(&event, EVENT_VERSION, "brain.Event:2");
    fth_err err = frame(&event, &text);
    if (err == FTH_OK) err = write_all(e, &text);
    fth_str_fini(&text);
    fth_pb_fini(&event);
    return err;
}

fth_err fth_events_open(fth_events *e, const char *run) {
    char host[64] = "host", folder[512];
    if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "host");
    if (snprintf(folder, sizeof folder, "%s/tensorboard", run) >= (int)sizeof folder)
        return fth_fail(FTH_USAGE, "--save-dir %.100s...: the name is too long", run);
    FTH_TRY(fth_make_dirs(folder));
    e->path = fth_strdup_printf("%s/events.out.tfevents.%lld.%s.%ld.0", folder,
                                (long long)fth_seconds(CLOCK_REALTIME), host, (long)getpid());
    if (!e->path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    e->fd = open(e->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (e->fd < 0) return fth_fail(FTH_IO, "%s: cannot open: %s", e->path, strerror(errno));
    return write_version(e);
}

void fth_events_close(fth_events *e) {
    if (e->path && e->fd >= 0) close(e->fd);
    free(e->path);
    *e = (fth_events){0};
}

fth_err fth_events_line(fth_events *e, const json_t *line) {
    fth_str text = {0};
    if (!e->path) return FTH_OK;
    fth_err err = fth_events_record(line, fth_seconds(CLOCK_REALTIME), &text);
    if (err == FTH_OK) err = write_all(e, &text);
    fth_str_fini(&text);
    return err;
}
