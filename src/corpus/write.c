/* Writes the files of a corpus. They are made in a hidden folder inside the folder asked for and
 * moved up when all six are complete and on the disk. */
#include "corpus/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/unfinished.h"
#include "base/str.h"
#include "base/writer.h"

enum { FILES = 2 * FTH_CORPUS_SPLITS };

static const char *const split_names[FTH_CORPUS_SPLITS] = {"train", "valid", "test"};

typedef struct job {
    fth_corpus *corpus;
    fth_progress progress;
    int64_t done;        /* phrases written */
    char *stage;         /* the hidden folder */
    int lock;            /* open on it; -1: not made yet */
    char *final[FILES];  /* where the files go: of split s the source is 2 s, the target 2 s + 1 */
    char *staged[FILES]; /* the same names in the hidden folder */
} job;

static fth_err name_files(job *j, const char *folder) {
    j->stage = fth_strdup_printf("%s/.corpus.tmp-%ld-0", folder, (long)getpid());
    int ok = j->stage != NULL;
    for (int i = 0; i < FILES && ok; i++) {
        const char *language = fth_corpus_code_of(j->corpus, i % 2);
        j->final[i] = fth_strdup_printf("%s/%s.%s", folder, split_names[i / 2], language);
        j->staged[i] = fth_strdup_printf("%s/%s.%s", j->stage, split_names[i / 2], language);
        ok = j->final[i] && j->staged[i];
    }
    return ok ? FTH_OK
              : fth_fail(FTH_NO_MEMORY, "%s: no memory for the names of its files", folder);
}

static fth_err put_line(fth_writer *w, const char *text) {
    FTH_TRY(fth_writer_put(w, text, strlen(text)));
    return fth_writer_put(w, "\n", 1);
}

/* One split: both sides, line by line. */
static fth_err write_split(job *j, fth_corpus_split split, int64_t count) {
    fth_writer out[2] = {{0}, {0}};
    fth_err err = FTH_OK;
    const char *text[2];
    for (int i = 0; i < 2; i++)
        FTH_TRY_OR(err, fth_writer_open(&out[i], j->staged[2 * split + i]), done);
    for (int64_t n = 0; n < count; n++) {
        if (split == FTH_CORPUS_TRAIN)
            err = fth_corpus_next_even(j->corpus, split, &text[0], &text[1]);
        else
            err = fth_corpus_next_new(j->corpus, split, &text[0], &text[1]);
        if (err) goto done;
        for (int i = 0; i < 2; i++) FTH_TRY_OR(err, put_line(&out[i], text[i]), done);
        fth_progress_update(&j->progress, ++j->done, NULL);
    }
    for (int i = 0; i < 2; i++) FTH_TRY_OR(err, fth_writer_commit(&out[i]), done);
done:
    for (int i = 0; i < 2; i++) fth_writer_fini(&out[i]);
    return err;
}

static fth_err move_up(job *j, const char *folder) {
    fth_err err = FTH_OK;
    fth_unfinished_lock(); /* all six or none, whatever signal comes */
    for (int i = 0; i < FILES && !err; i++)
        if (rename(j->staged[i], j->final[i]) != 0)
            err = fth_fail(FTH_IO, "%s: cannot put the file in place: %s", j->final[i],
                           strerror(errno));
    fth_unfinished_unlock();
    return err ? err : fth_sync_dir(folder);
}

static fth_err check_counts(const fth_corpus *c, const int64_t *count) {
    for (int i = 0; i < FTH_CORPUS_SPLITS; i++) {
        if (count[i] < 0)
            return fth_fail(FTH_USAGE, "corpus: %lld %s phrases: the number must be 0 or more",
                            (long long)count[i], split_names[i]);
        size_t most = fth_corpus_room(c, (fth_corpus_split)i);
        if (i != FTH_CORPUS_TRAIN && (uint64_t)count[i] > most)
            return fth_fail(FTH_USAGE, "corpus: %lld %s phrases: this level has %zu different ones",
                            (long long)count[i], split_names[i], most);
    }
    return FTH_OK;
}

static fth_err check_free(const job *j) {
    for (int i = 0; i < FILES; i++)
        if (fth_file_exists(j->final[i]))
            return fth_fail(FTH_USAGE, "%s is there already (--force replaces it)", j->final[i]);
    return FTH_OK;
}

/* The files in the hidden folder, then in their places. */
static fth_err write_all(job *j, const char *folder, const int64_t count[FTH_CORPUS_SPLITS],
                         fth_log *log) {
    FTH_TRY(fth_make_dirs(j->stage));
    j->lock = open(j->stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->lock < 0 || !fth_unfinished_claim(j->lock, j->stage))
        return fth_fail(FTH_IO, "%s: cannot lock the folder", j->stage);
    fth_progress_init(&j->progress, log, fth_real_clock(), "corpus", "phrases", 0,
                      count[0] + count[1] + count[2]);
    for (int i = 0; i < FTH_CORPUS_SPLITS; i++)
        FTH_TRY(write_split(j, (fth_corpus_split)i, count[i]));
    FTH_TRY(move_up(j, folder));
    fth_progress_end(&j->progress);
    return fth_remove_tree(j->stage);
}

fth_err fth_corpus_write(fth_corpus *c, const char *folder, const int64_t count[FTH_CORPUS_SPLITS],
                         bool force, fth_log *log) {
    job j = {.corpus = c, .lock = -1};
    fth_new_dirs made = {0};
    fth_err err = FTH_OK;
    FTH_TRY(check_counts(c, count));
    FTH_TRY_OR(err, name_files(&j, folder), done);
    if (!force) FTH_TRY_OR(err, check_free(&j), done);
    FTH_TRY_OR(err, fth_new_dirs_make(&made, folder), done);
    FTH_TRY_OR(err, fth_unfinished_sweep(folder, ".corpus"), done);
    FTH_TRY_OR(err, fth_unfinished_hold(j.stage), done);
    err = write_all(&j, folder, count, log);
    if (err) (void)fth_remove_tree(j.stage); /* the first failure is the one to tell */
done:
    fth_unfinished_drop(j.stage);
    if (j.lock >= 0) close(j.lock);
    fth_new_dirs_fini(&made);
    free(j.stage);
    for (int i = 0; i < FILES; i++) free(j.final[i]), free(j.staged[i]);
    return err;
}
