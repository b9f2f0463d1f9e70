/* table.c: rows in memory, and their CSV with the columns of doc/probe.md#the-columns. */
#include "probe/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fth_table_fini(fth_table *t) {
    for (int32_t i = 0; i < t->n_subjects; i++) free(t->subject[i].label);
    for (int32_t i = 0; i < t->n_words; i++) free(t->word[i]);
    free(t->word);
    free(t->subject);
    free(t->row);
    *t = (fth_table){0};
}

fth_err fth_table_subject(fth_table *t, const char *label, const fth_config *c) {
    size_t n = (size_t)t->n_subjects + 1;
    fth_probe_name *more = realloc(t->subject, sizeof *more * n);
    char *copy = strdup(label);
    if (more) t->subject = more;
    if (!more || !copy) {
        free(copy);
        return fth_fail(FTH_NO_MEMORY, "no memory for the names of %zu models", n);
    }
    fth_probe_name *s = &t->subject[t->n_subjects++];
    *s = (fth_probe_name){
        .label = copy, .layers = {c->encoder_layers, c->decoder_layers}, .d = c->d_model};
    snprintf(s->method, sizeof s->method, "%s", c->method);
    return FTH_OK;
}

fth_err fth_table_add(fth_table *t, fth_probe_row row) {
    if (t->n == t->capacity) {
        int64_t capacity = t->capacity ? t->capacity * 2 : 256;
        fth_probe_row *more = realloc(t->row, sizeof *more * (size_t)capacity);
        if (!more) return fth_fail(FTH_NO_MEMORY, "no memory for %lld rows", (long long)capacity);
        t->row = more;
        t->capacity = capacity;
    }
    row.subject = t->n_subjects - 1;
    t->row[t->n++] = row;
    return FTH_OK;
}

const char *fth_stack_name(fth_stack stack) {
    return stack == FTH_ENCODER ? "encoder" : "decoder";
}

/* Non-finite numbers as log.jsonl writes them, whatever the C library prints. */
static fth_err add_number(fth_str *out, double x) {
    if (isnan(x)) return fth_str_addf(out, ",nan");
    if (isinf(x)) return fth_str_addf(out, x > 0 ? ",inf" : ",-inf");
    return fth_str_addf(out, ",%.9g", x);
}

fth_err fth_table_csv(const fth_table *t, fth_str *out) {
    FTH_TRY(fth_str_addf(out, FTH_TABLE_HEAD "%s\n", t->columns));
    for (int64_t i = 0; i < t->n; i++) {
        const fth_probe_row *r = &t->row[i];
        const fth_probe_name *s = &t->subject[r->subject];
        FTH_TRY(fth_str_addf(out, "%s,%d,%d,%d,%lld,%s,%d", s->method, s->layers[FTH_ENCODER],
                             s->layers[FTH_DECODER], s->d, (long long)r->step,
                             fth_stack_name(r->stack), r->index));
        if (t->has_word) FTH_TRY(fth_str_addf(out, ",%s", r->word));
        for (int32_t k = 0; k < t->n_numbers; k++) FTH_TRY(add_number(out, r->number[k]));
        FTH_TRY(fth_str_add(out, "\n", 1));
    }
    return FTH_OK;
}
