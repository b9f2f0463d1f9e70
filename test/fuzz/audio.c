/* A sound file: its header, its samples, its features. */
#include <math.h>

#include "audio/features.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fth_filter_bank *bank;
    const fth_speech_facts facts = {.rate = 8000, .features = 24};
    const fth_clip clip = {.path = fuzz_file(data, size)};
    fth_features f = {0};
    if (!bank && fth_filter_bank_new(8000, 24, &bank) != FTH_OK) return 0;
    if (fth_features_read(bank, &facts, &clip, 500, &f) == FTH_OK && f.n > 500 &&
        f.state == FTH_FEATURES_THERE)
        abort();
    fth_features_fini(&f);
    return 0;
}
