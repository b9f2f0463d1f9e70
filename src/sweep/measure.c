/* measure.c: the commands after a training, each with a product in RUN/measures:
 *
 *     average RUN --last N        RUN/measures/mean-N/
 *     generate MODEL --input F    RUN/measures/HASH.txt
 *     score METRIC --hyp ...      RUN/measures/NAME-HASH.json
 *     evaluate MODEL DATA         RUN/measures/NAME-HASH.json */
#include "sweep/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "sweep/data.h"

/* ---- reading ---- */

static const char *value_of(const char *item, const char *key) {
    const size_t n = strlen(key);
    return strncmp(item, key, n) == 0 && item[n] == '=' ? item + n + 1 : NULL;
}

/* A key of the measure's own; anything else is an option of its verb. */
static bool take_own(fth_measure *m, const char *item) {
    const struct {
        const char *key, **out;
    } own[] = {{"metric", &m->metric}, {"input", &m->input}, {"field", &m->field}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const char *value = value_of(item, own[i].key);
        if (value && (m->metric || i != 1)) return *own[i].out = value, true;
    }
    return false;
}

static bool is_name(const char *name) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    return name[0] && strlen(name) <= 40 && !name[strspn(name, letters)];
}

fth_err fth_measure_read(fth_sweep_spec *s, const char *key, const char *const *items, size_t n) {
    fth_measure *m = &s->measure[s->n_measures];
    const bool scored = strncmp(key, "score.", 6) == 0;
    *m = (fth_measure){.name = strchr(key, '.') + 1, .where = s->where};
    if (scored) {
        m->metric = "bleu";
        m->field = "score";
    } else {
        m->field = "ppl";
    }
    if (!is_name(m->name))
        return fth_fail(FTH_BAD_INPUT,
                        "%s: %s: must have a name of letters, digits, - and _ after the dot",
                        s->where, key);
    for (size_t i = 0; i < s->n_measures; i++)
        if (strcmp(s->measure[i].name, m->name) == 0)
            return fth_fail(FTH_BAD_INPUT, "%s: %s: there is another measure %s", s->where, key,
                            m->name);
    m->option = fth_arena_alloc(&s->arena, (n + 1) * sizeof *m->option);
    if (!m->option) return fth_no_memory("the measures of a sweep");
    for (size_t i = 0; i < n; i++)
        if (!take_own(m, items[i])) m->option[m->n_options++] = items[i];
    if (scored && strcmp(m->metric, "rouge") == 0 && strcmp(m->field, "score") == 0)
        m->field = "rougeL.fmeasure";
    s->n_measures++;
    return FTH_OK;
}

static fth_err check_measure(const fth_sweep_spec *s, const fth_measure *m) {
    size_t refs = 0;
    if (!m->metric) return FTH_OK;
    for (size_t i = 0; i < m->n_options; i++) refs += value_of(m->option[i], "ref") != NULL;
    if (!m->input && (refs > 0 || !s->has_corpus))
        return fth_fail(FTH_BAD_INPUT, "%s: score.%s: must have input: FILE, the text to translate",
                        m->where, m->name);
    if (m->input && refs == 0)
        return fth_fail(FTH_BAD_INPUT, "%s: score.%s: must have ref: FILE, the references",
                        m->where, m->name);
    return FTH_OK;
}

/* Is "label=value" a factor with that value? */
static bool is_choice(const fth_sweep_spec *s, const char *pair) {
    for (size_t i = 0; i < s->n_factors; i++) {
        const char *value = value_of(pair, s->factor[i].label);
        for (size_t k = 0; value && k < s->factor[i].n; k++)
            if (strcmp(s->factor[i].value[k], value) == 0) return true;
    }
    return false;
}

fth_err fth_measure_check(const fth_sweep_spec *s) {
    for (size_t i = 0; i < s->n_measures; i++) FTH_TRY(check_measure(s, &s->measure[i]));
    for (size_t i = 0; i < s->n_baseline; i++)
        if (!is_choice(s, s->baseline[i]))
            return fth_fail(FTH_BAD_INPUT, "%s: baseline: no run has %s", s->baseline_where,
                            s->baseline[i]);
    if (s->n_measures > 0 || (s->average == 0 && s->n_generate == 0)) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: average and generate mean something only beside score.NAME or "
                    "evaluate.NAME",
                    s->file);
}

/* ---- products ---- */

/* The text to translate, and hash of what decides the translation. */
static fth_err input_of(const fth_sweep_spec *s, const char *out_dir, const fth_measure *m,
                        fth_str *out) {
    char source[8], target[8];
    if (m->input) return fth_str_addf(out, "%s", m->input);
    fth_sweep_data_pair(s, source, target);
    return fth_str_addf(out, "%s/text/test.%s", out_dir, source);
}

static fth_err hash_output(const fth_sweep_spec *s, const fth_measure *m, uint32_t *hash) {
    fth_str all = {0};
    fth_err err =
        fth_str_addf(&all, "%s\n%lld\n", m->input ? m->input : "test", (long long)s->average);
    for (size_t i = 0; i < s->n_generate && err == FTH_OK; i++)
        err = fth_str_addf(&all, "%s\n", s->generate[i]);
    if (err == FTH_OK) *hash = (uint32_t)fth_hash64(all.text, all.length);
    fth_str_fini(&all);
    return err;
}

static fth_err hash_measure(const fth_sweep_spec *s, const fth_measure *m, uint32_t *hash) {
    fth_str all = {0};
    uint32_t output = 0;
    fth_err err = hash_output(s, m, &output);
    if (err == FTH_OK) err = fth_str_addf(&all, "%s %08x\n", m->metric ? m->metric : "", output);
    for (size_t i = 0; i < m->n_options && err == FTH_OK; i++)
        err = fth_str_addf(&all, "%s\n", m->option[i]);
    if (err == FTH_OK) *hash = (uint32_t)fth_hash64(all.text, all.length);
    fth_str_fini(&all);
    return err;
}

char *fth_measure_output(const fth_sweep_spec *s, const char *out_dir, const fth_sweep_run *run,
                         const fth_measure *m) {
    uint32_t hash;
    if (hash_output(s, m, &hash) != FTH_OK) return NULL;
    return fth_strdup_printf("%s/runs/%s/measures/%08x.txt", out_dir, run->name, hash);
}

static char *result_path(const fth_sweep_spec *s, const char *out_dir, const fth_sweep_run *run,
                         const fth_measure *m) {
    uint32_t hash;
    if (hash_measure(s, m, &hash) != FTH_OK) return NULL;
    return fth_strdup_printf("%s/runs/%s/measures/%s-%08x.json", out_dir, run->name, m->name, hash);
}

/* ---- commands ---- */

/* Where the run computes is where its model is used. */
static fth_err add_device(const fth_measuring *m, const fth_sweep_run *run, fth_command *c) {
    static const char *const how[] = {"--device=", "--precision=", "--threads="};
    for (size_t i = 0; i < run->n_words; i++)
        for (size_t k = 0; k < sizeof how / sizeof *how; k++)
            if (strncmp(run->words[i], how[k], strlen(how[k])) == 0)
                FTH_TRY(fth_command_add(c, run->words[i]));
    for (size_t i = 0; i + 1 < m->n_extra; i++)
        if (strcmp(m->extra[i], "--threads") == 0)
            FTH_TRY(fth_command_addf(c, "--threads=%s", m->extra[i + 1]));
    return FTH_OK;
}

/* The model that is measured: the run, which stands for its best checkpoint, or a mean. */
static fth_err add_model(const fth_measuring *m, const fth_sweep_run *run, fth_command *c) {
    if (m->spec->average == 0) return fth_command_addf(c, "%s/runs/%s", m->out_dir, run->name);
    return fth_command_addf(c, "%s/runs/%s/measures/mean-%lld", m->out_dir, run->name,
                            (long long)m->spec->average);
}

static fth_err set_product(fth_command *c, const char *path) {
    c->product = fth_arena_strdup(&c->arena, path);
    return c->product ? FTH_OK : fth_no_memory("the measures of a sweep");
}

static fth_err average_command(const fth_measuring *m, const fth_sweep_run *run, fth_command *c) {
    const long long n = m->spec->average;
    if (n == 0) return FTH_OK;
    char *mean = fth_strdup_printf("%s/runs/%s/measures/mean-%lld", m->out_dir, run->name, n);
    fth_err err = mean ? FTH_OK : fth_no_memory("the measures of a sweep");
    if (err == FTH_OK && !fth_folder_has(mean, "config.json")) {
        err = fth_command_add(c, "average");
        if (err == FTH_OK) err = fth_command_addf(c, "%s/runs/%s", m->out_dir, run->name);
        if (err == FTH_OK) err = fth_command_addf(c, "--last=%lld", n);
        if (err == FTH_OK) err = fth_command_addf(c, "--out=%s", mean);
    }
    free(mean);
    return err;
}

static fth_err generate_command(const fth_measuring *m, const fth_sweep_run *run,
                                const fth_measure *x, const char *output, fth_command *c) {
    fth_str input = {0};
    fth_err err;
    FTH_TRY_OR(err, input_of(m->spec, m->out_dir, x, &input), done);
    FTH_TRY_OR(err, fth_command_add(c, "generate"), done);
    FTH_TRY_OR(err, add_model(m, run, c), done);
    FTH_TRY_OR(err, fth_command_addf(c, "--input=%s", input.text), done);
    FTH_TRY_OR(err, fth_command_addf(c, "--output=%s", output), done);
    FTH_TRY_OR(err, fth_command_add(c, "--quiet"), done);
    FTH_TRY_OR(err, add_device(m, run, c), done);
    err = fth_command_add_options(c, m->spec->generate, m->spec->n_generate);
done:
    fth_str_fini(&input);
    return err;
}

fth_err fth_measure_add_references(const fth_sweep_spec *s, const char *out_dir,
                                   const fth_measure *m, fth_command *c) {
    char source[8], target[8];
    FTH_TRY(fth_command_add_options(c, m->option, m->n_options));
    if (m->input) return FTH_OK;
    fth_sweep_data_pair(s, source, target);
    return fth_command_addf(c, "--ref=%s/text/test.%s", out_dir, target);
}

static fth_err score_command(const fth_measuring *m, const fth_measure *x, const char *output,
                             fth_command *c) {
    FTH_TRY(fth_command_add(c, "score"));
    FTH_TRY(fth_command_add(c, x->metric));
    FTH_TRY(fth_command_addf(c, "--hyp=%s", output));
    FTH_TRY(fth_command_add(c, "--json"));
    return fth_measure_add_references(m->spec, m->out_dir, x, c);
}

static fth_err evaluate_command(const fth_measuring *m, const fth_sweep_run *run,
                                const fth_measure *x, fth_command *c) {
    FTH_TRY(fth_command_add(c, "evaluate"));
    FTH_TRY(add_model(m, run, c));
    FTH_TRY(fth_command_add(c, m->data));
    FTH_TRY(fth_command_add(c, "--json"));
    FTH_TRY(add_device(m, run, c));
    return fth_command_add_options(c, x->option, x->n_options);
}

static fth_err measure_command(const fth_measuring *m, const fth_sweep_run *run,
                               const fth_measure *x, fth_command *c) {
    char *output = fth_measure_output(m->spec, m->out_dir, run, x);
    char *result = result_path(m->spec, m->out_dir, run, x);
    fth_err err = output && result ? FTH_OK : fth_no_memory("the measures of a sweep");
    if (err == FTH_OK && !fth_file_exists(result)) {
        if (x->metric && !fth_file_exists(output))
            err = generate_command(m, run, x, output, c);
        else {
            err = x->metric ? score_command(m, x, output, c) : evaluate_command(m, run, x, c);
            if (err == FTH_OK) err = set_product(c, result);
        }
    }
    free(output);
    free(result);
    return err;
}

fth_err fth_measure_next(const fth_measuring *m, const fth_sweep_run *run, fth_command *c) {
    *c = (fth_command){0};
    if (m->spec->n_measures == 0) return FTH_OK;
    FTH_TRY(average_command(m, run, c));
    for (size_t i = 0; i < m->spec->n_measures && c->n == 0; i++)
        FTH_TRY(measure_command(m, run, &m->spec->measure[i], c));
    return FTH_OK;
}

/* ---- results ---- */

/* The number at "a.b" of an object; NAN where there is none. */
static double number_at(const json_t *object, const char *field) {
    char key[64];
    while (object && strchr(field, '.')) {
        const size_t n = strcspn(field, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, field);
        object = json_object_get(object, key);
        field += n + 1;
    }
    double x = NAN;
    const json_t *value = json_object_get(object, field);
    return value && fth_json_to_double(value, &x) == FTH_OK ? x : NAN;
}

fth_err fth_measure_values(const fth_sweep_spec *s, const char *out_dir, const fth_sweep_run *run,
                           double *values) {
    for (size_t i = 0; i < s->n_measures; i++) {
        json_t *result = NULL;
        char *path = result_path(s, out_dir, run, &s->measure[i]);
        values[i] = NAN;
        fth_err err = path ? FTH_OK : fth_no_memory("the measures of a sweep");
        if (err == FTH_OK && fth_file_exists(path)) err = fth_json_load(path, &result);
        if (err == FTH_OK && result) values[i] = number_at(result, s->measure[i].field);
        json_decref(result);
        free(path);
        FTH_TRY(err);
    }
    return FTH_OK;
}
