/* links: corpus base */
/* What the built-in corpus says, against tables written by hand: every row in four languages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "corpus/sentence.h"

/* ---- meanings, with words named by their English form ---- */

typedef struct things {
    fth_corpus_det det;
    int n;
    const char *adjective, *noun;
} things;

typedef struct saying {
    fth_corpus_frame frame;
    int number, other, result;
    const char *operation, *who, *verb, *is, *city, *dimension;
    things things, place;
    struct {
        int hour, minute, part;
    } time;
    fth_corpus_date date; /* weekday counts from 1 here, so that 0 can mean: not said */
    struct {
        int amount, cents;
        const char *currency;
    } price;
    struct {
        int n, half;
        const char *unit, *stuff;
    } amount;
    int amount_is_subject;
    const char *text[FTH_LANGUAGES];
} saying;

#define FIND(table, count, field)                                                                  \
    do {                                                                                           \
        for (int i = 0; i < (count); i++)                                                          \
            if (strcmp((table)[i].field, word) == 0) return i;                                     \
        fail_msg("no row for \"%s\"", word);                                                       \
        return -1;                                                                                 \
    } while (0)

static int noun_row(const char *word) {
    FIND(fth_nouns, fth_n_nouns, in[FTH_EN].form[0]);
}

static int adjective_row(const char *word) {
    FIND(fth_adjectives, fth_n_adjectives, en);
}

static int who_row(const char *word) {
    FIND(fth_whos, fth_n_whos, in[FTH_EN]);
}

/* "set out" is the second row of "travel". */
static int verb_row(const char *word) {
    if (strcmp(word, "set out") == 0) return fth_n_verbs - 1;
    FIND(fth_verbs, fth_n_verbs, in[FTH_EN].base);
}

static int unit_row(const char *word) {
    FIND(fth_units, fth_n_units, noun.in[FTH_EN].form[0]);
}

static int stuff_row(const char *word) {
    FIND(fth_stuffs, fth_n_stuffs, in[FTH_EN]);
}

static int currency_row(const char *word) {
    FIND(fth_currencies, fth_n_currencies, unit.in[FTH_EN].form[0]);
}

static int city_row(const char *word) {
    FIND(fth_cities, fth_n_cities, in[FTH_EN]);
}

static int dimension_row(const char *word) {
    FIND(fth_dimensions, 3, in[FTH_EN]);
}

static int operation_row(const char *word) {
    FIND(fth_operations, 3, in[FTH_EN]);
}

static fth_corpus_np np_of(const things *t) {
    return (fth_corpus_np){noun_row(t->noun), t->adjective ? adjective_row(t->adjective) : -1,
                           t->det, t->n};
}

static fth_corpus_meaning meaning_of(const saying *s) {
    fth_corpus_meaning m = fth_meaning_none();
    m.frame = s->frame;
    m.number = s->number, m.other = s->other, m.result = s->result;
    if (s->who) m.who = who_row(s->who);
    m.subject = s->who                 ? FTH_SUBJECT_WHO
                : s->amount_is_subject ? FTH_SUBJECT_AMOUNT
                                       : FTH_SUBJECT_THINGS;
    if (s->verb) m.verb = verb_row(s->verb);
    if (s->is) m.adjective = adjective_row(s->is);
    if (s->city) m.city = city_row(s->city);
    if (s->dimension) m.dimension = dimension_row(s->dimension);
    if (s->operation) m.operation = operation_row(s->operation);
    if (s->things.noun) m.things = np_of(&s->things);
    if (s->place.noun) m.place = np_of(&s->place);
    m.time = (fth_corpus_daytime){s->time.hour, s->time.minute, s->time.part};
    m.date = s->date;
    m.date.weekday--;
    if (s->price.currency)
        m.price =
            (fth_corpus_price){currency_row(s->price.currency), s->price.amount, s->price.cents};
    if (s->amount.unit)
        m.amount = (fth_corpus_amount){unit_row(s->amount.unit), s->amount.n, s->amount.half,
                                       s->amount.stuff ? stuff_row(s->amount.stuff) : -1};
    return m;
}

static void check(const saying *rows, size_t count) {
    static const fth_corpus_language *const languages[] = {&fth_english, &fth_german, &fth_french,
                                                           &fth_spanish};
    for (size_t i = 0; i < count; i++) {
        fth_corpus_meaning m = meaning_of(&rows[i]);
        for (int k = 0; k < FTH_LANGUAGES; k++) {
            fth_corpus_words w;
            assert_int_equal(fth_meaning_say(&w, languages[k], &m), FTH_OK);
            assert_string_equal(w.text, rows[i].text[k]);
        }
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof *(rows))

/* clang-format off */

/* ---- numbers ---- */

#define N(n, ...) {.frame = FTH_FRAME_NUMBER, .number = n, .text = {__VA_ARGS__}}
static const saying numbers[] = {
    N(0, "zero", "null", "zéro", "cero"),
    N(1, "one", "eins", "un", "uno"),
    N(2, "two", "zwei", "deux", "dos"),
    N(3, "three", "drei", "trois", "tres"),
    N(6, "six", "sechs", "six", "seis"),
    N(7, "seven", "sieben", "sept", "siete"),
    N(10, "ten", "zehn", "dix", "diez"),
    N(11, "eleven", "elf", "onze", "once"),
    N(12, "twelve", "zwölf", "douze", "doce"),
    N(13, "thirteen", "dreizehn", "treize", "trece"),
    N(14, "fourteen", "vierzehn", "quatorze", "catorce"),
    N(15, "fifteen", "fünfzehn", "quinze", "quince"),
    N(16, "sixteen", "sechzehn", "seize", "dieciséis"),
    N(17, "seventeen", "siebzehn", "dix-sept", "diecisiete"),
    N(18, "eighteen", "achtzehn", "dix-huit", "dieciocho"),
    N(19, "nineteen", "neunzehn", "dix-neuf", "diecinueve"),
    N(20, "twenty", "zwanzig", "vingt", "veinte"),
    N(21, "twenty-one", "einundzwanzig", "vingt et un", "veintiuno"),
    N(22, "twenty-two", "zweiundzwanzig", "vingt-deux", "veintidós"),
    N(23, "twenty-three", "dreiundzwanzig", "vingt-trois", "veintitrés"),
    N(26, "twenty-six", "sechsundzwanzig", "vingt-six", "veintiséis"),
    N(30, "thirty", "dreißig", "trente", "treinta"),
    N(31, "thirty-one", "einunddreißig", "trente et un", "treinta y uno"),
    N(40, "forty", "vierzig", "quarante", "cuarenta"),
    N(42, "forty-two", "zweiundvierzig", "quarante-deux", "cuarenta y dos"),
    N(55, "fifty-five", "fünfundfünfzig", "cinquante-cinq", "cincuenta y cinco"),
    N(60, "sixty", "sechzig", "soixante", "sesenta"),
    N(61, "sixty-one", "einundsechzig", "soixante et un", "sesenta y uno"),
    N(66, "sixty-six", "sechsundsechzig", "soixante-six", "sesenta y seis"),
    N(70, "seventy", "siebzig", "soixante-dix", "setenta"),
    N(71, "seventy-one", "einundsiebzig", "soixante et onze", "setenta y uno"),
    N(72, "seventy-two", "zweiundsiebzig", "soixante-douze", "setenta y dos"),
    N(77, "seventy-seven", "siebenundsiebzig", "soixante-dix-sept", "setenta y siete"),
    N(80, "eighty", "achtzig", "quatre-vingts", "ochenta"),
    N(81, "eighty-one", "einundachtzig", "quatre-vingt-un", "ochenta y uno"),
    N(90, "ninety", "neunzig", "quatre-vingt-dix", "noventa"),
    N(91, "ninety-one", "einundneunzig", "quatre-vingt-onze", "noventa y uno"),
    N(97, "ninety-seven", "siebenundneunzig", "quatre-vingt-dix-sept", "noventa y siete"),
    N(99, "ninety-nine", "neunundneunzig", "quatre-vingt-dix-neuf", "noventa y nueve"),
    N(100, "one hundred", "einhundert", "cent", "cien"),
    N(101, "one hundred and one", "einhunderteins", "cent un", "ciento uno"),
    N(111, "one hundred and eleven", "einhundertelf", "cent onze", "ciento once"),
    N(121, "one hundred and twenty-one", "einhunderteinundzwanzig", "cent vingt et un", "ciento veintiuno"),
    N(180, "one hundred and eighty", "einhundertachtzig", "cent quatre-vingts", "ciento ochenta"),
    N(200, "two hundred", "zweihundert", "deux cents", "doscientos"),
    N(201, "two hundred and one", "zweihunderteins", "deux cent un", "doscientos uno"),
    N(280, "two hundred and eighty", "zweihundertachtzig", "deux cent quatre-vingts", "doscientos ochenta"),
    N(500, "five hundred", "fünfhundert", "cinq cents", "quinientos"),
    N(571, "five hundred and seventy-one", "fünfhunderteinundsiebzig", "cinq cent soixante et onze", "quinientos setenta y uno"),
    N(716, "seven hundred and sixteen", "siebenhundertsechzehn", "sept cent seize", "setecientos dieciséis"),
    N(999, "nine hundred and ninety-nine", "neunhundertneunundneunzig", "neuf cent quatre-vingt-dix-neuf", "novecientos noventa y nueve"),
    N(1000, "one thousand", "eintausend", "mille", "mil"),
    N(1001, "one thousand and one", "eintausendeins", "mille un", "mil uno"),
    N(1011, "one thousand and eleven", "eintausendelf", "mille onze", "mil once"),
    N(1100, "one thousand one hundred", "eintausendeinhundert", "mille cent", "mil cien"),
    N(1101, "one thousand one hundred and one", "eintausendeinhunderteins", "mille cent un", "mil ciento uno"),
    N(1984, "one thousand nine hundred and eighty-four", "eintausendneunhundertvierundachtzig", "mille neuf cent quatre-vingt-quatre", "mil novecientos ochenta y cuatro"),
    N(2000, "two thousand", "zweitausend", "deux mille", "dos mil"),
    N(2500, "two thousand five hundred", "zweitausendfünfhundert", "deux mille cinq cents", "dos mil quinientos"),
    N(21000, "twenty-one thousand", "einundzwanzigtausend", "vingt et un mille", "veintiún mil"),
    N(31021, "thirty-one thousand and twenty-one", "einunddreißigtausendeinundzwanzig", "trente et un mille vingt et un", "treinta y un mil veintiuno"),
    N(80000, "eighty thousand", "achtzigtausend", "quatre-vingt mille", "ochenta mil"),
    N(80080, "eighty thousand and eighty", "achtzigtausendachtzig", "quatre-vingt mille quatre-vingts", "ochenta mil ochenta"),
    N(100000, "one hundred thousand", "einhunderttausend", "cent mille", "cien mil"),
    N(100001, "one hundred thousand and one", "einhunderttausendeins", "cent mille un", "cien mil uno"),
    N(101000, "one hundred and one thousand", "einhunderteintausend", "cent un mille", "ciento un mil"),
    N(200000, "two hundred thousand", "zweihunderttausend", "deux cent mille", "doscientos mil"),
    N(345678, "three hundred and forty-five thousand six hundred and seventy-eight", "dreihundertfünfundvierzigtausendsechshundertachtundsiebzig", "trois cent quarante-cinq mille six cent soixante-dix-huit", "trescientos cuarenta y cinco mil seiscientos setenta y ocho"),
    N(999999, "nine hundred and ninety-nine thousand nine hundred and ninety-nine", "neunhundertneunundneunzigtausendneunhundertneunundneunzig", "neuf cent quatre-vingt-dix-neuf mille neuf cent quatre-vingt-dix-neuf", "novecientos noventa y nueve mil novecientos noventa y nueve"),
    N(1000000, "one million", "eine Million", "un million", "un millón"),
};

/* Numbers that name a thing do not count it: no s in French, masculine in French and Spanish. */
#define ROOM(n, ...) {.frame = FTH_FRAME_ROOM, .who = "she", .number = n, .text = {__VA_ARGS__}}
#define PAGE(n, ...) {.frame = FTH_FRAME_PAGE, .who = "I", .number = n, .text = {__VA_ARGS__}}
static const saying labels[] = {
    ROOM(1, "She is in room one.", "Sie ist in Zimmer eins.", "Elle est dans la chambre un.", "Ella está en la habitación uno."),
    ROOM(200, "She is in room two hundred.", "Sie ist in Zimmer zweihundert.", "Elle est dans la chambre deux cent.", "Ella está en la habitación doscientos."),
    ROOM(221, "She is in room two hundred and twenty-one.", "Sie ist in Zimmer zweihunderteinundzwanzig.", "Elle est dans la chambre deux cent vingt et un.", "Ella está en la habitación doscientos veintiuno."),
    PAGE(80, "I am on page eighty.", "Ich bin auf Seite achtzig.", "Je suis à la page quatre-vingt.", "Estoy en la página ochenta."),
    PAGE(101, "I am on page one hundred and one.", "Ich bin auf Seite einhunderteins.", "Je suis à la page cent un.", "Estoy en la página ciento uno."),
};

/* ---- things ---- */

#define T(d, count, adj, word, ...) {.frame = FTH_FRAME_THINGS, .things = {FTH_DET_##d, count, adj, word}, .text = {__VA_ARGS__}}
static const saying counted[] = {
    T(A, 1, NULL, "book", "a book", "ein Buch", "un livre", "un libro"),
    T(A, 1, NULL, "apple", "an apple", "ein Apfel", "une pomme", "una manzana"),
    T(A, 1, "old", "tree", "an old tree", "ein alter Baum", "un vieil arbre", "un árbol viejo"),
    T(A, 1, "new", "hotel", "a new hotel", "ein neues Hotel", "un nouvel hôtel", "un hotel nuevo"),
    T(A, 1, "beautiful", "bird", "a beautiful bird", "ein schöner Vogel", "un bel oiseau", "un pájaro bonito"),
    T(A, 2, "old", "tree", "two old trees", "zwei alte Bäume", "deux vieux arbres", "dos árboles viejos"),
    T(A, 1, "old", "church", "an old church", "eine alte Kirche", "une vieille église", "una iglesia vieja"),
    T(A, 1, "expensive", "car", "an expensive car", "ein teures Auto", "une voiture chère", "un coche caro"),
    T(A, 1, "good", "book", "a good book", "ein gutes Buch", "un bon livre", "un buen libro"),
    T(A, 3, "good", "chair", "three good chairs", "drei gute Stühle", "trois bonnes chaises", "tres buenas sillas"),
    T(A, 1, "white", "shirt", "a white shirt", "ein weißes Hemd", "une chemise blanche", "una camisa blanca"),
    T(A, 21, NULL, "book", "twenty-one books", "einundzwanzig Bücher", "vingt et un livres", "veintiún libros"),
    T(A, 21, NULL, "table", "twenty-one tables", "einundzwanzig Tische", "vingt et une tables", "veintiuna mesas"),
    T(A, 31, NULL, "house", "thirty-one houses", "einunddreißig Häuser", "trente et une maisons", "treinta y una casas"),
    T(A, 31, NULL, "dog", "thirty-one dogs", "einunddreißig Hunde", "trente et un chiens", "treinta y un perros"),
    T(A, 71, NULL, "flower", "seventy-one flowers", "einundsiebzig Blumen", "soixante et onze fleurs", "setenta y una flores"),
    T(A, 80, NULL, "horse", "eighty horses", "achtzig Pferde", "quatre-vingts chevaux", "ochenta caballos"),
    T(A, 81, NULL, "cow", "eighty-one cows", "einundachtzig Kühe", "quatre-vingt-une vaches", "ochenta y una vacas"),
    T(A, 100, "blue", "boat", "one hundred blue boats", "einhundert blaue Boote", "cent bateaux bleus", "cien barcos azules"),
    T(A, 200, NULL, "key", "two hundred keys", "zweihundert Schlüssel", "deux cents clés", "doscientas llaves"),
    T(A, 521, NULL, "lamp", "five hundred and twenty-one lamps", "fünfhunderteinundzwanzig Lampen", "cinq cent vingt et une lampes", "quinientas veintiuna lámparas"),
    T(OR, 7, NULL, "egg", "seven or eight eggs", "sieben oder acht Eier", "sept ou huit œufs", "siete u ocho huevos"),
    T(OR, 10, NULL, "window", "ten or eleven windows", "zehn oder elf Fenster", "dix ou onze fenêtres", "diez u once ventanas"),
    T(OR, 20, NULL, "box", "twenty or twenty-one boxes", "zwanzig oder einundzwanzig Kisten", "vingt ou vingt et une boîtes", "veinte o veintiuna cajas"),
    T(THE, 1, "red", "hat", "the red hat", "der rote Hut", "le chapeau rouge", "el sombrero rojo"),
    T(THE, 1, NULL, "school", "the school", "die Schule", "l'école", "la escuela"),
    T(THE, 1, "big", "orange", "the big orange", "die große Orange", "la grande orange", "la naranja grande"),
    T(THE, 3, "heavy", "bag", "the three heavy bags", "die drei schweren Taschen", "les trois sacs lourds", "las tres bolsas pesadas"),
    T(THIS, 1, NULL, "tree", "this tree", "dieser Baum", "cet arbre", "este árbol"),
    T(THIS, 1, "small", "hotel", "this small hotel", "dieses kleine Hotel", "ce petit hôtel", "este hotel pequeño"),
    T(THIS, 1, NULL, "clock", "this clock", "diese Uhr", "cette horloge", "este reloj"),
    T(THIS, 4, "green", "pencil", "these four green pencils", "diese vier grünen Bleistifte", "ces quatre crayons verts", "estos cuatro lápices verdes"),
    T(MY, 1, NULL, "orange", "my orange", "meine Orange", "mon orange", "mi naranja"),
    T(MY, 1, "small", "orange", "my small orange", "meine kleine Orange", "ma petite orange", "mi naranja pequeña"),
    T(MY, 1, "new", "coat", "my new coat", "mein neuer Mantel", "mon nouveau manteau", "mi abrigo nuevo"),
    T(MY, 5, "cheap", "newspaper", "my five cheap newspapers", "meine fünf billigen Zeitungen", "mes cinq journaux bon marché", "mis cinco periódicos baratos"),
};

#define O(count, adj, word, ...) {.frame = FTH_FRAME_ORDINAL, .things = {FTH_DET_ORDINAL, count, adj, word}, .text = {__VA_ARGS__}}
static const saying ordinals[] = {
    O(1, NULL, "book", "the first book", "das erste Buch", "le premier livre", "el primer libro"),
    O(1, NULL, "table", "the first table", "der erste Tisch", "la première table", "la primera mesa"),
    O(2, NULL, "house", "the second house", "das zweite Haus", "la deuxième maison", "la segunda casa"),
    O(3, NULL, "floor", "the third floor", "der dritte Stock", "le troisième étage", "el tercer piso"),
    O(3, "red", "box", "the third red box", "die dritte rote Kiste", "la troisième boîte rouge", "la tercera caja roja"),
    O(4, NULL, "dog", "the fourth dog", "der vierte Hund", "le quatrième chien", "el cuarto perro"),
    O(5, NULL, "film", "the fifth film", "der fünfte Film", "le cinquième film", "la quinta película"),
    O(7, NULL, "door", "the seventh door", "die siebte Tür", "la septième porte", "la séptima puerta"),
    O(8, NULL, "letter", "the eighth letter", "der achte Brief", "la huitième lettre", "la octava carta"),
    O(9, NULL, "concert", "the ninth concert", "das neunte Konzert", "le neuvième concert", "el noveno concierto"),
    O(11, NULL, "room", "the eleventh room", "das elfte Zimmer", "la onzième chambre", "la undécima habitación"),
    O(12, NULL, "cat", "the twelfth cat", "die zwölfte Katze", "le douzième chat", "el duodécimo gato"),
    O(13, NULL, "floor", "the thirteenth floor", "der dreizehnte Stock", "le treizième étage", "el decimotercer piso"),
    O(13, NULL, "key", "the thirteenth key", "der dreizehnte Schlüssel", "la treizième clé", "la decimotercera llave"),
    O(20, NULL, "hat", "the twentieth hat", "der zwanzigste Hut", "le vingtième chapeau", "el vigésimo sombrero"),
    O(21, NULL, "bird", "the twenty-first bird", "der einundzwanzigste Vogel", "le vingt et unième oiseau", "el vigésimo primer pájaro"),
    O(21, NULL, "city", "the twenty-first city", "die einundzwanzigste Stadt", "la vingt et unième ville", "la vigésima primera ciudad"),
    O(71, NULL, "tree", "the seventy-first tree", "der einundsiebzigste Baum", "le soixante et onzième arbre", "el septuagésimo primer árbol"),
    O(80, NULL, "concert", "the eightieth concert", "das achtzigste Konzert", "le quatre-vingtième concert", "el octogésimo concierto"),
    O(99, NULL, "cow", "the ninety-ninth cow", "die neunundneunzigste Kuh", "la quatre-vingt-dix-neuvième vache", "la nonagésima novena vaca"),
    O(100, "old", "car", "the one hundredth old car", "das hundertste alte Auto", "la centième vieille voiture", "el centésimo coche viejo"),
};

/* ---- dates and times ---- */

#define D(...) {.frame = FTH_FRAME_DATE, __VA_ARGS__}
static const saying dates[] = {
    D(.date = {0, 1, 1, 0}, .text = {"the first of January", "der erste Januar", "le premier janvier", "el primero de enero"}),
    D(.date = {0, 3, 3, 0}, .text = {"the third of March", "der dritte März", "le trois mars", "el tres de marzo"}),
    D(.date = {0, 8, 5, 0}, .text = {"the eighth of May", "der achte Mai", "le huit mai", "el ocho de mayo"}),
    D(.date = {0, 11, 11, 0}, .text = {"the eleventh of November", "der elfte November", "le onze novembre", "el once de noviembre"}),
    D(.date = {0, 16, 8, 0}, .text = {"the sixteenth of August", "der sechzehnte August", "le seize août", "el dieciséis de agosto"}),
    D(.date = {0, 21, 2, 0}, .text = {"the twenty-first of February", "der einundzwanzigste Februar", "le vingt et un février", "el veintiuno de febrero"}),
    D(.date = {0, 31, 12, 0}, .text = {"the thirty-first of December", "der einunddreißigste Dezember", "le trente et un décembre", "el treinta y uno de diciembre"}),
    D(.date = {3, 12, 6, 0}, .text = {"Wednesday, the twelfth of June", "Mittwoch, der zwölfte Juni", "le mercredi douze juin", "el miércoles doce de junio"}),
    D(.date = {1, 1, 9, 0}, .text = {"Monday, the first of September", "Montag, der erste September", "le lundi premier septembre", "el lunes primero de septiembre"}),
    D(.date = {0, 14, 7, 1900}, .text = {"the fourteenth of July nineteen hundred", "der vierzehnte Juli neunzehnhundert", "le quatorze juillet mille neuf cent", "el catorce de julio de mil novecientos"}),
    D(.date = {0, 2, 4, 1905}, .text = {"the second of April nineteen oh five", "der zweite April neunzehnhundertfünf", "le deux avril mille neuf cent cinq", "el dos de abril de mil novecientos cinco"}),
    D(.date = {0, 9, 10, 1980}, .text = {"the ninth of October nineteen eighty", "der neunte Oktober neunzehnhundertachtzig", "le neuf octobre mille neuf cent quatre-vingt", "el nueve de octubre de mil novecientos ochenta"}),
    D(.date = {5, 22, 3, 1895}, .text = {"Friday, the twenty-second of March eighteen ninety-five", "Freitag, der zweiundzwanzigste März achtzehnhundertfünfundneunzig", "le vendredi vingt-deux mars mille huit cent quatre-vingt-quinze", "el viernes veintidós de marzo de mil ochocientos noventa y cinco"}),
    D(.date = {0, 7, 1, 2000}, .text = {"the seventh of January two thousand", "der siebte Januar zweitausend", "le sept janvier deux mille", "el siete de enero de dos mil"}),
    D(.date = {0, 7, 1, 2001}, .text = {"the seventh of January two thousand and one", "der siebte Januar zweitausendeins", "le sept janvier deux mille un", "el siete de enero de dos mil uno"}),
    D(.date = {0, 30, 6, 2016}, .text = {"the thirtieth of June twenty sixteen", "der dreißigste Juni zweitausendsechzehn", "le trente juin deux mille seize", "el treinta de junio de dos mil dieciséis"}),
    {.frame = FTH_FRAME_TODAY, .date = {2, 1, 5, 0}, .text = {"Today is Tuesday, the first of May.", "Heute ist Dienstag, der erste Mai.", "Nous sommes le mardi premier mai.", "Hoy es martes, primero de mayo."}},
    {.frame = FTH_FRAME_TODAY, .date = {0, 17, 8, 0}, .text = {"Today is the seventeenth of August.", "Heute ist der siebzehnte August.", "Nous sommes le dix-sept août.", "Hoy es diecisiete de agosto."}},
};

#define AT(h, min, part, ...) {.frame = FTH_FRAME_TIME, .time = {h, min, part}, .text = {__VA_ARGS__}}
#define IS(h, min, part, ...) {.frame = FTH_FRAME_CLOCK, .time = {h, min, part}, .text = {__VA_ARGS__}}
static const saying times[] = {
    AT(7, 0, 0, "at seven o'clock", "um sieben Uhr", "à sept heures", "a las siete"),
    AT(1, 0, 0, "at one o'clock", "um ein Uhr", "à une heure", "a la una"),
    AT(7, 5, 0, "at five past seven", "um fünf nach sieben", "à sept heures cinq", "a las siete y cinco"),
    AT(7, 15, 0, "at quarter past seven", "um Viertel nach sieben", "à sept heures et quart", "a las siete y cuarto"),
    AT(1, 15, 0, "at quarter past one", "um Viertel nach eins", "à une heure et quart", "a la una y cuarto"),
    AT(7, 20, 0, "at twenty past seven", "um zwanzig nach sieben", "à sept heures vingt", "a las siete y veinte"),
    AT(7, 25, 0, "at twenty-five past seven", "um fünf vor halb acht", "à sept heures vingt-cinq", "a las siete y veinticinco"),
    AT(7, 30, 0, "at half past seven", "um halb acht", "à sept heures et demie", "a las siete y media"),
    AT(11, 30, 0, "at half past eleven", "um halb zwölf", "à onze heures et demie", "a las once y media"),
    AT(7, 35, 0, "at twenty-five to eight", "um fünf nach halb acht", "à huit heures moins vingt-cinq", "a las ocho menos veinticinco"),
    AT(7, 40, 0, "at twenty to eight", "um zwanzig vor acht", "à huit heures moins vingt", "a las ocho menos veinte"),
    AT(7, 45, 0, "at quarter to eight", "um Viertel vor acht", "à huit heures moins le quart", "a las ocho menos cuarto"),
    AT(7, 55, 0, "at five to eight", "um fünf vor acht", "à huit heures moins cinq", "a las ocho menos cinco"),
    AT(7, 23, 0, "at twenty-three minutes past seven", "um dreiundzwanzig Minuten nach sieben", "à sept heures vingt-trois", "a las siete y veintitrés"),
    AT(9, 44, 0, "at sixteen minutes to ten", "um sechzehn Minuten vor zehn", "à dix heures moins seize", "a las diez menos dieciséis"),
    AT(6, 30, 1, "at half past six in the morning", "um halb sieben morgens", "à six heures et demie du matin", "a las seis y media de la mañana"),
    AT(11, 0, 1, "at eleven o'clock in the morning", "um elf Uhr vormittags", "à onze heures du matin", "a las once de la mañana"),
    AT(3, 0, 1, "at three o'clock in the morning", "um drei Uhr nachts", "à trois heures du matin", "a las tres de la madrugada"),
    AT(12, 0, 1, "at noon", "um zwölf Uhr mittags", "à midi", "a las doce del mediodía"),
    AT(0, 0, 1, "at midnight", "um zwölf Uhr nachts", "à minuit", "a las doce de la noche"),
    AT(12, 30, 1, "at half past twelve in the afternoon", "um halb eins mittags", "à midi et demi", "a las doce y media del mediodía"),
    AT(0, 30, 1, "at half past twelve at night", "um halb eins nachts", "à minuit et demi", "a las doce y media de la noche"),
    AT(11, 45, 1, "at quarter to twelve in the morning", "um Viertel vor zwölf vormittags", "à midi moins le quart", "a las doce menos cuarto de la mañana"),
    AT(23, 50, 1, "at ten to twelve at night", "um zehn vor zwölf nachts", "à minuit moins dix", "a las doce menos diez de la noche"),
    AT(13, 0, 1, "at one o'clock in the afternoon", "um ein Uhr nachmittags", "à une heure de l'après-midi", "a la una de la tarde"),
    AT(12, 45, 1, "at quarter to one in the afternoon", "um Viertel vor eins mittags", "à une heure moins le quart de l'après-midi", "a la una menos cuarto del mediodía"),
    AT(19, 0, 1, "at seven o'clock in the evening", "um sieben Uhr abends", "à sept heures du soir", "a las siete de la tarde"),
    AT(21, 15, 1, "at quarter past nine in the evening", "um Viertel nach neun abends", "à neuf heures et quart du soir", "a las nueve y cuarto de la noche"),
    IS(1, 0, 0, "It is one o'clock.", "Es ist ein Uhr.", "Il est une heure.", "Es la una."),
    IS(12, 50, 1, "It is ten to one in the afternoon.", "Es ist zehn vor eins mittags.", "Il est une heure moins dix de l'après-midi.", "Es la una menos diez del mediodía."),
    IS(4, 30, 0, "It is half past four.", "Es ist halb fünf.", "Il est quatre heures et demie.", "Son las cuatro y media."),
    IS(12, 0, 1, "It is noon.", "Es ist zwölf Uhr mittags.", "Il est midi.", "Son las doce del mediodía."),
};

/* ---- prices and measures ---- */

#define P(n, c, coin, ...) {.frame = FTH_FRAME_PRICE, .price = {n, c, coin}, .text = {__VA_ARGS__}}
static const saying prices[] = {
    P(1, 0, "euro", "one euro", "ein Euro", "un euro", "un euro"),
    P(12, 50, "euro", "twelve euros and fifty cents", "zwölf Euro und fünfzig Cent", "douze euros et cinquante centimes", "doce euros y cincuenta céntimos"),
    P(21, 1, "euro", "twenty-one euros and one cent", "einundzwanzig Euro und ein Cent", "vingt et un euros et un centime", "veintiún euros y un céntimo"),
    P(1, 21, "dollar", "one dollar and twenty-one cents", "ein Dollar und einundzwanzig Cent", "un dollar et vingt et un cents", "un dólar y veintiún centavos"),
    P(80, 80, "dollar", "eighty dollars and eighty cents", "achtzig Dollar und achtzig Cent", "quatre-vingts dollars et quatre-vingts cents", "ochenta dólares y ochenta centavos"),
    P(1, 1, "pound", "one pound and one penny", "ein Pfund und ein Penny", "une livre sterling et un penny", "una libra esterlina y un penique"),
    P(21, 5, "pound", "twenty-one pounds and five pence", "einundzwanzig Pfund und fünf Pence", "vingt et une livres sterling et cinq pence", "veintiuna libras esterlinas y cinco peniques"),
    P(200, 0, "pound", "two hundred pounds", "zweihundert Pfund", "deux cents livres sterling", "doscientas libras esterlinas"),
    P(750500, 0, "pound", "seven hundred and fifty thousand five hundred pounds", "siebenhundertfünfzigtausendfünfhundert Pfund", "sept cent cinquante mille cinq cents livres sterling", "setecientas cincuenta mil quinientas libras esterlinas"),
    P(31, 31, "franc", "thirty-one francs and thirty-one centimes", "einunddreißig Franken und einunddreißig Rappen", "trente et un francs et trente et un centimes", "treinta y un francos y treinta y un céntimos"),
};

#define A(n, h, u, what, ...) {.frame = FTH_FRAME_PORTION, .amount = {n, h, u, what}, .text = {__VA_ARGS__}}
static const saying measures[] = {
    A(1, 0, "kilometre", NULL, "one kilometre", "ein Kilometer", "un kilomètre", "un kilómetro"),
    A(21, 0, "metre", NULL, "twenty-one metres", "einundzwanzig Meter", "vingt et un mètres", "veintiún metros"),
    A(1, 0, "hour", NULL, "one hour", "eine Stunde", "une heure", "una hora"),
    A(21, 0, "hour", NULL, "twenty-one hours", "einundzwanzig Stunden", "vingt et une heures", "veintiuna horas"),
    A(31, 0, "minute", NULL, "thirty-one minutes", "einunddreißig Minuten", "trente et une minutes", "treinta y un minutos"),
    A(0, 1, "hour", NULL, "half an hour", "eine halbe Stunde", "une demi-heure", "media hora"),
    A(0, 1, "litre", NULL, "half a litre", "ein halber Liter", "un demi-litre", "medio litro"),
    A(0, 1, "kilo", NULL, "half a kilo", "ein halbes Kilo", "un demi-kilo", "medio kilo"),
    A(1, 1, "hour", NULL, "one and a half hours", "eineinhalb Stunden", "une heure et demie", "una hora y media"),
    A(1, 1, "kilo", NULL, "one and a half kilos", "eineinhalb Kilo", "un kilo et demi", "un kilo y medio"),
    A(2, 1, "hour", NULL, "two and a half hours", "zweieinhalb Stunden", "deux heures et demie", "dos horas y media"),
    A(3, 0, "month", NULL, "three months", "drei Monate", "trois mois", "tres meses"),
    A(3, 0, "kilo", "apples", "three kilos of apples", "drei Kilo Äpfel", "trois kilos de pommes", "tres kilos de manzanas"),
    A(3, 1, "kilo", "oranges", "three and a half kilos of oranges", "dreieinhalb Kilo Orangen", "trois kilos et demi d'oranges", "tres kilos y medio de naranjas"),
    A(200, 0, "gram", "cheese", "two hundred grams of cheese", "zweihundert Gramm Käse", "deux cents grammes de fromage", "doscientos gramos de queso"),
    A(1, 0, "bottle", "water", "a bottle of water", "eine Flasche Wasser", "une bouteille d'eau", "una botella de agua"),
    A(2, 0, "glass", "juice", "two glasses of juice", "zwei Gläser Saft", "deux verres de jus", "dos vasos de zumo"),
    A(0, 1, "bottle", "oil", "half a bottle of oil", "eine halbe Flasche Öl", "une demi-bouteille d'huile", "media botella de aceite"),
    A(21, 0, "cup", "tea", "twenty-one cups of tea", "einundzwanzig Tassen Tee", "vingt et une tasses de thé", "veintiuna tazas de té"),
    A(5, 0, "kilo", "potatoes", "five kilos of potatoes", "fünf Kilo Kartoffeln", "cinq kilos de pommes de terre", "cinco kilos de patatas"),
};

/* ---- sentences ---- */

#define S(id, ...) {.frame = FTH_FRAME_##id, __VA_ARGS__}
#define SAYS(...) .text = {__VA_ARGS__}
static const saying sentences[] = {
    S(SUM, .number = 3, .operation = "plus", .other = 4, .result = 7, SAYS("Three plus four is seven.", "Drei plus vier ist sieben.", "Trois plus quatre font sept.", "Tres más cuatro son siete.")),
    S(SUM, .number = 82, .operation = "minus", .other = 1, .result = 81, SAYS("Eighty-two minus one is eighty-one.", "Zweiundachtzig minus eins ist einundachtzig.", "Quatre-vingt-deux moins un font quatre-vingt-un.", "Ochenta y dos menos uno son ochenta y uno.")),
    S(SUM, .number = 8, .operation = "times", .other = 10, .result = 80, SAYS("Eight times ten is eighty.", "Acht mal zehn ist achtzig.", "Huit fois dix font quatre-vingts.", "Ocho por diez son ochenta.")),
    S(BUS, .number = 80, .place = {FTH_DET_THE, 1, NULL, "station"}, SAYS("Bus number eighty goes to the station.", "Der Bus Nummer achtzig fährt zum Bahnhof.", "Le bus numéro quatre-vingt va à la gare.", "El autobús número ochenta va a la estación.")),
    S(BUS, .number = 1, .place = {FTH_DET_THE, 1, NULL, "museum"}, SAYS("Bus number one goes to the museum.", "Der Bus Nummer eins fährt zum Museum.", "Le bus numéro un va au musée.", "El autobús número uno va al museo.")),
    S(BUS, .number = 2, .place = {FTH_DET_THE, 1, NULL, "church"}, SAYS("Bus number two goes to the church.", "Der Bus Nummer zwei fährt zur Kirche.", "Le bus numéro deux va à l'église.", "El autobús número dos va a la iglesia.")),
    S(BUS, .number = 3, .place = {FTH_DET_THE, 1, NULL, "hotel"}, SAYS("Bus number three goes to the hotel.", "Der Bus Nummer drei fährt zum Hotel.", "Le bus numéro trois va à l'hôtel.", "El autobús número tres va al hotel.")),
    S(BORN, .who = "Anna", .date = {0, 1, 3, 1995}, SAYS("Anna was born on the first of March nineteen ninety-five.", "Anna wurde am ersten März neunzehnhundertfünfundneunzig geboren.", "Anna est née le premier mars mille neuf cent quatre-vingt-quinze.", "Anna nació el primero de marzo de mil novecientos noventa y cinco.")),
    S(BORN, .who = "we", .date = {0, 21, 6, 2000}, SAYS("We were born on the twenty-first of June two thousand.", "Wir wurden am einundzwanzigsten Juni zweitausend geboren.", "Nous sommes nés le vingt et un juin deux mille.", "Nacimos el veintiuno de junio de dos mil.")),
    S(BORN, .who = "I", .date = {0, 8, 8, 1980}, SAYS("I was born on the eighth of August nineteen eighty.", "Ich wurde am achten August neunzehnhundertachtzig geboren.", "Je suis né le huit août mille neuf cent quatre-vingt.", "Nací el ocho de agosto de mil novecientos ochenta.")),
    S(BUILT, .things = {FTH_DET_THE, 1, "old", "house"}, .date = {.year = 1801}, SAYS("The old house was built in eighteen oh one.", "Das alte Haus wurde im Jahr achtzehnhunderteins gebaut.", "La vieille maison a été construite en mille huit cent un.", "La casa vieja fue construida en mil ochocientos uno.")),
    S(BUILT, .things = {FTH_DET_THIS, 1, NULL, "bridge"}, .date = {.year = 1900}, SAYS("This bridge was built in nineteen hundred.", "Diese Brücke wurde im Jahr neunzehnhundert gebaut.", "Ce pont a été construit en mille neuf cent.", "Este puente fue construido en mil novecientos.")),
    S(EVENT_ON, .things = {FTH_DET_THE, 1, NULL, "party"}, .date = {1, 3, 3, 0}, SAYS("The party is on Monday, the third of March.", "Das Fest ist am Montag, dem dritten März.", "La fête a lieu le lundi trois mars.", "La fiesta es el lunes tres de marzo.")),
    S(EVENT_ON, .things = {FTH_DET_THE, 1, NULL, "match"}, .date = {0, 1, 4, 0}, SAYS("The match is on the first of April.", "Das Spiel ist am ersten April.", "Le match a lieu le premier avril.", "El partido es el primero de abril.")),
    S(EVENT_AT, .things = {FTH_DET_THE, 1, NULL, "concert"}, .verb = "begin", .time = {7, 30, 0}, SAYS("The concert begins at half past seven.", "Das Konzert beginnt um halb acht.", "Le concert commence à sept heures et demie.", "El concierto empieza a las siete y media.")),
    S(EVENT_AT, .things = {FTH_DET_THE, 1, NULL, "ferry"}, .verb = "leave", .time = {1, 0, 0}, SAYS("The ferry leaves at one o'clock.", "Die Fähre fährt um ein Uhr ab.", "Le ferry part à une heure.", "El ferri sale a la una.")),
    S(TRAIN, .things = {FTH_DET_THE, 1, NULL, "train"}, .verb = "arrive", .city = "Vienna", .time = {17, 45, 1}, SAYS("The train to Vienna arrives at quarter to six in the afternoon.", "Der Zug nach Wien kommt um Viertel vor sechs nachmittags an.", "Le train pour Vienne arrive à six heures moins le quart de l'après-midi.", "El tren a Viena llega a las seis menos cuarto de la tarde.")),
    S(DAILY, .who = "I", .verb = "arrive", .time = {8, 0, 0}, SAYS("I arrive at eight o'clock.", "Ich komme um acht Uhr an.", "J'arrive à huit heures.", "Llego a las ocho.")),
    S(DAILY, .who = "we", .verb = "get up", .time = {6, 15, 0}, SAYS("We get up at quarter past six.", "Wir stehen um Viertel nach sechs auf.", "Nous nous levons à six heures et quart.", "Nos levantamos a las seis y cuarto.")),
    S(DAILY, .who = "the children", .verb = "go home", .time = {1, 0, 0}, SAYS("The children go home at one o'clock.", "Die Kinder gehen um ein Uhr nach Hause.", "Les enfants rentrent à une heure.", "Los niños vuelven a casa a la una.")),
    S(WEEKLY, .things = {FTH_DET_THE, 1, NULL, "shop"}, .verb = "open", .date = {.weekday = 1}, .time = {8, 0, 0}, SAYS("On Monday the shop opens at eight o'clock.", "Am Montag öffnet der Laden um acht Uhr.", "Lundi, le magasin ouvre à huit heures.", "El lunes la tienda abre a las ocho.")),
    S(WEEKLY, .who = "he", .verb = "get up", .date = {.weekday = 7}, .time = {10, 0, 0}, SAYS("On Sunday he gets up at ten o'clock.", "Am Sonntag steht er um zehn Uhr auf.", "Dimanche, il se lève à dix heures.", "El domingo él se levanta a las diez.")),
    S(JOURNEY, .who = "my parents", .verb = "set out", .city = "London", .date = {0, 11, 7, 0}, SAYS("My parents travel to London on the eleventh of July.", "Meine Eltern reisen am elften Juli nach London.", "Mes parents partent pour Londres le onze juillet.", "Mis padres viajan a Londres el once de julio.")),
    S(AGE, .who = "she", .amount = {21, 0, "year", NULL}, SAYS("She is twenty-one years old.", "Sie ist einundzwanzig Jahre alt.", "Elle a vingt et un ans.", "Ella tiene veintiún años.")),
    S(AGE, .who = "I", .amount = {80, 0, "year", NULL}, SAYS("I am eighty years old.", "Ich bin achtzig Jahre alt.", "J'ai quatre-vingts ans.", "Tengo ochenta años.")),
    S(LASTS, .things = {FTH_DET_THE, 1, NULL, "course"}, .verb = "last", .amount = {1, 0, "day", NULL}, SAYS("The course lasts one day.", "Der Kurs dauert einen Tag.", "Le cours dure un jour.", "El curso dura un día.")),
    S(LASTS, .things = {FTH_DET_THIS, 1, NULL, "film"}, .verb = "last", .amount = {2, 1, "hour", NULL}, SAYS("This film lasts two and a half hours.", "Dieser Film dauert zweieinhalb Stunden.", "Ce film dure deux heures et demie.", "Esta película dura dos horas y media.")),
    S(WEIGHS, .things = {FTH_DET_ORDINAL, 1, NULL, "box"}, .verb = "weigh", .amount = {0, 1, "kilo", NULL}, SAYS("The first box weighs half a kilo.", "Die erste Kiste wiegt ein halbes Kilo.", "La première boîte pèse un demi-kilo.", "La primera caja pesa medio kilo.")),
    S(WEIGHS, .things = {FTH_DET_THE, 3, NULL, "dog"}, .verb = "weigh", .amount = {31, 0, "kilo", NULL}, SAYS("The three dogs weigh thirty-one kilos.", "Die drei Hunde wiegen einunddreißig Kilo.", "Les trois chiens pèsent trente et un kilos.", "Los tres perros pesan treinta y un kilos.")),
    S(DISTANCE, .things = {FTH_DET_THE, 1, NULL, "station"}, .place = {FTH_DET_THE, 1, NULL, "museum"}, .amount = {1, 0, "kilometre", NULL}, SAYS("The station is one kilometre from the museum.", "Der Bahnhof ist einen Kilometer vom Museum entfernt.", "La gare est à un kilomètre du musée.", "La estación está a un kilómetro del museo.")),
    S(DISTANCE, .things = {FTH_DET_THE, 1, NULL, "school"}, .place = {FTH_DET_THE, 1, NULL, "church"}, .amount = {0, 1, "kilometre", NULL}, SAYS("The school is half a kilometre from the church.", "Die Schule ist einen halben Kilometer von der Kirche entfernt.", "L'école est à un demi-kilomètre de l'église.", "La escuela está a medio kilómetro de la iglesia.")),
    S(DISTANCE, .things = {FTH_DET_THE, 1, NULL, "hotel"}, .place = {FTH_DET_THE, 1, NULL, "station"}, .amount = {200, 0, "metre", NULL}, SAYS("The hotel is two hundred metres from the station.", "Das Hotel ist zweihundert Meter vom Bahnhof entfernt.", "L'hôtel est à deux cents mètres de la gare.", "El hotel está a doscientos metros de la estación.")),
    S(SIZE, .things = {FTH_DET_THE, 1, NULL, "table"}, .dimension = "long", .amount = {1, 0, "metre", NULL}, SAYS("The table is one metre long.", "Der Tisch ist einen Meter lang.", "La table mesure un mètre de long.", "La mesa mide un metro de largo.")),
    S(SIZE, .things = {FTH_DET_THIS, 1, "old", "tree"}, .dimension = "high", .amount = {8, 1, "metre", NULL}, SAYS("This old tree is eight and a half metres high.", "Dieser alte Baum ist achteinhalb Meter hoch.", "Ce vieil arbre mesure huit mètres et demi de haut.", "Este árbol viejo mide ocho metros y medio de alto.")),
    S(WARMTH, .city = "Vienna", .number = -5, SAYS("It is minus five degrees in Vienna.", "In Wien sind es minus fünf Grad.", "Il fait moins cinq degrés à Vienne.", "En Viena hace cinco grados bajo cero.")),
    S(WARMTH, .city = "Athens", .number = 21, SAYS("It is twenty-one degrees in Athens.", "In Athen sind es einundzwanzig Grad.", "Il fait vingt et un degrés à Athènes.", "En Atenas hace veintiún grados.")),
    S(WARMTH, .city = "Paris", .number = 1, SAYS("It is one degree in Paris.", "In Paris ist es ein Grad.", "Il fait un degré à Paris.", "En París hace un grado.")),
    S(WARMTH, .city = "Rome", .number = 0, SAYS("It is zero degrees in Rome.", "In Rom sind es null Grad.", "Il fait zéro degré à Rome.", "En Roma hace cero grados.")),
    S(COST, .things = {FTH_DET_THE, 1, "red", "book"}, .verb = "cost", .price = {1, 0, "euro"}, SAYS("The red book costs one euro.", "Das rote Buch kostet einen Euro.", "Le livre rouge coûte un euro.", "El libro rojo cuesta un euro.")),
    S(COST, .things = {FTH_DET_A, 2, NULL, "orange"}, .verb = "cost", .price = {1, 1, "franc"}, SAYS("Two oranges cost one franc and one centime.", "Zwei Orangen kosten einen Franken und einen Rappen.", "Deux oranges coûtent un franc et un centime.", "Dos naranjas cuestan un franco y un céntimo.")),
    S(COST, .things = {FTH_DET_ORDINAL, 3, NULL, "house"}, .verb = "cost", .price = {200000, 0, "pound"}, SAYS("The third house costs two hundred thousand pounds.", "Das dritte Haus kostet zweihunderttausend Pfund.", "La troisième maison coûte deux cent mille livres sterling.", "La tercera casa cuesta doscientas mil libras esterlinas.")),
    S(PORTION_COST, .amount_is_subject = 1, .amount = {1, 1, "kilo", "pears"}, .verb = "cost", .price = {3, 0, "euro"}, SAYS("One and a half kilos of pears cost three euros.", "Eineinhalb Kilo Birnen kosten drei Euro.", "Un kilo et demi de poires coûte trois euros.", "Un kilo y medio de peras cuesta tres euros.")),
    S(PORTION_COST, .amount_is_subject = 1, .amount = {0, 1, "litre", "milk"}, .verb = "cost", .price = {1, 0, "euro"}, SAYS("Half a litre of milk costs one euro.", "Ein halber Liter Milch kostet einen Euro.", "Un demi-litre de lait coûte un euro.", "Medio litro de leche cuesta un euro.")),
    S(PORTION_COST, .amount_is_subject = 1, .amount = {2, 0, "cup", "coffee"}, .verb = "cost", .price = {5, 20, "euro"}, SAYS("Two cups of coffee cost five euros and twenty cents.", "Zwei Tassen Kaffee kosten fünf Euro und zwanzig Cent.", "Deux tasses de café coûtent cinq euros et vingt centimes.", "Dos tazas de café cuestan cinco euros y veinte céntimos.")),
    S(HOW_MUCH, .things = {FTH_DET_THE, 1, "blue", "car"}, .verb = "cost", SAYS("How much does the blue car cost?", "Wie viel kostet das blaue Auto?", "Combien coûte la voiture bleue ?", "¿Cuánto cuesta el coche azul?")),
    S(HOW_MUCH, .things = {FTH_DET_THIS, 3, NULL, "umbrella"}, .verb = "cost", SAYS("How much do these three umbrellas cost?", "Wie viel kosten diese drei Regenschirme?", "Combien coûtent ces trois parapluies ?", "¿Cuánto cuestan estos tres paraguas?")),
    S(TAKE, .who = "I", .verb = "buy", .things = {FTH_DET_A, 1, "black", "hat"}, SAYS("I buy a black hat.", "Ich kaufe einen schwarzen Hut.", "J'achète un chapeau noir.", "Compro un sombrero negro.")),
    S(TAKE, .who = "he", .verb = "look for", .things = {FTH_DET_MY, 1, NULL, "key"}, SAYS("He is looking for my key.", "Er sucht meinen Schlüssel.", "Il cherche ma clé.", "Él busca mi llave.")),
    S(TAKE, .who = "they", .verb = "see", .things = {FTH_DET_THE, 1, "old", "dog"}, SAYS("They see the old dog.", "Sie sehen den alten Hund.", "Ils voient le vieux chien.", "Ellos ven el perro viejo.")),
    S(TAKE, .who = "we", .verb = "need", .things = {FTH_DET_A, 1, NULL, "umbrella"}, SAYS("We need an umbrella.", "Wir brauchen einen Regenschirm.", "Nous avons besoin d'un parapluie.", "Necesitamos un paraguas.")),
    S(TAKE, .who = "I", .verb = "need", .things = {FTH_DET_A, 11, NULL, "chair"}, SAYS("I need eleven chairs.", "Ich brauche elf Stühle.", "J'ai besoin de onze chaises.", "Necesito once sillas.")),
    S(TAKE, .who = "Paul", .verb = "need", .things = {FTH_DET_THE, 2, NULL, "letter"}, SAYS("Paul needs the two letters.", "Paul braucht die zwei Briefe.", "Paul a besoin des deux lettres.", "Paul necesita las dos cartas.")),
    S(TAKE, .who = "Paul", .verb = "need", .things = {FTH_DET_THE, 1, NULL, "boat"}, SAYS("Paul needs the boat.", "Paul braucht das Boot.", "Paul a besoin du bateau.", "Paul necesita el barco.")),
    S(TAKE_TWO, .who = "my sister", .verb = "draw", .things = {FTH_DET_A, 1, NULL, "tree"}, .place = {FTH_DET_A, 3, "white", "cat"}, SAYS("My sister draws a tree and three white cats.", "Meine Schwester zeichnet einen Baum und drei weiße Katzen.", "Ma sœur dessine un arbre et trois chats blancs.", "Mi hermana dibuja un árbol y tres gatos blancos.")),
    S(YESTERDAY, .who = "I", .verb = "find", .things = {FTH_DET_THIS, 1, NULL, "clock"}, SAYS("Yesterday I found this clock.", "Gestern habe ich diese Uhr gefunden.", "Hier, j'ai trouvé cette horloge.", "Ayer encontré este reloj.")),
    S(YESTERDAY, .who = "they", .verb = "look for", .things = {FTH_DET_THE, 1, NULL, "coat"}, SAYS("Yesterday they looked for the coat.", "Gestern haben sie den Mantel gesucht.", "Hier, ils ont cherché le manteau.", "Ayer ellos buscaron el abrigo.")),
    S(TOMORROW, .who = "we", .verb = "sell", .things = {FTH_DET_A, 3, "good", "horse"}, SAYS("Tomorrow we will sell three good horses.", "Morgen werden wir drei gute Pferde verkaufen.", "Demain, nous allons vendre trois bons chevaux.", "Mañana vamos a vender tres buenos caballos.")),
    S(IN_YEAR, .who = "the man", .verb = "see", .things = {FTH_DET_A, 1, NULL, "bird"}, .date = {.year = 2010}, SAYS("In twenty ten the man saw a bird.", "Im Jahr zweitausendzehn hat der Mann einen Vogel gesehen.", "En deux mille dix, l'homme a vu un oiseau.", "En dos mil diez el hombre vio un pájaro.")),
    S(PORTION_TAKE, .who = "Clara", .verb = "buy", .amount = {0, 1, "litre", "milk"}, SAYS("Clara buys half a litre of milk.", "Clara kauft einen halben Liter Milch.", "Clara achète un demi-litre de lait.", "Clara compra medio litro de leche.")),
    S(PORTION_TAKE, .who = "I", .verb = "need", .amount = {1, 0, "litre", "oil"}, SAYS("I need one litre of oil.", "Ich brauche einen Liter Öl.", "J'ai besoin d'un litre d'huile.", "Necesito un litro de aceite.")),
    S(TOGETHER, .who = "I", .verb = "travel", .things = {FTH_DET_A, 3, NULL, "child"}, SAYS("I travel with three children.", "Ich reise mit drei Kindern.", "Je voyage avec trois enfants.", "Viajo con tres niños.")),
    S(TOGETHER, .who = "Laura", .verb = "play", .things = {FTH_DET_MY, 1, NULL, "sister"}, SAYS("Laura plays with my sister.", "Laura spielt mit meiner Schwester.", "Laura joue avec ma sœur.", "Laura juega con mi hermana.")),
    S(TOGETHER, .who = "he", .verb = "work", .things = {FTH_DET_MY, 2, NULL, "brother"}, SAYS("He works with my two brothers.", "Er arbeitet mit meinen zwei Brüdern.", "Il travaille avec mes deux frères.", "Él trabaja con mis dos hermanos.")),
    S(TOGETHER, .who = "she", .verb = "travel", .things = {FTH_DET_A, 1, NULL, "friend"}, SAYS("She travels with a friend.", "Sie reist mit einem Freund.", "Elle voyage avec un ami.", "Ella viaja con un amigo.")),
    S(INSIDE, .who = "I", .verb = "live", .things = {FTH_DET_A, 1, "small", "house"}, SAYS("I live in a small house.", "Ich wohne in einem kleinen Haus.", "J'habite dans une petite maison.", "Vivo en una casa pequeña.")),
    S(INSIDE, .who = "we", .verb = "work", .things = {FTH_DET_A, 3, "big", "city"}, SAYS("We work in three big cities.", "Wir arbeiten in drei großen Städten.", "Nous travaillons dans trois grandes villes.", "Trabajamos en tres ciudades grandes.")),
    S(INSIDE, .who = "she", .verb = "work", .things = {FTH_DET_THE, 1, NULL, "office"}, SAYS("She works in the office.", "Sie arbeitet im Büro.", "Elle travaille dans le bureau.", "Ella trabaja en la oficina.")),
    S(INSIDE, .who = "my father", .verb = "work", .things = {FTH_DET_THIS, 1, "new", "library"}, SAYS("My father works in this new library.", "Mein Vater arbeitet in dieser neuen Bibliothek.", "Mon père travaille dans cette nouvelle bibliothèque.", "Mi padre trabaja en esta biblioteca nueva.")),
    S(INSIDE, .who = "he", .verb = "work", .things = {FTH_DET_A, 4, NULL, "hotel"}, SAYS("He works in four hotels.", "Er arbeitet in vier Hotels.", "Il travaille dans quatre hôtels.", "Él trabaja en cuatro hoteles.")),
    S(FLOOR, .who = "Anna", .verb = "live", .things = {FTH_DET_ORDINAL, 3, NULL, "floor"}, SAYS("Anna lives on the third floor.", "Anna wohnt im dritten Stock.", "Anna habite au troisième étage.", "Anna vive en el tercer piso.")),
    S(FLOOR, .who = "the woman", .verb = "sleep", .things = {FTH_DET_ORDINAL, 11, NULL, "floor"}, SAYS("The woman sleeps on the eleventh floor.", "Die Frau schläft im elften Stock.", "La femme dort au onzième étage.", "La mujer duerme en el undécimo piso.")),
    S(THERE, .things = {FTH_DET_A, 1, NULL, "tree"}, .place = {FTH_DET_THE, 1, NULL, "garden"}, SAYS("There is a tree in the garden.", "Im Garten gibt es einen Baum.", "Il y a un arbre dans le jardin.", "Hay un árbol en el jardín.")),
    S(THERE, .things = {FTH_DET_OR, 7, "old", "church"}, .place = {FTH_DET_THE, 1, NULL, "city"}, SAYS("There are seven or eight old churches in the city.", "In der Stadt gibt es sieben oder acht alte Kirchen.", "Il y a sept ou huit vieilles églises dans la ville.", "Hay siete u ocho iglesias viejas en la ciudad.")),
    S(QUALITY, .things = {FTH_DET_ORDINAL, 3, NULL, "house"}, .is = "small", SAYS("The third house is small.", "Das dritte Haus ist klein.", "La troisième maison est petite.", "La tercera casa es pequeña.")),
    S(QUALITY, .things = {FTH_DET_THIS, 2, NULL, "clock"}, .is = "expensive", SAYS("These two clocks are expensive.", "Diese zwei Uhren sind teuer.", "Ces deux horloges sont chères.", "Estos dos relojes son caros.")),
    S(QUALITY, .things = {FTH_DET_THE, 1, NULL, "car"}, .is = "new", SAYS("The car is new.", "Das Auto ist neu.", "La voiture est nouvelle.", "El coche es nuevo.")),
};
/* clang-format on */

static void test_numbers(void **state) {
    (void)state;
    CHECK(numbers);
    CHECK(labels);
}

static void test_things(void **state) {
    (void)state;
    CHECK(counted);
    CHECK(ordinals);
}

static void test_dates_and_times(void **state) {
    (void)state;
    CHECK(dates);
    CHECK(times);
}

static void test_prices_and_measures(void **state) {
    (void)state;
    CHECK(prices);
    CHECK(measures);
}

static void test_sentences(void **state) {
    (void)state;
    CHECK(sentences);
}

static void test_weekdays(void **state) {
    (void)state;
    static const struct {
        int day, month, year, weekday;
    } rows[] = {{14, 7, 1789, 1}, {1, 1, 1900, 0},   {29, 2, 2000, 1},
                {1, 3, 2000, 2},  {31, 12, 1999, 4}, {20, 7, 1969, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(fth_weekday(rows[i].day, rows[i].month, rows[i].year), rows[i].weekday);
}

/* A row of a table must not share a word with another row in one language only. */
static void test_words_are_one_to_one(void **state) {
    (void)state;
    for (int i = 0; i < fth_n_nouns; i++)
        for (int k = 0; k < i; k++)
            for (int lang = 0; lang < FTH_LANGUAGES; lang++)
                assert_string_not_equal(fth_nouns[i].in[lang].form[0],
                                        fth_nouns[k].in[lang].form[0]);
    for (int i = 0; i < fth_n_stuffs; i++)
        for (int k = 0; k < i; k++)
            for (int lang = 0; lang < FTH_LANGUAGES; lang++)
                assert_string_not_equal(fth_stuffs[i].in[lang], fth_stuffs[k].in[lang]);
}

/* A slot that a template names wrongly, and a text that is too long, are errors and no crash. */
static void test_broken(void **state) {
    (void)state;
    fth_corpus_words w;
    fth_corpus_meaning m = fth_meaning_none();
    m.frame = FTH_FRAME_YESTERDAY; /* "have" is used in the present only: it has no past form */
    m.who = who_row("Anna");
    m.verb = verb_row("have");
    m.things = np_of(&(things){FTH_DET_A, 1, NULL, "book"});
    assert_int_equal(fth_meaning_say(&w, &fth_spanish, &m), FTH_FAILED);
    assert_non_null(strstr(fth_error_message(), "Ayer {who} {past} {things}."));
    w = (fth_corpus_words){.language = &fth_english};
    for (int i = 0; i < 100; i++) fth_words_add(&w, "umbrellas");
    assert_true(w.broken);
    assert_true(w.length < sizeof w.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_things),
        cmocka_unit_test(test_dates_and_times),
        cmocka_unit_test(test_prices_and_measures),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_weekdays),
        cmocka_unit_test(test_words_are_one_to_one),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
