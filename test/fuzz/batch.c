/* A batch file of fathom trace, for each architecture. */
#include "fuzz.h"
#include "train/padded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file(data, size);
    for (int arch = FTH_ENCDEC; arch <= FTH_DEC; arch++) {
        const fth_config c = {.arch = (fth_arch)arch,
                              .src_vocab = 11,
                              .tgt_vocab = 11,
                              .pad = 1,
                              .eos = 2,
                              .unk = 3,
                              .max_positions = 64};
        fth_padded p = {0};
        fth_padded_read(path, &c, &p);
        fth_padded_fini(&p);
    }
    return 0;
}
