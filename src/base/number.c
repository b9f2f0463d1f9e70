/* number.c: tries 15, 16 and 17 digits until the text reads back as the same number; reads sizes
 * such as 40GiB. */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

fth_number fth_double_text(double x) {
    fth_number n;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(n.text, sizeof n.text, "%.*g", digits, x);
        if (strtod(n.text, NULL) == x) break;
    }
    return n;
}

fth_number fth_shown_number(double x) {
    fth_number n;
    snprintf(n.text, sizeof n.text, "%g", isnan(x) ? fabs(x) : x);
    return n;
}

fth_number fth_size_text(uint64_t bytes) {
    static const char *const suffixes[] = {"", "K", "M", "G", "T"};
    fth_number n;
    int power = 0;
    while (power < 4 && bytes && bytes % 1024 == 0) bytes /= 1024, power++;
    snprintf(n.text, sizeof n.text, "%llu%s", (unsigned long long)bytes, suffixes[power]);
    return n;
}

bool fth_parse_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}
