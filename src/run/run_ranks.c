/* run_ranks.c: compares the options of the ranks, writes who they are into the log, and lets
 * them agree on when to stop. */
#include "run/run_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "run/run_log.h"

/* Comments, and options that may have other values on other machines. */
static bool is_local(const fth_run_spec *spec, const char *line) {
    return line[0] == '#' || fth_option_on_resume(spec->options, spec->n_options, line,
                                                  strcspn(line, ":\n")) == FTH_RESUME_OF_MACHINE;
}

static fth_err options_text(const fth_run_spec *spec, fth_str *out) {
    FTH_TRY(fth_str_addf(out, "version: %s\n", FATHOM_VERSION));
    for (const char *line = spec->yaml; *line;) {
        const size_t n = strcspn(line, "\n") + 1;
        const size_t length = line[n - 1] ? n : n - 1;
        if (!is_local(spec, line)) FTH_TRY(fth_str_add(out, line, length));
        line += length;
    }
    return FTH_OK;
}

fth_err fth_ranks_same_run(const fth_run_spec *spec, uint64_t data_hash) {
    fth_ranks *ranks = spec->ranks;
    if (!ranks) return FTH_OK;
    fth_str text = {0};
    char hash[32];
    fth_err err = fth_ranks_agree(ranks, options_text(spec, &text));
    if (err == FTH_OK) err = fth_ranks_same(ranks, "options", text.text);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)data_hash);
    if (err == FTH_OK) err = fth_ranks_same(ranks, "the data set's hash", hash);
    fth_str_fini(&text);
    return err;
}

static bool is_new(const fth_ranks *ranks, int rank) {
    for (int r = 0; r < rank; r++)
        if (strcmp(fth_rank_host(ranks, r), fth_rank_host(ranks, rank)) == 0) return false;
    return true;
}

void fth_ranks_log_start(json_t *line, const fth_ranks *ranks, int64_t pipeline) {
    if (!line) return;
    json_t *hosts = json_array();
    for (int r = 0; r < fth_rank_count(ranks); r++)
        if (is_new(ranks, r)) json_array_append_new(hosts, json_string(fth_rank_host(ranks, r)));
    fth_run_log_number(line, "ranks", fth_rank_count(ranks));
    json_object_set_new(line, "hosts", hosts);
    if (pipeline > 1) fth_run_log_number(line, "pipeline", (double)pipeline);
    if (ranks) fth_run_log_number(line, "shards", fth_rank_count(ranks));
}

/* The others wait a tenth of the time more for it than it for them, and twice as long. */
static void find_slow(const fth_ranks *ranks, const double *share, fth_rank_waits *out) {
    const int count = fth_rank_count(ranks);
    int least = 0;
    double sum = 0;
    for (int r = 0; r < count; r++) {
        sum += share[r];
        if (share[r] < share[least]) least = r;
    }
    const double others = (sum - share[least]) / (count - 1);
    out->mean = sum / count;
    if (others < share[least] + 0.1 || others < 2 * share[least]) return;
    out->slow = least;
    snprintf(out->text, sizeof out->text,
             "rank %d on %s is slow: the others wait %.0f %% of the time for it", least,
             fth_rank_host(ranks, least), 100 * others);
}

fth_err fth_ranks_waits(fth_ranks *ranks, double waited, double seconds, fth_rank_waits *out) {
    *out = (fth_rank_waits){.slow = -1};
    if (!ranks) return FTH_OK;
    const double mine = seconds > 0 ? waited / seconds : 0;
    double *share = calloc((size_t)fth_rank_count(ranks), sizeof *share);
    if (!share) return fth_fail(FTH_NO_MEMORY, "no memory for ranks");
    fth_err err = fth_ranks_gather(ranks, &mine, sizeof mine, share);
    if (err == FTH_OK) find_slow(ranks, share, out);
    free(share);
    return err;
}

typedef struct wish {
    int32_t signal, late;
} wish;

fth_err fth_ranks_stop(fth_ranks *ranks, int *signal, bool *late) {
    if (!ranks) return FTH_OK;
    const int count = fth_rank_count(ranks);
    const wish mine = {*signal, *late};
    wish *all = malloc(sizeof *all * (size_t)count);
    if (!all) return fth_fail(FTH_NO_MEMORY, "no memory for ranks");
    fth_err err = fth_ranks_gather(ranks, &mine, sizeof mine, all);
    for (int r = 0; r < count && err == FTH_OK; r++)
        if (all[r].signal) *signal = all[r].signal;
    if (err == FTH_OK) *late = all[0].late;
    free(all);
    return err;
}
