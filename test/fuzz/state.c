/* state.json of a checkpoint. */
#include "fuzz.h"
#include "store/train_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_train_state s;
    fth_file_sums sums;
    char *options = NULL;
    fth_train_state_read(fuzz_file(data, size), &s, &options, &sums);
    free(options);
    return 0;
}
