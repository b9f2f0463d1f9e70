/* lexicon.c: the table of words itself. */
#include "corpus/lexicon.h"

#include <stddef.h>

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

/* Genders of the tables below. English has none; its column says neuter. */
#define M FTH_MASCULINE
#define F FTH_FEMININE
#define N FTH_NEUTER

#define FORMS(en1, en2, gde, de1, de2, gfr, fr1, fr2, ges, es1, es2)                               \
    { {N, {en1, en2}}, {gde, {de1, de2}}, {gfr, {fr1, fr2}}, {ges, {es1, es2}}, }

/* Short names of what nouns are good for; THING, BEAST and HUMAN are several at once. */
enum {
    GOODS = FTH_NOUN_GOODS,
    LARGE = FTH_NOUN_LARGE,
    FOOD = FTH_NOUN_FOOD,
    ANIMAL = FTH_NOUN_ANIMAL,
    GOAL = FTH_NOUN_GOAL,
    HOME = FTH_NOUN_HOME,
    WORK = FTH_NOUN_WORK,
    ROOM = FTH_NOUN_ROOM,
    TOWN = FTH_NOUN_TOWN,
    PARK = FTH_NOUN_PARK,
    IN_PARK = FTH_NOUN_IN_PARK,
    IN_ROOM = FTH_NOUN_IN_ROOM,
    LONG = FTH_NOUN_LONG,
    HIGH = FTH_NOUN_HIGH,
    HEAVY = FTH_NOUN_HEAVY,
    OPENS = FTH_NOUN_OPENS,
    COLOURED = FTH_NOUN_COLOURED,
    KIN = FTH_NOUN_KIN,
    THING = GOODS | IN_ROOM | COLOURED,
    VEHICLE = GOODS | COLOURED,
    BEAST = ANIMAL | IN_PARK,
    HUMAN = FTH_NOUN_PERSON | IN_ROOM | IN_PARK,
    BUILDING = FTH_NOUN_BUILDING | GOAL,
    PLACE = HOME | WORK | TOWN | PARK | FTH_NOUN_BUILDING
};

/* clang-format off */
const fth_corpus_noun fth_nouns[] = {
#define NOUN(kinds, ...) {kinds, FORMS(__VA_ARGS__)},
    NOUN(THING, "book", "books", N, "Buch", "Bücher", M, "livre", "livres", M, "libro", "libros")
    NOUN(THING, "newspaper", "newspapers", F, "Zeitung", "Zeitungen", M, "journal", "journaux", M, "periódico", "periódicos")
    NOUN(THING, "letter", "letters", M, "Brief", "Briefe", F, "lettre", "lettres", F, "carta", "cartas")
    NOUN(THING, "picture", "pictures", N, "Bild", "Bilder", M, "tableau", "tableaux", M, "cuadro", "cuadros")
    NOUN(THING | LONG | HEAVY, "table", "tables", M, "Tisch", "Tische", F, "table", "tables", F, "mesa", "mesas")
    NOUN(THING | HEAVY, "chair", "chairs", M, "Stuhl", "Stühle", F, "chaise", "chaises", F, "silla", "sillas")
    NOUN(THING, "lamp", "lamps", F, "Lampe", "Lampen", F, "lampe", "lampes", F, "lámpara", "lámparas")
    NOUN(THING, "clock", "clocks", F, "Uhr", "Uhren", F, "horloge", "horloges", M, "reloj", "relojes")
    NOUN(THING, "key", "keys", M, "Schlüssel", "Schlüssel", F, "clé", "clés", F, "llave", "llaves")
    NOUN(THING | HEAVY, "bag", "bags", F, "Tasche", "Taschen", M, "sac", "sacs", F, "bolsa", "bolsas")
    NOUN(THING | HEAVY, "box", "boxes", F, "Kiste", "Kisten", F, "boîte", "boîtes", F, "caja", "cajas")
    NOUN(THING, "shirt", "shirts", N, "Hemd", "Hemden", F, "chemise", "chemises", F, "camisa", "camisas")
    NOUN(THING, "coat", "coats", M, "Mantel", "Mäntel", M, "manteau", "manteaux", M, "abrigo", "abrigos")
    NOUN(THING, "hat", "hats", M, "Hut", "Hüte", M, "chapeau", "chapeaux", M, "sombrero", "sombreros")
    NOUN(THING, "pencil", "pencils", M, "Bleistift", "Bleistifte", M, "crayon", "crayons", M, "lápiz", "lápices")
    NOUN(THING, "umbrella", "umbrellas", M, "Regenschirm", "Regenschirme", M, "parapluie", "parapluies", M, "paraguas", "paraguas")
    NOUN(THING, "flower", "flowers", F, "Blume", "Blumen", F, "fleur", "fleurs", F, "flor", "flores")
    NOUN(VEHICLE | HEAVY, "bicycle", "bicycles", N, "Fahrrad", "Fahrräder", M, "vélo", "vélos", F, "bicicleta", "bicicletas")
    NOUN(VEHICLE | LARGE, "car", "cars", N, "Auto", "Autos", F, "voiture", "voitures", M, "coche", "coches")
    NOUN(VEHICLE | LARGE | LONG, "boat", "boats", N, "Boot", "Boote", M, "bateau", "bateaux", M, "barco", "barcos")
    NOUN(FOOD, "apple", "apples", M, "Apfel", "Äpfel", F, "pomme", "pommes", F, "manzana", "manzanas")
    NOUN(FOOD, "orange", "oranges", F, "Orange", "Orangen", F, "orange", "oranges", F, "naranja", "naranjas")
    NOUN(FOOD, "egg", "eggs", N, "Ei", "Eier", M, "œuf", "œufs", M, "huevo", "huevos")
    NOUN(FOOD, "cake", "cakes", M, "Kuchen", "Kuchen", M, "gâteau", "gâteaux", M, "pastel", "pasteles")
    NOUN(BEAST | HEAVY, "dog", "dogs", M, "Hund", "Hunde", M, "chien", "chiens", M, "perro", "perros")
    NOUN(BEAST, "cat", "cats", F, "Katze", "Katzen", M, "chat", "chats", M, "gato", "gatos")
    NOUN(BEAST, "horse", "horses", N, "Pferd", "Pferde", M, "cheval", "chevaux", M, "caballo", "caballos")
    NOUN(BEAST, "bird", "birds", M, "Vogel", "Vögel", M, "oiseau", "oiseaux", M, "pájaro", "pájaros")
    NOUN(BEAST, "cow", "cows", F, "Kuh", "Kühe", F, "vache", "vaches", F, "vaca", "vacas")
    NOUN(HUMAN | KIN, "friend", "friends", M, "Freund", "Freunde", M, "ami", "amis", M, "amigo", "amigos")
    NOUN(HUMAN, "child", "children", N, "Kind", "Kinder", M, "enfant", "enfants", M, "niño", "niños")
    NOUN(KIN, "brother", "brothers", M, "Bruder", "Brüder", M, "frère", "frères", M, "hermano", "hermanos")
    NOUN(KIN, "sister", "sisters", F, "Schwester", "Schwestern", F, "sœur", "sœurs", F, "hermana", "hermanas")
    NOUN(HUMAN | KIN, "guest", "guests", M, "Gast", "Gäste", M, "invité", "invités", M, "invitado", "invitados")
    NOUN(BUILDING | HOME | LARGE | ROOM | COLOURED, "house", "houses", N, "Haus", "Häuser", F, "maison", "maisons", F, "casa", "casas")
    NOUN(BUILDING | HOME | WORK | ROOM, "hotel", "hotels", N, "Hotel", "Hotels", M, "hôtel", "hôtels", M, "hotel", "hoteles")
    NOUN(BUILDING | WORK, "church", "churches", F, "Kirche", "Kirchen", F, "église", "églises", F, "iglesia", "iglesias")
    NOUN(BUILDING | WORK | ROOM | OPENS, "school", "schools", F, "Schule", "Schulen", F, "école", "écoles", F, "escuela", "escuelas")
    NOUN(BUILDING | WORK | OPENS, "museum", "museums", N, "Museum", "Museen", M, "musée", "musées", M, "museo", "museos")
    NOUN(BUILDING | WORK | ROOM | OPENS, "library", "libraries", F, "Bibliothek", "Bibliotheken", F, "bibliothèque", "bibliothèques", F, "biblioteca", "bibliotecas")
    NOUN(BUILDING | LONG, "bridge", "bridges", F, "Brücke", "Brücken", M, "pont", "ponts", M, "puente", "puentes")
    NOUN(BUILDING, "station", "stations", M, "Bahnhof", "Bahnhöfe", F, "gare", "gares", F, "estación", "estaciones")
    NOUN(GOAL | WORK | ROOM | OPENS, "shop", "shops", M, "Laden", "Läden", M, "magasin", "magasins", F, "tienda", "tiendas")
    NOUN(WORK | ROOM | OPENS, "office", "offices", N, "Büro", "Büros", M, "bureau", "bureaux", F, "oficina", "oficinas")
    NOUN(HOME | ROOM, "room", "rooms", N, "Zimmer", "Zimmer", F, "chambre", "chambres", F, "habitación", "habitaciones")
    NOUN(GOAL | HOME | WORK | TOWN, "city", "cities", F, "Stadt", "Städte", F, "ville", "villes", F, "ciudad", "ciudades")
    NOUN(GOAL | HOME | WORK | TOWN, "village", "villages", N, "Dorf", "Dörfer", M, "village", "villages", M, "pueblo", "pueblos")
    NOUN(GOAL | LONG | PARK | WORK, "garden", "gardens", M, "Garten", "Gärten", M, "jardin", "jardins", M, "jardín", "jardines")
    NOUN(HIGH | IN_PARK, "tree", "trees", M, "Baum", "Bäume", M, "arbre", "arbres", M, "árbol", "árboles")
    NOUN(HIGH | IN_ROOM, "door", "doors", F, "Tür", "Türen", F, "porte", "portes", F, "puerta", "puertas")
    NOUN(HIGH | IN_ROOM, "window", "windows", N, "Fenster", "Fenster", F, "fenêtre", "fenêtres", F, "ventana", "ventanas")
    NOUN(FTH_NOUN_FLOOR, "floor", "floors", M, "Stock", "Stöcke", M, "étage", "étages", M, "piso", "pisos")
    NOUN(FTH_NOUN_EVENT, "film", "films", M, "Film", "Filme", M, "film", "films", F, "película", "películas")
    NOUN(FTH_NOUN_EVENT | FTH_NOUN_HELD, "concert", "concerts", N, "Konzert", "Konzerte", M, "concert", "concerts", M, "concierto", "conciertos")
    NOUN(FTH_NOUN_EVENT | FTH_NOUN_HELD, "meeting", "meetings", F, "Sitzung", "Sitzungen", F, "réunion", "réunions", F, "reunión", "reuniones")
    NOUN(FTH_NOUN_EVENT | FTH_NOUN_HELD, "party", "parties", N, "Fest", "Feste", F, "fête", "fêtes", F, "fiesta", "fiestas")
    NOUN(FTH_NOUN_EVENT | FTH_NOUN_HELD, "match", "matches", N, "Spiel", "Spiele", M, "match", "matchs", M, "partido", "partidos")
    NOUN(FTH_NOUN_EVENT | FTH_NOUN_HELD | FTH_NOUN_DAYS, "course", "courses", M, "Kurs", "Kurse", M, "cours", "cours", M, "curso", "cursos")
    NOUN(FTH_NOUN_RIDE, "train", "trains", M, "Zug", "Züge", M, "train", "trains", M, "tren", "trenes")
    NOUN(FTH_NOUN_RIDE, "bus", "buses", M, "Bus", "Busse", M, "bus", "bus", M, "autobús", "autobuses")
    NOUN(FTH_NOUN_RIDE, "ferry", "ferries", F, "Fähre", "Fähren", M, "ferry", "ferries", M, "ferri", "ferris")
#undef NOUN
};
const int fth_n_nouns = COUNT(fth_nouns);

/* Where French and Spanish put the adjective behind the noun. */
#define FR_BEHIND(m, f, mp, fp) {{m, mp}, {f, fp}}, NULL, 0
#define FR_BEFORE(m, vowel, f, mp, fp) {{m, mp}, {f, fp}}, vowel, 1
#define ES_BEHIND(m, f, mp, fp) {{m, mp}, {f, fp}}, NULL
#define ES_BEFORE(m, before, f, mp, fp) {{m, mp}, {f, fp}}, before
#define DE(word) {word, word}

const fth_corpus_adjective fth_adjectives[] = {
    {COLOURED, "red", DE("rot"), FR_BEHIND("rouge", "rouge", "rouges", "rouges"), ES_BEHIND("rojo", "roja", "rojos", "rojas")},
    {COLOURED, "blue", DE("blau"), FR_BEHIND("bleu", "bleue", "bleus", "bleues"), ES_BEHIND("azul", "azul", "azules", "azules")},
    {COLOURED, "green", DE("grün"), FR_BEHIND("vert", "verte", "verts", "vertes"), ES_BEHIND("verde", "verde", "verdes", "verdes")},
    {COLOURED, "yellow", DE("gelb"), FR_BEHIND("jaune", "jaune", "jaunes", "jaunes"), ES_BEHIND("amarillo", "amarilla", "amarillos", "amarillas")},
    {COLOURED | ANIMAL, "white", DE("weiß"), FR_BEHIND("blanc", "blanche", "blancs", "blanches"), ES_BEHIND("blanco", "blanca", "blancos", "blancas")},
    {COLOURED | ANIMAL, "black", DE("schwarz"), FR_BEHIND("noir", "noire", "noirs", "noires"), ES_BEHIND("negro", "negra", "negros", "negras")},
    {GOODS | ANIMAL | FOOD | PLACE | HIGH, "big", DE("groß"), FR_BEFORE("grand", NULL, "grande", "grands", "grandes"), ES_BEHIND("grande", "grande", "grandes", "grandes")},
    {GOODS | ANIMAL | FOOD | PLACE | HIGH, "small", DE("klein"), FR_BEFORE("petit", NULL, "petite", "petits", "petites"), ES_BEHIND("pequeño", "pequeña", "pequeños", "pequeñas")},
    {GOODS | PLACE, "new", DE("neu"), FR_BEFORE("nouveau", "nouvel", "nouvelle", "nouveaux", "nouvelles"), ES_BEHIND("nuevo", "nueva", "nuevos", "nuevas")},
    {GOODS | ANIMAL | PLACE | HIGH, "old", DE("alt"), FR_BEFORE("vieux", "vieil", "vieille", "vieux", "vieilles"), ES_BEHIND("viejo", "vieja", "viejos", "viejas")},
    {GOODS | ANIMAL | PLACE, "beautiful", DE("schön"), FR_BEFORE("beau", "bel", "belle", "beaux", "belles"), ES_BEHIND("bonito", "bonita", "bonitos", "bonitas")},
    {GOODS | FOOD, "good", DE("gut"), FR_BEFORE("bon", NULL, "bonne", "bons", "bonnes"), ES_BEFORE("bueno", "buen", "buena", "buenos", "buenas")},
    {GOODS | FOOD | LARGE, "expensive", {"teuer", "teur"}, FR_BEHIND("cher", "chère", "chers", "chères"), ES_BEHIND("caro", "cara", "caros", "caras")},
    {GOODS | FOOD | LARGE, "cheap", DE("billig"), FR_BEHIND("bon marché", "bon marché", "bon marché", "bon marché"), ES_BEHIND("barato", "barata", "baratos", "baratas")},
    {HEAVY, "heavy", DE("schwer"), FR_BEHIND("lourd", "lourde", "lourds", "lourdes"), ES_BEHIND("pesado", "pesada", "pesados", "pesadas")},
};
const int fth_n_adjectives = COUNT(fth_adjectives);
#undef DE

const fth_corpus_who fth_whos[] = {
    {{"I", "ich", "je", ""}, FTH_I, M, {2, 99}},
    {{"he", "er", "il", "él"}, FTH_HE, M, {2, 99}},
    {{"she", "sie", "elle", "ella"}, FTH_HE, F, {2, 99}},
    {{"we", "wir", "nous", ""}, FTH_WE, M, {2, 99}},
    {{"they", "sie", "ils", "ellos"}, FTH_THEY, M, {2, 99}},
    {{"Anna", "Anna", "Anna", "Anna"}, FTH_HE, F, {2, 99}},
    {{"Clara", "Clara", "Clara", "Clara"}, FTH_HE, F, {2, 99}},
    {{"Laura", "Laura", "Laura", "Laura"}, FTH_HE, F, {2, 99}},
    {{"Paul", "Paul", "Paul", "Paul"}, FTH_HE, M, {2, 99}},
    {{"Martin", "Martin", "Martin", "Martin"}, FTH_HE, M, {2, 99}},
    {{"Daniel", "Daniel", "Daniel", "Daniel"}, FTH_HE, M, {2, 99}},
    {{"my brother", "mein Bruder", "mon frère", "mi hermano"}, FTH_HE, M, {2, 60}},
    {{"my sister", "meine Schwester", "ma sœur", "mi hermana"}, FTH_HE, F, {2, 60}},
    {{"my father", "mein Vater", "mon père", "mi padre"}, FTH_HE, M, {30, 99}},
    {{"my mother", "meine Mutter", "ma mère", "mi madre"}, FTH_HE, F, {30, 99}},
    {{"my parents", "meine Eltern", "mes parents", "mis padres"}, FTH_THEY, M, {30, 99}},
    {{"the teacher", "der Lehrer", "le professeur", "el profesor"}, FTH_HE, M, {30, 99}},
    {{"the man", "der Mann", "l'homme", "el hombre"}, FTH_HE, M, {30, 99}},
    {{"the woman", "die Frau", "la femme", "la mujer"}, FTH_HE, F, {30, 99}},
    {{"the children", "die Kinder", "les enfants", "los niños"}, FTH_THEY, M, {2, 12}},
    {{"our neighbours", "unsere Nachbarn", "nos voisins", "nuestros vecinos"}, FTH_THEY, M, {30, 99}},
};
const int fth_n_whos = COUNT(fth_whos);

/* The forms of a verb. A German infinitive is the form of "wir". */
#define EN(i, he, then) {{i, he, i, i}, {then, then, then, then}, i, NULL}
#define DE(ich, er, wir, participle, particle) {{ich, er, wir, wir}, {participle}, wir, particle}
#define FR(je, il, nous, ils, participle, base) {{je, il, nous, ils}, {participle}, base, NULL}
#define ES(yo, el, nos, ellos, base, ...) {{yo, el, nos, ellos}, {__VA_ARGS__}, base, NULL}

const fth_corpus_verb fth_verbs[] = {
    {FTH_VERB_TAKE | FTH_VERB_TRADE,
     {EN("buy", "buys", "bought"), DE("kaufe", "kauft", "kaufen", "gekauft", ""), FR("achète", "achète", "achetons", "achètent", "acheté", "acheter"),
      ES("compro", "compra", "compramos", "compran", "comprar", "compré", "compró", "compramos", "compraron")}},
    {FTH_VERB_TAKE | FTH_VERB_TRADE,
     {EN("sell", "sells", "sold"), DE("verkaufe", "verkauft", "verkaufen", "verkauft", ""), FR("vends", "vend", "vendons", "vendent", "vendu", "vendre"),
      ES("vendo", "vende", "vendemos", "venden", "vender", "vendí", "vendió", "vendimos", "vendieron")}},
    {FTH_VERB_TAKE,
     {EN("see", "sees", "saw"), DE("sehe", "sieht", "sehen", "gesehen", ""), FR("vois", "voit", "voyons", "voient", "vu", "voir"),
      ES("veo", "ve", "vemos", "ven", "ver", "vi", "vio", "vimos", "vieron")}},
    {FTH_VERB_TAKE,
     {EN("find", "finds", "found"), DE("finde", "findet", "finden", "gefunden", ""), FR("trouve", "trouve", "trouvons", "trouvent", "trouvé", "trouver"),
      ES("encuentro", "encuentra", "encontramos", "encuentran", "encontrar", "encontré", "encontró", "encontramos", "encontraron")}},
    {FTH_VERB_TAKE,
     {{{"am looking for", "is looking for", "are looking for", "are looking for"}, {"looked for", "looked for", "looked for", "looked for"}, "look for", NULL},
      DE("suche", "sucht", "suchen", "gesucht", ""), FR("cherche", "cherche", "cherchons", "cherchent", "cherché", "chercher"),
      ES("busco", "busca", "buscamos", "buscan", "buscar", "busqué", "buscó", "buscamos", "buscaron")}},
    {FTH_VERB_TAKE,
     {EN("draw", "draws", "drew"), DE("zeichne", "zeichnet", "zeichnen", "gezeichnet", ""), FR("dessine", "dessine", "dessinons", "dessinent", "dessiné", "dessiner"),
      ES("dibujo", "dibuja", "dibujamos", "dibujan", "dibujar", "dibujé", "dibujó", "dibujamos", "dibujaron")}},
    {FTH_VERB_HAVE | FTH_VERB_TRADE,
     {EN("have", "has", NULL), DE("habe", "hat", "haben", NULL, ""), FR("ai", "a", "avons", "ont", NULL, "avoir"),
      ES("tengo", "tiene", "tenemos", "tienen", "tener", NULL)}},
    {FTH_VERB_HAVE | FTH_VERB_TRADE,
     {EN("need", "needs", NULL), DE("brauche", "braucht", "brauchen", NULL, ""), FR("ai besoin de", "a besoin de", "avons besoin de", "ont besoin de", NULL, "avoir besoin de"),
      ES("necesito", "necesita", "necesitamos", "necesitan", "necesitar", NULL)}},
    {FTH_VERB_HAVE | FTH_VERB_TRADE,
     {EN("want", "wants", NULL), DE("will", "will", "wollen", NULL, ""), FR("veux", "veut", "voulons", "veulent", NULL, "vouloir"),
      ES("quiero", "quiere", "queremos", "quieren", "querer", NULL)}},
    {FTH_VERB_WITH,
     {EN("travel", "travels", NULL), DE("reise", "reist", "reisen", NULL, ""), FR("voyage", "voyage", "voyageons", "voyagent", NULL, "voyager"),
      ES("viajo", "viaja", "viajamos", "viajan", "viajar", NULL)}},
    {FTH_VERB_WITH,
     {EN("play", "plays", NULL), DE("spiele", "spielt", "spielen", NULL, ""), FR("joue", "joue", "jouons", "jouent", NULL, "jouer"),
      ES("juego", "juega", "jugamos", "juegan", "jugar", NULL)}},
    {FTH_VERB_LIVE,
     {EN("live", "lives", NULL), DE("wohne", "wohnt", "wohnen", NULL, ""), FR("habite", "habite", "habitons", "habitent", NULL, "habiter"),
      ES("vivo", "vive", "vivimos", "viven", "vivir", NULL)}},
    {FTH_VERB_SLEEP,
     {EN("sleep", "sleeps", NULL), DE("schlafe", "schläft", "schlafen", NULL, ""), FR("dors", "dort", "dormons", "dorment", NULL, "dormir"),
      ES("duermo", "duerme", "dormimos", "duermen", "dormir", NULL)}},
    {FTH_VERB_WITH | FTH_VERB_WORK,
     {EN("work", "works", NULL), DE("arbeite", "arbeitet", "arbeiten", NULL, ""), FR("travaille", "travaille", "travaillons", "travaillent", NULL, "travailler"),
      ES("trabajo", "trabaja", "trabajamos", "trabajan", "trabajar", NULL)}},
    {FTH_VERB_DAILY,
     {EN("get up", "gets up", NULL), DE("stehe", "steht", "stehen", NULL, "auf"), FR("me lève", "se lève", "nous levons", "se lèvent", NULL, "se lever"),
      ES("me levanto", "se levanta", "nos levantamos", "se levantan", "levantarse", NULL)}},
    {FTH_VERB_DAILY,
     {EN("eat", "eats", NULL), DE("esse", "isst", "essen", NULL, ""), FR("mange", "mange", "mangeons", "mangent", NULL, "manger"),
      ES("como", "come", "comemos", "comen", "comer", NULL)}},
    {FTH_VERB_DAILY,
     {EN("go home", "goes home", NULL), DE("gehe", "geht", "gehen", NULL, "nach Hause"), FR("rentre", "rentre", "rentrons", "rentrent", NULL, "rentrer"),
      ES("vuelvo a casa", "vuelve a casa", "volvemos a casa", "vuelven a casa", "volver a casa", NULL)}},
    {FTH_VERB_DAILY | FTH_VERB_RIDE,
     {EN("arrive", "arrives", NULL), DE("komme", "kommt", "kommen", NULL, "an"), FR("arrive", "arrive", "arrivons", "arrivent", NULL, "arriver"),
      ES("llego", "llega", "llegamos", "llegan", "llegar", NULL)}},
    {FTH_VERB_RIDE,
     {EN("leave", "leaves", NULL), DE("fahre", "fährt", "fahren", NULL, "ab"), FR("pars", "part", "partons", "partent", NULL, "partir"),
      ES("salgo", "sale", "salimos", "salen", "salir", NULL)}},
    {FTH_VERB_EVENT,
     {EN("begin", "begins", NULL), DE("beginne", "beginnt", "beginnen", NULL, ""), FR("commence", "commence", "commençons", "commencent", NULL, "commencer"),
      ES("empiezo", "empieza", "empezamos", "empiezan", "empezar", NULL)}},
    {FTH_VERB_EVENT,
     {EN("end", "ends", NULL), DE("ende", "endet", "enden", NULL, ""), FR("finis", "finit", "finissons", "finissent", NULL, "finir"),
      ES("termino", "termina", "terminamos", "terminan", "terminar", NULL)}},
    {FTH_VERB_OPENS,
     {EN("open", "opens", NULL), DE("öffne", "öffnet", "öffnen", NULL, ""), FR("ouvre", "ouvre", "ouvrons", "ouvrent", NULL, "ouvrir"),
      ES("abro", "abre", "abrimos", "abren", "abrir", NULL)}},
    {FTH_VERB_OPENS,
     {EN("close", "closes", NULL), DE("schließe", "schließt", "schließen", NULL, ""), FR("ferme", "ferme", "fermons", "ferment", NULL, "fermer"),
      ES("cierro", "cierra", "cerramos", "cierran", "cerrar", NULL)}},
    {FTH_VERB_WEIGH,
     {EN("weigh", "weighs", NULL), DE("wiege", "wiegt", "wiegen", NULL, ""), FR("pèse", "pèse", "pesons", "pèsent", NULL, "peser"),
      ES("peso", "pesa", "pesamos", "pesan", "pesar", NULL)}},
    {FTH_VERB_LAST,
     {EN("last", "lasts", NULL), DE("dauere", "dauert", "dauern", NULL, ""), FR("dure", "dure", "durons", "durent", NULL, "durer"),
      ES("duro", "dura", "duramos", "duran", "durar", NULL)}},
    {FTH_VERB_COST,
     {EN("cost", "costs", NULL), DE("koste", "kostet", "kosten", NULL, ""), FR("coûte", "coûte", "coûtons", "coûtent", NULL, "coûter"),
      ES("cuesto", "cuesta", "costamos", "cuestan", "costar", NULL)}},
    {FTH_VERB_SET_OUT, /* for a journey: French says "partir pour" */
     {EN("travel", "travels", NULL), DE("reise", "reist", "reisen", NULL, ""), FR("pars", "part", "partons", "partent", NULL, "partir"),
      ES("viajo", "viaja", "viajamos", "viajan", "viajar", NULL)}},
};
const int fth_n_verbs = COUNT(fth_verbs);

#define UNIT(kinds, ...) {kinds, {0, FORMS(__VA_ARGS__)}},
enum { HALVES = FTH_UNIT_HALVES, VESSEL = FTH_UNIT_HALVES | FTH_UNIT_CONTAINER };
const fth_corpus_unit fth_units[] = {
    UNIT(FTH_UNIT_KILOMETRE | HALVES, "kilometre", "kilometres", M, "Kilometer", "Kilometer", M, "kilomètre", "kilomètres", M, "kilómetro", "kilómetros")
    UNIT(FTH_UNIT_METRE | HALVES, "metre", "metres", M, "Meter", "Meter", M, "mètre", "mètres", M, "metro", "metros")
    UNIT(FTH_UNIT_CENTIMETRE, "centimetre", "centimetres", M, "Zentimeter", "Zentimeter", M, "centimètre", "centimètres", M, "centímetro", "centímetros")
    UNIT(FTH_UNIT_KILO | HALVES, "kilo", "kilos", N, "Kilo", "Kilo", M, "kilo", "kilos", M, "kilo", "kilos")
    UNIT(FTH_UNIT_GRAM, "gram", "grams", N, "Gramm", "Gramm", M, "gramme", "grammes", M, "gramo", "gramos")
    UNIT(FTH_UNIT_LITRE | HALVES, "litre", "litres", M, "Liter", "Liter", M, "litre", "litres", M, "litro", "litros")
    UNIT(FTH_UNIT_BOTTLE | VESSEL, "bottle", "bottles", F, "Flasche", "Flaschen", F, "bouteille", "bouteilles", F, "botella", "botellas")
    UNIT(FTH_UNIT_GLASS | VESSEL, "glass", "glasses", N, "Glas", "Gläser", M, "verre", "verres", M, "vaso", "vasos")
    UNIT(FTH_UNIT_CUP | VESSEL, "cup", "cups", F, "Tasse", "Tassen", F, "tasse", "tasses", F, "taza", "tazas")
    UNIT(FTH_UNIT_MINUTE, "minute", "minutes", F, "Minute", "Minuten", F, "minute", "minutes", M, "minuto", "minutos")
    UNIT(FTH_UNIT_HOUR | HALVES, "hour", "hours", F, "Stunde", "Stunden", F, "heure", "heures", F, "hora", "horas")
    UNIT(FTH_UNIT_DAY, "day", "days", M, "Tag", "Tage", M, "jour", "jours", M, "día", "días")
    UNIT(FTH_UNIT_DAY, "week", "weeks", F, "Woche", "Wochen", F, "semaine", "semaines", F, "semana", "semanas")
    UNIT(FTH_UNIT_DAY, "month", "months", M, "Monat", "Monate", M, "mois", "mois", M, "mes", "meses")
    UNIT(FTH_UNIT_YEAR, "year", "years", N, "Jahr", "Jahre", M, "an", "ans", M, "año", "años")
};
const int fth_n_units = COUNT(fth_units);

const fth_corpus_currency fth_currencies[] = {
#define COIN(...) {0, FORMS(__VA_ARGS__)}
    {COIN("euro", "euros", M, "Euro", "Euro", M, "euro", "euros", M, "euro", "euros"),
     COIN("cent", "cents", M, "Cent", "Cent", M, "centime", "centimes", M, "céntimo", "céntimos")},
    {COIN("dollar", "dollars", M, "Dollar", "Dollar", M, "dollar", "dollars", M, "dólar", "dólares"),
     COIN("cent", "cents", M, "Cent", "Cent", M, "cent", "cents", M, "centavo", "centavos")},
    {COIN("pound", "pounds", N, "Pfund", "Pfund", F, "livre sterling", "livres sterling", F, "libra esterlina", "libras esterlinas"),
     COIN("penny", "pence", M, "Penny", "Pence", M, "penny", "pence", M, "penique", "peniques")},
    {COIN("franc", "francs", M, "Franken", "Franken", M, "franc", "francs", M, "franco", "francos"),
     COIN("centime", "centimes", M, "Rappen", "Rappen", M, "centime", "centimes", M, "céntimo", "céntimos")},
#undef COIN
};
const int fth_n_currencies = COUNT(fth_currencies);

enum { SOLID = FTH_UNIT_KILO | FTH_UNIT_GRAM, DRINK = FTH_UNIT_LITRE | FTH_UNIT_BOTTLE | FTH_UNIT_GLASS };
const fth_corpus_stuff fth_stuffs[] = {
    {FTH_UNIT_KILO, {"apples", "Äpfel", "pommes", "manzanas"}},
    {FTH_UNIT_KILO, {"oranges", "Orangen", "oranges", "naranjas"}},
    {FTH_UNIT_KILO, {"pears", "Birnen", "poires", "peras"}},
    {FTH_UNIT_KILO, {"potatoes", "Kartoffeln", "pommes de terre", "patatas"}},
    {FTH_UNIT_KILO, {"tomatoes", "Tomaten", "tomates", "tomates"}},
    {SOLID, {"cheese", "Käse", "fromage", "queso"}},
    {SOLID, {"sugar", "Zucker", "sucre", "azúcar"}},
    {SOLID, {"flour", "Mehl", "farine", "harina"}},
    {SOLID, {"rice", "Reis", "riz", "arroz"}},
    {SOLID, {"meat", "Fleisch", "viande", "carne"}},
    {DRINK, {"milk", "Milch", "lait", "leche"}},
    {DRINK, {"water", "Wasser", "eau", "agua"}},
    {DRINK, {"juice", "Saft", "jus", "zumo"}},
    {FTH_UNIT_LITRE | FTH_UNIT_BOTTLE, {"oil", "Öl", "huile", "aceite"}},
    {FTH_UNIT_CUP, {"coffee", "Kaffee", "café", "café"}},
    {FTH_UNIT_CUP, {"tea", "Tee", "thé", "té"}},
};
const int fth_n_stuffs = COUNT(fth_stuffs);

const fth_corpus_word fth_cities[] = {
    {{"Berlin", "Berlin", "Berlin", "Berlín"}},
    {{"Paris", "Paris", "Paris", "París"}},
    {{"London", "London", "Londres", "Londres"}},
    {{"Madrid", "Madrid", "Madrid", "Madrid"}},
    {{"Vienna", "Wien", "Vienne", "Viena"}},
    {{"Rome", "Rom", "Rome", "Roma"}},
    {{"Munich", "München", "Munich", "Múnich"}},
    {{"Brussels", "Brüssel", "Bruxelles", "Bruselas"}},
    {{"Lisbon", "Lissabon", "Lisbonne", "Lisboa"}},
    {{"Prague", "Prag", "Prague", "Praga"}},
    {{"Geneva", "Genf", "Genève", "Ginebra"}},
    {{"Athens", "Athen", "Athènes", "Atenas"}},
};
const int fth_n_cities = COUNT(fth_cities);

const fth_corpus_word fth_dimensions[] = {
    {{"long", "lang", "long", "largo"}},
    {{"wide", "breit", "large", "ancho"}},
    {{"high", "hoch", "haut", "alto"}},
};

const fth_corpus_word fth_operations[] = {
    {{"plus", "plus", "plus", "más"}},
    {{"minus", "minus", "moins", "menos"}},
    {{"times", "mal", "fois", "por"}},
};

const fth_corpus_word fth_weekdays[] = {
    {{"Monday", "Montag", "lundi", "lunes"}},
    {{"Tuesday", "Dienstag", "mardi", "martes"}},
    {{"Wednesday", "Mittwoch", "mercredi", "miércoles"}},
    {{"Thursday", "Donnerstag", "jeudi", "jueves"}},
    {{"Friday", "Freitag", "vendredi", "viernes"}},
    {{"Saturday", "Samstag", "samedi", "sábado"}},
    {{"Sunday", "Sonntag", "dimanche", "domingo"}},
};

const fth_corpus_word fth_months[] = {
    {{"January", "Januar", "janvier", "enero"}},
    {{"February", "Februar", "février", "febrero"}},
    {{"March", "März", "mars", "marzo"}},
    {{"April", "April", "avril", "abril"}},
    {{"May", "Mai", "mai", "mayo"}},
    {{"June", "Juni", "juin", "junio"}},
    {{"July", "Juli", "juillet", "julio"}},
    {{"August", "August", "août", "agosto"}},
    {{"September", "September", "septembre", "septiembre"}},
    {{"October", "Oktober", "octobre", "octubre"}},
    {{"November", "November", "novembre", "noviembre"}},
    {{"December", "Dezember", "décembre", "diciembre"}},
};
/* clang-format on */
