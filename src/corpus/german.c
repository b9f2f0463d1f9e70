/* German. Numbers are one word, units before tens: "einundzwanzig". Articles and adjectives agree
 * in gender, number and case; the verb stands second, the rest of it at the end. */
#include "corpus/sentence.h"

#include <string.h>

typedef enum cases { NOMINATIVE, ACCUSATIVE, DATIVE, CASES } cases;

enum { PLURAL = 3, GENDERS = 4 }; /* after masculine, feminine, neuter: a row of the tables */

/* Endings by gender and case. */
static const char *const dieser[GENDERS][CASES] = {
    {"er", "en", "em"}, {"e", "e", "er"}, {"es", "es", "em"}, {"e", "e", "en"}};
static const char *const der[GENDERS][CASES] = {
    {"der", "den", "dem"}, {"die", "die", "der"}, {"das", "das", "dem"}, {"die", "die", "den"}};
static const char *const mein[GENDERS][CASES] = {
    {"", "en", "em"}, {"e", "e", "er"}, {"", "", "em"}, {"e", "e", "en"}};

/* Endings of adjectives: after "der" and "dieser", after "ein" and "mein", after a number. */
static const char *const weak[GENDERS][CASES] = {
    {"e", "en", "en"}, {"e", "e", "en"}, {"e", "e", "en"}, {"en", "en", "en"}};
static const char *const mixed[GENDERS][CASES] = {
    {"er", "en", "en"}, {"e", "e", "en"}, {"es", "es", "en"}, {"en", "en", "en"}};
static const char *const strong_plural[CASES] = {"e", "e", "en"};

static const char *const below_twenty[] = {
    "null",     "ein",      "zwei",     "drei",     "vier",     "fünf",    "sechs",
    "sieben",   "acht",     "neun",     "zehn",     "elf",      "zwölf",   "dreizehn",
    "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
static const char *const tens[] = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                   "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

/* 1 is "ein", as in a compound. */
static void below_hundred(fth_corpus_numeral *out, int n) {
    if (n < 20) {
        fth_numeral_add(out, below_twenty[n]);
        return;
    }
    if (n % 10) {
        fth_numeral_add(out, below_twenty[n % 10]);
        fth_numeral_add(out, "und");
    }
    fth_numeral_add(out, tens[n / 10]);
}

static void below_thousand(fth_corpus_numeral *out, int n) {
    if (n >= 100) {
        fth_numeral_add(out, below_twenty[n / 100]);
        fth_numeral_add(out, "hundert");
    }
    if (n < 100 || n % 100) below_hundred(out, n % 100);
}

/* 0 to 1,000,000. A number that ends with one ends with "eins". */
static void cardinal(fth_corpus_numeral *out, int n) {
    if (n == 1000000) {
        fth_numeral_add(out, "eine Million");
        return;
    }
    if (n >= 1000) {
        below_thousand(out, n / 1000);
        fth_numeral_add(out, "tausend");
    }
    if (n < 1000 || n % 1000) below_thousand(out, n % 1000);
    if (n % 100 == 1) fth_numeral_add(out, "s");
}

static void say_cardinal(fth_corpus_words *w, int n) {
    fth_corpus_numeral text = {0};
    cardinal(&text, n);
    fth_words_add(w, text.text);
}

/* 1 to 100, with the ending of a weak adjective */
static void say_ordinal(fth_corpus_words *w, int n, fth_corpus_gender gender, cases c) {
    static const char *const odd[] = {[1] = "erst", [3] = "dritt", [7] = "siebt", [8] = "acht"};
    fth_corpus_numeral text = {0};
    if (n < 9 && odd[n])
        fth_numeral_add(&text, odd[n]);
    else if (n == 100)
        fth_numeral_add(&text, "hundertst");
    else {
        below_hundred(&text, n);
        fth_numeral_add(&text, n < 20 ? "t" : "st");
    }
    fth_words_add(w, text.text);
    fth_words_glue(w, weak[gender][c]);
}

/* 1905 neunzehnhundertfünf, 2005 zweitausendfünf */
static void say_year(fth_corpus_words *w, int year) {
    if (year >= 2000) {
        say_cardinal(w, year);
        return;
    }
    fth_corpus_numeral text = {0};
    below_hundred(&text, year / 100);
    fth_numeral_add(&text, "hundert");
    if (year % 100) below_hundred(&text, year % 100);
    if (year % 100 == 1) fth_numeral_add(&text, "s");
    fth_words_add(w, text.text);
}

/* The number and the noun of things that are counted; "ein" agrees, other numbers do not. */
static void say_count(fth_corpus_words *w, int n, const fth_corpus_noun *noun, cases c) {
    const char *const *form = noun->in[FTH_DE].form;
    if (n == 1) {
        fth_words_add(w, "ein");
        fth_words_glue(w, mein[noun->in[FTH_DE].gender][c]);
        fth_words_add(w, form[0]);
        return;
    }
    say_cardinal(w, n);
    fth_words_add(w, form[1]);
}

static void say_article(fth_corpus_words *w, fth_corpus_det det, int gender, cases c) {
    switch (det) {
    case FTH_DET_THE:
    case FTH_DET_ORDINAL: fth_words_add(w, der[gender][c]); break;
    case FTH_DET_THIS:
        fth_words_add(w, "dies");
        fth_words_glue(w, dieser[gender][c]);
        break;
    case FTH_DET_MY:
        fth_words_add(w, "mein");
        fth_words_glue(w, mein[gender][c]);
        break;
    case FTH_DET_A:
        if (gender == PLURAL) break;
        fth_words_add(w, "ein");
        fth_words_glue(w, mein[gender][c]);
        break;
    case FTH_DET_OR: break;
    }
}

static const char *adjective_ending(fth_corpus_det det, int gender, cases c) {
    switch (det) {
    case FTH_DET_THE:
    case FTH_DET_THIS:
    case FTH_DET_ORDINAL: return weak[gender][c];
    case FTH_DET_MY: return mixed[gender][c];
    default: return gender == PLURAL ? strong_plural[c] : mixed[gender][c];
    }
}

/* The dative plural ends with n, except after s: "Kindern", "Autos". */
static void say_noun(fth_corpus_words *w, const fth_corpus_noun *noun, int plural, cases c) {
    const char *word = noun->in[FTH_DE].form[plural];
    fth_words_add(w, word);
    if (plural && c == DATIVE && !strchr("ns", word[strlen(word) - 1])) fth_words_glue(w, "n");
}

static void say_np(fth_corpus_words *w, const fth_corpus_np *t, cases c) {
    const fth_corpus_noun *noun = &fth_nouns[t->noun];
    int plural = fth_np_plural(t), gender = plural ? PLURAL : (int)noun->in[FTH_DE].gender;
    say_article(w, t->det, gender, c);
    if (t->det == FTH_DET_ORDINAL) say_ordinal(w, t->n, noun->in[FTH_DE].gender, c);
    if (plural) say_cardinal(w, t->n);
    if (t->det == FTH_DET_OR) {
        fth_words_add(w, "oder");
        say_cardinal(w, t->n + 1);
    }
    if (t->adjective >= 0) {
        fth_words_add(w, fth_adjectives[t->adjective].de[1]);
        fth_words_glue(w, adjective_ending(t->det, gender, c));
    }
    say_noun(w, noun, plural, c);
}

/* "ein halber Liter", "zweieinhalb Liter" */
static void say_half(fth_corpus_words *w, int n, const fth_corpus_noun *unit, cases c) {
    fth_corpus_gender gender = unit->in[FTH_DE].gender;
    if (n) {
        fth_corpus_numeral text = {0};
        below_hundred(&text, n);
        fth_numeral_add(&text, "einhalb");
        fth_words_add(w, text.text);
    } else {
        fth_words_add(w, "ein");
        fth_words_glue(w, mein[gender][c]);
        fth_words_add(w, "halb");
        fth_words_glue(w, mixed[gender][c]);
    }
    fth_words_add(w, unit->in[FTH_DE].form[n > 0]);
}

static void say_amount(fth_corpus_words *w, const fth_corpus_amount *a, cases c) {
    const fth_corpus_noun *unit = &fth_units[a->unit].noun;
    if (a->half)
        say_half(w, a->n, unit, c);
    else
        say_count(w, a->n, unit, c);
    if (a->stuff >= 0) fth_words_add(w, fth_stuffs[a->stuff].in[FTH_DE]);
}

static void say_price(fth_corpus_words *w, const fth_corpus_price *p, cases c) {
    say_count(w, p->amount, &fth_currencies[p->currency].unit, c);
    if (!p->cents) return;
    fth_words_add(w, "und");
    say_count(w, p->cents, &fth_currencies[p->currency].cent, c);
}

/* Around the half hour German counts from it: 7:25 is "fünf vor halb acht". */
static void say_clock(fth_corpus_words *w, const fth_corpus_daytime *t,
                      const fth_corpus_spoken *s) {
    int hour = s->hour;
    if (s->minutes == 30 || s->minutes == 25) {
        if (!s->to) hour = hour % 12 + 1;
        if (s->minutes == 25) fth_words_add(w, s->to ? "fünf nach" : "fünf vor");
        fth_words_add(w, "halb");
    } else if (s->minutes == 15) {
        fth_words_add(w, s->to ? "Viertel vor" : "Viertel nach");
    } else {
        say_cardinal(w, s->minutes);
        if (t->minute % 5) fth_words_add(w, "Minuten");
        fth_words_add(w, s->to ? "vor" : "nach");
    }
    say_cardinal(w, hour);
}

static void say_time(fth_corpus_words *w, const fth_corpus_daytime *t) {
    fth_corpus_spoken s = fth_daytime_spoken(t);
    if (s.minutes) {
        say_clock(w, t, &s);
    } else {
        fth_words_add(w, below_twenty[s.hour]); /* "ein Uhr" */
        fth_words_add(w, "Uhr");
    }
    if (!t->part) return;
    fth_words_add(w, t->hour >= 22 || t->hour < 5 ? "nachts"
                     : t->hour >= 18              ? "abends"
                     : t->hour >= 13              ? "nachmittags"
                     : t->hour == 12              ? "mittags"
                     : t->hour >= 10              ? "vormittags"
                                                  : "morgens");
}

/* "der dritte März", after "am": "dritten März"; "Montag, der dritte", "Montag, dem dritten" */
static void say_date(fth_corpus_words *w, const fth_corpus_date *d, cases c) {
    if (d->weekday >= 0) {
        fth_words_add(w, fth_weekdays[d->weekday].in[FTH_DE]);
        fth_words_glue(w, ",");
    }
    if (c != DATIVE || d->weekday >= 0) fth_words_add(w, der[FTH_MASCULINE][c]);
    say_ordinal(w, d->day, FTH_MASCULINE, c);
    fth_words_add(w, fth_months[d->month - 1].in[FTH_DE]);
    if (d->year) say_year(w, d->year);
}

static void say_degrees(fth_corpus_words *w, int n) {
    if (n < 0) fth_words_add(w, "minus");
    n = n < 0 ? -n : n;
    if (n == 1)
        fth_words_add(w, "ein");
    else
        say_cardinal(w, n);
    fth_words_add(w, "Grad");
}

static int say(fth_corpus_words *w, const fth_corpus_meaning *m, fth_corpus_slot slot,
               fth_corpus_slot_form form) {
    cases c = form == FTH_FORM_acc ? ACCUSATIVE : form == FTH_FORM_dat ? DATIVE : NOMINATIVE;
    switch (slot) {
    case FTH_SLOT_number: say_cardinal(w, m->number); return 1;
    case FTH_SLOT_other: say_cardinal(w, m->other); return 1;
    case FTH_SLOT_result: say_cardinal(w, m->result); return 1;
    case FTH_SLOT_things: say_np(w, &m->things, c); return 1;
    case FTH_SLOT_place: say_np(w, &m->place, c); return 1;
    case FTH_SLOT_amount: say_amount(w, &m->amount, c); return 1;
    case FTH_SLOT_price: say_price(w, &m->price, c); return 1;
    case FTH_SLOT_time: say_time(w, &m->time); return 1;
    case FTH_SLOT_date: say_date(w, &m->date, c); return 1;
    case FTH_SLOT_year: say_year(w, m->date.year); return 1;
    case FTH_SLOT_degrees: say_degrees(w, m->number); return 1;
    case FTH_SLOT_its:
        fth_words_add(w, m->number == 1 || m->number == -1 ? "ist" : "sind");
        return 1;
    case FTH_SLOT_adjective: fth_words_add(w, fth_adjectives[m->adjective].de[0]); return 1;
    default: return 0;
    }
}

static int meet(fth_corpus_words *w, const char *next) {
    static const struct {
        const char *first, *second, *both;
    } pairs[] = {
        {"in", "dem", "im"}, {"von", "dem", "vom"}, {"zu", "dem", "zum"}, {"zu", "der", "zur"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(next, pairs[i].second) == 0 && fth_words_last_is(w, pairs[i].first)) {
            fth_words_change(w, pairs[i].both, 0);
            return 1;
        }
    return 0;
}

const fth_corpus_language fth_german = {
    .id = FTH_DE,
    .code = "de",
    .name = "German",
    .auxiliary = {[FTH_BE] = {"bin", "ist", "sind", "sind"},
                  [FTH_HAVE] = {"habe", "hat", "haben", "haben"},
                  [FTH_WILL] = {"werde", "wird", "werden", "werden"},
                  [FTH_WAS] = {"wurde", "wurde", "wurden", "wurden"}},
    .half_plural = 1,
    .meet = meet,
    .say = say,
};
