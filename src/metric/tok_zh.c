/* tok_zh.c: sacreBLEU's tokenizer for Chinese: each Chinese character stands alone, the rest is
 * tokenized as 13a does.
 *
 * The ranges are those that sacreBLEU's table has in effect. It means to list the supplementary
 * ideographs U+20000..2A6D6 and U+2F800..2FA1D, but writes them as two characters each, and what
 * remains of them in a comparison is U+2001..2A6D (quotation marks, dashes, arrows, ...) and
 * U+2F81..2FA1. Its scores follow from that, so ours do. */
#include "metric/spacing.h"
#include "metric/tok.h"
#include "text/unicode.h"

static const fth_code_range chinese[] = {
    {0x2001, 0x2a6d}, /* see above */
    {0x2e80, 0x2eff}, /* radicals */
    {0x2f00, 0x2fdf}, /* Kangxi radicals */
    {0x2ff0, 0x303f}, /* descriptions of characters; punctuation */
    {0x3100, 0x312f}, /* Bopomofo */
    {0x31a0, 0x31bf}, /* Bopomofo, extended */
    {0x31c0, 0x31ef}, /* strokes */
    {0x3200, 0x33ff}, /* enclosed letters, squared words */
    {0x3400, 0x4db5}, /* ideographs, extension A */
    {0x4e00, 0x9fbb}, /* ideographs */
    {0xf900, 0xfa2d}, {0xfa30, 0xfa6a}, {0xfa70, 0xfad9}, /* compatibility ideographs */
    {0xfe10, 0xfe1f}, {0xfe30, 0xfe4f},                   /* vertical and compatibility forms */
    {0xff00, 0xffef},                                     /* full and half width forms */
};

fth_err fth_tok_zh(fth_text line, fth_tok_work *w) {
    FTH_TRY(fth_add_isolated(&w->text, fth_strip(line), chinese, sizeof chinese / sizeof *chinese));
    FTH_TRY(fth_space_signs(&w->text, &w->spare));
    return fth_space_stops_and_dashes(&w->text, &w->spare);
}
