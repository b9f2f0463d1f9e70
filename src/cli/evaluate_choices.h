/* evaluate_choices.h: the part of fathom evaluate that answers questions by choosing an ending. */
#ifndef FTH_CLI_EVALUATE_CHOICES_H
#define FTH_CLI_EVALUATE_CHOICES_H

#include "decode/stepper.h"
#include "base/options.h"
#include "model/model.h"

#define CHOICES_OPTIONS(X)                                                                         \
    X(STR, choices, "", FTH_SHOWN_AS("FILE"),                                                      \
      "JSON lines: questions whose endings the model chooses from, instead of a data set")         \
    X(I64, shots, "0", FTH_RANGE(0, 1000),                                                         \
      "answered questions of --examples before each question (dec models)")                        \
    X(STR, examples, "", FTH_SHOWN_AS("FILE"), "JSON lines that --shots draws from")               \
    X(I64, seed, "1", FTH_MIN(0), "which of the examples are drawn")                               \
    X(CHOICE, form, "auto",                                                                        \
      FTH_CHOICES("auto|hellaswag|piqa|winogrande|storycloze|storycloze-hf|openbookqa|"            \
                  "openbookqa-hf|plain"),                                                          \
      "whose keys the file has; auto: by its first line")                                          \
    X(STR, prompt_key, "", FTH_SHOWN_AS("A,B"), "keys of the prompt, in place of the form's")      \
    X(STR, choice_key, "", FTH_SHOWN_AS("A,B"), "keys of the endings, or of a list of them")       \
    X(STR, answer_key, "", FTH_SHOWN_AS("KEY"), "key of the right one's letter or number")         \
    X(CHOICE, first_answer, "auto", FTH_CHOICES("auto|0|1"),                                       \
      "the number of the first ending; auto: the form's")                                          \
    X(STR, write_choices, "", FTH_SHOWN_AS("FILE"),                                                \
      "also write each question's log-probabilities, a JSON line each")
FTH_OPTIONS(fth_choices_options, "choices", CHOICES_OPTIONS)

/* A model that lies on a device; everything is borrowed. */
typedef struct fth_evaluated {
    const char *folder;
    const fth_model *model;
    fth_device *device;
    const fth_arenas *arenas;
} fth_evaluated;

/* Prints the result, as JSON or in words. max_tokens: cache rows of a batch. */
fth_err fth_evaluate_choices(const fth_evaluated *m, const fth_choices_options *o,
                             const fth_option_group *groups, size_t n_groups, int64_t max_tokens,
                             bool json);

#endif
