/* train_state.c: prints and reads the JSON; the sum of its own bytes is a key of it, so that a cut
 * or flipped file is noticed. */
#include "store/train_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AT(field)    offsetof(fth_train_state, field)

/* A seed is any number, a counter goes on from its value. */
typedef enum key_type { TEXT, COUNTER, SEED, REAL, HASH } key_type;

static const struct key_row {
    const char *key;
    key_type type;
    size_t offset;
    int newer; /* 1: files of version 0.1.0 have none of these; 2: it may be missing */
} keys[] = {
    {"version", TEXT, AT(version), 0},
    {"update", COUNTER, AT(update), 0},
    {"epoch", COUNTER, AT(epoch), 0},
    {"position", COUNTER, AT(position), 0},
    {"window", COUNTER, AT(window), 0},
    {"batch", COUNTER, AT(batch), 0},
    {"seed", SEED, AT(seed), 0},
    {"rng_counter", COUNTER, AT(rng_counter), 0},
    {"best_score", REAL, AT(best_score), 0},
    {"best_update", COUNTER, AT(best_update), 0},
    {"patience", COUNTER, AT(patience), 0},
    {"loss_scale", REAL, AT(loss_scale), 0},
    {"alpha", REAL, AT(alpha), 0},
    {"tokens", COUNTER, AT(tokens), 0},
    {"wall", REAL, AT(wall), 0},
    {"data_hash", HASH, AT(data_hash), 0},
    {"validated", COUNTER, AT(validated), 1},
    {"valid_nll", REAL, AT(valid_nll), 1},
    {"first_nll", REAL, AT(first_nll), 1},
    {"last_nll", REAL, AT(last_nll), 1},
    {"log_loss", REAL, AT(log_loss), 1},
    {"log_nll", REAL, AT(log_nll), 1},
    {"log_gnorm", REAL, AT(log_gnorm), 1},
    {"log_tokens", COUNTER, AT(log_tokens), 1},
    {"log_updates", COUNTER, AT(log_updates), 1},
    {"stopped_at", COUNTER, AT(stopped_at), 2},
};

enum { N_MORE = 2 }; /* files and crc32 */

fth_train_state fth_train_state_default(void) {
    return (fth_train_state){.version = FATHOM_VERSION,
                             .epoch = 1,
                             .best_score = NAN,
                             .loss_scale = 1.0,
                             .alpha = 1.0,
                             .valid_nll = NAN,
                             .first_nll = NAN,
                             .last_nll = NAN};
}

static json_t *value_of(const struct key_row *row, const fth_train_state *s) {
    const void *field = (const char *)s + row->offset;
    switch (row->type) {
    case TEXT: return json_string(field);
    case COUNTER:
    case SEED: return json_integer(*(const int64_t *)field);
    case REAL: return fth_json_number(*(const double *)field);
    case HASH: return json_sprintf("%016llx", (unsigned long long)*(const uint64_t *)field);
    }
    return NULL;
}

static json_t *files_value(const fth_file_sums *sums) {
    json_t *files = json_object();
    for (size_t i = 0; i < sums->n && files; i++) {
        const fth_file_sum *f = &sums->files[i];
        json_t *entry = json_pack("{s:I, s:o}", "bytes", (json_int_t)f->sum.bytes, "crc32",
                                  json_sprintf("%08x", f->sum.crc32));
        if (json_object_set_new(files, f->name, entry) != 0) {
            json_decref(files);
            files = NULL;
        }
    }
    return files;
}

/* The file ends with the sum of its own bytes, taken with eight zeros in the place of the sum. */
static const char last_key[] = "\"crc32\": \"00000000\"\n}\n";
enum { SUM_DIGITS = 8, AFTER_SUM = 4 /* the quote and the bracket on its line */ };

/* Where the digits of the sum begin; NULL when text does not end with one. */
static char *sum_place(char *text, size_t length) {
    size_t tail = sizeof last_key - 1, before = tail - SUM_DIGITS - AFTER_SUM;
    if (length < tail) return NULL;
    char *digits = text + length - SUM_DIGITS - AFTER_SUM;
    if (memcmp(text + length - tail, last_key, before)) return NULL;
    return memcmp(digits + SUM_DIGITS, last_key + tail - AFTER_SUM, AFTER_SUM) ? NULL : digits;
}

static const char unset[] = "not set";

/* Puts a line "key: value", or "# key: not set", into the object; others are comments. Not 0: no
 * memory. */
static int put_option(json_t *object, const char *line, size_t length) {
    const int comment = length > 2 && line[0] == '#';
    const char *key = comment ? line + 2 : line, *end = line + length;
    const char *colon = length ? memchr(key, ':', (size_t)(end - key)) : NULL;
    if (!colon || end - colon < 2 || colon[1] != ' ') return 0;
    const char *value = colon + 2;
    const size_t n = (size_t)(end - value);
    if (comment && (n != strlen(unset) || memcmp(value, unset, n) != 0)) return 0;
    return json_object_setn_new(object, key, (size_t)(colon - key), json_stringn(value, n));
}

/* {"key": "value"} of lines "key: value"; NULL when out of memory. */
static json_t *options_value(const char *lines) {
    json_t *object = json_object();
    for (const char *line = lines; *line && object;) {
        const size_t length = strcspn(line, "\n");
        if (put_option(object, line, length) != 0) {
            json_decref(object);
            object = NULL;
        }
        line += length + (line[length] == '\n');
    }
    return object;
}

/* Everything but the sum itself; NULL when out of memory. */
static json_t *root_of(const fth_train_state *s, const char *options, const fth_file_sums *sums) {
    json_t *root = json_object();
    int failed = 0;
    for (size_t i = 0; i < COUNT(keys) && !failed; i++)
        failed = json_object_set_new(root, keys[i].key, value_of(&keys[i], s)) != 0;
    if (!failed && options)
        failed = json_object_set_new(root, "options", options_value(options)) != 0;
    if (!failed) failed = json_object_set_new(root, "files", files_value(sums)) != 0;
    if (!failed) failed = json_object_set_new(root, "crc32", json_string("00000000")) != 0;
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

fth_err fth_train_state_print(const fth_train_state *s, const char *options,
                              const fth_file_sums *sums, fth_str *out) {
    char sum[SUM_DIGITS + 1];
    size_t begin = out->length;
    json_t *root = root_of(s, options, sums);
    fth_err err = fth_json_write(root, 2, out);
    json_decref(root);
    if (!err) err = fth_str_add(out, "\n", 1);
    if (err) return err;
    snprintf(sum, sizeof sum, "%08x", fth_crc32(0, out->text + begin, out->length - begin));
    memcpy(sum_place(out->text + begin, out->length - begin), sum, SUM_DIGITS);
    return FTH_OK;
}

/* Exactly so many hexadecimal digits. */
static fth_err read_hex(const char *key, json_t *value, size_t digits, uint64_t *out) {
    const char *text = json_string_value(value);
    if (!text || strlen(text) != digits || strspn(text, "0123456789abcdef") != digits)
        return fth_fail(FTH_BAD_INPUT, "%s is %s: it must be a string of %zu hexadecimal digits",
                        key, fth_json_shown(value).text, digits);
    *out = strtoull(text, NULL, 16);
    return FTH_OK;
}

static fth_err read_whole(const char *key, json_t *value, int64_t most, int64_t *out) {
    *out = json_integer_value(value);
    if (json_is_integer(value) && *out >= 0 && *out <= most) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT, "%s is %s: it must be a whole number from 0 to %lld", key,
                    fth_json_shown(value).text, (long long)most);
}

static fth_err read_key(const struct key_row *row, json_t *value, fth_train_state *s) {
    void *field = (char *)s + row->offset;
    const char *text = json_string_value(value);
    if (!value) return fth_fail(FTH_BAD_INPUT, "%s is missing", row->key);
    switch (row->type) {
    case TEXT:
        if (!text || strlen(text) >= sizeof s->version)
            return fth_fail(FTH_BAD_INPUT, "%s is %s: it must be a string of at most %zu bytes",
                            row->key, fth_json_shown(value).text, sizeof s->version - 1);
        memcpy(s->version, text, strlen(text) + 1);
        return FTH_OK;
    case COUNTER: return read_whole(row->key, value, FTH_MAX_COUNT, field);
    case SEED: return read_whole(row->key, value, INT64_MAX, field);
    case REAL:
        if (fth_json_to_double(value, field))
            return fth_fail_in(FTH_BAD_INPUT, "%s is %s", row->key, fth_json_shown(value).text);
        return FTH_OK;
    case HASH: return read_hex(row->key, value, 16, field);
    }
    return FTH_OK;
}

static fth_err read_files(json_t *files, fth_file_sums *sums) {
    const char *name;
    json_t *entry;
    if (!json_is_object(files)) return fth_fail(FTH_BAD_INPUT, "files is missing or no object");
    json_object_foreach(files, name, entry) {
        int64_t bytes = 0;
        uint64_t crc = 0;
        if (!fth_is_model_file(name) || sums->n == FTH_MAX_FILE_SUMS)
            return fth_fail(FTH_BAD_INPUT, "files has \"%.40s\", which is no file of a checkpoint",
                            name);
        FTH_TRY(read_whole("bytes", json_object_get(entry, "bytes"), FTH_MAX_COUNT, &bytes));
        FTH_TRY(read_hex("crc32", json_object_get(entry, "crc32"), 8, &crc));
        fth_file_sums_add(sums, name,
                          (fth_st_sum){.bytes = (uint64_t)bytes, .crc32 = (uint32_t)crc});
    }
    return FTH_OK;
}

/* The lines again. */
static fth_err read_options(json_t *options, fth_str *lines) {
    const char *key;
    json_t *value;
    if (!json_is_object(options))
        return fth_fail(FTH_BAD_INPUT, "options is %s: it must be an object",
                        fth_json_shown(options).text);
    json_object_foreach(options, key, value) {
        const char *text = json_string_value(value);
        if (!text)
            return fth_fail(FTH_BAD_INPUT, "%.40s in options is %s: it must be a string", key,
                            fth_json_shown(value).text);
        FTH_TRY(fth_str_addf(lines, "%s: %s\n", key, text));
    }
    return FTH_OK;
}

/* Leaves zeros in the place of the sum. */
static fth_err check_sum(char *text, size_t length) {
    char noted[SUM_DIGITS + 1] = "", found[SUM_DIGITS + 1], *place = sum_place(text, length);
    if (!place)
        return fth_fail(FTH_BAD_INPUT, "does not end with its crc32: it was cut or changed");
    memcpy(noted, place, SUM_DIGITS);
    memset(place, '0', SUM_DIGITS);
    snprintf(found, sizeof found, "%08x", fth_crc32(0, text, length));
    if (strcmp(noted, found))
        return fth_fail(FTH_BAD_INPUT, "crc32 is %s, but that of its content is %s: it was changed",
                        noted, found);
    return FTH_OK;
}

static fth_err read_root(json_t *root, fth_train_state *s, fth_str *options, fth_file_sums *sums) {
    if (!json_is_object(root)) return fth_fail(FTH_BAD_INPUT, "must be a JSON object");
    const int older = !json_object_get(root, "validated");
    size_t n = N_MORE;
    *s = fth_train_state_default();
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (older && keys[i].newer) continue;
        if (keys[i].newer == 2 && !json_object_get(root, keys[i].key)) continue;
        FTH_TRY(read_key(&keys[i], json_object_get(root, keys[i].key), s));
        n++;
    }
    /* the older program saved a checkpoint only after its validation */
    if (older && !isnan(s->best_score)) s->validated = s->update;
    FTH_TRY(read_files(json_object_get(root, "files"), sums));
    if (json_object_get(root, "options")) {
        FTH_TRY(read_options(json_object_get(root, "options"), options));
        n++;
    }
    if (json_object_size(root) != n)
        return fth_fail(FTH_BAD_INPUT, "has %zu keys, but must have %zu", json_object_size(root),
                        n);
    return FTH_OK;
}

static fth_err parse(const char *path, char *text, size_t length, fth_train_state *s,
                     fth_str *options, fth_file_sums *sums) {
    json_t *root = NULL;
    fth_err err = check_sum(text, length);
    if (err) return fth_fail_in(err, "%s", path);
    FTH_TRY(fth_json_parse(path, text, length, &root));
    err = read_root(root, s, options, sums);
    json_decref(root);
    return err ? fth_fail_in(err, "%s", path) : FTH_OK;
}

fth_err fth_train_state_read(const char *path, fth_train_state *s, char **options,
                             fth_file_sums *sums) {
    char *text = NULL;
    size_t length = 0;
    fth_train_state state = {0};
    fth_file_sums files = {0};
    fth_str lines = {0};
    FTH_TRY(fth_file_read(path, &text, &length));
    fth_err err = parse(path, text, length, &state, &lines, &files);
    free(text);
    if (err || !options) fth_str_fini(&lines);
    if (err) return err;
    *s = state;
    if (options) *options = lines.text;
    if (sums) *sums = files;
    return FTH_OK;
}
