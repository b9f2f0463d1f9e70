/* languages.json of a data set or a model: what is read is consistent. */
#include <string.h>

#include "data/languages.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_languages l;
    if (fth_languages_parse(&l, "languages.json", (const char *)data, size) != FTH_OK) return 0;
    if (l.n < 1 || !(l.temperature >= 1)) abort();
    for (int32_t i = 0; i < l.n; i++)
        if (fth_languages_direction(&l, fth_languages_source(&l, i), fth_languages_target(&l, i)) !=
            i)
            abort();
    fth_languages_fini(&l);
    return 0;
}
