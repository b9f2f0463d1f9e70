#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>

void fth_double_text(double x, char *text /* [FTH_NUMBER_SIZE] */) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, FTH_NUMBER_SIZE, "%.*g", digits, x);
        if (strtod(text, NULL) == x) return;
    }
}

void fth_size_text(uint64_t bytes, char *text /* [FTH_NUMBER_SIZE] */) {
    static const char *const suffixes[] = {"", "K", "M", "G", "T"};
    int power = 0;
    while (power < 4 && bytes && bytes % 1024 == 0) bytes /= 1024, power++;
    snprintf(text, FTH_NUMBER_SIZE, "%llu%s", (unsigned long long)bytes, suffixes[power]);
}
