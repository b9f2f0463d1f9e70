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

/* A recording: a file, or a part of one. */
typedef struct fth_clip {
    const char *path;
    int64_t start, length; /* in the file's own samples; length 0: to its end */
    double speed;          /* played so many times as fast, and higher; 0: as it is */
} fth_clip;

/* Its seconds (at its speed) and the file's samples a second, from the header. */
fth_err fth_sound_look(const fth_clip *clip, double *seconds, int32_t *rate);

/* FTH_BAD_INPUT with the file's name: no such format, cut short, longer than max_seconds, empty, a
 * part beyond its end. A zeroed sound, or one that failed, may be given to fini. */
fth_err fth_sound_read(const fth_clip *clip, int32_t rate, double max_seconds, fth_sound *out);
void fth_sound_fini(fth_sound *s);

#endif
