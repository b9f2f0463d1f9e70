/* French, traditional spelling: counting by twenties, "vingt et un", "quatre-vingt-dix-sept"; the s
 * of "vingts" and "cents" at the end of a number that counts, not of one that names a page. */
#include "corpus/sentence.h"

#include <string.h>

typedef enum role { COUNTS, NAMES } role; /* "quatre-vingts euros", "page quatre-vingt" */

static const char *const below_twenty[] = {"zéro",   "un",    "deux",     "trois",    "quatre",
                                           "cinq",   "six",   "sept",     "huit",     "neuf",
                                           "dix",    "onze",  "douze",    "treize",   "quatorze",
                                           "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"};
static const char *const tens[] = {
    "",          "",         "vingt",    "trente",       "quarante",
    "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt"};

/* plural: the s of "quatre-vingts" is wanted. 70 to 79 and 90 to 99 go on with ten to nineteen. */
static void below_hundred(fth_corpus_numeral *out, int n, int plural) {
    if (n < 20) {
        fth_numeral_add(out, below_twenty[n]);
        return;
    }
    int ten = n / 10, rest = n % 10;
    if (ten == 7 || ten == 9) rest += 10;
    fth_numeral_add(out, tens[ten]);
    if (n == 80 && plural) fth_numeral_add(out, "s");
    if (!rest) return;
    fth_numeral_add(out, rest % 10 == 1 && ten < 8 ? " et " : "-");
    fth_numeral_add(out, below_twenty[rest]);
}

static void below_thousand(fth_corpus_numeral *out, int n, int plural) {
    if (n >= 200) {
        fth_numeral_add(out, below_twenty[n / 100]);
        fth_numeral_add(out, " ");
    }
    if (n >= 100) {
        fth_numeral_add(out, "cent");
        if (n >= 200 && n % 100 == 0 && plural) fth_numeral_add(out, "s");
        if (n % 100 == 0) return;
        fth_numeral_add(out, " ");
    }
    below_hundred(out, n % 100, plural);
}

/* 0 to 1,000,000; "mille" never changes, and no s stands before it. */
static void cardinal(fth_corpus_numeral *out, int n, role what) {
    if (n == 1000000) {
        fth_numeral_add(out, "un million");
        return;
    }
    if (n >= 2000) {
        below_thousand(out, n / 1000, 0);
        fth_numeral_add(out, " ");
    }
    if (n >= 1000) fth_numeral_add(out, "mille");
    if (n >= 1000 && n % 1000) fth_numeral_add(out, " ");
    if (n < 1000 || n % 1000) below_thousand(out, n % 1000, what == COUNTS);
}

static void say_cardinal(fth_corpus_words *w, int n, role what) {
    fth_corpus_numeral text = {0};
    cardinal(&text, n, what);
    fth_words_add(w, text.text);
}

/* Numbers that end with "un" agree: "vingt et une tables". */
static void say_counted(fth_corpus_words *w, int n, fth_corpus_gender gender) {
    fth_corpus_numeral text = {0};
    cardinal(&text, n, COUNTS);
    int one = n % 10 == 1 && n % 100 != 11 && n % 100 != 71 && n % 100 != 91;
    if (one && gender == FTH_FEMININE) fth_numeral_add(&text, "e");
    fth_words_add(w, text.text);
}

/* 1 to 100: the number with "ième", without its final e; cinqu-, neuv-. */
static void say_ordinal(fth_corpus_words *w, int n, fth_corpus_gender gender) {
    if (n == 1) {
        fth_words_add(w, gender == FTH_FEMININE ? "première" : "premier");
        return;
    }
    fth_corpus_numeral text = {0};
    cardinal(&text, n, NAMES);
    char last = text.text[text.length - 1];
    fth_numeral_cut(&text, last == 'e' || last == 'f' ? 1 : 0);
    fth_numeral_add(&text, last == 'q' ? "u" : last == 'f' ? "v" : "");
    fth_numeral_add(&text, "ième");
    fth_words_add(w, text.text);
}

static void say_article(fth_corpus_words *w, const fth_corpus_np *t, fth_corpus_gender gender,
                        int plural) {
    static const char *const article[][3] = {
        /* masculine, feminine, plural */
        [FTH_DET_A] = {"un", "une", ""},         [FTH_DET_THE] = {"le", "la", "les"},
        [FTH_DET_THIS] = {"ce", "cette", "ces"}, [FTH_DET_MY] = {"mon", "ma", "mes"},
        [FTH_DET_ORDINAL] = {"le", "la", ""},    [FTH_DET_OR] = {"", "", ""}};
    fth_words_add(w, article[t->det][plural ? 2 : gender]);
    if (t->det == FTH_DET_ORDINAL) say_ordinal(w, t->n, gender);
    if (plural) say_counted(w, t->n, gender);
    if (t->det == FTH_DET_OR) {
        fth_words_add(w, "ou");
        say_counted(w, t->n + 1, gender);
    }
}

static int vowel_ahead(const char *next);

static void say_np(fth_corpus_words *w, const fth_corpus_np *t) {
    const fth_corpus_noun *noun = &fth_nouns[t->noun];
    const fth_corpus_adjective *adjective =
        t->adjective >= 0 ? &fth_adjectives[t->adjective] : NULL;
    fth_corpus_gender gender = noun->in[FTH_FR].gender;
    int plural = fth_np_plural(t);
    const char *word = noun->in[FTH_FR].form[plural];
    say_article(w, t, gender, plural);
    if (adjective && adjective->fr_before) {
        int special =
            adjective->fr_vowel && !plural && gender == FTH_MASCULINE && vowel_ahead(word);
        fth_words_add(w, special ? adjective->fr_vowel : adjective->fr[gender][plural]);
    }
    fth_words_add(w, word);
    if (adjective && !adjective->fr_before) fth_words_add(w, adjective->fr[gender][plural]);
}

/* "un demi-litre", "deux litres et demi", "deux heures et demie"; the plural begins with two. */
static void say_amount(fth_corpus_words *w, const fth_corpus_amount *a) {
    const fth_corpus_noun *unit = &fth_units[a->unit].noun;
    fth_corpus_gender gender = unit->in[FTH_FR].gender;
    if (a->n) {
        say_counted(w, a->n, gender);
        fth_words_add(w, unit->in[FTH_FR].form[a->n > 1]);
        if (a->half) fth_words_add(w, gender == FTH_FEMININE ? "et demie" : "et demi");
    } else {
        fth_words_add(w, gender == FTH_FEMININE ? "une demi-" : "un demi-");
        fth_words_glue(w, unit->in[FTH_FR].form[0]);
    }
    if (a->stuff < 0) return;
    fth_words_add(w, "de");
    fth_words_add(w, fth_stuffs[a->stuff].in[FTH_FR]);
}

static void say_coins(fth_corpus_words *w, int n, const fth_corpus_noun *coin) {
    say_counted(w, n, coin->in[FTH_FR].gender);
    fth_words_add(w, coin->in[FTH_FR].form[n > 1]);
}

static void say_price(fth_corpus_words *w, const fth_corpus_price *p) {
    say_coins(w, p->amount, &fth_currencies[p->currency].unit);
    if (!p->cents) return;
    fth_words_add(w, "et");
    say_coins(w, p->cents, &fth_currencies[p->currency].cent);
}

/* Twelve o'clock is "midi" or "minuit", both masculine: "midi et demi". */
static void say_time(fth_corpus_words *w, const fth_corpus_daytime *t) {
    fth_corpus_spoken s = fth_daytime_spoken(t);
    int twelve = s.hour == 12;
    if (twelve) {
        fth_words_add(w, s.of_day ? "midi" : "minuit");
    } else {
        say_counted(w, s.hour, FTH_FEMININE);
        fth_words_add(w, s.hour == 1 ? "heure" : "heures");
    }
    if (s.to) fth_words_add(w, "moins");
    if (s.minutes == 30)
        fth_words_add(w, twelve ? "et demi" : "et demie");
    else if (s.minutes == 15)
        fth_words_add(w, s.to ? "le quart" : "et quart");
    else if (s.minutes)
        say_cardinal(w, s.minutes, COUNTS);
    if (!t->part || twelve) return;
    fth_words_add(w, t->hour >= 18 ? "du soir" : t->hour >= 12 ? "de l'après-midi" : "du matin");
}

static void say_date(fth_corpus_words *w, const fth_corpus_date *d) {
    fth_words_add(w, "le");
    if (d->weekday >= 0) fth_words_add(w, fth_weekdays[d->weekday].in[FTH_FR]);
    if (d->day == 1)
        fth_words_add(w, "premier");
    else
        say_cardinal(w, d->day, NAMES);
    fth_words_add(w, fth_months[d->month - 1].in[FTH_FR]);
    if (d->year) say_cardinal(w, d->year, NAMES);
}

static void say_degrees(fth_corpus_words *w, int n) {
    if (n < 0) fth_words_add(w, "moins");
    n = n < 0 ? -n : n;
    say_counted(w, n, FTH_MASCULINE);
    fth_words_add(w, n > 1 ? "degrés" : "degré");
}

static void say_born(fth_corpus_words *w, const fth_corpus_who *who) {
    static const char *const born[2][2] = {{"né", "nés"}, {"née", "nées"}};
    int plural = who->person == FTH_WE || who->person == FTH_THEY;
    fth_words_add(w, born[who->gender == FTH_FEMININE][plural]);
}

static int say(fth_corpus_words *w, const fth_corpus_meaning *m, fth_corpus_slot slot,
               fth_corpus_slot_form form) {
    role what = form == FTH_FORM_label ? NAMES : COUNTS;
    fth_corpus_gender gender =
        m->things.noun >= 0 ? fth_nouns[m->things.noun].in[FTH_FR].gender : 0;
    switch (slot) {
    case FTH_SLOT_number: say_cardinal(w, m->number, what); return 1;
    case FTH_SLOT_other: say_cardinal(w, m->other, what); return 1;
    case FTH_SLOT_result: say_cardinal(w, m->result, what); return 1;
    case FTH_SLOT_things: say_np(w, &m->things); return 1;
    case FTH_SLOT_place: say_np(w, &m->place); return 1;
    case FTH_SLOT_amount: say_amount(w, &m->amount); return 1;
    case FTH_SLOT_price: say_price(w, &m->price); return 1;
    case FTH_SLOT_time: say_time(w, &m->time); return 1;
    case FTH_SLOT_date: say_date(w, &m->date); return 1;
    case FTH_SLOT_year: say_cardinal(w, m->date.year, NAMES); return 1;
    case FTH_SLOT_degrees: say_degrees(w, m->number); return 1;
    case FTH_SLOT_born: say_born(w, &fth_whos[m->who]); return 1;
    case FTH_SLOT_built:
        fth_words_add(w, gender == FTH_FEMININE ? "construite" : "construit");
        return 1;
    case FTH_SLOT_adjective:
        fth_words_add(w, fth_adjectives[m->adjective].fr[gender][fth_np_plural(&m->things)]);
        return 1;
    default: return 0;
    }
}

/* Does the word begin with a vowel or a silent h? The forms
 * of "huit", "onze" and "haut" count as consonants. */
static int vowel_ahead(const char *next) {
    static const char *const no[] = {"huit", "onz", "haut"};
    static const char *const yes[] = {"a", "e", "i", "o", "u", "h", "à",
                                      "â", "é", "è", "ê", "î", "ô", "œ"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (strncmp(next, no[i], strlen(no[i])) == 0) return 0;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strncmp(next, yes[i], strlen(yes[i])) == 0) return 1;
    return 0;
}

static int meet(fth_corpus_words *w, const char *next) {
    static const struct {
        const char *word, *article, *both;
    } article[] = {{"de", "le", "du"}, {"de", "les", "des"}, {"à", "le", "au"}};
    static const struct {
        const char *word, *before_vowel;
        int tight;
    } vowel[] = {{"je", "j'", 1},    {"le", "l'", 1},   {"la", "l'", 1},  {"de", "d'", 1},
                 {"du", "de l'", 1}, {"au", "à l'", 1}, {"ce", "cet", 0}, {"ma", "mon", 0}};
    for (size_t i = 0; i < sizeof article / sizeof *article; i++)
        if (strcmp(next, article[i].article) == 0 && fth_words_last_is(w, article[i].word)) {
            fth_words_change(w, article[i].both, 0);
            return 1;
        }
    if (!vowel_ahead(next)) return 0;
    for (size_t i = 0; i < sizeof vowel / sizeof *vowel; i++)
        if (fth_words_last_is(w, vowel[i].word)) {
            fth_words_change(w, vowel[i].before_vowel, vowel[i].tight);
            break;
        }
    return 0;
}

const fth_corpus_language fth_french = {
    .id = FTH_FR,
    .code = "fr",
    .name = "French",
    .auxiliary = {[FTH_BE] = {"suis", "est", "sommes", "sont"},
                  [FTH_HAVE] = {"ai", "a", "avons", "ont"},
                  [FTH_WILL] = {"vais", "va", "allons", "vont"}},
    .meet = meet,
    .say = say,
};
