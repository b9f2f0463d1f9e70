/* meaning.h: what a phrase of the built-in corpus means, before any language says it.
 *
 * A meaning is a frame (a row of frames.def) and what fills its slots. Words are rows of the
 * tables of lexicon.h, -1 where there is none. */
#ifndef FTH_CORPUS_MEANING_H
#define FTH_CORPUS_MEANING_H

#include "base/philox.h"

typedef enum fth_corpus_frame {
#define FRAME(id, draw, simple, full, en, de, fr, es) FTH_FRAME_##id,
#include "corpus/frames.def"
#undef FRAME
    FTH_FRAMES
} fth_corpus_frame;

/* Things, counted or pointed at. n is their number; with an ordinal, which of them. */
typedef enum fth_corpus_det {
    FTH_DET_A,       /* a book, three books */
    FTH_DET_THE,     /* the book, the three books */
    FTH_DET_THIS,    /* this book, these three books */
    FTH_DET_MY,      /* my book, my three books */
    FTH_DET_ORDINAL, /* the third book */
    FTH_DET_OR       /* seven or eight books: n or n + 1 */
} fth_corpus_det;

typedef struct fth_corpus_np {
    int noun, adjective;
    fth_corpus_det det;
    int n;
} fth_corpus_np;

/* hour 0 to 23. With part the phrase says "in the morning" and so on; without it the hour is one of
 * a dial and never points at twelve, which French calls noon or midnight. */
typedef struct fth_corpus_daytime {
    int hour, minute, part;
} fth_corpus_daytime;

typedef struct fth_corpus_date {
    int weekday; /* 0 Monday to 6 Sunday, -1: not said */
    int day, month;
    int year; /* 0: not said */
} fth_corpus_date;

typedef struct fth_corpus_price {
    int currency, amount, cents; /* cents 0: not said */
} fth_corpus_price;

/* n units, or n and a half; n = 0 with half is "half a". */
typedef struct fth_corpus_amount {
    int unit, n, half;
    int stuff; /* of what, or -1 */
} fth_corpus_amount;

typedef enum fth_corpus_subject {
    FTH_SUBJECT_WHO,
    FTH_SUBJECT_THINGS,
    FTH_SUBJECT_AMOUNT
} fth_corpus_subject;

typedef struct fth_corpus_meaning {
    fth_corpus_frame frame;
    fth_corpus_subject subject; /* what the verb agrees with */
    int who, verb, adjective;   /* adjective: the predicate, "is small" */
    int city, dimension, operation;
    int number, other, result;
    fth_corpus_np things, place;
    fth_corpus_daytime time;
    fth_corpus_date date;
    fth_corpus_price price;
    fth_corpus_amount amount;
} fth_corpus_meaning;

typedef enum fth_corpus_level { FTH_LEVEL_SIMPLE, FTH_LEVEL_FULL } fth_corpus_level;

/* A meaning with nothing said. */
fth_corpus_meaning fth_meaning_none(void);

/* Draws one: a frame by the weights of the level, then its slots. */
fth_corpus_meaning fth_meaning_draw(fth_rng *r, fth_corpus_level level);

/* The day of the week of a date of the Gregorian calendar: 0 Monday to 6 Sunday. */
int fth_weekday(int day, int month, int year);

int fth_np_plural(const fth_corpus_np *t);

/* The hour and the minutes that a speaker names: 7:40 is twenty to eight. */
typedef struct fth_corpus_spoken {
    int hour;    /* 1 to 12 */
    int minutes; /* 0 to 30 */
    int to;      /* the minutes are missing until the hour */
    int of_day;  /* the hour named, 0 to 23: 0 is midnight, 12 noon */
} fth_corpus_spoken;

fth_corpus_spoken fth_daytime_spoken(const fth_corpus_daytime *t);

#endif
