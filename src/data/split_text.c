/* split_text.c: one writer for each side and reference, committed together. */
#include "data/split_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static fth_err open_file(fth_writer *w, const char *prefix, const char *suffix) {
    char *path = fth_strdup_printf("%s.%s.txt", prefix, suffix);
    if (!path) return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", prefix);
    fth_err err = fth_writer_open(w, path);
    free(path);
    return err;
}

fth_err fth_split_text_open(fth_split_text *t, const char *prefix) {
    t->prefix = strdup(prefix);
    if (!t->prefix) return fth_fail(FTH_NO_MEMORY, "%s: no memory to write it", prefix);
    FTH_TRY(open_file(&t->sides[0], prefix, "src"));
    return open_file(&t->sides[1], prefix, "tgt");
}

static fth_err put_line(fth_writer *w, const char *text) {
    FTH_TRY(fth_writer_put(w, text, strlen(text)));
    return fth_writer_put(w, "\n", 1);
}

/* One more file, with an empty line for every record that has gone by. */
static fth_err add_reference(fth_split_text *t) {
    char suffix[32];
    snprintf(suffix, sizeof suffix, "ref%d", t->n_references + 1);
    fth_writer *w = &t->references[t->n_references];
    FTH_TRY(open_file(w, t->prefix, suffix));
    t->n_references++;
    for (int64_t i = 0; i < t->lines; i++) FTH_TRY(fth_writer_put(w, "\n", 1));
    return FTH_OK;
}

fth_err fth_split_text_put(fth_split_text *t, const char *const texts[2], const char *references,
                           int n) {
    for (int s = 0; s < 2; s++) FTH_TRY(put_line(&t->sides[s], texts[s]));
    while (t->n_references < n) FTH_TRY(add_reference(t));
    for (int i = 0; i < t->n_references; i++) {
        const char *text = i < n ? references : "";
        FTH_TRY(put_line(&t->references[i], text));
        if (i < n) references += strlen(references) + 1;
    }
    t->lines++;
    return FTH_OK;
}

fth_err fth_split_text_commit(fth_split_text *t) {
    if (!t->prefix) return FTH_OK;
    for (int s = 0; s < 2; s++) FTH_TRY(fth_writer_commit(&t->sides[s]));
    for (int i = 0; i < t->n_references; i++) FTH_TRY(fth_writer_commit(&t->references[i]));
    return FTH_OK;
}

void fth_split_text_fini(fth_split_text *t) {
    for (int s = 0; s < 2; s++) fth_writer_fini(&t->sides[s]);
    for (int i = 0; i < FTH_MAX_REFERENCES; i++) fth_writer_fini(&t->references[i]);
    free(t->prefix);
    *t = (fth_split_text){0};
}
