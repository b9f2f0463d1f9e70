/* Draws meanings. What goes with what (trees stand in gardens, cars cost thousands) is decided
 * here; how it is said is the languages' business. */
#include "corpus/meaning.h"

#include <string.h>

#include "corpus/lexicon.h"

typedef struct drawing {
    fth_rng *r;
    fth_corpus_level level;
    fth_corpus_meaning *m;
} drawing;

fth_corpus_meaning fth_meaning_none(void) {
    fth_corpus_meaning m;
    memset(&m, 0, sizeof m);
    m.who = m.verb = m.adjective = m.city = m.dimension = m.operation = -1;
    m.things.noun = m.things.adjective = m.place.noun = m.place.adjective = -1;
    m.date.weekday = -1;
    m.amount.unit = m.amount.stuff = m.price.currency = -1;
    return m;
}

int fth_np_plural(const fth_corpus_np *t) {
    return t->det == FTH_DET_OR || (t->det != FTH_DET_ORDINAL && t->n != 1);
}

fth_corpus_spoken fth_daytime_spoken(const fth_corpus_daytime *t) {
    fth_corpus_spoken s = {.minutes = t->minute, .to = t->minute > 30};
    if (s.to) s.minutes = 60 - t->minute;
    s.of_day = (t->hour + s.to) % 24;
    s.hour = s.of_day % 12 ? s.of_day % 12 : 12;
    return s;
}

/* Sakamoto's rule: January and February count with the year before. */
int fth_weekday(int day, int month, int year) {
    static const int shift[12] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
    if (month < 3) year--;
    int sunday_first = (year + year / 4 - year / 100 + year / 400 + shift[month - 1] + day) % 7;
    return (sunday_first + 6) % 7;
}

/* ---- small dice ---- */

static int between(const drawing *d, int low, int high) {
    unsigned count = (unsigned)(high - low) + 1;
    return low + (int)fth_rng_below(d->r, count);
}

static int chance(const drawing *d, int percent) {
    return between(d, 0, 99) < percent;
}

/* Several nouns after 101, 201, ... are a matter of dispute in German ("hundertein", "hunderteins"
 * Bücher), so nothing is counted with them. */
static int countable(int n) {
    return n < 100 || n % 100 != 1;
}

static int count_between(const drawing *d, int low, int high) {
    int n;
    do n = between(d, low, high);
    while (!countable(n));
    return n;
}

/* ---- words ---- */

/* A row with one of these kinds; kinds is the first field of every table that is drawn from.
 * -1 when there is no such row. */
static int pick(const drawing *d, const void *table, size_t row_size, int rows, unsigned kinds) {
    int fitting[128], found = 0;
    for (int i = 0; i < rows && found < 128; i++) {
        unsigned has;
        memcpy(&has, (const char *)table + (size_t)i * row_size, sizeof has);
        if (has & kinds) fitting[found++] = i;
    }
    return found ? fitting[between(d, 0, found - 1)] : -1;
}

static int pick_noun(const drawing *d, unsigned kinds) {
    return pick(d, fth_nouns, sizeof *fth_nouns, fth_n_nouns, kinds);
}

static int pick_verb(const drawing *d, unsigned kinds) {
    return pick(d, fth_verbs, sizeof *fth_verbs, fth_n_verbs, kinds);
}

static int pick_unit(const drawing *d, unsigned kinds) {
    return pick(d, fth_units, sizeof *fth_units, fth_n_units, kinds);
}

/* -1 for nouns that no adjective goes with. */
static int pick_adjective(const drawing *d, int noun) {
    return pick(d, fth_adjectives, sizeof *fth_adjectives, fth_n_adjectives, fth_nouns[noun].kinds);
}

static void draw_who(const drawing *d) {
    d->m->subject = FTH_SUBJECT_WHO;
    d->m->who = between(d, 0, fth_n_whos - 1);
}

/* ---- things ---- */

static fth_corpus_np np(const drawing *d, unsigned kinds, fth_corpus_det det, int n,
                        int adjective_percent) {
    fth_corpus_np t = {.noun = pick_noun(d, kinds), .adjective = -1, .det = det, .n = n};
    if (chance(d, adjective_percent)) t.adjective = pick_adjective(d, t.noun);
    return t;
}

static fth_corpus_np the(const drawing *d, unsigned kinds) {
    return np(d, kinds, FTH_DET_THE, 1, 0);
}

static int small_count(const drawing *d) {
    return chance(d, 25) ? 1 : between(d, 2, 12);
}

static int any_count(const drawing *d) {
    int dice = between(d, 0, 99);
    if (dice < 60) return small_count(d);
    return dice < 92 ? between(d, 13, 99) : count_between(d, 100, 999);
}

/* Things that are bought, seen, paid: all the ways to point at them. */
static fth_corpus_np any_things(const drawing *d, unsigned kinds) {
    if (d->level == FTH_LEVEL_SIMPLE) return np(d, kinds, FTH_DET_A, between(d, 1, 20), 0);
    int dice = between(d, 0, 99);
    if (dice < 55) return np(d, kinds, FTH_DET_A, any_count(d), 40);
    if (dice < 70) return np(d, kinds, FTH_DET_THE, small_count(d), 60);
    if (dice < 82) return np(d, kinds, FTH_DET_THIS, small_count(d), 50);
    if (dice < 94) return np(d, kinds, FTH_DET_MY, small_count(d), 50);
    return np(d, kinds, FTH_DET_OR, between(d, 2, 20), 20);
}

/* Things that a sentence is about: one or some that both sides know. */
static fth_corpus_np known_things(const drawing *d, unsigned kinds, int adjective_percent) {
    if (d->level == FTH_LEVEL_SIMPLE) return np(d, kinds, FTH_DET_THE, 1, 0);
    int dice = between(d, 0, 99), n = small_count(d);
    if (dice < 40) return np(d, kinds, FTH_DET_THE, n, adjective_percent);
    if (dice < 70) return np(d, kinds, FTH_DET_THIS, n, adjective_percent);
    return np(d, kinds, FTH_DET_ORDINAL, between(d, 1, 12), adjective_percent / 2);
}

static void draw_counted(drawing *d) {
    unsigned kinds = FTH_NOUN_GOODS | FTH_NOUN_FOOD | FTH_NOUN_ANIMAL | FTH_NOUN_BUILDING;
    if (d->level == FTH_LEVEL_FULL) kinds |= FTH_NOUN_KIN | FTH_NOUN_HOME | FTH_NOUN_HIGH;
    d->m->things = any_things(d, kinds);
}

static void draw_ordinal(drawing *d) {
    unsigned kinds = FTH_NOUN_GOODS | FTH_NOUN_ANIMAL | FTH_NOUN_HOME | FTH_NOUN_BUILDING |
                     FTH_NOUN_HIGH | FTH_NOUN_EVENT | FTH_NOUN_FLOOR;
    int which = chance(d, 60) ? between(d, 1, 20) : between(d, 21, 100);
    d->m->things = np(d, kinds, FTH_DET_ORDINAL, which, 25);
}

static void draw_quality(drawing *d) {
    unsigned kinds = FTH_NOUN_GOODS | FTH_NOUN_ANIMAL | FTH_NOUN_HOME | FTH_NOUN_BUILDING;
    d->m->subject = FTH_SUBJECT_THINGS;
    d->m->things = known_things(d, kinds, 0);
    d->m->adjective = pick_adjective(d, d->m->things.noun);
}

static void draw_there(drawing *d) {
    static const struct {
        unsigned place, things;
    } fit[] = {
        {FTH_NOUN_ROOM, FTH_NOUN_IN_ROOM},
        {FTH_NOUN_TOWN, FTH_NOUN_BUILDING},
        {FTH_NOUN_PARK, FTH_NOUN_IN_PARK},
    };
    int dice = between(d, 0, 99), kind = dice < 60 ? 0 : dice < 80 ? 1 : 2;
    d->m->subject = FTH_SUBJECT_THINGS;
    d->m->place = the(d, fit[kind].place);
    d->m->things = np(d, fit[kind].things, FTH_DET_A, any_count(d), 40);
    if (chance(d, 15)) d->m->things.det = FTH_DET_OR, d->m->things.n = between(d, 2, 20);
}

/* ---- numbers ---- */

static void draw_number(drawing *d) {
    static const int limit[] = {99, 999, 9999, 99999, 1000000};
    static const int share[] = {20, 50, 75, 90, 100}; /* percent, summed up */
    int dice = between(d, 0, d->level == FTH_LEVEL_SIMPLE ? 74 : 99), size = 0;
    while (dice >= share[size]) size++;
    d->m->number = between(d, size ? limit[size - 1] + 1 : 0, limit[size]);
}

/* Sums are true, and their result is more than one: French and Spanish have a plural verb. */
static void draw_sum(drawing *d) {
    fth_corpus_meaning *m = d->m;
    m->operation = between(d, 0, 2);
    if (m->operation == 2) {
        m->number = between(d, 2, 12);
        m->other = between(d, 2, 12);
        m->result = m->number * m->other;
        return;
    }
    m->number = between(d, 1, 99);
    m->other = between(d, 1, 99);
    m->result = m->number + m->other;
    if (m->operation == 1) { /* turn a + b = c into c - b = a */
        int sum = m->result;
        m->result = m->number + 1;
        m->number = sum + 1;
    }
}

static void draw_label(drawing *d) {
    draw_who(d);
    d->m->number = chance(d, 50) ? between(d, 1, 99) : between(d, 100, 999);
}

static void draw_bus(drawing *d) {
    d->m->number = between(d, 1, 199);
    d->m->place = the(d, FTH_NOUN_BUILDING);
}

/* ---- dates and times ---- */

static int month_days(int month, int year) {
    static const int days[12] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int leap = !year || (year % 4 == 0 && (year % 100 || year % 400 == 0));
    return days[month - 1] - (month == 2 && !leap);
}

/* A weekday that stands with a year is the true one. */
static void draw_day(drawing *d, int with_weekday, int year) {
    fth_corpus_date *t = &d->m->date;
    t->year = year;
    t->month = between(d, 1, 12);
    t->day = between(d, 1, month_days(t->month, year));
    if (with_weekday) t->weekday = year ? fth_weekday(t->day, t->month, year) : between(d, 0, 6);
}

static void draw_date(drawing *d) {
    int first = d->level == FTH_LEVEL_SIMPLE ? 1950 : 1800;
    int weekday = chance(d, 35), year = chance(d, 50) ? between(d, first, 2039) : 0;
    draw_day(d, weekday, year);
}

static void draw_today(drawing *d) {
    draw_day(d, chance(d, 70), 0);
}

/* Spanish has no settled way to say one or twenty-one minutes past. */
static int sayable(const fth_corpus_daytime *t) {
    fth_corpus_spoken s = fth_daytime_spoken(t);
    return s.minutes != 1 && s.minutes != 21 && (t->part || s.hour != 12);
}

/* first and last: the hours of a day in which it may happen. */
static void draw_time_between(drawing *d, int first, int last) {
    fth_corpus_daytime *t = &d->m->time;
    t->part = chance(d, 50);
    do {
        int dice = between(d, 0, 99);
        t->hour = t->part ? between(d, first, last) : between(d, 1, 11);
        t->minute = dice < 20 ? 0 : dice < 80 ? 5 * between(d, 0, 11) : between(d, 0, 59);
    } while (!sayable(t));
}

static void draw_time(drawing *d) {
    draw_time_between(d, 0, 23);
}

static void draw_daily(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_DAILY);
    draw_time_between(d, 5, 22);
}

static void draw_event_at(drawing *d) {
    static const struct {
        unsigned noun, verb;
    } fit[] = {
        {FTH_NOUN_EVENT, FTH_VERB_EVENT},
        {FTH_NOUN_RIDE, FTH_VERB_RIDE},
        {FTH_NOUN_OPENS, FTH_VERB_OPENS},
    };
    int kind = between(d, 0, 2);
    d->m->subject = FTH_SUBJECT_THINGS;
    d->m->things = the(d, fit[kind].noun);
    d->m->verb = pick_verb(d, fit[kind].verb);
    draw_time_between(d, 6, 22);
}

static void draw_train(drawing *d) {
    d->m->subject = FTH_SUBJECT_THINGS;
    d->m->things = the(d, FTH_NOUN_RIDE);
    d->m->verb = pick_verb(d, FTH_VERB_RIDE);
    d->m->city = between(d, 0, fth_n_cities - 1);
    draw_time(d);
}

static void draw_weekly(drawing *d) {
    if (chance(d, 50))
        draw_daily(d);
    else
        draw_event_at(d);
    d->m->date.weekday = between(d, 0, 6);
}

static void draw_event_on(drawing *d) {
    d->m->things = the(d, FTH_NOUN_HELD);
    draw_day(d, chance(d, 40), 0);
}

static void draw_born(drawing *d) {
    draw_who(d);
    draw_day(d, 0, between(d, 1930, 2019));
}

static void draw_built(drawing *d) {
    fth_corpus_det det = chance(d, 50) ? FTH_DET_THE : FTH_DET_THIS;
    d->m->things = np(d, FTH_NOUN_BUILDING, det, 1, 40);
    d->m->date.year = between(d, 1800, 2024);
}

static void draw_journey(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_SET_OUT);
    d->m->city = between(d, 0, fth_n_cities - 1);
    draw_day(d, 0, 0);
}

/* ---- measures ---- */

/* n units, now and then n and a half, in steps for the small ones. */
static void draw_amount(drawing *d, unsigned kinds, int most) {
    fth_corpus_amount *a = &d->m->amount;
    a->unit = pick_unit(d, kinds);
    unsigned unit = fth_units[a->unit].kinds;
    if (unit & FTH_UNIT_GRAM) {
        a->n = 50 * between(d, 1, 19);
    } else if (unit & (FTH_UNIT_CENTIMETRE | FTH_UNIT_MINUTE)) {
        a->n = between(d, 2, 99);
    } else if (unit & FTH_UNIT_HALVES && chance(d, 25)) {
        a->half = 1;
        a->n = between(d, 0, most < 12 ? most : 12);
    } else {
        a->n = chance(d, 70) && most > 12 ? between(d, 1, 12) : between(d, 1, most);
    }
}

static void draw_measure(drawing *d) {
    draw_amount(d, ~0u, 99);
}

static void draw_portion(drawing *d) {
    d->m->amount.stuff = between(d, 0, fth_n_stuffs - 1);
    draw_amount(d, fth_stuffs[d->m->amount.stuff].kinds, 20);
}

static void draw_portion_take(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_TRADE);
    draw_portion(d);
}

static void draw_age(drawing *d) {
    draw_who(d);
    d->m->amount.unit = pick_unit(d, FTH_UNIT_YEAR);
    d->m->amount.n = between(d, fth_whos[d->m->who].age[0], fth_whos[d->m->who].age[1]);
}

static void draw_lasts(drawing *d) {
    unsigned units = FTH_UNIT_MINUTE | FTH_UNIT_HOUR;
    d->m->subject = FTH_SUBJECT_THINGS;
    d->m->verb = pick_verb(d, FTH_VERB_LAST);
    d->m->things = np(d, FTH_NOUN_EVENT, chance(d, 60) ? FTH_DET_THE : FTH_DET_THIS, 1, 0);
    if (fth_nouns[d->m->things.noun].kinds & FTH_NOUN_DAYS) units = FTH_UNIT_HOUR | FTH_UNIT_DAY;
    draw_amount(d, units, 9);
}

static void draw_weighs(drawing *d) {
    int food = chance(d, 30);
    d->m->subject = FTH_SUBJECT_THINGS;
    d->m->verb = pick_verb(d, FTH_VERB_WEIGH);
    d->m->things = known_things(d, food ? FTH_NOUN_FOOD : FTH_NOUN_HEAVY, 30);
    draw_amount(d, food ? FTH_UNIT_GRAM : FTH_UNIT_KILO, 40);
}

static void draw_distance(drawing *d) {
    fth_corpus_meaning *m = d->m;
    m->things = the(d, FTH_NOUN_GOAL);
    do m->place = the(d, FTH_NOUN_GOAL);
    while (m->place.noun == m->things.noun);
    unsigned kinds = fth_nouns[m->things.noun].kinds | fth_nouns[m->place.noun].kinds;
    if (kinds & FTH_NOUN_TOWN || chance(d, 50)) {
        draw_amount(d, FTH_UNIT_KILOMETRE, 60);
        return;
    }
    m->amount.unit = pick_unit(d, FTH_UNIT_METRE);
    m->amount.n = 10 * between(d, 2, 99);
}

/* Furniture, doors and windows are measured in centimetres, the rest in metres; trees are high. */
static void draw_size(drawing *d) {
    enum { LONG, WIDE, HIGH };
    int high = chance(d, 50);
    fth_corpus_det det = chance(d, 60) ? FTH_DET_THE : FTH_DET_THIS;
    d->m->things = np(d, high ? FTH_NOUN_HIGH : FTH_NOUN_LONG, det, 1, 30);
    int small = (fth_nouns[d->m->things.noun].kinds & FTH_NOUN_IN_ROOM) != 0;
    d->m->dimension = high ? HIGH : LONG;
    if ((small || !high) && chance(d, 40)) d->m->dimension = WIDE;
    if (small)
        draw_amount(d, FTH_UNIT_METRE | FTH_UNIT_CENTIMETRE, 3);
    else
        draw_amount(d, FTH_UNIT_METRE, 50);
}

static void draw_warmth(drawing *d) {
    d->m->city = between(d, 0, fth_n_cities - 1);
    d->m->number = between(d, -20, 40);
}

/* ---- prices ---- */

static void draw_coins(drawing *d, int most) {
    fth_corpus_price *p = &d->m->price;
    p->currency = between(d, 0, fth_n_currencies - 1);
    p->amount = chance(d, 40)                 ? between(d, 1, 20)
                : most < 100 || chance(d, 60) ? between(d, 1, most < 100 ? most : 99)
                                              : count_between(d, 100, most);
    if (chance(d, 50)) p->cents = chance(d, 70) ? 5 * between(d, 1, 19) : between(d, 1, 99);
}

static void draw_price(drawing *d) {
    draw_coins(d, d->level == FTH_LEVEL_SIMPLE ? 99 : 999);
}

/* Thousands, sometimes with five hundred; "twenty-one thousand" has two genders in Spanish. */
static void draw_fortune(drawing *d) {
    fth_corpus_price *p = &d->m->price;
    int thousands;
    do thousands = chance(d, 60) ? between(d, 1, 99) : 10 * between(d, 10, 99);
    while (thousands > 1 && thousands % 10 == 1);
    p->currency = between(d, 0, fth_n_currencies - 1);
    p->amount = 1000 * thousands + (chance(d, 25) ? 500 : 0);
}

static void draw_goods_with_price(drawing *d, int adjective_percent) {
    unsigned kinds = FTH_NOUN_GOODS | FTH_NOUN_FOOD | FTH_NOUN_LARGE;
    d->m->subject = FTH_SUBJECT_THINGS;
    d->m->verb = pick_verb(d, FTH_VERB_COST);
    if (chance(d, 50))
        d->m->things = np(d, kinds, FTH_DET_A, small_count(d), adjective_percent);
    else
        d->m->things = known_things(d, kinds, adjective_percent);
}

static void draw_cost(drawing *d) {
    int simple = d->level == FTH_LEVEL_SIMPLE;
    draw_goods_with_price(d, simple ? 0 : 40);
    unsigned kinds = fth_nouns[d->m->things.noun].kinds;
    if (kinds & FTH_NOUN_LARGE)
        draw_fortune(d);
    else
        draw_coins(d, kinds & FTH_NOUN_FOOD ? 40 : simple ? 99 : 999);
    if (simple) d->m->price.cents = 0;
}

static void draw_how_much(drawing *d) {
    draw_goods_with_price(d, 60);
}

static void draw_portion_cost(drawing *d) {
    d->m->subject = FTH_SUBJECT_AMOUNT;
    d->m->verb = pick_verb(d, FTH_VERB_COST);
    draw_portion(d);
    draw_coins(d, 60);
}

/* ---- people and things ---- */

enum { OBJECTS = FTH_NOUN_GOODS | FTH_NOUN_FOOD | FTH_NOUN_ANIMAL };

static void draw_take(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_TAKE | FTH_VERB_HAVE);
    d->m->things = any_things(d, OBJECTS);
}

/* French would repeat the "de" of "avoir besoin de", so the two things go with other verbs. */
static void draw_take_two(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_TAKE);
    d->m->things = np(d, OBJECTS, FTH_DET_A, small_count(d), 30);
    do d->m->place = np(d, OBJECTS, FTH_DET_A, small_count(d), 30);
    while (d->m->place.noun == d->m->things.noun);
}

static void draw_past(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_TAKE);
    d->m->things = any_things(d, OBJECTS);
    if (d->m->frame == FTH_FRAME_IN_YEAR) d->m->date.year = between(d, 1950, 2024);
}

static void draw_future(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_TAKE);
    d->m->things = any_things(d, OBJECTS);
}

static void draw_together(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_WITH);
    if (chance(d, 50))
        d->m->things = np(d, FTH_NOUN_PERSON, FTH_DET_A, small_count(d), 0);
    else
        d->m->things = np(d, FTH_NOUN_KIN, FTH_DET_MY, small_count(d), 0);
}

/* People may work in several places, but they live in one. */
static void draw_inside(drawing *d) {
    static const fth_corpus_det dets[] = {FTH_DET_A, FTH_DET_A, FTH_DET_THE, FTH_DET_THIS};
    int work = chance(d, 50);
    draw_who(d);
    d->m->verb = pick_verb(d, work ? FTH_VERB_WORK : FTH_VERB_LIVE);
    d->m->things = np(d, work ? FTH_NOUN_WORK : FTH_NOUN_HOME, dets[between(d, 0, 3)], 1, 60);
    if (work && chance(d, 40)) d->m->things.n = between(d, 2, 9);
}

static void draw_floor(drawing *d) {
    draw_who(d);
    d->m->verb = pick_verb(d, FTH_VERB_LIVE | FTH_VERB_SLEEP | FTH_VERB_WORK);
    d->m->things = np(d, FTH_NOUN_FLOOR, FTH_DET_ORDINAL, between(d, 1, 60), 0);
}

/* ---- one of all ---- */

static const struct {
    void (*draw)(drawing *d);
    int weight[2]; /* by level */
} frames[FTH_FRAMES] = {
#define FRAME(id, draw, simple, full, en, de, fr, es) {draw_##draw, {simple, full}},
#include "corpus/frames.def"
#undef FRAME
};

fth_corpus_meaning fth_meaning_draw(fth_rng *r, fth_corpus_level level) {
    fth_corpus_meaning m = fth_meaning_none();
    drawing d = {r, level, &m};
    int sum = 0, frame = 0;
    for (int i = 0; i < FTH_FRAMES; i++) sum += frames[i].weight[level];
    int dice = between(&d, 0, sum - 1);
    while (dice >= frames[frame].weight[level]) dice -= frames[frame++].weight[level];
    m.frame = (fth_corpus_frame)frame;
    frames[frame].draw(&d);
    return m;
}
