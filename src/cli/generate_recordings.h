/* generate_recordings.h: recordings that generate answers, read and turned into frames many at
 * once. */
#ifndef FTH_CLI_GENERATE_RECORDINGS_H
#define FTH_CLI_GENERATE_RECORDINGS_H

#include "base/log.h"
#include "decode/generator.h"

typedef struct fth_recordings_spec {
    const char *list;  /* data/audio_list.h; "-": standard input */
    const char *model; /* the folder, whose speech.json says how features are made */
    int32_t features;  /* that the model reads */
    bool stop;         /* one that cannot be read is an error; else it gets an empty answer */
    int threads;       /* 0: one for each core */
    fth_log *log;
} fth_recordings_spec;

typedef struct fth_recordings fth_recordings;

/* The strings must outlive it. */
fth_err fth_recordings_new(const fth_recordings_spec *spec, fth_recordings **out);
void fth_recordings_free(fth_recordings *r);

/* The next recordings, valid until the next call; n = 0 at the end. */
fth_err fth_recordings_next(fth_recordings *r, const fth_input **lines, int64_t *n);

/* Recordings so far that could not be read. */
int64_t fth_recordings_skipped(const fth_recordings *r);

#endif
