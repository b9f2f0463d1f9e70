/* spacing.c: goes over the text once for each rule, looking at a character and the one after it. */
#include "metric/spacing.h"

#include <string.h>

#include "text/unicode.h"

static void swap(fth_str *a, fth_str *b) {
    fth_str c = *a;
    *a = *b;
    *b = c;
}

static fth_err add_match(fth_str *out, const fth_spacing_rule *r, fth_text first, fth_text second) {
    if (r->before) FTH_TRY(fth_str_add(out, " ", 1));
    FTH_TRY(fth_str_add(out, first.text, first.length));
    if (r->second) {
        if (r->between) FTH_TRY(fth_str_add(out, " ", 1));
        FTH_TRY(fth_str_add(out, second.text, second.length));
    }
    return r->after ? fth_str_add(out, " ", 1) : FTH_OK;
}

static fth_err apply_rule(const fth_spacing_rule *r, fth_classify classify, const fth_str *in,
                          fth_str *out) {
    const char *p = in->text, *end = p + in->length, *kept = p; /* [kept, p) is to be copied */
    size_t n, m = 0;
    for (; p < end; p += n + m) {
        unsigned class = classify(fth_code_point(p, &n));
        m = 0;
        if (!(class & r->first)) continue;
        if (r->second) {
            size_t length;
            if (p + n == end || !(classify(fth_code_point(p + n, &length)) & r->second)) continue;
            m = length;
        }
        FTH_TRY(fth_str_add(out, kept, (size_t)(p - kept)));
        FTH_TRY(add_match(out, r, (fth_text){p, n}, (fth_text){p + n, m}));
        kept = p + n + m;
    }
    return fth_str_add(out, kept, (size_t)(end - kept));
}

fth_err fth_apply_spacing(const fth_spacing_rule *rules, size_t n, fth_classify classify,
                          fth_str *text, fth_str *spare) {
    for (size_t i = 0; i < n && text->length; i++) {
        fth_str_clear(spare);
        FTH_TRY(apply_rule(&rules[i], classify, text, spare));
        swap(text, spare);
    }
    return FTH_OK;
}

enum { SIGN = 1, DIGIT = 2, NO_DIGIT = 4, STOP = 8, DASH = 16 };

static unsigned western_class(uint32_t c) {
    if (c >= '0' && c <= '9') return DIGIT;
    if (c == '.' || c == ',') return NO_DIGIT | STOP;
    if (c == '-') return NO_DIGIT | DASH;
    if (c == '\'') return NO_DIGIT;
    int sign = (c >= ' ' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    return NO_DIGIT | (sign ? SIGN : 0);
}

fth_err fth_space_signs(fth_str *text, fth_str *spare) {
    static const fth_spacing_rule rule = {SIGN, 0, 1, 0, 1};
    return fth_apply_spacing(&rule, 1, western_class, text, spare);
}

fth_err fth_space_stops_and_dashes(fth_str *text, fth_str *spare) {
    static const fth_spacing_rule rules[] = {
        {NO_DIGIT, STOP, 0, 1, 1}, {STOP, NO_DIGIT, 1, 1, 0}, {DIGIT, DASH, 0, 1, 1}};
    return fth_apply_spacing(rules, 3, western_class, text, spare);
}

fth_err fth_replace_all(const char *from, const char *to, fth_str *text, fth_str *spare) {
    size_t n = strlen(from), n_to = strlen(to);
    const char *kept = text->text, *end = kept + text->length, *hit;
    if (!text->length || !memmem(kept, text->length, from, n)) return FTH_OK;
    fth_str_clear(spare);
    while ((hit = memmem(kept, (size_t)(end - kept), from, n))) {
        FTH_TRY(fth_str_add(spare, kept, (size_t)(hit - kept)));
        FTH_TRY(fth_str_add(spare, to, n_to));
        kept = hit + n;
    }
    FTH_TRY(fth_str_add(spare, kept, (size_t)(end - kept)));
    swap(text, spare);
    return FTH_OK;
}

fth_err fth_replace_entities(fth_str *text, fth_str *spare) {
    static const char *const pairs[][2] = {
        {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};
    if (!text->length || !memchr(text->text, '&', text->length)) return FTH_OK;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        FTH_TRY(fth_replace_all(pairs[i][0], pairs[i][1], text, spare));
    return FTH_OK;
}

fth_err fth_add_isolated(fth_str *out, fth_text t, const fth_code_range *ranges, size_t n) {
    const char *end = t.text + t.length, *kept = t.text;
    size_t length;
    for (const char *p = t.text; p < end; p += length) {
        uint32_t c = fth_code_point(p, &length);
        size_t i = 0;
        if (c < 0x80) continue; /* no range begins there */
        while (i < n && (c < ranges[i].first || c > ranges[i].last)) i++;
        if (i == n) continue;
        FTH_TRY(fth_str_add(out, kept, (size_t)(p - kept)));
        FTH_TRY(fth_str_add(out, " ", 1));
        FTH_TRY(fth_str_add(out, p, length));
        FTH_TRY(fth_str_add(out, " ", 1));
        kept = p + length;
    }
    return fth_str_add(out, kept, (size_t)(end - kept));
}
