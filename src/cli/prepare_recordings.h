/* prepare_recordings.h: the options of fathom prepare that are of recordings. */
#ifndef FTH_CLI_PREPARE_RECORDINGS_H
#define FTH_CLI_PREPARE_RECORDINGS_H

#include "base/options.h"
#include "data/prepare.h"

#define RECORDING_OPTIONS(X)                                                                       \
    X(STR, train_audio, "", FTH_SHOWN_AS("FILE"),                                                  \
      "recordings and their texts: a table with the columns id, audio, n_frames, tgt_text "        \
      "(doc/speech.md)")                                                                           \
    X(STR, valid_audio, "", FTH_SHOWN_AS("FILE"), "recordings for validation")                     \
    X(STR, test_audio, "", FTH_SHOWN_AS("FILE"), "recordings for the test")                        \
    X(I64, sample_rate, "", FTH_RANGE(1000, 384000),                                               \
      "samples a second; others are resampled; default: as the first recording")                   \
    X(I64, features, "80", FTH_RANGE(3, 256), "filter-bank values of each frame of 10 ms")         \
    X(CHOICE, feature_norm, "utterance", FTH_CHOICES("utterance|global|none"),                     \
      "mean 0 and deviation 1 of each value: over a recording, or all of training")                \
    X(STR, speeds, "", FTH_SHOWN_AS("0.9,1,1.1"),                                                  \
      "copies of each training recording, played so many times as fast")                           \
    X(I64, max_frames, "3000", FTH_RANGE(1, 100000000), "longer recordings are left out")          \
    X(BOOL, skip_bad_audio, "false", FTH_ANY, "leave out recordings that cannot be read")
FTH_OPTIONS(fth_recording_options, "recordings (WAV, FLAC, OGG)", RECORDING_OPTIONS)

bool fth_has_recordings(const fth_recording_options *o);

/* Makes p, which has everything of a text already, one of recordings; audio and files are room for
 * it. FTH_USAGE for options of other inputs among the groups. */
fth_err fth_recordings_take(const fth_recording_options *o, const fth_option_group *groups,
                            size_t n, int strict, fth_prepare_audio *audio,
                            fth_text_file files[FTH_N_SPLITS], fth_prepare *p);

/* Without recordings: none of the options was given. */
fth_err fth_recordings_refuse(const fth_option_group *groups, size_t n);

#endif
