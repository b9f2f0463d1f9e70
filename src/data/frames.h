/* frames.h: frames of sound as the rows that a model reads: four frames a row, the last one filled
 * up with zeros (front/speech.c). */
#ifndef FTH_DATA_FRAMES_H
#define FTH_DATA_FRAMES_H

#include <stdint.h>

enum { FTH_FRAMES_OF_ROW = 4 };

static inline int64_t fth_frame_rows(int64_t frames) {
    return (frames + FTH_FRAMES_OF_ROW - 1) / FTH_FRAMES_OF_ROW;
}

/* Does the last row lack its odd step? */
static inline int fth_frames_lack(int64_t frames) {
    return frames % FTH_FRAMES_OF_ROW == 1 || frames % FTH_FRAMES_OF_ROW == 2;
}

/* frames [n, bins] halves into numbers [rows, 4 bins] and masked [rows]. */
void fth_frames_unpack(const uint16_t *frames, int64_t n, int32_t bins, float *numbers,
                       int32_t *masked);

#endif
