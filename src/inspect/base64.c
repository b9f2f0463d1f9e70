/* base64.c: three bytes to four letters, RFC 4648. */
#include "inspect/base64.h"

fth_err fth_base64_add(fth_str *out, const unsigned char *byte, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned b1 = i + 1 < n ? byte[i + 1] : 0, b2 = i + 2 < n ? byte[i + 2] : 0;
        unsigned bits = (unsigned)byte[i] << 16 | b1 << 8 | b2;
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], digits[bits >> 6 & 63],
                        digits[bits & 63]};
        if (i + 1 >= n) four[2] = '=';
        if (i + 2 >= n) four[3] = '=';
        FTH_TRY(fth_str_add(out, four, 4));
    }
    return FTH_OK;
}
