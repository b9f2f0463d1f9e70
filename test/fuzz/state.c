/* state.json of a checkpoint. */
#include "fuzz.h"
#include "store/train_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_train_state s;
    fth_file_sums sums;
    fth_train_state_read(fuzz_file(data, size), &s, &sums);
    return 0;
}
