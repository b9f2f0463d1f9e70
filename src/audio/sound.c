/* sound.c: takes the mean of the channels, and resamples only where the rate is another; a file
 * that is shorter than its header says is an error. */
#include "audio/sound.h"

#include <math.h>
#include <samplerate.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

static fth_err open_file(const char *path, SNDFILE **file, SF_INFO *info) {
    *info = (SF_INFO){0};
    *file = sf_open(path, SFM_READ, info);
    if (!*file)
        return fth_fail(FTH_BAD_INPUT, "%s: no sound that can be read: %s", path,
                        sf_strerror(NULL));
    if (info->channels < 1 || info->samplerate < 1 || info->frames < 0 ||
        info->frames > INT64_C(1) << 40) {
        sf_close(*file);
        return fth_fail(FTH_BAD_INPUT,
                        "%s: %d channels, %d samples a second, %lld samples: a damaged header",
                        path, info->channels, info->samplerate, (long long)info->frames);
    }
    return FTH_OK;
}

/* libsndfile shortens a WAV file whose header promises more than is there, and says so in its log
 * alone. */
static bool is_cut(SNDFILE *file) {
    char log[4096];
    const int n = sf_command(file, SFC_GET_LOG_INFO, log, sizeof log);
    return n > 0 && strstr(log, "(should be") != NULL;
}

/* Samples of a clip; FTH_BAD_INPUT where the file is shorter. */
static fth_err samples_of(const fth_clip *clip, const SF_INFO *info, int64_t *n) {
    const int64_t all = info->frames;
    if (clip->start < 0 || clip->length < 0 || clip->start > all ||
        clip->length > all - clip->start)
        return fth_fail(FTH_BAD_INPUT, "%s: has %lld samples; there are not %lld from %lld on",
                        clip->path, (long long)all, (long long)clip->length,
                        (long long)clip->start);
    *n = clip->length ? clip->length : all - clip->start;
    return FTH_OK;
}

static double speed_of(const fth_clip *clip) {
    return clip->speed > 0 ? clip->speed : 1;
}

fth_err fth_sound_look(const fth_clip *clip, double *seconds, int32_t *rate) {
    SNDFILE *file;
    SF_INFO info;
    int64_t n = 0;
    FTH_TRY(open_file(clip->path, &file, &info));
    fth_err err = samples_of(clip, &info, &n);
    sf_close(file);
    *seconds = (double)n / info.samplerate / speed_of(clip);
    *rate = info.samplerate;
    return err;
}

/* n frames as the mean of their channels. */
static fth_err read_samples(SNDFILE *file, const char *path, const SF_INFO *info, int64_t n,
                            float *out) {
    enum { PIECE = 4096 };
    const int64_t channels = info->channels;
    float *piece = malloc(sizeof *piece * PIECE * (size_t)channels);
    if (!piece) return fth_fail(FTH_NO_MEMORY, "no memory to read %s", path);
    int64_t at = 0;
    for (sf_count_t got; at < n && (got = sf_readf_float(file, piece, PIECE)) > 0;)
        for (int64_t i = 0; i < got && at < n; i++, at++) {
            double sum = 0;
            for (int64_t c = 0; c < channels; c++) sum += (double)piece[i * channels + c];
            out[at] = (float)(sum / (double)channels);
        }
    free(piece);
    if (at < n || sf_error(file) || is_cut(file))
        return fth_fail(FTH_BAD_INPUT, "%s: the file is cut short: %lld of its samples are there",
                        path, (long long)at);
    for (int64_t i = 0; i < at; i++)
        if (!isfinite(out[i]))
            return fth_fail(FTH_BAD_INPUT, "%s: sample %lld is not a finite number", path,
                            (long long)i);
    return FTH_OK;
}

/* from: samples a second that they are taken for. */
static fth_err resample(const char *path, double from, int32_t rate, fth_sound *s) {
    const double ratio = (double)rate / from;
    const int64_t most = (int64_t)ceil((double)s->n * ratio) + 1;
    float *out = malloc(sizeof *out * (size_t)most);
    if (!out) return fth_fail(FTH_NO_MEMORY, "no memory for %lld samples", (long long)most);
    SRC_DATA how = {.data_in = s->sample,
                    .data_out = out,
                    .input_frames = (long)s->n,
                    .output_frames = (long)most,
                    .src_ratio = ratio};
    const int failed = src_simple(&how, SRC_SINC_MEDIUM_QUALITY, 1);
    if (failed) {
        free(out);
        return fth_fail(FTH_BAD_INPUT, "%s: %g samples a second do not become %d: %s", path, from,
                        rate, src_strerror(failed));
    }
    free(s->sample);
    s->sample = out;
    s->n = how.output_frames_gen;
    return FTH_OK;
}

static fth_err read_file(SNDFILE *file, const SF_INFO *info, const fth_clip *clip, int32_t rate,
                         double max_seconds, fth_sound *out) {
    int64_t n = 0;
    FTH_TRY(samples_of(clip, info, &n));
    const double seconds = (double)n / info->samplerate / speed_of(clip);
    if (seconds > max_seconds)
        return fth_fail(FTH_BAD_INPUT, "%s: %.1f seconds; must be at most %g", clip->path, seconds,
                        max_seconds);
    if (n == 0) return fth_fail(FTH_BAD_INPUT, "%s: there is no sample in it", clip->path);
    if (clip->start && sf_seek(file, clip->start, SEEK_SET) != clip->start)
        return fth_fail(FTH_BAD_INPUT, "%s: sample %lld cannot be found", clip->path,
                        (long long)clip->start);
    *out = (fth_sound){.n = n,
                       .rate = rate,
                       .file_rate = info->samplerate,
                       .channels = info->channels,
                       .silent = true};
    out->sample = malloc(sizeof *out->sample * (size_t)n);
    if (!out->sample) return fth_fail(FTH_NO_MEMORY, "no memory for %s", clip->path);
    FTH_TRY(read_samples(file, clip->path, info, n, out->sample));
    for (int64_t i = 0; i < n && out->silent; i++) out->silent = out->sample[i] == 0;
    const double from = info->samplerate * speed_of(clip);
    return from == rate ? FTH_OK : resample(clip->path, from, rate, out);
}

fth_err fth_sound_read(const fth_clip *clip, int32_t rate, double max_seconds, fth_sound *out) {
    SNDFILE *file;
    SF_INFO info;
    *out = (fth_sound){0};
    FTH_TRY(open_file(clip->path, &file, &info));
    fth_err err = read_file(file, &info, clip, rate, max_seconds, out);
    sf_close(file);
    return err;
}

void fth_sound_fini(fth_sound *s) {
    free(s->sample);
    *s = (fth_sound){0};
}
