/* British English: "one hundred and one", "half past seven", "the third of March". */
#include "corpus/sentence.h"

#include <string.h>

static const char *const below_twenty[] = {
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                   "fifty", "sixty", "seventy", "eighty", "ninety"};

static void below_hundred(fth_corpus_numeral *out, int n) {
    if (n < 20) {
        fth_numeral_add(out, below_twenty[n]);
        return;
    }
    fth_numeral_add(out, tens[n / 10]);
    if (n % 10) {
        fth_numeral_add(out, "-");
        fth_numeral_add(out, below_twenty[n % 10]);
    }
}

static void below_thousand(fth_corpus_numeral *out, int n) {
    if (n >= 100) {
        fth_numeral_add(out, below_twenty[n / 100]);
        fth_numeral_add(out, " hundred");
        if (n % 100) fth_numeral_add(out, " and ");
    }
    if (n < 100 || n % 100) below_hundred(out, n % 100);
}

/* 0 to 1,000,000 */
static void cardinal(fth_corpus_numeral *out, int n) {
    if (n == 1000000) {
        fth_numeral_add(out, "one million");
        return;
    }
    if (n >= 1000) {
        below_thousand(out, n / 1000);
        fth_numeral_add(out, " thousand");
        n %= 1000;
        if (!n) return;
        fth_numeral_add(out, n < 100 ? " and " : " ");
    }
    below_thousand(out, n);
}

/* The ordinal of a number differs from it in the last word only. */
static void ordinal(fth_corpus_numeral *out, int n) {
    static const struct {
        const char *number, *ordinal;
    } odd[] = {{"one", "first"},    {"two", "second"}, {"three", "third"},   {"five", "fifth"},
               {"eight", "eighth"}, {"nine", "ninth"}, {"twelve", "twelfth"}};
    cardinal(out, n);
    const char *last = out->text + out->length;
    while (last > out->text && last[-1] != ' ' && last[-1] != '-') last--;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (strcmp(last, odd[i].number) == 0) {
            fth_numeral_cut(out, strlen(last));
            fth_numeral_add(out, odd[i].ordinal);
            return;
        }
    int ends_with_y = out->text[out->length - 1] == 'y';
    fth_numeral_cut(out, ends_with_y ? 1 : 0);
    fth_numeral_add(out, ends_with_y ? "ieth" : "th");
}

static void say_cardinal(fth_corpus_words *w, int n) {
    fth_corpus_numeral text = {0};
    cardinal(&text, n);
    fth_words_add(w, text.text);
}

static void say_ordinal(fth_corpus_words *w, int n) {
    fth_corpus_numeral text = {0};
    ordinal(&text, n);
    fth_words_add(w, text.text);
}

/* 1905 nineteen oh five, 2000 two thousand, 2005 two thousand and five, 2015 twenty fifteen */
static void say_year(fth_corpus_words *w, int year) {
    if (year / 10 == 200) {
        say_cardinal(w, year);
        return;
    }
    say_cardinal(w, year / 100);
    if (year % 100 == 0) {
        fth_words_add(w, "hundred");
        return;
    }
    if (year % 100 < 10) fth_words_add(w, "oh");
    say_cardinal(w, year % 100);
}

static void say_np(fth_corpus_words *w, const fth_corpus_np *t) {
    static const char *const article[][2] = {[FTH_DET_A] = {"a", ""},
                                             [FTH_DET_THE] = {"the", "the"},
                                             [FTH_DET_THIS] = {"this", "these"},
                                             [FTH_DET_MY] = {"my", "my"},
                                             [FTH_DET_ORDINAL] = {"the", ""},
                                             [FTH_DET_OR] = {"", ""}};
    int plural = fth_np_plural(t);
    fth_words_add(w, article[t->det][plural]);
    if (t->det == FTH_DET_ORDINAL) say_ordinal(w, t->n);
    if (plural) say_cardinal(w, t->n);
    if (t->det == FTH_DET_OR) {
        fth_words_add(w, "or");
        say_cardinal(w, t->n + 1);
    }
    if (t->adjective >= 0) fth_words_add(w, fth_adjectives[t->adjective].en);
    fth_words_add(w, fth_nouns[t->noun].in[FTH_EN].form[plural]);
}

static void say_amount(fth_corpus_words *w, const fth_corpus_amount *a) {
    const fth_corpus_unit *unit = &fth_units[a->unit];
    if (!a->n)
        fth_words_add(w, "half a");
    else if (a->n == 1 && !a->half && unit->kinds & FTH_UNIT_CONTAINER)
        fth_words_add(w, "a");
    else
        say_cardinal(w, a->n);
    if (a->n && a->half) fth_words_add(w, "and a half");
    fth_words_add(w, unit->noun.in[FTH_EN].form[a->n > 1 || (a->n && a->half)]);
    if (a->stuff < 0) return;
    fth_words_add(w, "of");
    fth_words_add(w, fth_stuffs[a->stuff].in[FTH_EN]);
}

static void say_coins(fth_corpus_words *w, int n, const fth_corpus_noun *coin) {
    say_cardinal(w, n);
    fth_words_add(w, coin->in[FTH_EN].form[n != 1]);
}

static void say_price(fth_corpus_words *w, const fth_corpus_price *p) {
    say_coins(w, p->amount, &fth_currencies[p->currency].unit);
    if (!p->cents) return;
    fth_words_add(w, "and");
    say_coins(w, p->cents, &fth_currencies[p->currency].cent);
}

static void say_minutes(fth_corpus_words *w, const fth_corpus_spoken *s) {
    if (s->minutes == 30)
        fth_words_add(w, "half");
    else if (s->minutes == 15)
        fth_words_add(w, "quarter");
    else
        say_cardinal(w, s->minutes);
    if (s->minutes % 5) fth_words_add(w, "minutes");
    fth_words_add(w, s->to ? "to" : "past");
}

static void say_time(fth_corpus_words *w, const fth_corpus_daytime *t) {
    fth_corpus_spoken s = fth_daytime_spoken(t);
    if (t->part && !s.minutes && s.hour == 12) {
        fth_words_add(w, s.of_day ? "noon" : "midnight");
        return;
    }
    if (s.minutes) say_minutes(w, &s);
    say_cardinal(w, s.hour);
    if (!s.minutes) fth_words_add(w, "o'clock");
    if (!t->part) return;
    fth_words_add(w, t->hour >= 22 || t->hour == 0 ? "at night"
                     : t->hour >= 18               ? "in the evening"
                     : t->hour >= 12               ? "in the afternoon"
                                                   : "in the morning");
}

static void say_date(fth_corpus_words *w, const fth_corpus_date *d) {
    if (d->weekday >= 0) {
        fth_words_add(w, fth_weekdays[d->weekday].in[FTH_EN]);
        fth_words_glue(w, ",");
    }
    fth_words_add(w, "the");
    say_ordinal(w, d->day);
    fth_words_add(w, "of");
    fth_words_add(w, fth_months[d->month - 1].in[FTH_EN]);
    if (d->year) say_year(w, d->year);
}

static void say_degrees(fth_corpus_words *w, int n) {
    if (n < 0) fth_words_add(w, "minus");
    n = n < 0 ? -n : n;
    say_cardinal(w, n);
    fth_words_add(w, n == 1 ? "degree" : "degrees");
}

static int say(fth_corpus_words *w, const fth_corpus_meaning *m, fth_corpus_slot slot,
               fth_corpus_slot_form form) {
    (void)form;
    switch (slot) {
    case FTH_SLOT_number: say_cardinal(w, m->number); return 1;
    case FTH_SLOT_other: say_cardinal(w, m->other); return 1;
    case FTH_SLOT_result: say_cardinal(w, m->result); return 1;
    case FTH_SLOT_things: say_np(w, &m->things); return 1;
    case FTH_SLOT_place: say_np(w, &m->place); return 1;
    case FTH_SLOT_amount: say_amount(w, &m->amount); return 1;
    case FTH_SLOT_price: say_price(w, &m->price); return 1;
    case FTH_SLOT_time: say_time(w, &m->time); return 1;
    case FTH_SLOT_date: say_date(w, &m->date); return 1;
    case FTH_SLOT_year: say_year(w, m->date.year); return 1;
    case FTH_SLOT_degrees: say_degrees(w, m->number); return 1;
    case FTH_SLOT_adjective: fth_words_add(w, fth_adjectives[m->adjective].en); return 1;
    default: return 0;
    }
}

/* "a" becomes "an" before a vowel; of the words with a silent h only "hour" follows an "a" here. */
static int meet(fth_corpus_words *w, const char *next) {
    int vowel = strchr("aeiou", *next) || strncmp(next, "hour", 4) == 0;
    if (vowel && fth_words_last_is(w, "a")) fth_words_change(w, "an", 0);
    return 0;
}

const fth_corpus_language fth_english = {
    .id = FTH_EN,
    .code = "en",
    .name = "English",
    .auxiliary = {[FTH_BE] = {"am", "is", "are", "are"},
                  [FTH_WAS] = {"was", "was", "were", "were"},
                  [FTH_DO] = {"do", "does", "do", "do"}},
    .half_plural = 1,
    .meet = meet,
    .say = say,
};
