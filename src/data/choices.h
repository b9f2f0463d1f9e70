/* choices.h: questions with a few endings, one of which is right, from a file of JSON lines.
 *
 * The keys of the field's files are presets (HellaSwag, PIQA, Winogrande, StoryCloze, OpenBookQA);
 * any others can be named. A key may be a path, "question.stem", and go through lists. */
#ifndef FTH_DATA_CHOICES_H
#define FTH_DATA_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct fth_choice {
    const char *prompt; /* what is given, without white space at its ends */
    const char *ending; /* what is scored, with the blank that parts it from the prompt */
    int64_t bytes;      /* of the ending, without that blank */
} fth_choice;

typedef struct fth_question {
    const fth_choice *choices; /* [n] */
    int32_t n, answer;         /* answer: which of them is right */
    int64_t line;              /* of the file, from 1 */
} fth_question;

/* A zeroed set may be freed. */
typedef struct fth_questions {
    fth_arena arena;
    fth_question *items; /* [n] */
    int64_t n, room;
    const char *form; /* the name of the preset, or "keys" */
} fth_questions;

typedef struct fth_choice_form {
    const char *name;
    const char *prompt, *choices; /* keys with commas in between */
    const char *answer;           /* the key of a number, or of a letter: A is the first */
    int32_t first;                /* the number of the first choice */
    bool gap;                     /* a choice stands for the _ of the prompt, and what follows it is
                                     scored */
} fth_choice_form;

/* The presets, ended by one without a name. */
const fth_choice_form *fth_choice_forms(void);

/* Reads a file. form: a preset, or keys of one's own; NULL: the first preset whose keys are all in
 * the first line. FTH_BAD_INPUT names file and line, key, value and rule. */
fth_err fth_questions_read(const char *path, const fth_choice_form *form, fth_questions *out);
void fth_questions_fini(fth_questions *q);

#endif
