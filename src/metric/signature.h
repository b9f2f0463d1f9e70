/* signature.h: the string that says how a score was made, in sacreBLEU's form:
 * nrefs:1|bs:1000|seed:12345|case:mixed|...|version:fathom-0.1.0. */
#ifndef FTH_METRIC_SIGNATURE_H
#define FTH_METRIC_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* What is said about every score. */
typedef struct fth_sig {
    size_t n_refs;
    size_t resamples; /* 0: no bootstrap */
    uint64_t seed;
} fth_sig;

/* Makes out the signature; parts is what the score itself has to say, "case:mixed|eff:no". */
fth_err fth_signature(const fth_sig *sig, const char *parts, fth_str *out);

#endif
