/* porter.c: step by step as in M. Porter, "An algorithm for suffix stripping", Program 14 (1980).
 * rouge-score uses NLTK's version, which differs from Porter's own (and from libstemmer's
 * "porter"): irregular words, "ies" and "ied" in words of four letters, "y" behind any consonant,
 * "alli" first, "bli", "fulli" and "logi", and vowel + consonant as a short stem of its own. */
#include "metric/porter.h"

#include <string.h>

typedef struct word {
    char *text;
    size_t n;
} word;

static int is_vowel_letter(char c) {
    return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

/* y is a consonant at the beginning and behind a vowel. */
static int is_consonant(const char *text, size_t i) {
    size_t run = 0;
    if (is_vowel_letter(text[i])) return 0;
    if (text[i] != 'y') return 1;
    while (run < i && text[i - run - 1] == 'y') run++;          /* y before this one */
    int first = run == i || is_vowel_letter(text[i - run - 1]); /* is the first y a consonant? */
    return run % 2 ? !first : first;
}

/* m, the number of times that a vowel is followed by a consonant in the first n letters. */
static int measure(const char *text, size_t n) {
    int m = 0, after_vowel = 0;
    for (size_t i = 0; i < n; i++) {
        int consonant = text[i] == 'y' ? i == 0 || after_vowel : !is_vowel_letter(text[i]);
        m += consonant && after_vowel;
        after_vowel = !consonant;
    }
    return m;
}

static int has_vowel(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (is_vowel_letter(text[i]) || (text[i] == 'y' && !is_consonant(text, i))) return 1;
    return 0;
}

static int ends_double_consonant(const word *w) {
    return w->n >= 2 && w->text[w->n - 1] == w->text[w->n - 2] && is_consonant(w->text, w->n - 1);
}

/* Consonant, vowel, consonant other than w, x, y; or only vowel, consonant. */
static int ends_short(const char *t, size_t n) {
    if (n == 2) return !is_consonant(t, 0) && is_consonant(t, 1);
    return n >= 3 && is_consonant(t, n - 3) && !is_consonant(t, n - 2) && is_consonant(t, n - 1) &&
           !strchr("wxy", t[n - 1]);
}

static int ends_with(const word *w, const char *suffix) {
    size_t n = strlen(suffix);
    return w->n >= n && memcmp(w->text + w->n - n, suffix, n) == 0;
}

static void replace_end(word *w, size_t cut, const char *by) {
    size_t n = strlen(by);
    memcpy(w->text + w->n - cut, by, n);
    w->n = w->n - cut + n;
}

typedef struct rule {
    const char *suffix, *by;
} rule;

/* The first rule whose suffix the word has is the only one tried: it counts when the stem before
 * the suffix has at least this measure. */
static void apply_rules(word *w, const rule *rules, size_t n, int least) {
    for (size_t i = 0; i < n; i++) {
        if (!ends_with(w, rules[i].suffix)) continue;
        size_t cut = strlen(rules[i].suffix);
        if (measure(w->text, w->n - cut) >= least) replace_end(w, cut, rules[i].by);
        return;
    }
}

static int irregular(word *w) {
    static const rule forms[] = {
        {"sky", "sky"},        {"skies", "sky"},        {"dying", "die"},
        {"lying", "lie"},      {"tying", "tie"},        {"news", "news"},
        {"innings", "inning"}, {"inning", "inning"},    {"outings", "outing"},
        {"outing", "outing"},  {"cannings", "canning"}, {"canning", "canning"},
        {"howe", "howe"},      {"proceed", "proceed"},  {"exceed", "exceed"},
        {"succeed", "succeed"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strlen(forms[i].suffix) == w->n && ends_with(w, forms[i].suffix)) {
            replace_end(w, w->n, forms[i].by);
            return 1;
        }
    return 0;
}

static void step_1a(word *w) {
    static const rule rules[] = {{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}};
    if (w->n == 4 && ends_with(w, "ies"))
        replace_end(w, 3, "ie");
    else
        apply_rules(w, rules, 4, 0);
}

/* After -ed or -ing is gone. */
static void repair_1b(word *w) {
    if (ends_with(w, "at") || ends_with(w, "bl") || ends_with(w, "iz"))
        replace_end(w, 0, "e");
    else if (ends_double_consonant(w))
        w->n -= !strchr("lsz", w->text[w->n - 1]);
    else if (measure(w->text, w->n) == 1 && ends_short(w->text, w->n))
        replace_end(w, 0, "e");
}

static void step_1b(word *w) {
    if (ends_with(w, "ied")) {
        replace_end(w, 3, w->n == 4 ? "ie" : "i");
    } else if (ends_with(w, "eed")) {
        if (measure(w->text, w->n - 3) > 0) w->n--;
    } else {
        size_t cut = ends_with(w, "ed") ? 2 : ends_with(w, "ing") ? 3 : 0;
        if (!cut || !has_vowel(w->text, w->n - cut)) return;
        w->n -= cut;
        repair_1b(w);
    }
}

static void step_1c(word *w) {
    if (ends_with(w, "y") && w->n > 2 && is_consonant(w->text, w->n - 2)) replace_end(w, 1, "i");
}

static void step_2(word *w) {
    static const rule rules[] = {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},
                                 {"anci", "ance"},   {"izer", "ize"},    {"bli", "ble"},
                                 {"alli", "al"},     {"entli", "ent"},   {"eli", "e"},
                                 {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
                                 {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"},
                                 {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},
                                 {"iviti", "ive"},   {"biliti", "ble"},  {"fulli", "ful"}};
    while (ends_with(w, "alli") && measure(w->text, w->n - 4) > 0) replace_end(w, 4, "al");
    if (ends_with(w, "logi")) { /* the l counts as part of the stem */
        if (measure(w->text, w->n - 3) > 0) w->n--;
    } else {
        apply_rules(w, rules, sizeof rules / sizeof *rules, 1);
    }
}

static void step_3(word *w) {
    static const rule rules[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                                 {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
    apply_rules(w, rules, sizeof rules / sizeof *rules, 1);
}

static void step_4(word *w) {
    static const rule rules[] = {
        {"al", ""},   {"ance", ""}, {"ence", ""},  {"er", ""},   {"ic", ""},  {"able", ""},
        {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ou", ""},
        {"ism", ""},  {"ate", ""},  {"iti", ""},   {"ous", ""},  {"ive", ""}, {"ize", ""}};
    if (ends_with(w, "ion")) {
        size_t n = w->n - 3;
        if (measure(w->text, n) > 1 && strchr("st", w->text[n - 1])) w->n = n;
    } else {
        apply_rules(w, rules, sizeof rules / sizeof *rules, 2);
    }
}

static void step_5(word *w) {
    if (ends_with(w, "e")) {
        int m = measure(w->text, w->n - 1);
        if (m > 1 || (m == 1 && !ends_short(w->text, w->n - 1))) w->n--;
    }
    if (ends_with(w, "ll") && measure(w->text, w->n - 1) > 1) w->n--;
}

size_t fth_porter_stem(char *text, size_t length) {
    word w = {text, length};
    if (irregular(&w) || w.n <= 2) return w.n;
    step_1a(&w);
    step_1b(&w);
    step_1c(&w);
    step_2(&w);
    step_3(&w);
    step_4(&w);
    step_5(&w);
    return w.n;
}
