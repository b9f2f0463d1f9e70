/* data.c: calls `fathom prepare` with the texts of the sweep, unless its data set is there
 * already. */
#include "sweep/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "sweep/runner.h"

fth_err fth_sweep_data_path(const fth_sweep_spec *s, const char *out_dir, fth_str *path) {
    return s->data ? fth_str_addf(path, "%s", s->data) : fth_str_addf(path, "%s/data", out_dir);
}

static fth_err no_memory(void) {
    return fth_fail(FTH_NO_MEMORY, "no memory for the data of a sweep");
}

/* A command line that grows; the words are the arena's. */
typedef struct line {
    const char *word[256];
    size_t n;
    fth_arena arena;
} line;

static fth_err add(line *l, const char *word) {
    if (l->n + 1 >= sizeof l->word / sizeof *l->word)
        return fth_fail(FTH_BAD_INPUT, "corpus or prepare: too many options");
    l->word[l->n] = fth_arena_strdup(&l->arena, word);
    return l->word[l->n++] ? FTH_OK : no_memory();
}

static fth_err add_path(line *l, const char *flag, const char *out_dir, const char *rest,
                        const char *ending) {
    char *path = fth_strdup_printf("%s/%s%s", out_dir, rest, ending);
    fth_err err = path ? add(l, flag) : no_memory();
    if (err == FTH_OK) err = add(l, path);
    free(path);
    return err;
}

/* "option=value" as --option=value, which serves switches as well. */
static fth_err add_pairs(line *l, const char *const *pair, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char *word = fth_strdup_printf("--%s", pair[i]);
        fth_err err = word ? add(l, word) : no_memory();
        free(word);
        if (err != FTH_OK) return err;
    }
    return FTH_OK;
}

/* Text of the corpus for prepare, unless the spec names its own. */
static fth_err add_text(line *l, const fth_sweep_spec *s, const char *out_dir) {
    char source[8] = ".en", target[8] = ".de";
    if (!s->has_corpus) return FTH_OK;
    for (size_t i = 0; i < s->n_corpus; i++)
        if (strncmp(s->corpus[i], "pair=", 5) == 0 && strlen(s->corpus[i]) == 10) {
            memcpy(source + 1, s->corpus[i] + 5, 2);
            memcpy(target + 1, s->corpus[i] + 8, 2);
        }
    FTH_TRY(add_path(l, "--train-src", out_dir, "text/train", source));
    FTH_TRY(add_path(l, "--train-tgt", out_dir, "text/train", target));
    FTH_TRY(add_path(l, "--valid-src", out_dir, "text/valid", source));
    return add_path(l, "--valid-tgt", out_dir, "text/valid", target);
}

/* Runs it; the message of what went wrong is the last line of its output. */
static fth_err call(line *l, const char *out_dir) {
    char *output = fth_strdup_printf("%s/data.txt", out_dir), *text = NULL;
    size_t size = 0;
    int status = 0;
    l->word[l->n] = NULL;
    if (!output) return no_memory();
    fth_err err = fth_remove_tree(output);
    if (err == FTH_OK) err = fth_runner_call(l->word, output, &status);
    if (err == FTH_OK && status != 0) {
        if (fth_file_read(output, &text, &size) != FTH_OK) text = NULL;
        while (text && size > 0 && text[size - 1] == '\n') text[--size] = '\0';
        const char *last = text ? strrchr(text, '\n') : NULL;
        last = last ? last + 1 : text ? text : "";
        if (strncmp(last, "fathom: ", 8) == 0) last += 8;
        err = fth_fail(status == 2 ? FTH_BAD_INPUT : FTH_FAILED, "%s: %s", l->word[0], last);
    }
    free(text);
    free(output);
    return err;
}

static fth_err make(const fth_sweep_spec *s, const char *out_dir, fth_log *log) {
    line corpus = {0}, prepare = {0};
    fth_err err = FTH_OK;
    if (s->has_corpus) {
        fth_log_info(log, "making the corpus");
        FTH_TRY_OR(err, add(&corpus, "corpus"), done);
        FTH_TRY_OR(err, add_path(&corpus, "--out", out_dir, "text", ""), done);
        FTH_TRY_OR(err, add(&corpus, "--force"), done);
        FTH_TRY_OR(err, add_pairs(&corpus, s->corpus, s->n_corpus), done);
        FTH_TRY_OR(err, call(&corpus, out_dir), done);
    }
    fth_log_info(log, "making the data set");
    FTH_TRY_OR(err, add(&prepare, "prepare"), done);
    FTH_TRY_OR(err, add_path(&prepare, "--out", out_dir, "data", ""), done);
    FTH_TRY_OR(err, add(&prepare, "--force"), done);
    FTH_TRY_OR(err, add_text(&prepare, s, out_dir), done);
    FTH_TRY_OR(err, add_pairs(&prepare, s->prepare, s->n_prepare), done);
    err = call(&prepare, out_dir);
done:
    fth_arena_fini(&corpus.arena);
    fth_arena_fini(&prepare.arena);
    return err;
}

static fth_err describe(const fth_sweep_spec *s, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "%s", s->has_corpus ? "corpus\n" : ""));
    for (size_t i = 0; i < s->n_corpus; i++) FTH_TRY(fth_str_addf(out, "  %s\n", s->corpus[i]));
    FTH_TRY(fth_str_addf(out, "prepare\n"));
    for (size_t i = 0; i < s->n_prepare; i++) FTH_TRY(fth_str_addf(out, "  %s\n", s->prepare[i]));
    return FTH_OK;
}

fth_err fth_sweep_data_make(const fth_sweep_spec *s, const char *out_dir, fth_log *log) {
    if (s->data) return FTH_OK;
    char *path = fth_strdup_printf("%s/data.made", out_dir), *old = NULL;
    size_t size;
    fth_str new = {0};
    fth_err err = path ? describe(s, &new) : no_memory();
    if (err == FTH_OK && fth_file_exists(path)) {
        err = fth_file_read(path, &old, &size);
        if (err == FTH_OK && strcmp(old, new.text) != 0)
            err = fth_fail(FTH_BAD_CONFIG,
                           "%s: its data were made with other options of corpus or prepare than %s "
                           "has now; use another --out, or remove the folder",
                           out_dir, s->file);
    } else if (err == FTH_OK) {
        err = make(s, out_dir, log);
        if (err == FTH_OK) err = fth_file_write(path, new.text, new.length);
    }
    fth_str_fini(&new);
    free(old);
    free(path);
    return err;
}
