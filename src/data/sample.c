/* sample.c: keeps lines below a threshold on their drawn numbers, and halves the threshold when
 * there are too many. */
#include "data/sample.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

/* Stands before the text of each line; copied in and out, for bytes has no alignment. */
typedef struct line_head {
    uint64_t drawn; /* uniform; the line stays while drawn < 2^(64 - halved) */
    size_t length;
} line_head;
_Static_assert(sizeof(line_head) == FTH_SAMPLE_LINE, "the bookkeeping that callers know");

static int stays(const fth_sample *s, uint64_t drawn) {
    return s->halved == 0 || (s->halved < 64 && drawn >> (64 - s->halved) == 0);
}

static uint64_t draw(uint64_t line) {
    uint32_t counter[4] = {(uint32_t)line, (uint32_t)(line >> 32), 0, 0}, out[4];
    fth_philox(UINT64_C(0x73616d706c65), counter, out);
    return (uint64_t)out[1] << 32 | out[0];
}

/* Halves the chance and drops the lines that lose it. */
static void thin_out(fth_sample *s) {
    size_t from = 0, to = 0;
    s->halved++;
    s->kept = 0;
    while (from < s->size) {
        line_head head;
        memcpy(&head, s->bytes + from, sizeof head);
        size_t size = sizeof head + head.length;
        if (stays(s, head.drawn)) {
            memmove(s->bytes + to, s->bytes + from, size);
            to += size;
            s->kept++;
        }
        from += size;
    }
    s->size = to;
}

static fth_err make_room(fth_sample *s, size_t more) {
    if (s->size + more <= s->capacity) return FTH_OK;
    size_t capacity = 2 * s->capacity + more;
    if (capacity > s->budget) capacity = s->budget;
    if (capacity < s->size + more) capacity = s->size + more;
    char *bytes = realloc(s->bytes, capacity);
    if (!bytes) return fth_fail(FTH_NO_MEMORY, "no memory for %zu bytes of text", capacity);
    s->bytes = bytes;
    s->capacity = capacity;
    return FTH_OK;
}

fth_err fth_sample_add(fth_sample *s, const char *text, size_t length) {
    line_head head = {draw(s->seen++), length};
    size_t size = sizeof head + length;
    while (stays(s, head.drawn) && s->size + size > s->budget && s->kept) thin_out(s);
    if (!stays(s, head.drawn) && s->kept) return FTH_OK;
    FTH_TRY(make_room(s, size));
    memcpy(s->bytes + s->size, &head, sizeof head);
    memcpy(s->bytes + s->size + sizeof head, text, length);
    s->size += size;
    s->kept++;
    return FTH_OK;
}

static bool begins_character(char c) {
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* The length of the beginning that has no word of more characters than longest. */
static size_t fitting(const char *text, size_t length, size_t longest) {
    size_t characters = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ' || text[i] == '\t')
            characters = 0;
        else if (begins_character(text[i]) && ++characters > longest)
            return i;
    }
    return length;
}

fth_err fth_sample_add_cut(fth_sample *s, const char *text, size_t length, size_t longest,
                           int64_t *cut) {
    size_t part = fitting(text, length, longest);
    *cut += part < length;
    FTH_TRY(fth_sample_add(s, text, part));
    while (text += part, length -= part) {
        part = fitting(text, length, longest);
        FTH_TRY(fth_sample_add(s, text, part));
    }
    return FTH_OK;
}

void fth_sample_fini(fth_sample *s) {
    free(s->bytes);
    *s = (fth_sample){0};
}

fth_err fth_sample_next(void *state, const char **text, size_t *length) {
    fth_sample *s = state;
    line_head head;
    *text = NULL;
    if (s->read == s->size) return FTH_OK;
    memcpy(&head, s->bytes + s->read, sizeof head);
    *text = s->bytes + s->read + sizeof head;
    *length = head.length;
    s->read += sizeof head + head.length;
    return FTH_OK;
}
