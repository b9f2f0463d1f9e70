/* gpt2_files.c: vocab.json (OpenAI: encoder.json) and merges.txt (OpenAI: vocab.bpe). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "text/tokenizer_json.h"

/* The file of merges in the folder of vocab.json; malloc'd. */
static fth_err find_merges(const char *path, char **merges) {
    static const char *const names[] = {"merges.txt", "vocab.bpe"};
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *merges = fth_strdup_printf("%.*s%s", folder, path, names[i]);
        if (!*merges) return fth_fail(FTH_NO_MEMORY, "%s: no memory to read it", path);
        if (fth_file_exists(*merges)) return FTH_OK;
        free(*merges);
    }
    *merges = NULL;
    return fth_fail(FTH_NOT_FOUND,
                    "%s: is a vocabulary of byte-level BPE, and no merges.txt or vocab.bpe lies "
                    "beside it",
                    path);
}

/* Lines of "left right" after a "#version" line. text is changed. */
static fth_err read_lines(const char *path, char *text, const json_t *vocab, fth_bpe_parts *p) {
    char where[512];
    int number = 0;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        number++;
        const size_t n = strlen(line);
        if (n && line[n - 1] == '\r') line[n - 1] = 0;
        if (!line[0] || (number == 1 && strncmp(line, "#version", 8) == 0)) continue;
        snprintf(where, sizeof where, "%s:%d", path, number);
        FTH_TRY(fth_bpe_parts_merge_pair(p, where, vocab, line));
    }
    return FTH_OK;
}

static size_t count_lines(const char *text) {
    size_t n = 1;
    for (; *text; text++) n += *text == '\n';
    return n;
}

/* The ids of vocab, the file at path, then the merges. */
static fth_err read_both(const char *path, json_t *vocab, const char *merges, fth_bpe_parts *p) {
    char *text = NULL;
    size_t size = 0;
    FTH_TRY(fth_file_read(merges, &text, &size));
    const size_t valid = fth_utf8_valid_prefix(text, size);
    fth_err err = valid == size && strlen(text) == size
                      ? fth_bpe_parts_init(p, json_object_size(vocab), count_lines(text))
                      : fth_fail(FTH_BAD_INPUT, "%s: is not UTF-8 text", merges);
    if (!err) err = fth_bpe_parts_vocab(p, path, vocab);
    if (!err) err = read_lines(merges, text, vocab, p);
    free(text);
    return err;
}

/* Controls are known by their names alone. What the vocabulary lacks of bos, pad and unk follows
 * after its ids, here as in memory. */
static fth_err add_roles(fth_bpe_parts *p, const char *path) {
    FTH_TRY(fth_bpe_parts_check(p, path));
    for (int32_t i = 0; i < p->n; i++)
        if (!fth_bpe_parts_give_role(p, i) && strcmp(p->names[i], FTH_MASK_PIECE) == 0)
            p->uses[i] = FTH_BPE_SYMBOL;
    return FTH_OK;
}

fth_err fth_gpt2_files_join(const char *path, const char *data, size_t size, char **made,
                            size_t *made_size) {
    json_t *vocab = NULL;
    char *merges = NULL;
    fth_bpe_parts parts = {0};
    *made = NULL;
    FTH_TRY(fth_json_parse(path, data, size, &vocab));
    fth_err err = FTH_OK;
    /* a vocabulary may have a word "model", whose id is a number */
    if (!json_is_object(vocab) || json_is_object(json_object_get(vocab, "model"))) goto end;
    FTH_TRY_OR(err, find_merges(path, &merges), end);
    FTH_TRY_OR(err, read_both(path, vocab, merges, &parts), end);
    FTH_TRY_OR(err, add_roles(&parts, path), end);
    FTH_TRY_OR(err, fth_tokenizer_json_print(&parts, made, made_size), end);
end:
    fth_bpe_parts_fini(&parts);
    json_decref(vocab);
    free(merges);
    return err;
}
