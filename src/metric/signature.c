/* signature.c: writes name:value pairs, the version of fathom last. */
#include "metric/signature.h"

#include <inttypes.h>

fth_err fth_signature(const fth_sig *sig, const char *parts, fth_str *out) {
    fth_str_clear(out);
    FTH_TRY(fth_str_addf(out, "nrefs:%zu", sig->n_refs));
    if (sig->resamples)
        FTH_TRY(fth_str_addf(out, "|bs:%zu|seed:%" PRIu64, sig->resamples, sig->seed));
    return fth_str_addf(out, "|%s|version:fathom-%s", parts, FATHOM_VERSION);
}
