/* frames.c: halves become floats; zeros behind the last. */
#include "data/frames.h"

#include <string.h>

#include "base/half.h"

void fth_frames_unpack(const uint16_t *frames, int64_t n, int32_t bins, float *numbers,
                       int32_t *masked) {
    const int64_t rows = fth_frame_rows(n), count = n * bins;
    for (int64_t i = 0; i < count; i++) numbers[i] = fth_half_to_float(frames[i]);
    memset(numbers + count, 0,
           sizeof *numbers * (size_t)((rows * FTH_FRAMES_OF_ROW - n) * (int64_t)bins));
    memset(masked, 0, sizeof *masked * (size_t)rows);
    if (rows) masked[rows - 1] = fth_frames_lack(n);
}
