/* What is packed: gzip and Zstandard, with all their frames. */
#include "text/inflate.h"
#include "fuzz.h"

enum { MOST = 1 << 24 }; /* a bomb is not waited for */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char out[1 << 12];
    fth_inflate *f = NULL;
    if (fth_inflate_new(fuzz_file(data, size), "file", &f) != FTH_OK) return 0;
    size_t got = 1;
    for (size_t all = 0; got && all < MOST; all += got)
        if (fth_inflate_read(f, out, sizeof out, &got) != FTH_OK) break;
    if (fth_inflate_bytes(f) > (int64_t)size) abort();
    fth_inflate_free(f);
    return 0;
}
