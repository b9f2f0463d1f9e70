/* sentence.c: fills the slots of a template one after the other, glues words where the language
 * does, and begins with a capital. */
#include "corpus/sentence.h"

#include <stdio.h>
#include <string.h>

static const char *const templates[FTH_FRAMES][FTH_LANGUAGES] = {
#define FRAME(id, draw, simple, full, en, de, fr, es) {en, de, fr, es},
#include "corpus/frames.def"
#undef FRAME
};

static const char *const slot_names[] = {
#define SLOT(name) #name,
    FTH_SLOTS(SLOT)
#undef SLOT
};

static const char *const form_names[] = {
#define FORM(name) #name,
    FTH_SLOT_FORMS(FORM)
#undef FORM
};

const fth_corpus_language *fth_language_find(const char *code, size_t length) {
    static const fth_corpus_language *const all[] = {&fth_english, &fth_german, &fth_french,
                                                     &fth_spanish};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]->code) == length && memcmp(all[i]->code, code, length) == 0)
            return all[i];
    return NULL;
}

void fth_numeral_add(fth_corpus_numeral *n, const char *piece) {
    while (*piece && n->length + 1 < sizeof n->text) n->text[n->length++] = *piece++;
    n->text[n->length] = 0;
}

void fth_numeral_cut(fth_corpus_numeral *n, size_t bytes) {
    n->length -= bytes < n->length ? bytes : n->length;
    n->text[n->length] = 0;
}

void fth_words_glue(fth_corpus_words *w, const char *piece) {
    size_t length = strlen(piece);
    if (length >= sizeof w->text - w->length) {
        w->broken = 1;
        return;
    }
    memcpy(w->text + w->length, piece, length + 1);
    w->length += length;
}

void fth_words_add(fth_corpus_words *w, const char *word) {
    if (!*word) return;
    if (w->length && w->language->meet(w, word)) return;
    if (w->length && !w->tight) fth_words_glue(w, " ");
    w->tight = 0;
    const char *space = strrchr(word, ' ');
    w->last = w->length + (space ? (size_t)(space + 1 - word) : 0);
    fth_words_glue(w, word);
}

void fth_words_change(fth_corpus_words *w, const char *word, int tight) {
    w->length = w->last;
    w->text[w->length] = 0;
    fth_words_glue(w, word);
    w->tight = tight;
}

int fth_words_last_is(const fth_corpus_words *w, const char *word) {
    return strcmp(w->text + w->last, word) == 0;
}

/* Capital letters of ASCII and of U+00E0 to U+00FE; our sentences begin with nothing else. */
static void capitalise(char *text) {
    static const char opening[] = "\xC2\xBF"; /* the Spanish question mark */
    if (strncmp(text, opening, 2) == 0) text += 2;
    if (*text >= 'a' && *text <= 'z') *text = (char)(*text - 'a' + 'A');
    unsigned char second = (unsigned char)text[0] == 0xC3 ? (unsigned char)text[1] : 0;
    if (second >= 0xA0 && second <= 0xBE && second != 0xB7) text[1] = (char)(second - 0x20);
}

static int find(const char *name, size_t length, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) return i;
    return -1;
}

static fth_corpus_person subject_person(const fth_corpus_words *w, const fth_corpus_meaning *m) {
    const fth_corpus_amount *a = &m->amount;
    switch (m->subject) {
    case FTH_SUBJECT_WHO: return fth_whos[m->who].person;
    case FTH_SUBJECT_THINGS: return fth_np_plural(&m->things) ? FTH_THEY : FTH_HE;
    case FTH_SUBJECT_AMOUNT: break;
    }
    int plural = a->n > 1 || (a->n == 1 && a->half && w->language->half_plural);
    return plural ? FTH_THEY : FTH_HE;
}

/* German and French have one participle for all persons. */
static const char *past_form(const fth_corpus_verb *v, fth_corpus_language_id id,
                             fth_corpus_person person) {
    const char *const *past = v->in[id].past;
    return past[person] ? past[person] : past[0];
}

/* The slots that are one look into a table. 0: the language must say it. */
static int say_word(fth_corpus_words *w, const fth_corpus_meaning *m, fth_corpus_slot slot) {
    fth_corpus_language_id id = w->language->id;
    const char *word = NULL;
    switch (slot) {
    case FTH_SLOT_who: word = fth_whos[m->who].in[id]; break;
    case FTH_SLOT_verb: word = fth_verbs[m->verb].in[id].now[subject_person(w, m)]; break;
    case FTH_SLOT_base: word = fth_verbs[m->verb].in[id].base; break;
    case FTH_SLOT_past: word = past_form(&fth_verbs[m->verb], id, subject_person(w, m)); break;
    case FTH_SLOT_particle: word = fth_verbs[m->verb].in[id].particle; break;
    case FTH_SLOT_city: word = fth_cities[m->city].in[id]; break;
    case FTH_SLOT_dimension: word = fth_dimensions[m->dimension].in[id]; break;
    case FTH_SLOT_operation: word = fth_operations[m->operation].in[id]; break;
    case FTH_SLOT_weekday: word = fth_weekdays[m->date.weekday].in[id]; break;
    case FTH_SLOT_be:
    case FTH_SLOT_is:
    case FTH_SLOT_have:
    case FTH_SLOT_will:
    case FTH_SLOT_was:
    case FTH_SLOT_do:
        word = w->language->auxiliary[slot - FTH_SLOT_be + FTH_BE][subject_person(w, m)];
        break;
    default: break;
    }
    if (!word) return 0;
    fth_words_add(w, word);
    return 1;
}

static void say_slot(fth_corpus_words *w, const fth_corpus_meaning *m, fth_corpus_slot slot,
                     fth_corpus_slot_form form) {
    if (slot == FTH_SLOT_subject) {
        static const fth_corpus_slot of[] = {FTH_SLOT_who, FTH_SLOT_things, FTH_SLOT_amount};
        slot = of[m->subject];
    }
    if (!say_word(w, m, slot) && !w->language->say(w, m, slot, form)) w->broken = 1;
}

/* text begins behind the brace; returns what follows the closing one. */
static const char *fill_slot(fth_corpus_words *w, const fth_corpus_meaning *m, const char *text) {
    size_t length = strcspn(text, "}"), name = strcspn(text, " }");
    int slot = find(text, name, slot_names, (int)(sizeof slot_names / sizeof *slot_names));
    int form = FTH_FORM_nom;
    if (name < length)
        form = find(text + name + 1, length - name - 1, form_names,
                    (int)(sizeof form_names / sizeof *form_names));
    if (slot < 0 || form < 0 || !text[length]) {
        w->broken = 1;
        return text + strlen(text);
    }
    say_slot(w, m, (fth_corpus_slot)slot, (fth_corpus_slot_form)form);
    return text + length + 1;
}

/* A word as the template has it, or the punctuation right behind a slot. */
static const char *fill_literal(fth_corpus_words *w, const char *text, int behind_slot) {
    char word[64];
    size_t length = strcspn(text, " {");
    if (length >= sizeof word) {
        w->broken = 1;
        return text + length;
    }
    memcpy(word, text, length);
    word[length] = 0;
    if (behind_slot)
        fth_words_glue(w, word);
    else
        fth_words_add(w, word);
    return text + length;
}

fth_err fth_meaning_say(fth_corpus_words *w, const fth_corpus_language *language,
                        const fth_corpus_meaning *m) {
    w->language = language;
    w->length = w->last = 0;
    w->tight = w->broken = 0;
    w->text[0] = 0;
    const char *template = templates[m->frame][language->id], *p = template;
    while (*p && !w->broken) {
        if (*p == ' ')
            p++;
        else if (*p == '{')
            p = fill_slot(w, m, p + 1);
        else
            p = fill_literal(w, p, p > template && p[-1] == '}');
    }
    if (w->broken)
        return fth_fail(FTH_FAILED, "corpus: the %s template \"%s\" cannot be filled",
                        language->name, template);
    if (w->length && strchr(".?", w->text[w->length - 1])) capitalise(w->text);
    return FTH_OK;
}
