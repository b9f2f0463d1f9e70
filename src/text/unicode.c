/* unicode.c: white space and lower case by utf8proc, with Python's exceptions, such as the final
 * sigma. */
#include "text/unicode.h"

#include <utf8proc.h>

fth_err fth_add_code_point(fth_str *out, uint32_t c) {
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)c, bytes);
    return fth_str_add(out, (const char *)bytes, (size_t)n);
}

int fth_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
    switch (c) {
    case 0x0085:
    case 0x00a0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202f:
    case 0x205f:
    case 0x3000: return 1;
    default: return c >= 0x2000 && c <= 0x200a;
    }
}

/* The start of the character that ends just before p. */
static const char *step_back(const char *p) {
    do p--;
    while (((unsigned char)*p & 0xc0) == 0x80);
    return p;
}

fth_text fth_strip_end(fth_text t) {
    while (t.length) {
        size_t n;
        const char *last = step_back(t.text + t.length);
        if (!fth_is_space(fth_code_point(last, &n))) break;
        t.length = (size_t)(last - t.text);
    }
    return t;
}

fth_text fth_strip(fth_text t) {
    t = fth_strip_end(t);
    while (t.length) {
        size_t n;
        if (!fth_is_space(fth_code_point(t.text, &n))) break;
        t.text += n;
        t.length -= n;
    }
    return t;
}

typedef struct range {
    uint32_t first, last;
} range;

static int in_ranges(uint32_t c, const range *ranges, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return 1;
    return 0;
}

/* Unicode's property Case_Ignorable: marks, modifiers, format characters, and these few signs that
 * may stand inside a word. */
static int case_ignorable(uint32_t c) {
    static const range inside_words[] = {
        {0x0027, 0x0027}, {0x002e, 0x002e}, {0x003a, 0x003a}, {0x00b7, 0x00b7},
        {0x0387, 0x0387}, {0x055f, 0x055f}, {0x05f4, 0x05f4}, {0x2018, 0x2019},
        {0x2024, 0x2024}, {0x2027, 0x2027}, {0xfe13, 0xfe13}, {0xfe52, 0xfe52},
        {0xfe55, 0xfe55}, {0xff07, 0xff07}, {0xff0e, 0xff0e}, {0xff1a, 0xff1a}};
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return 1;
    default: return in_ranges(c, inside_words, sizeof inside_words / sizeof *inside_words);
    }
}

/* Unicode's property Cased, for characters that are not case-ignorable: the letters with case, and
 * the ordinal signs, Roman numerals and enclosed letters that are cased without being Lu or Ll. */
static int cased(uint32_t c) {
    static const range others[] = {{0x00aa, 0x00aa},  {0x00ba, 0x00ba},   {0x2160, 0x217f},
                                   {0x24b6, 0x24e9},  {0x1f130, 0x1f149}, {0x1f150, 0x1f169},
                                   {0x1f170, 0x1f189}};
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT: return 1;
    default: return in_ranges(c, others, sizeof others / sizeof *others);
    }
}

/* Unicode's condition Final_Sigma for the sigma whose bytes are [p, after): a cased letter before
 * it and none behind it, with case-ignorable characters skipped. */
static int final_sigma(fth_text t, const char *p, const char *after) {
    const char *end = t.text + t.length;
    uint32_t c = 0;
    size_t n;
    int found = 0;
    while (p > t.text && !found) {
        p = step_back(p);
        c = fth_code_point(p, &n);
        found = !case_ignorable(c);
    }
    if (!found || !cased(c)) return 0;
    for (p = after; p < end; p += n) {
        c = fth_code_point(p, &n);
        if (!case_ignorable(c)) return !cased(c);
    }
    return 1;
}

static fth_err add_lower_run(fth_str *out, const char *p, size_t n) {
    size_t from = out->length;
    FTH_TRY(fth_str_add(out, p, n));
    for (char *s = out->text + from; n--; s++)
        if (*s >= 'A' && *s <= 'Z') *s = (char)(*s + ('a' - 'A'));
    return FTH_OK;
}

fth_err fth_add_lower(fth_str *out, fth_text t) {
    const char *end = t.text + t.length;
    for (const char *p = t.text; p < end;) {
        const char *run = p;
        size_t n;
        while (p < end && (unsigned char)*p < 0x80) p++;
        if (p > run) FTH_TRY(add_lower_run(out, run, (size_t)(p - run)));
        if (p == end) break;
        uint32_t c = fth_code_point(p, &n);
        if (c == 0x0130) /* capital I with dot: the one letter whose lower case is two characters */
            FTH_TRY(fth_str_add(out, "i\xcc\x87", 3));
        else if (c == 0x03a3)
            FTH_TRY(fth_add_code_point(out, final_sigma(t, p, p + n) ? 0x03c2 : 0x03c3));
        else
            FTH_TRY(fth_add_code_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c)));
        p += n;
    }
    return FTH_OK;
}

fth_err fth_add_joined(fth_str *out, fth_text t) {
    const char *end = t.text + t.length, *word = t.text;
    size_t n = 0, from = out->length;
    for (const char *p = t.text;; p += n) {
        int space = p == end || fth_is_space(fth_code_point(p, &n));
        if (space && p > word) {
            if (out->length > from) FTH_TRY(fth_str_add(out, " ", 1));
            FTH_TRY(fth_str_add(out, word, (size_t)(p - word)));
        }
        if (p == end) return FTH_OK;
        if (space) word = p + n;
    }
}
