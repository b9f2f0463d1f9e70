/* tok_tercom.c: the tokenizer of Tercom, the program that defined TER, as sacreBLEU has it. */
#include "metric/spacing.h"
#include "metric/tok.h"
#include "text/unicode.h"

/* Characters that stand alone with asian_support: ideographs, radicals, strokes, compatibility
 * forms, punctuation. The range from U+3200 ends where sacreBLEU's does. */
static const fth_code_range asian[] = {
    {0x2e80, 0x2eff}, {0x3001, 0x3002}, {0x3008, 0x3011}, {0x3014, 0x301f}, {0x30fb, 0x30fb},
    {0x31c0, 0x31ef}, {0x3200, 0x3f22}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff},
    {0xfe30, 0xfe4f}, {0xff01, 0xff02}, {0xff08, 0xff09}, {0xff0c, 0xff0c}, {0xff0e, 0xff0e},
    {0xff1a, 0xff1b}, {0xff1f, 0xff1f}, {0xff61, 0xff65}};

/* Punctuation that no_punct removes, the Asian part only with asian_support. */
static int is_punctuation(uint32_t c, bool asian_support) {
    switch (c) {
    case '.':
    case ',':
    case '?':
    case ':':
    case ';':
    case '!':
    case '"':
    case '(':
    case ')': return 1;
    case 0x3001:
    case 0x3002:
    case 0x30fb:
    case 0xff01:
    case 0xff02:
    case 0xff08:
    case 0xff09:
    case 0xff0c:
    case 0xff0e:
    case 0xff1a:
    case 0xff1b:
    case 0xff1f: return asian_support;
    default:
        return asian_support && ((c >= 0x3008 && c <= 0x3011) || (c >= 0x3014 && c <= 0x301f) ||
                                 (c >= 0xff61 && c <= 0xff65));
    }
}

static void take(fth_tok_work *w) { /* the result is in spare: make it the text */
    fth_str text = w->text;
    w->text = w->spare;
    w->spare = text;
}

static fth_err normalize(bool asian_support, fth_tok_work *w) {
    FTH_TRY(fth_replace_all("\n-", "", &w->text, &w->spare));
    FTH_TRY(fth_replace_all("\n", " ", &w->text, &w->spare));
    FTH_TRY(fth_replace_entities(&w->text, &w->spare));
    fth_str_clear(&w->spare);
    FTH_TRY(fth_str_add(&w->spare, " ", 1));
    FTH_TRY(fth_str_add(&w->spare, w->text.text, w->text.length));
    FTH_TRY(fth_str_add(&w->spare, " ", 1));
    take(w);
    FTH_TRY(fth_space_signs(&w->text, &w->spare));
    FTH_TRY(fth_replace_all("'s ", " 's ", &w->text, &w->spare));
    FTH_TRY(fth_space_stops_and_dashes(&w->text, &w->spare));
    if (!asian_support) return FTH_OK;
    fth_str_clear(&w->spare);
    FTH_TRY(
        fth_add_isolated(&w->spare, fth_str_view(&w->text), asian, sizeof asian / sizeof *asian));
    take(w);
    return FTH_OK;
}

static void remove_punctuation(bool asian_support, fth_str *text) {
    size_t kept = 0, n;
    for (size_t i = 0; i < text->length; i += n) {
        uint32_t c = fth_code_point(text->text + i, &n);
        if (is_punctuation(c, asian_support)) continue;
        for (size_t k = 0; k < n; k++) text->text[kept++] = text->text[i + k];
    }
    text->length = kept;
}

fth_err fth_tok_tercom(fth_text line, const fth_tercom_options *o, fth_tok_work *w, fth_text *out) {
    line = fth_strip_end(line);
    fth_str_clear(&w->text);
    FTH_TRY(o->case_sensitive ? fth_str_add(&w->text, line.text, line.length)
                              : fth_add_lower(&w->text, line));
    if (w->text.length && o->normalized) FTH_TRY(normalize(o->asian_support, w));
    if (o->no_punct) remove_punctuation(o->asian_support, &w->text);
    *out = fth_str_view(&w->text);
    return FTH_OK;
}
