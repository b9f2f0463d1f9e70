/* sound.h: the samples of an audio file: WAV, FLAC and OGG by libsndfile, brought to one rate by
 * libsamplerate. */
#ifndef FTH_AUDIO_SOUND_H
#define FTH_AUDIO_SOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct fth_sound {
    float *sample; /* [n] one channel, -1 to 1 */
    int64_t n;
    int32_t rate;      /* samples per second */
    int32_t file_rate; /* of the file; another than rate: it was resampled */
    int32_t channels;  /* of the file; more than one: sample is their mean */
    bool silent;       /* every sample is 0 */
} fth_sound;

/* Seconds of a file, from its header. */
fth_err fth_sound_seconds(const char *path, double *seconds);

/* FTH_BAD_INPUT with the file's name: no such format, cut short, longer than max_seconds, empty. A
 * zeroed sound, or one that failed, may be given to fini. */
fth_err fth_sound_read(const char *path, int32_t rate, double max_seconds, fth_sound *out);
void fth_sound_fini(fth_sound *s);

#endif
