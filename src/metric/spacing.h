/* spacing.h: rules that put spaces around characters, the common part of all BLEU tokenizers.
 *
 * A rule looks for a character of one class, or for one that is followed by one of a second class,
 * from left to right; what it matched is not looked at again by that rule. The next rule sees the
 * text that the last one left. */
#ifndef FTH_METRIC_SPACING_H
#define FTH_METRIC_SPACING_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "text/text.h"

/* The classes of a character, one bit each. */
typedef unsigned (*fth_classify)(uint32_t code_point);

typedef struct fth_spacing_rule {
    unsigned first, second;     /* class bits; second = 0: one character alone */
    int before, between, after; /* where a space is put; between counts for pairs only */
} fth_spacing_rule;

/* Applies the rules to what *text holds; *spare is working space. They may change places. */
fth_err fth_apply_spacing(const fth_spacing_rule *rules, size_t n, fth_classify classify,
                          fth_str *text, fth_str *spare);

/* The rules of mteval-v13a for Western punctuation: all ASCII signs but ' - . , stand alone; . and
 * , unless between digits; - after a digit. sacreBLEU uses them for 13a and zh, TER for its
 * normalised text. In two parts, because TER does something in between. */
fth_err fth_space_signs(fth_str *text, fth_str *spare);
fth_err fth_space_stops_and_dashes(fth_str *text, fth_str *spare);

/* Replaces each from by to, left to right, in what *text holds. */
fth_err fth_replace_all(const char *from, const char *to, fth_str *text, fth_str *spare);

/* &quot; &amp; &lt; &gt; become characters, in this order: &amp;lt; ends as <, &amp;quot; does not
 * end as a quotation mark. */
fth_err fth_replace_entities(fth_str *text, fth_str *spare);

/* Appends t with a space on both sides of each character of any of the ranges. */
typedef struct fth_code_range {
    uint32_t first, last;
} fth_code_range;
fth_err fth_add_isolated(fth_str *out, fth_text t, const fth_code_range *ranges, size_t n);

#endif
