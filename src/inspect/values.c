/* values.c: a reader of digits for the very form in which the log is written; everything else goes
 * to the JSON reader. */
#include "inspect/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/heat.h"

/* Moves *at past a word; false when something else stands there. */
static bool skip(const char **at, const char *word) {
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0) return false;
    *at += n;
    return true;
}

/* A name up to its closing quote; only letters that need no care. */
static bool read_name(const char **at, char *out, size_t size) {
    size_t n = strcspn(*at, "\"\\");
    if (n == 0 || n >= size || (*at)[n] != '"') return false;
    for (size_t i = 0; i < n; i++)
        if ((*at)[i] < ' ' || (*at)[i] > '~') return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n + 1;
    return true;
}

bool fth_values_head(const char *text, size_t length, fth_values_line *out) {
    const char *at = text;
    char *end;
    if (length < 40 || !skip(&at, "{\"type\":\"layers\",\"update\":")) return false;
    if (*at < '0' || *at > '9') return false;
    out->update = strtoll(at, &end, 10);
    if (end - at > 15) return false;
    at = end;
    if (!skip(&at, ",\"stack\":\"") || !read_name(&at, out->stack, sizeof out->stack)) return false;
    if (!skip(&at, ",\"name\":\"") || !read_name(&at, out->name, sizeof out->name)) return false;
    if (!skip(&at, ",\"values\":[")) return false;
    out->values = at;
    return true;
}

/* Digits to a whole number; how many there were. */
static int read_digits(const char **at, double *value) {
    int n = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++, n++) *value = *value * 10 + (**at - '0');
    return n;
}

/* A JSON number to about 15 digits, which is more than a picture shows. */
static bool read_number(const char **at, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value = 0, power = 0;
    bool negative = **at == '-', down;
    if (negative) (*at)++;
    if (read_digits(at, &value) == 0) return false;
    int exponent = 0;
    if (**at == '.') {
        (*at)++;
        exponent = -read_digits(at, &value);
        if (exponent == 0) return false;
    }
    if (**at == 'e' || **at == 'E') {
        (*at)++;
        down = **at == '-';
        if (down || **at == '+') (*at)++;
        int digits = read_digits(at, &power);
        if (digits == 0 || digits > 4) return false;
        exponent += down ? -(int)power : (int)power;
    }
    if (exponent > 22 || exponent < -22)
        value *= pow(10, exponent);
    else
        value = exponent < 0 ? value / tens[-exponent] : value * tens[exponent];
    *out = negative ? -value : value;
    return true;
}

static bool read_value(const char **at, double *out) {
    if (**at == '-' || (**at >= '0' && **at <= '9')) return read_number(at, out);
    *out = (double)FTH_HEAT_NONE;
    if (skip(at, "null")) return true;
    *out = (double)NAN;
    if (skip(at, "\"nan\"")) return true;
    *out = (double)INFINITY;
    if (skip(at, "\"inf\"")) return true;
    *out = -(double)INFINITY;
    return skip(at, "\"-inf\"");
}

bool fth_values_read(const fth_values_line *line, float *value, size_t *n) {
    const char *at = line->values;
    for (*n = 0;;) {
        double x;
        if (!read_value(&at, &x)) return false;
        value[(*n)++] = (float)x;
        if (*at == ']') break;
        if (!skip(&at, ",")) return false;
    }
    return strcmp(at, "]}") == 0;
}
