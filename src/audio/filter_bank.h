/* filter_bank.h: log-mel filter-bank values of sound, as Kaldi computes them without dither:
 * windows of 25 ms every 10 ms, the mean taken away, pre-emphasis 0.97, Povey's window, the power
 * spectrum in triangles on the mel scale from 20 Hz to half the rate, logarithms. */
#ifndef FTH_AUDIO_FILTER_BANK_H
#define FTH_AUDIO_FILTER_BANK_H

#include <stdint.h>

#include "base/error.h"

typedef struct fth_filter_bank fth_filter_bank;

/* bins: 3 to 256. rate: 1,000 samples a second and more. */
fth_err fth_filter_bank_new(int32_t rate, int32_t bins, fth_filter_bank **out);
void fth_filter_bank_free(fth_filter_bank *f);

/* Frames of n samples; sound shorter than a window has none. */
int64_t fth_filter_bank_frames(const fth_filter_bank *f, int64_t n);

/* sample [n], -1 to 1 (Kaldi's are 32,768 times as large, and so are they made here); out [frames,
 * bins]. Several threads may call it at once. */
fth_err fth_filter_bank_apply(const fth_filter_bank *f, const float *sample, int64_t n, float *out);

/* Takes the mean away and divides by the deviation of each bin over the frames; a bin that does not
 * change becomes 0. */
void fth_filter_bank_normalise(float *frames, int64_t n, int32_t bins);

#endif
