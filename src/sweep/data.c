/* data.c: calls `fathom prepare` with the texts of the sweep, unless its data set is there
 * already. */
#include "sweep/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "sweep/command.h"
#include "sweep/runner.h"

fth_err fth_sweep_data_path(const fth_sweep_spec *s, const char *out_dir, fth_str *path) {
    return s->data ? fth_str_addf(path, "%s", s->data) : fth_str_addf(path, "%s/data", out_dir);
}

void fth_sweep_data_pair(const fth_sweep_spec *s, char source[8], char target[8]) {
    memcpy(source, "en", 3);
    memcpy(target, "de", 3);
    for (size_t i = 0; i < s->n_corpus; i++)
        if (strncmp(s->corpus[i], "pair=", 5) == 0 && strlen(s->corpus[i]) == 10) {
            memcpy(source, s->corpus[i] + 5, 2);
            memcpy(target, s->corpus[i] + 8, 2);
        }
}

/* Text of the corpus for prepare, unless the spec names its own. */
static fth_err add_text(fth_command *c, const fth_sweep_spec *s, const char *out_dir) {
    char source[8], target[8];
    if (!s->has_corpus) return FTH_OK;
    fth_sweep_data_pair(s, source, target);
    FTH_TRY(fth_command_addf(c, "--train-src=%s/text/train.%s", out_dir, source));
    FTH_TRY(fth_command_addf(c, "--train-tgt=%s/text/train.%s", out_dir, target));
    FTH_TRY(fth_command_addf(c, "--valid-src=%s/text/valid.%s", out_dir, source));
    return fth_command_addf(c, "--valid-tgt=%s/text/valid.%s", out_dir, target);
}

/* Runs it; the message of what went wrong is the last line of its output. */
static fth_err call(fth_command *c, const char *out_dir) {
    char *output = fth_strdup_printf("%s/data.txt", out_dir), *text = NULL;
    size_t size = 0;
    int status = 0;
    if (!output) return fth_no_memory("the data of a sweep");
    fth_err err = fth_remove_tree(output);
    if (err == FTH_OK) err = fth_runner_call(c->word, output, NULL, &status);
    if (err == FTH_OK && status != 0) {
        if (fth_file_read(output, &text, &size) != FTH_OK) text = NULL;
        while (text && size > 0 && text[size - 1] == '\n') text[--size] = '\0';
        const char *last = text ? strrchr(text, '\n') : NULL;
        last = last ? last + 1 : text ? text : "";
        if (strncmp(last, "fathom: ", 8) == 0) last += 8;
        err = fth_fail(status == 2 ? FTH_BAD_INPUT : FTH_FAILED, "%s: %s", c->word[0], last);
    }
    free(text);
    free(output);
    return err;
}

static fth_err make_corpus(const fth_sweep_spec *s, const char *out_dir, fth_log *log) {
    fth_command c = {0};
    fth_err err;
    fth_log_info(log, "making the corpus");
    FTH_TRY_OR(err, fth_command_add(&c, "corpus"), done);
    FTH_TRY_OR(err, fth_command_addf(&c, "--out=%s/text", out_dir), done);
    FTH_TRY_OR(err, fth_command_add(&c, "--force"), done);
    FTH_TRY_OR(err, fth_command_add_options(&c, s->corpus, s->n_corpus), done);
    err = call(&c, out_dir);
done:
    fth_command_fini(&c);
    return err;
}

static fth_err make(const fth_sweep_spec *s, const char *out_dir, fth_log *log) {
    fth_command c = {0};
    fth_err err;
    if (s->has_corpus) FTH_TRY(make_corpus(s, out_dir, log));
    fth_log_info(log, "making the data set");
    FTH_TRY_OR(err, fth_command_add(&c, "prepare"), done);
    FTH_TRY_OR(err, fth_command_addf(&c, "--out=%s/data", out_dir), done);
    FTH_TRY_OR(err, fth_command_add(&c, "--force"), done);
    FTH_TRY_OR(err, add_text(&c, s, out_dir), done);
    FTH_TRY_OR(err, fth_command_add_options(&c, s->prepare, s->n_prepare), done);
    err = call(&c, out_dir);
done:
    fth_command_fini(&c);
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
    fth_err err = path ? describe(s, &new) : fth_no_memory("the data of a sweep");
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
