/* base64.h: bytes as letters that can stand in JSON and HTML. */
#ifndef FTH_INSPECT_BASE64_H
#define FTH_INSPECT_BASE64_H

#include "base/str.h"

/* Appends byte[0..n). */
fth_err fth_base64_add(fth_str *out, const unsigned char *byte, size_t n);

#endif
