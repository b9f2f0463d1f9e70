/* audio_list.h: recordings and what is said in them: a manifest, or a plain list of files.
 *
 * A manifest is a table with tabs whose first line names its columns, as fairseq's: `audio` and,
 * for training, `tgt_text`; `id` and `n_frames` are checked where they are there, others passed
 * over. audio is a file, or FILE:START:LENGTH for a part of one in samples; it stands beside the
 * manifest unless it begins with a slash. In a list every line is such a name, as seen from where
 * one is. */
#ifndef FTH_DATA_AUDIO_LIST_H
#define FTH_DATA_AUDIO_LIST_H

#include "audio/sound.h"
#include "base/error.h"

typedef struct fth_audio_list fth_audio_list;

/* One recording, valid until the next call. */
typedef struct fth_audio_row {
    fth_clip clip;    /* path NULL: the end */
    const char *text; /* what is said; "": nothing, or a list */
} fth_audio_row;

/* path "-" is standard input. */
fth_err fth_audio_list_open(const char *path, fth_audio_list **out);
void fth_audio_list_free(fth_audio_list *l);

/* FTH_BAD_INPUT with file and line: a line with too few columns, a part that is none, a number of
 * frames that is no number, no file. */
fth_err fth_audio_list_next(fth_audio_list *l, fth_audio_row *row);

/* Whether it is a manifest with a column of texts. */
bool fth_audio_list_has_texts(const fth_audio_list *l);

/* Where the newest row stands, for messages: file:line. */
const char *fth_audio_list_place(const fth_audio_list *l);

/* Rows of a list, all of which are read. */
fth_err fth_audio_list_count(const char *path, int64_t *n);

/* "FILE:START:LENGTH" in place: cuts the numbers off and gives the clip. FTH_BAD_INPUT: START and
 * LENGTH are no whole numbers, or it is an archive. */
fth_err fth_clip_parse(char *name, fth_clip *out);

#endif
