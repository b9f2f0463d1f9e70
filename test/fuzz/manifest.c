/* A manifest of recordings, or a list of files. */
#include "data/audio_list.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_audio_list *l = NULL;
    fth_audio_row row = {0};
    if (fth_audio_list_open(fuzz_file(data, size), &l) != FTH_OK) return 0;
    while (fth_audio_list_next(l, &row) == FTH_OK && row.clip.path)
        if (!row.clip.path[0] || !row.text || row.clip.start < 0 || row.clip.length < 0) abort();
    fth_audio_list_free(l);
    return 0;
}
