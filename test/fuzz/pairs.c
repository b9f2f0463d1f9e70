/* pairs.yaml: every direction that is read has two languages and the files of a split. */
#include <string.h>

#include "data/pairs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_pairs p;
    if (fth_pairs_parse("some/pairs.yaml", (const char *)data, size, &p) != FTH_OK) return 0;
    if (p.languages.n < 1) abort();
    for (int32_t i = 0; i < p.languages.n; i++) {
        const char *source = fth_languages_source(&p.languages, i),
                   *target = fth_languages_target(&p.languages, i);
        int files = 0;
        for (int s = 0; s < FTH_PAIR_SPLITS; s++) {
            if (!p.of[i].file[s][0] != !p.of[i].file[s][1]) abort();
            files += p.of[i].file[s][0] != NULL;
        }
        if (!files || strcmp(source, target) == 0 || !fth_language_is_code(source) ||
            fth_languages_direction(&p.languages, source, target) != i)
            abort();
    }
    fth_pairs_fini(&p);
    return 0;
}
