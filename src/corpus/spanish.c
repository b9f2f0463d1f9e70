/* Spanish, as in Spain: "veintiún libros", "doscientas mesas", "el tercer piso", "las siete y
 * media"; the first of a month is "el primero". */
#include "corpus/sentence.h"

#include <string.h>

/* How a number ends: "veintiuno" alone, "veintiún" and "veintiuna" before a noun. */
typedef enum ending { ALONE, BEFORE_MASCULINE, BEFORE_FEMININE } ending;

static const char *const below_thirty[] = {
    "cero",         "un",          "dos",        "tres",        "cuatro",     "cinco",
    "seis",         "siete",       "ocho",       "nueve",       "diez",       "once",
    "doce",         "trece",       "catorce",    "quince",      "dieciséis",  "diecisiete",
    "dieciocho",    "diecinueve",  "veinte",     "veintiún",    "veintidós",  "veintitrés",
    "veinticuatro", "veinticinco", "veintiséis", "veintisiete", "veintiocho", "veintinueve"};
static const char *const tens[] = {"",          "",        "",        "treinta", "cuarenta",
                                   "cincuenta", "sesenta", "setenta", "ochenta", "noventa"};
static const char *const hundreds[] = {
    "",         "cient",     "doscient",  "trescient", "cuatrocient",
    "quinient", "seiscient", "setecient", "ochocient", "novecient"};

static void below_hundred(fth_corpus_numeral *out, int n, ending e) {
    if (n % 10 == 1 && n != 11 && e != BEFORE_MASCULINE) {
        if (n > 30) {
            fth_numeral_add(out, tens[n / 10]);
            fth_numeral_add(out, " y ");
        }
        if (n == 21) fth_numeral_add(out, "veinti");
        fth_numeral_add(out, e == ALONE ? "uno" : "una");
    } else if (n < 30) {
        fth_numeral_add(out, below_thirty[n]);
    } else {
        fth_numeral_add(out, tens[n / 10]);
        if (n % 10) {
            fth_numeral_add(out, " y ");
            fth_numeral_add(out, below_thirty[n % 10]);
        }
    }
}

/* "cien" alone, "ciento" with more to come; from two hundred on the hundreds agree. */
static void below_thousand(fth_corpus_numeral *out, int n, ending e) {
    if (n == 100) {
        fth_numeral_add(out, "cien");
        return;
    }
    if (n >= 100) {
        fth_numeral_add(out, hundreds[n / 100]);
        fth_numeral_add(out, n < 200 ? "o" : e == BEFORE_FEMININE ? "as" : "os");
        if (n % 100 == 0) return;
        fth_numeral_add(out, " ");
    }
    below_hundred(out, n % 100, e);
}

/* 0 to 1,000,000. "mil" follows a number as a noun would: "veintiún mil", "doscientas mil
 * casas". */
static void cardinal(fth_corpus_numeral *out, int n, ending e) {
    if (n == 1000000) {
        fth_numeral_add(out, "un millón");
        return;
    }
    if (n >= 2000) {
        below_thousand(out, n / 1000, e == ALONE ? BEFORE_MASCULINE : e);
        fth_numeral_add(out, " ");
    }
    if (n >= 1000) fth_numeral_add(out, "mil");
    if (n >= 1000 && n % 1000) fth_numeral_add(out, " ");
    if (n < 1000 || n % 1000) below_thousand(out, n % 1000, e);
}

static void say_cardinal(fth_corpus_words *w, int n, ending e) {
    fth_corpus_numeral text = {0};
    cardinal(&text, n, e);
    fth_words_add(w, text.text);
}

static ending before(fth_corpus_gender gender) {
    return gender == FTH_FEMININE ? BEFORE_FEMININE : BEFORE_MASCULINE;
}

/* 1 to 100 before a noun: "primer", "tercer" before a masculine one; 21 is two words that agree. */
static void say_ordinal(fth_corpus_words *w, int n, fth_corpus_gender gender) {
    static const char *const units[] = {"",           "primer",       "segund",      "tercer",
                                        "cuart",      "quint",        "sext",        "séptim",
                                        "octav",      "noven",        "décim",       "undécim",
                                        "duodécim",   "decimotercer", "decimocuart", "decimoquint",
                                        "decimosext", "decimoséptim", "decimoctav",  "decimonoven"};
    static const char *const ordinal_tens[] = {"",
                                               "",
                                               "vigésim",
                                               "trigésim",
                                               "cuadragésim",
                                               "quincuagésim",
                                               "sexagésim",
                                               "septuagésim",
                                               "octogésim",
                                               "nonagésim",
                                               "centésim"};
    const char *end = gender == FTH_FEMININE ? "a" : "o";
    int rest = n < 20 ? n : n % 10;
    if (n >= 20) {
        fth_words_add(w, ordinal_tens[n / 10]);
        fth_words_glue(w, end);
    }
    if (!rest) return;
    fth_words_add(w, units[rest]);
    int shortened = gender == FTH_MASCULINE && (rest == 1 || rest == 3 || rest == 13);
    if (!shortened) fth_words_glue(w, end);
}

static void say_article(fth_corpus_words *w, const fth_corpus_np *t, fth_corpus_gender gender,
                        int plural) {
    static const char *const article[][2][2] = {
        /* gender, number */
        [FTH_DET_A] = {{"un", ""}, {"una", ""}},
        [FTH_DET_THE] = {{"el", "los"}, {"la", "las"}},
        [FTH_DET_THIS] = {{"este", "estos"}, {"esta", "estas"}},
        [FTH_DET_MY] = {{"mi", "mis"}, {"mi", "mis"}},
        [FTH_DET_ORDINAL] = {{"el", ""}, {"la", ""}},
        [FTH_DET_OR] = {{"", ""}, {"", ""}}};
    fth_words_add(w, article[t->det][gender][plural]);
    if (t->det == FTH_DET_ORDINAL) say_ordinal(w, t->n, gender);
    if (plural) say_cardinal(w, t->n, before(gender));
    if (t->det == FTH_DET_OR) {
        fth_words_add(w, "o");
        say_cardinal(w, t->n + 1, before(gender));
    }
}

static void say_np(fth_corpus_words *w, const fth_corpus_np *t) {
    const fth_corpus_noun *noun = &fth_nouns[t->noun];
    const fth_corpus_adjective *adjective =
        t->adjective >= 0 ? &fth_adjectives[t->adjective] : NULL;
    fth_corpus_gender gender = noun->in[FTH_ES].gender;
    int plural = fth_np_plural(t), first = adjective && adjective->es_before;
    say_article(w, t, gender, plural);
    if (first)
        fth_words_add(w, gender == FTH_MASCULINE && !plural ? adjective->es_before
                                                            : adjective->es[gender][plural]);
    fth_words_add(w, noun->in[FTH_ES].form[plural]);
    if (adjective && !first) fth_words_add(w, adjective->es[gender][plural]);
}

/* "medio litro", "dos litros y medio", "dos horas y media" */
static void say_amount(fth_corpus_words *w, const fth_corpus_amount *a) {
    const fth_corpus_noun *unit = &fth_units[a->unit].noun;
    fth_corpus_gender gender = unit->in[FTH_ES].gender;
    const char *half = gender == FTH_FEMININE ? "media" : "medio";
    if (a->n)
        say_cardinal(w, a->n, before(gender));
    else
        fth_words_add(w, half);
    fth_words_add(w, unit->in[FTH_ES].form[a->n > 1]);
    if (a->n && a->half) {
        fth_words_add(w, "y");
        fth_words_add(w, half);
    }
    if (a->stuff < 0) return;
    fth_words_add(w, "de");
    fth_words_add(w, fth_stuffs[a->stuff].in[FTH_ES]);
}

static void say_coins(fth_corpus_words *w, int n, const fth_corpus_noun *coin) {
    say_cardinal(w, n, before(coin->in[FTH_ES].gender));
    fth_words_add(w, coin->in[FTH_ES].form[n != 1]);
}

static void say_price(fth_corpus_words *w, const fth_corpus_price *p) {
    say_coins(w, p->amount, &fth_currencies[p->currency].unit);
    if (!p->cents) return;
    fth_words_add(w, "y");
    say_coins(w, p->cents, &fth_currencies[p->currency].cent);
}

static void say_time(fth_corpus_words *w, const fth_corpus_daytime *t) {
    fth_corpus_spoken s = fth_daytime_spoken(t);
    fth_words_add(w, s.hour == 1 ? "la" : "las");
    say_cardinal(w, s.hour, BEFORE_FEMININE);
    if (s.minutes) fth_words_add(w, s.to ? "menos" : "y");
    if (s.minutes == 30)
        fth_words_add(w, "media");
    else if (s.minutes == 15)
        fth_words_add(w, "cuarto");
    else if (s.minutes)
        say_cardinal(w, s.minutes, ALONE);
    if (!t->part) return;
    fth_words_add(w, t->hour >= 20 || t->hour == 0 ? "de la noche"
                     : t->hour >= 13               ? "de la tarde"
                     : t->hour == 12               ? "del mediodía"
                     : t->hour >= 5                ? "de la mañana"
                                                   : "de la madrugada");
}

static void say_date(fth_corpus_words *w, const fth_corpus_date *d, int bare) {
    if (!bare) fth_words_add(w, "el");
    if (d->weekday >= 0) fth_words_add(w, fth_weekdays[d->weekday].in[FTH_ES]);
    if (d->weekday >= 0 && bare) fth_words_glue(w, ",");
    if (d->day == 1)
        fth_words_add(w, "primero");
    else
        say_cardinal(w, d->day, ALONE);
    fth_words_add(w, "de");
    fth_words_add(w, fth_months[d->month - 1].in[FTH_ES]);
    if (!d->year) return;
    fth_words_add(w, "de");
    say_cardinal(w, d->year, ALONE);
}

static void say_degrees(fth_corpus_words *w, int n) {
    int size = n < 0 ? -n : n;
    say_cardinal(w, size, BEFORE_MASCULINE);
    fth_words_add(w, size == 1 ? "grado" : "grados");
    if (n < 0) fth_words_add(w, "bajo cero");
}

static int say(fth_corpus_words *w, const fth_corpus_meaning *m, fth_corpus_slot slot,
               fth_corpus_slot_form form) {
    fth_corpus_gender gender =
        m->things.noun >= 0 ? fth_nouns[m->things.noun].in[FTH_ES].gender : 0;
    switch (slot) {
    case FTH_SLOT_number: say_cardinal(w, m->number, ALONE); return 1;
    case FTH_SLOT_other: say_cardinal(w, m->other, ALONE); return 1;
    case FTH_SLOT_result: say_cardinal(w, m->result, ALONE); return 1;
    case FTH_SLOT_things: say_np(w, &m->things); return 1;
    case FTH_SLOT_place: say_np(w, &m->place); return 1;
    case FTH_SLOT_amount: say_amount(w, &m->amount); return 1;
    case FTH_SLOT_price: say_price(w, &m->price); return 1;
    case FTH_SLOT_time: say_time(w, &m->time); return 1;
    case FTH_SLOT_date: say_date(w, &m->date, form == FTH_FORM_bare); return 1;
    case FTH_SLOT_year: say_cardinal(w, m->date.year, ALONE); return 1;
    case FTH_SLOT_degrees: say_degrees(w, m->number); return 1;
    case FTH_SLOT_its:
        fth_words_add(w, fth_daytime_spoken(&m->time).hour == 1 ? "es" : "son");
        return 1;
    case FTH_SLOT_built:
        fth_words_add(w, gender == FTH_FEMININE ? "construida" : "construido");
        return 1;
    case FTH_SLOT_adjective:
        fth_words_add(w, fth_adjectives[m->adjective].es[gender][fth_np_plural(&m->things)]);
        return 1;
    default: return 0;
    }
}

/* "a" + "el" is "al", "de" + "el" is "del"; "o" before an o is "u": "siete u ocho". */
static int meet(fth_corpus_words *w, const char *next) {
    if (strcmp(next, "el") == 0 && fth_words_last_is(w, "a")) {
        fth_words_change(w, "al", 0);
        return 1;
    }
    if (strcmp(next, "el") == 0 && fth_words_last_is(w, "de")) {
        fth_words_change(w, "del", 0);
        return 1;
    }
    if (*next == 'o' && fth_words_last_is(w, "o")) fth_words_change(w, "u", 0);
    return 0;
}

const fth_corpus_language fth_spanish = {
    .id = FTH_ES,
    .code = "es",
    .name = "Spanish",
    .auxiliary = {[FTH_BE] = {"estoy", "está", "estamos", "están"},
                  [FTH_IS] = {"soy", "es", "somos", "son"},
                  [FTH_HAVE] = {"tengo", "tiene", "tenemos", "tienen"},
                  [FTH_WILL] = {"voy", "va", "vamos", "van"},
                  [FTH_WAS] = {"nací", "nació", "nacimos", "nacieron"}},
    .meet = meet,
    .say = say,
};
