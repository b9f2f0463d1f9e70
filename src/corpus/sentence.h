/* sentence.h: how a language of the built-in corpus says a meaning.
 *
 * A language is a small table: templates for the frames come from frames.def, and a function
 * says each slot. Words are added one by one; where two words meet, the language may change the
 * first ("a" + "apple" -> "an apple", "de" + "le" -> "du", "in" + "dem" -> "im"). */
#ifndef FTH_CORPUS_SENTENCE_H
#define FTH_CORPUS_SENTENCE_H

#include <stddef.h>

#include "base/error.h"
#include "corpus/meaning.h"
#include "corpus/lexicon.h"

typedef struct fth_corpus_language fth_corpus_language;

typedef struct fth_corpus_words {
    const fth_corpus_language *language;
    char text[512];
    size_t length; /* of text, without the NUL */
    size_t last;   /* where the last word begins */
    int tight;     /* the next word follows without a space */
    int broken;    /* too long, or a slot that the language does not know */
} fth_corpus_words;

/* The slots of templates: {number}, {things}, {things acc}, ... */
#define FTH_SLOTS(X)                                                                               \
    X(number)                                                                                      \
    X(other)                                                                                       \
    X(result)                                                                                      \
    X(operation)                                                                                   \
    X(who)                                                                                         \
    X(subject)                                                                                     \
    X(things)                                                                                      \
    X(place)                                                                                       \
    X(amount)                                                                                      \
    X(verb)                                                                                        \
    X(base)                                                                                        \
    X(past)                                                                                        \
    X(particle)                                                                                    \
    X(be)                                                                                          \
    X(is)                                                                                          \
    X(have)                                                                                        \
    X(will)                                                                                        \
    X(was)                                                                                         \
    X(do)                                                                                          \
    X(adjective)                                                                                   \
    X(born)                                                                                        \
    X(built)                                                                                       \
    X(time)                                                                                        \
    X(date)                                                                                        \
    X(weekday)                                                                                     \
    X(year)                                                                                        \
    X(price)                                                                                       \
    X(city)                                                                                        \
    X(dimension)                                                                                   \
    X(degrees)                                                                                     \
    X(its)

/* What may stand behind the name of a slot. */
#define FTH_SLOT_FORMS(X)                                                                          \
    X(nom) /* German nominative, also where nothing is said */                                     \
    X(acc)                                                                                         \
    X(dat)                                                                                         \
    X(label) /* a number that names a thing: "page eighty" */                                      \
    X(bare)  /* a date without its article */

typedef enum fth_corpus_slot {
#define SLOT(name) FTH_SLOT_##name,
    FTH_SLOTS(SLOT)
#undef SLOT
} fth_corpus_slot;

typedef enum fth_corpus_slot_form {
#define FORM(name) FTH_FORM_##name,
    FTH_SLOT_FORMS(FORM)
#undef FORM
} fth_corpus_slot_form;

/* Auxiliary verbs; each language has those that its templates use. */
typedef enum fth_corpus_auxiliary {
    FTH_BE,
    FTH_IS,
    FTH_HAVE,
    FTH_WILL,
    FTH_WAS,
    FTH_DO,
    FTH_AUXILIARIES
} fth_corpus_auxiliary;

struct fth_corpus_language {
    fth_corpus_language_id id;
    const char *code; /* "en" */
    const char *name; /* "English" */
    const char *auxiliary[FTH_AUXILIARIES][FTH_PERSONS];
    int half_plural; /* one and a half kilos "cost", not "costs" */
    /* Called before next is added; may change the last word. 1: next is in it now. */
    int (*meet)(fth_corpus_words *w, const char *next);
    /* Says a slot that the words' tables alone do not answer; 0 when it does not know it. */
    int (*say)(fth_corpus_words *w, const fth_corpus_meaning *m, fth_corpus_slot slot,
               fth_corpus_slot_form form);
};

extern const fth_corpus_language fth_english, fth_german, fth_french, fth_spanish;

/* NULL when there is none of that code (length bytes). */
const fth_corpus_language *fth_language_find(const char *code, size_t length);

/* Empties w, says m in the language. FTH_FAILED when a template is broken. */
fth_err fth_meaning_say(fth_corpus_words *w, const fth_corpus_language *language,
                        const fth_corpus_meaning *m);

/* A number in words, while it is put together. What does not fit is left out. */
typedef struct fth_corpus_numeral {
    char text[160];
    size_t length; /* of text, without the NUL */
} fth_corpus_numeral;

void fth_numeral_add(fth_corpus_numeral *n, const char *piece);
void fth_numeral_cut(fth_corpus_numeral *n, size_t bytes); /* from the end */

/* For languages. add begins a new word (or several), glue continues the last one, change replaces
 * the last word and says whether a space follows it. */
void fth_words_add(fth_corpus_words *w, const char *word);
void fth_words_glue(fth_corpus_words *w, const char *piece);
void fth_words_change(fth_corpus_words *w, const char *word, int tight);
int fth_words_last_is(const fth_corpus_words *w, const char *word);

#endif
