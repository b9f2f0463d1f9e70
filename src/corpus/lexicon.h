/* lexicon.h: the words of the built-in corpus, one row for each in all four languages.
 *
 * A row means the same in all languages, and no two rows share a word in one language and not in
 * another: otherwise a source phrase could have two translations. */
#ifndef FTH_CORPUS_LEXICON_H
#define FTH_CORPUS_LEXICON_H

typedef enum fth_corpus_language_id {
    FTH_EN,
    FTH_DE,
    FTH_FR,
    FTH_ES,
    FTH_LANGUAGES
} fth_corpus_language_id;

typedef enum fth_corpus_gender { FTH_MASCULINE, FTH_FEMININE, FTH_NEUTER } fth_corpus_gender;

typedef enum fth_corpus_person { FTH_I, FTH_HE, FTH_WE, FTH_THEY, FTH_PERSONS } fth_corpus_person;

/* What a noun is good for: the draws ask for these. */
typedef enum fth_corpus_noun_kind {
    FTH_NOUN_GOODS = 1 << 0,
    FTH_NOUN_LARGE = 1 << 1, /* goods that cost thousands */
    FTH_NOUN_FOOD = 1 << 2,
    FTH_NOUN_ANIMAL = 1 << 3,
    FTH_NOUN_PERSON = 1 << 4,
    FTH_NOUN_BUILDING = 1 << 5,
    FTH_NOUN_GOAL = 1 << 6, /* a place to go to */
    FTH_NOUN_HOME = 1 << 7,
    FTH_NOUN_WORK = 1 << 8,
    FTH_NOUN_ROOM = 1 << 9,  /* things and people are in it */
    FTH_NOUN_TOWN = 1 << 10, /* buildings are in it */
    FTH_NOUN_PARK = 1 << 11, /* trees and animals are in it */
    FTH_NOUN_IN_PARK = 1 << 12,
    FTH_NOUN_LONG = 1 << 13,
    FTH_NOUN_HIGH = 1 << 14,
    FTH_NOUN_HEAVY = 1 << 15,
    FTH_NOUN_EVENT = 1 << 16,
    FTH_NOUN_RIDE = 1 << 17,
    FTH_NOUN_OPENS = 1 << 18,
    FTH_NOUN_FLOOR = 1 << 19,
    FTH_NOUN_IN_ROOM = 1 << 20,
    FTH_NOUN_COLOURED = 1 << 21,
    FTH_NOUN_DAYS = 1 << 22, /* an event that may last for days */
    FTH_NOUN_KIN = 1 << 23,  /* people that one calls one's own */
    FTH_NOUN_HELD = 1 << 24  /* an event that has a day */
} fth_corpus_noun_kind;

typedef struct fth_corpus_noun {
    unsigned kinds;
    struct {
        fth_corpus_gender gender;
        const char *form[2]; /* one, several */
    } in[FTH_LANGUAGES];
} fth_corpus_noun;

typedef struct fth_corpus_adjective {
    unsigned kinds; /* of the nouns that it goes with */
    const char *en;
    const char *de[2];     /* predicate, stem before an ending */
    const char *fr[2][2];  /* gender, number */
    const char *fr_vowel;  /* masculine singular before a vowel; NULL: no special form */
    int fr_before;         /* stands before its noun */
    const char *es[2][2];  /* gender, number */
    const char *es_before; /* masculine singular before its noun; NULL: it stands behind */
} fth_corpus_adjective;

typedef struct fth_corpus_who {
    const char *in[FTH_LANGUAGES]; /* "" where the verb alone says it */
    fth_corpus_person person;
    fth_corpus_gender gender;
    int age[2]; /* from, to */
} fth_corpus_who;

typedef enum fth_corpus_verb_kind {
    FTH_VERB_TAKE = 1 << 0,  /* takes an object in every tense */
    FTH_VERB_HAVE = 1 << 1,  /* takes an object, present only */
    FTH_VERB_TRADE = 1 << 2, /* takes an amount of something */
    FTH_VERB_WITH = 1 << 3,
    FTH_VERB_LIVE = 1 << 4,
    FTH_VERB_WORK = 1 << 5,
    FTH_VERB_DAILY = 1 << 6,
    FTH_VERB_EVENT = 1 << 7,
    FTH_VERB_RIDE = 1 << 8,
    FTH_VERB_OPENS = 1 << 9,
    FTH_VERB_WEIGH = 1 << 10,
    FTH_VERB_LAST = 1 << 11,
    FTH_VERB_COST = 1 << 12,
    FTH_VERB_SET_OUT = 1 << 13,
    FTH_VERB_SLEEP = 1 << 14
} fth_corpus_verb_kind;

typedef struct fth_corpus_verb {
    unsigned kinds;
    struct {
        const char *now[FTH_PERSONS];
        const char *past[FTH_PERSONS]; /* German and French: the participle; NULL: not used */
        const char *base;
        const char *particle; /* German: at the end of the sentence */
    } in[FTH_LANGUAGES];
} fth_corpus_verb;

typedef enum fth_corpus_unit_kind {
    FTH_UNIT_KILOMETRE = 1 << 0,
    FTH_UNIT_METRE = 1 << 1,
    FTH_UNIT_CENTIMETRE = 1 << 2,
    FTH_UNIT_KILO = 1 << 3,
    FTH_UNIT_GRAM = 1 << 4,
    FTH_UNIT_LITRE = 1 << 5,
    FTH_UNIT_BOTTLE = 1 << 6,
    FTH_UNIT_GLASS = 1 << 7,
    FTH_UNIT_CUP = 1 << 8,
    FTH_UNIT_MINUTE = 1 << 9,
    FTH_UNIT_HOUR = 1 << 10,
    FTH_UNIT_DAY = 1 << 11, /* and week, month */
    FTH_UNIT_YEAR = 1 << 12,
    FTH_UNIT_HALVES = 1 << 13,   /* "half a kilo", "two and a half kilos" */
    FTH_UNIT_CONTAINER = 1 << 14 /* English says "a bottle" but "one kilo" */
} fth_corpus_unit_kind;

typedef struct fth_corpus_unit {
    unsigned kinds;
    fth_corpus_noun noun;
} fth_corpus_unit;

typedef struct fth_corpus_stuff {
    unsigned kinds; /* of units */
    const char *in[FTH_LANGUAGES];
} fth_corpus_stuff;

typedef struct fth_corpus_currency {
    fth_corpus_noun unit, cent;
} fth_corpus_currency;

typedef struct fth_corpus_word {
    const char *in[FTH_LANGUAGES];
} fth_corpus_word;

/* Each table with the number of its rows. */
extern const fth_corpus_noun fth_nouns[];
extern const int fth_n_nouns;
extern const fth_corpus_adjective fth_adjectives[];
extern const int fth_n_adjectives;
extern const fth_corpus_who fth_whos[];
extern const int fth_n_whos;
extern const fth_corpus_verb fth_verbs[];
extern const int fth_n_verbs;
extern const fth_corpus_unit fth_units[];
extern const int fth_n_units;
extern const fth_corpus_stuff fth_stuffs[];
extern const int fth_n_stuffs;
extern const fth_corpus_currency fth_currencies[];
extern const int fth_n_currencies;
extern const fth_corpus_word fth_cities[];
extern const int fth_n_cities;
extern const fth_corpus_word fth_dimensions[]; /* long, wide, high */
extern const fth_corpus_word fth_operations[]; /* plus, minus, times */
extern const fth_corpus_word fth_weekdays[];   /* [7] from Monday */
extern const fth_corpus_word fth_months[];     /* [12] */

#endif
