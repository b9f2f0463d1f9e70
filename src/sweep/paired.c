/* paired.c: joins the outputs of a row's seeds, those of its baseline and the references, and asks
 * `fathom score --paired`. */
#include "sweep/paired.h"

#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "sweep/command.h"
#include "sweep/runner.h"
#include "text/inflate.h"

/* Which value of factor i the baseline has; -1: any. */
static int32_t baseline_choice(const fth_sweep_spec *s, size_t i) {
    const fth_factor *f = &s->factor[i];
    const size_t n = strlen(f->label);
    for (size_t k = 0; k < s->n_baseline; k++) {
        const char *pair = s->baseline[k];
        if (strncmp(pair, f->label, n) != 0 || pair[n] != '=') continue;
        for (size_t v = 0; v < f->n; v++)
            if (strcmp(f->value[v], pair + n + 1) == 0) return (int32_t)v;
    }
    return -1;
}

/* Is b the baseline of a? Options of a method that only one of the two has do not count. */
static bool is_baseline(const fth_sweep_spec *s, const fth_sweep_run *a, const fth_sweep_run *b) {
    bool other = false;
    for (size_t i = 0; i < s->n_factors; i++) {
        const int32_t wanted = baseline_choice(s, i);
        if (wanted >= 0) {
            if (b->choice[i] != wanted) return false;
            other = other || a->choice[i] != wanted;
        } else if (a->choice[i] != b->choice[i] && a->choice[i] >= 0 && b->choice[i] >= 0)
            return false;
    }
    return other;
}

/* The run of a row with a seed, once it has its measure; NULL: none. */
static const fth_sweep_run *run_of(const fth_sweep_results *r, size_t row, const char *seed,
                                   size_t measure) {
    for (size_t i = 0; i < r->grid->n; i++) {
        const fth_sweep_run *run = &r->grid->run[i];
        if (run->row == row && strcmp(run->seed, seed) == 0 &&
            !isnan(r->result[i].measure[measure]))
            return run;
    }
    return NULL;
}

static bool can_be_resampled(const char *metric) {
    static const char *const metrics[] = {"bleu", "multi-bleu", "chrf", "ter"};
    for (size_t i = 0; metric && i < sizeof metrics / sizeof *metrics; i++)
        if (strcmp(metric, metrics[i]) == 0) return true;
    return false;
}

/* ---- one test ---- */

typedef struct test {
    fth_str base, other, *ref; /* texts; ref: [n_refs] */
    fth_command score;         /* its --ref are the paths of references */
    size_t n_refs, seeds;
    uint64_t hash;
} test;

static fth_err append(fth_str *out, const char *path) {
    char *data = NULL;
    size_t size = 0;
    FTH_TRY(fth_inflate_all(path, path, &data, &size));
    fth_err err = fth_str_add(out, data, size);
    if (err == FTH_OK && size > 0 && data[size - 1] != '\n') err = fth_str_add(out, "\n", 1);
    free(data);
    return err;
}

static fth_err append_output(const fth_sweep_results *r, const char *out_dir,
                             const fth_sweep_run *run, const fth_measure *m, fth_str *out) {
    char *path = fth_measure_output(r->spec, out_dir, run, m);
    fth_err err = path ? append(out, path) : fth_no_memory("a paired test");
    free(path);
    return err;
}

static fth_err gather_seed(const fth_sweep_results *r, const char *out_dir, const fth_measure *m,
                           const fth_sweep_run *base, const fth_sweep_run *other, test *t) {
    size_t k = 0;
    t->seeds++;
    FTH_TRY(append_output(r, out_dir, base, m, &t->base));
    FTH_TRY(append_output(r, out_dir, other, m, &t->other));
    for (size_t i = 0; i < t->score.n; i++)
        if (strncmp(t->score.word[i], "--ref=", 6) == 0)
            FTH_TRY(append(&t->ref[k++], t->score.word[i] + 6));
    return FTH_OK;
}

/* Of all that decides the answer: both outputs, the references, metric and options. */
static uint64_t hash_of(const fth_measure *m, const test *t) {
    uint64_t hash = fth_hash64(t->base.text, t->base.length);
    hash = 31 * hash + fth_hash64(t->other.text, t->other.length);
    hash = 31 * hash + fth_hash64(m->metric, strlen(m->metric));
    for (size_t i = 0; i < t->n_refs; i++)
        hash = 31 * hash + fth_hash64(t->ref[i].text, t->ref[i].length);
    for (size_t i = 0; i < t->score.n; i++)
        if (strncmp(t->score.word[i], "--ref=", 6) != 0)
            hash = 31 * hash + fth_hash64(t->score.word[i], strlen(t->score.word[i]));
    return hash;
}

static fth_err gather(const fth_sweep_results *r, const char *out_dir, size_t measure, size_t base,
                      size_t row, test *t) {
    const fth_measure *m = &r->spec->measure[measure];
    FTH_TRY(fth_measure_add_references(r->spec, out_dir, m, &t->score));
    for (size_t i = 0; i < t->score.n; i++)
        t->n_refs += strncmp(t->score.word[i], "--ref=", 6) == 0;
    t->ref = calloc(t->n_refs + 1, sizeof *t->ref);
    if (!t->ref) return fth_no_memory("a paired test");
    for (size_t i = 0; i < r->spec->n_seeds; i++) {
        const fth_sweep_run *a = run_of(r, base, r->spec->seeds[i], measure);
        const fth_sweep_run *b = run_of(r, row, r->spec->seeds[i], measure);
        if (a && b) FTH_TRY(gather_seed(r, out_dir, m, a, b, t));
    }
    t->hash = hash_of(m, t);
    return FTH_OK;
}

static fth_err write_text(const char *folder, const char *name, const fth_str *text, fth_command *c,
                          const char *flag) {
    char *path = fth_strdup_printf("%s/%s", folder, name);
    fth_err err =
        path ? fth_file_write(path, text->text, text->length) : fth_no_memory("a paired test");
    if (err == FTH_OK) err = fth_command_addf(c, "--%s=%s", flag, path);
    free(path);
    return err;
}

/* The texts of a test in a folder of their own, which is removed afterwards. */
static fth_err ask(const fth_measure *m, const char *folder, const char *result, const test *t) {
    fth_command c = {0};
    char *output = fth_strdup_printf("%s/output.txt", folder);
    char *part = fth_strdup_printf("%s.part", result);
    int status = 0;
    fth_err err = output && part ? fth_make_dirs(folder) : fth_no_memory("a paired test");
    if (err == FTH_OK) err = fth_command_add(&c, "score");
    if (err == FTH_OK) err = fth_command_add(&c, m->metric);
    if (err == FTH_OK) err = fth_command_add(&c, "--paired");
    if (err == FTH_OK) err = fth_command_add(&c, "--json");
    if (err == FTH_OK) err = write_text(folder, "baseline.txt", &t->base, &c, "hyp");
    if (err == FTH_OK) err = write_text(folder, "other.txt", &t->other, &c, "hyp");
    for (size_t i = 0; i < t->n_refs && err == FTH_OK; i++) {
        char name[40];
        snprintf(name, sizeof name, "reference-%zu.txt", i);
        err = write_text(folder, name, &t->ref[i], &c, "ref");
    }
    for (size_t i = 0; i < t->score.n && err == FTH_OK; i++)
        if (strncmp(t->score.word[i], "--ref=", 6) != 0)
            err = fth_command_add(&c, t->score.word[i]);
    if (err == FTH_OK) err = fth_runner_call(c.word, output, part, &status);
    if (err == FTH_OK && status != 0)
        err = fth_fail(FTH_FAILED, "score --paired ended with status %d: %s says why", status,
                       output);
    if (err == FTH_OK && rename(part, result) != 0)
        err = fth_fail(FTH_IO, "%s: cannot be renamed", part);
    if (err == FTH_OK) err = fth_remove_tree(folder);
    fth_command_fini(&c);
    free(part);
    free(output);
    return err;
}

static fth_err read_p(const char *path, double *p) {
    json_t *result;
    FTH_TRY(fth_json_load(path, &result));
    const json_t *system = json_array_get(json_object_get(result, "systems"), 1);
    const json_t *value = json_object_get(system, "p_exchanged");
    fth_err err = value ? fth_json_to_double(value, p)
                        : fth_fail(FTH_BAD_INPUT, "%s: has no p_exchanged", path);
    json_decref(result);
    return err;
}

static fth_err test_row(fth_sweep_results *r, const char *out_dir, size_t measure, size_t base,
                        size_t row) {
    const fth_measure *m = &r->spec->measure[measure];
    test t = {0};
    fth_err err = gather(r, out_dir, measure, base, row, &t);
    char *folder = fth_strdup_printf("%s/paired/texts", out_dir);
    char *result = fth_strdup_printf("%s/paired/%s-%016llx.json", out_dir, m->name,
                                     (unsigned long long)t.hash);
    if (err == FTH_OK && !(folder && result)) err = fth_no_memory("a paired test");
    if (err == FTH_OK && t.seeds > 0) {
        if (!fth_file_exists(result)) err = ask(m, folder, result, &t);
        if (err == FTH_OK) err = read_p(result, &r->row[row].p[measure]);
    }
    for (size_t i = 0; i < t.n_refs && t.ref; i++) fth_str_fini(&t.ref[i]);
    free(t.ref);
    fth_str_fini(&t.base);
    fth_str_fini(&t.other);
    fth_command_fini(&t.score);
    free(folder);
    free(result);
    return err;
}

fth_err fth_sweep_paired(fth_sweep_results *r, const char *out_dir) {
    const fth_sweep_spec *s = r->spec;
    if (s->n_baseline == 0) return FTH_OK;
    for (size_t row = 0; row < r->grid->rows; row++)
        for (size_t base = 0; base < r->grid->rows; base++) {
            if (!is_baseline(s, r->row[row].run, r->row[base].run)) continue;
            for (size_t m = 0; m < s->n_measures; m++)
                if (can_be_resampled(s->measure[m].metric))
                    FTH_TRY(test_row(r, out_dir, m, base, row));
            break;
        }
    return FTH_OK;
}
