/* links: base */
/* Options from the command line and from YAML, --help, the dump, and suggestions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/number.h"
#include "base/option_uses.h"
#include "base/options.h"
#include "base/philox.h"
#include "base/yaml.h"

#define MODEL_LINES(X)                                                                             \
    X(I64, heads, "8", FTH_MIN(1), "attention heads")                                              \
    X(I64, encoder_layers, "6", FTH_RANGE(0, 100000), "layers of the encoder")                     \
    X(F64, dropout, "0.1", FTH_BELOW(0, 1), "share of activations set to zero")                    \
    X(LIST, method_option, "", FTH_SHOWN_AS("KEY=VALUE"), "a setting of the method")
FTH_OPTIONS(model_options, "model", MODEL_LINES)

#define TRAIN_LINES(X)                                                                             \
    X(F64, lr, "0.0005", FTH_ABOVE(0), "peak learning rate")                                       \
    X(I64, seed, "1", FTH_ANY, "seed of all random numbers")                                       \
    X(I64, stop_at, "", FTH_MIN(0), "update to stop at")                                           \
    X(STR, save_dir, "run", FTH_SHOWN_AS("FOLDER"), "where the run is kept")                       \
    X(STR, note, "", FTH_ANY, "free text")                                                         \
    X(CHOICE, device, "auto", FTH_CHOICES("auto|cpu|cuda|ref"), "where to compute")                \
    X(CHOICE, lr_scheduler, "inverse_sqrt",                                                        \
      FTH_CHOICES("inverse_sqrt|inverse_sqrt_nowarmup|constant|linear|cosine"),                    \
      "how the learning rate goes up and down in the course of the training")                      \
    X(BOOL, strict, "false", FTH_ANY, "stop at the first warning")                                 \
    X(BOOL, shuffle, "true", FTH_ANY, "another order in each epoch")                               \
    X(SIZE, memory_budget, "", FTH_MIN(1024), "memory the plan may use")                           \
    X(I64, threads, "", FTH_RANGE(1, 64), "threads (of a CPU); default: one for each core")
FTH_OPTIONS(train_options, "training", TRAIN_LINES)

static const fth_usage usage = {"fathom train", "DATA", "Trains a model.", 0, 2};

typedef struct run {
    model_options model;
    train_options train;
    fth_option_group groups[2];
    fth_parsed parsed;
} run;

/* Parses a NULL-terminated list of words. */
static fth_err parse(run *r, const char *const *words) {
    int argc = 0;
    while (words[argc]) argc++;
    memset(r, 0x55, sizeof *r); /* nothing may rely on what was there before */
    r->groups[0] = model_options_group(&r->model);
    r->groups[1] = train_options_group(&r->train);
    return fth_options_parse(&usage, r->groups, 2, argc, (char *const *)words, &r->parsed);
}

#define PARSE(r, ...) parse(r, (const char *const[]){__VA_ARGS__, NULL})

static char config[] = "/tmp/fathom-options-XXXXXX"; /* a file that tests write their YAML to */

static int make_config(void **state) {
    (void)state;
    int fd = mkstemp(config);
    return fd < 0 ? -1 : close(fd);
}

static int remove_config(void **state) {
    (void)state;
    return unlink(config);
}

static void write_config(const char *text) {
    assert_int_equal(fth_file_write(config, text, strlen(text)), FTH_OK);
}

static void defaults_are_set(void **state) {
    (void)state;
    run r;
    assert_int_equal(parse(&r, (const char *const[]){NULL}), FTH_OK);
    assert_int_equal(r.model.heads, 8);
    assert_true(r.model.dropout == 0.1 && r.train.lr == 0.0005);
    assert_int_equal(r.model.method_option.count, 0);
    assert_int_equal(r.train.stop_at, 0);
    assert_string_equal(r.train.save_dir, "run");
    assert_string_equal(r.train.note, "");
    assert_string_equal(r.train.device, "auto");
    assert_true(!r.train.strict && r.train.shuffle);
    assert_int_equal(r.train.memory_budget, 0);
    assert_false(fth_option_was_set(r.groups, 2, "lr"));
    assert_null(r.parsed.output.text);
    fth_parsed_fini(&r.parsed);
    fth_parsed_fini(&r.parsed);
}

static void flags_are_read(void **state) {
    (void)state;
    run r;
    assert_int_equal(PARSE(&r, "one", "--heads", "16", "--lr=5e-4", "--strict", "--no-shuffle",
                           "--method-option", "steps=4000", "--seed", "-3", "--save-dir=", "--note",
                           "-", "--method-option=growth=linear", "--device", "ref",
                           "--memory-budget", "1.5G", "--", "--two"),
                     FTH_OK);
    assert_int_equal(r.model.heads, 16);
    assert_true(r.train.lr == 5e-4);
    assert_true(r.train.strict && !r.train.shuffle);
    assert_int_equal(r.train.seed, -3);
    assert_string_equal(r.train.save_dir, "");
    assert_string_equal(r.train.note, "-");
    assert_string_equal(r.train.device, "ref");
    assert_int_equal(r.train.memory_budget, 3ull << 29);
    assert_int_equal(r.model.method_option.count, 2);
    assert_string_equal(r.model.method_option.items[0], "steps=4000");
    assert_string_equal(r.model.method_option.items[1], "growth=linear");
    assert_int_equal(r.parsed.n_positionals, 2);
    assert_string_equal(r.parsed.positionals[0], "one");
    assert_string_equal(r.parsed.positionals[1], "--two");
    assert_true(fth_option_was_set(r.groups, 2, "heads"));
    assert_true(fth_option_was_set(r.groups, 2, "shuffle"));
    assert_false(fth_option_was_set(r.groups, 2, "dropout"));
    assert_false(fth_option_was_set(r.groups, 2, "no such thing"));
    fth_parsed_fini(&r.parsed);
}

static void files_come_before_the_command_line(void **state) {
    (void)state;
    run r;
    write_config("heads: 4\nlr: 0.25\nmethod-option: {steps: 10, growth: linear}\n"
                 "strict: yes\nnote: |\n  two\n  lines\nsave-dir: 'x y'\nmemory-budget: 2M\n");
    assert_int_equal(PARSE(&r, "--heads", "2", "--config", config), FTH_OK);
    assert_int_equal(r.model.heads, 2); /* the flag wins although it stands first */
    assert_true(r.train.lr == 0.25 && r.train.strict);
    assert_int_equal(r.model.method_option.count, 2);
    assert_string_equal(r.model.method_option.items[1], "growth=linear");
    assert_string_equal(r.train.note, "two\nlines\n");
    assert_string_equal(r.train.save_dir, "x y");
    assert_int_equal(r.train.memory_budget, 2 << 20);
    assert_true(fth_option_was_set(r.groups, 2, "lr"));
    fth_parsed_fini(&r.parsed);

    char second[] = "/tmp/fathom-options-XXXXXX";
    int fd = mkstemp(second);
    assert_true(fd >= 0 && close(fd) == 0);
    const char *text = "lr: 0.5\nmethod-option: [a, b, c]\n# nothing else\n";
    assert_int_equal(fth_file_write(second, text, strlen(text)), FTH_OK);
    char flag[64];
    snprintf(flag, sizeof flag, "--config=%s", second);
    assert_int_equal(PARSE(&r, "--config", config, flag), FTH_OK);
    assert_true(r.train.lr == 0.5);
    assert_int_equal(r.model.heads, 4);
    assert_int_equal(r.model.method_option.count, 3);
    fth_parsed_fini(&r.parsed);
    assert_int_equal(PARSE(&r, flag, "--config", config, "--method-option", "x=1"), FTH_OK);
    assert_true(r.train.lr == 0.25); /* the later file */
    assert_int_equal(r.model.method_option.count, 1);
    fth_parsed_fini(&r.parsed);
    unlink(second);
    write_config("# only a comment\n");
    assert_int_equal(PARSE(&r, "--config", config), FTH_OK);
    fth_parsed_fini(&r.parsed);
}

static void wrong_flags_say_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *words[4], *message;
    } cases[] = {
        {{"--heads", "-3"}, "--heads -3: must be a whole number of at least 1"},
        {{"--heads=2.5"}, "--heads 2.5: must be a whole number of at least 1"},
        {{"--heads="}, "--heads : must be a whole number of at least 1"},
        {{"--heads", "0x10"}, "--heads 0x10: must be a whole number of at least 1"},
        {{"--heads", " 3"}, "--heads  3: must be a whole number of at least 1"},
        {{"--heads", "99999999999999999999"},
         "--heads 99999999999999999999: must be a whole number of at least 1"},
        {{"--seed", "one"}, "--seed one: must be a whole number"},
        {{"--encoder-layers", "100001"},
         "--encoder-layers 100001: must be a whole number from 0 to 100000"},
        {{"--dropout", "1"}, "--dropout 1: must be a number of at least 0 and below 1"},
        {{"--lr", "0"}, "--lr 0: must be a number above 0"},
        {{"--lr", "nan"}, "--lr nan: must be a number above 0"},
        {{"--lr", "inf"}, "--lr inf: must be a number above 0"},
        {{"--lr", "1e999"}, "--lr 1e999: must be a number above 0"},
        {{"--lr", "1.0x"}, "--lr 1.0x: must be a number above 0"},
        {{"--device", "gpu"}, "--device gpu: must be one of auto, cpu, cuda, ref"},
        {{"--device", "cpu|cuda"}, "--device cpu|cuda: must be one of auto, cpu, cuda, ref"},
        {{"--device="}, "--device : must be one of auto, cpu, cuda, ref"},
        {{"--strict=maybe"}, "--strict maybe: must be true or false"},
        {{"--no-strict=true"}, "--no-strict: takes no value"},
        {{"--memory-budget", "8X"},
         "--memory-budget 8X: must be a number of bytes such as 4096, 512M or 8G, at least 1K"},
        {{"--memory-budget", "-8G"},
         "--memory-budget -8G: must be a number of bytes such as 4096, 512M or 8G, at least 1K"},
        {{"--note", "\xFF"}, "--note \xFF: must be text in UTF-8"},
        {{"--lr"}, "--lr: needs a value"},
        {{"--lr", "--heads", "3"}, "--lr: needs a value"},
        {{"--config"}, "--config: needs a value"},
        {{"--head", "3"}, "--head: unknown option; did you mean --heads?"},
        {{"--warmup=3"}, "--warmup: unknown option"},
        {{"--encoder", "3"}, "--encoder: unknown option; did you mean --encoder-layers?"},
        {{"--save_dir", "3"}, "--save_dir: unknown option; did you mean --save-dir?"},
        {{"--hlep"}, "--hlep: unknown option; did you mean --help?"},
        {{"--dump-conf"}, "--dump-conf: unknown option; did you mean --dump-config?"},
        {{"--no-heads"}, "--no-heads: unknown option; did you mean --heads?"},
        {{"--=3"}, "--: unknown option"},
        {{"-x"}, "-x: unknown option; options begin with --"},
        {{"a", "b", "c"}, "c: unexpected argument; usage: fathom train DATA [options]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run r;
        assert_int_equal(parse(&r, cases[i].words), FTH_USAGE);
        assert_string_equal(fth_error_message(), cases[i].message);
        fth_parsed_fini(&r.parsed);
    }
    fth_usage strict = usage;
    strict.least = 1;
    run r;
    r.groups[0] = model_options_group(&r.model);
    assert_int_equal(fth_options_parse(&strict, r.groups, 1, 0, NULL, &r.parsed), FTH_USAGE);
    assert_string_equal(fth_error_message(),
                        "an argument is missing; usage: fathom train DATA [options]");
    fth_parsed_fini(&r.parsed);
}

static void wrong_files_say_where(void **state) {
    (void)state;
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"heads: 4\nlrr: 3\n", ":2: lrr: unknown key; did you mean lr?"},
        {"\nconfig: a\n", ":2: config: unknown key"},
        {"heads: 4\n\nheads: 5\n", ":3: heads: given twice, first in line 1"},
        {"heads: eight\n", ":1: heads eight: must be a whole number of at least 1"},
        {"a: 1\n", ":1: a: unknown key"},
        {"heads:\n", ":1: heads: has no value"},
        {"note: null\n", ":1: note: has no value"},
        {"heads: [1]\n", ":1: heads: must be a single value, not a list"},
        {"lr: {a: 1}\n", ":1: lr: must be a single value, not a list"},
        {"method-option: [[a]]\n", ":1: method-option: its parts must be single values"},
        {"method-option: {a: [b]}\n", ":1: method-option: its parts must be single values"},
        {"method-option: {a: 1, a: 2}\n", ":1: method-option: a is given twice"},
        {"strict: 3\n", ":1: strict 3: must be true or false"},
        {"- a\n", ":1: must hold lines of the form \"key: value\""},
        {"method-option: [a, b\n", ":2: not YAML: did not find expected ',' or ']' while parsing a "
                                   "flow sequence"},
        {"text\n", ":1: must hold lines of the form \"key: value\""},
        {"[a]: b\n", ":1: a key must be a word"},
        {"lr: &x 1\nheads: *x\n", ":2: heads: aliases are not supported"},
        {"lr: 1\n---\nheads: 1\n", ":2: must hold one YAML document, not several"},
        {"note: \"a\\0b\"\n", ":1: text must not contain a NUL"},
        {"note: \"a\n", ":2: not YAML: found unexpected end of stream while scanning a quoted "
                        "scalar"},
        {"note: \xFF\n", ": byte 7: not a YAML file: invalid leading UTF-8 octet"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run r;
        char message[256];
        write_config(cases[i].yaml);
        snprintf(message, sizeof message, "%s%s", config, cases[i].message);
        assert_int_equal(PARSE(&r, "--config", config), FTH_BAD_INPUT);
        assert_string_equal(fth_error_message(), message);
        fth_parsed_fini(&r.parsed);
    }
    run r;
    assert_int_equal(PARSE(&r, "--config", "/nowhere/c.yaml"), FTH_NOT_FOUND);
    fth_parsed_fini(&r.parsed);
}

static const char expected_dump[] = "# model\n"
                                    "heads: 8\n"
                                    "encoder-layers: 6\n"
                                    "dropout: 0.1\n"
                                    "method-option: []\n"
                                    "\n"
                                    "# training\n"
                                    "lr: 0.0005\n"
                                    "seed: 1\n"
                                    "# stop-at: not set\n"
                                    "save-dir: run\n"
                                    "note: \"\"\n"
                                    "device: auto\n"
                                    "lr-scheduler: inverse_sqrt\n"
                                    "strict: false\n"
                                    "shuffle: true\n"
                                    "# memory-budget: not set\n"
                                    "# threads: not set\n";

/* What a file says is no mistake: it may be a whole dump. */
static void options_without_effect_are_refused(void **state) {
    (void)state;
    static const char *const fields[] = {"lr", "seed", NULL};
    static const fth_option_use uses[] = {{"lr", " walk run "}, {"strict", " run "}};
    run r;
    write_config("lr: 0.25\nseed: 7\nstrict: yes\n");
    assert_int_equal(PARSE(&r, "--config", config, "--heads", "2"), FTH_OK);
    assert_null(fth_option_typed(r.groups, 2, "seed"));
    assert_string_equal(fth_option_typed(r.groups, 2, "heads"), "2");
    assert_int_equal(fth_refuse_options(r.groups, 2, fields, "needs more"), FTH_OK);
    assert_int_equal(fth_check_uses(r.groups, 2, uses, 2, "walk"), FTH_OK);
    assert_int_equal(fth_refuse_group(&r.groups[1], "needs more"), FTH_OK);
    assert_int_equal(fth_refuse_group(&r.groups[0], "needs more"), FTH_USAGE);
    assert_string_equal(fth_error_message(), "--heads 2: needs more");
    fth_parsed_fini(&r.parsed);

    assert_int_equal(PARSE(&r, "--seed=9", "--strict"), FTH_OK);
    assert_int_equal(fth_refuse_options(r.groups, 2, fields, "needs more"), FTH_USAGE);
    assert_string_equal(fth_error_message(), "--seed 9: needs more");
    assert_int_equal(fth_refuse_options(r.groups, 1, fields, "needs more"), FTH_OK);
    assert_int_equal(fth_check_uses(r.groups, 2, uses, 2, "run"), FTH_OK);
    assert_int_equal(fth_check_uses(r.groups, 2, uses, 2, "walk"), FTH_USAGE);
    assert_string_equal(fth_error_message(), "--strict: walk does not use it, only run");
    fth_parsed_fini(&r.parsed);
}

static void dump_shows_the_result(void **state) {
    (void)state;
    run r;
    assert_int_equal(PARSE(&r, "--dump-config"), FTH_OK);
    assert_string_equal(r.parsed.output.text, expected_dump);
    fth_parsed_fini(&r.parsed);
    assert_int_equal(PARSE(&r, "--dump-config", "--lr", "0"), FTH_USAGE);
    fth_parsed_fini(&r.parsed);
}

static void assert_same(const run *a, const run *b) {
    assert_int_equal(a->model.heads, b->model.heads);
    assert_int_equal(a->model.encoder_layers, b->model.encoder_layers);
    assert_true(a->model.dropout == b->model.dropout && a->train.lr == b->train.lr);
    assert_int_equal(a->model.method_option.count, b->model.method_option.count);
    for (size_t i = 0; i < a->model.method_option.count; i++)
        assert_string_equal(a->model.method_option.items[i], b->model.method_option.items[i]);
    assert_int_equal(a->train.seed, b->train.seed);
    assert_int_equal(a->train.stop_at, b->train.stop_at);
    assert_string_equal(a->train.save_dir, b->train.save_dir);
    assert_string_equal(a->train.note, b->train.note);
    assert_string_equal(a->train.device, b->train.device);
    assert_int_equal(a->train.strict, b->train.strict);
    assert_int_equal(a->train.shuffle, b->train.shuffle);
    assert_int_equal(a->train.memory_budget, b->train.memory_budget);
}

/* The dump of any values reads back as the same values. */
static void dump_reads_back(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "run",
                                        "a b",
                                        "null",
                                        "~",
                                        "true",
                                        "5",
                                        "1e3",
                                        "- a",
                                        "a: b",
                                        "a #b",
                                        "[x]",
                                        "{",
                                        "'q'",
                                        "\"q\"",
                                        "back\\slash",
                                        "tab\there",
                                        "two\nlines\n",
                                        " blank ",
                                        "%",
                                        "@",
                                        "*a",
                                        "&a",
                                        "!t",
                                        "gr\xC3\xBC\xC3\x9F",
                                        "\xF0\x9F\x98\x80",
                                        "\xC2\x85next",
                                        "\xE2\x80\xA8line",
                                        "\x7F\x01",
                                        "\xEF\xBB\xBFmark",
                                        "\xEF\xBF\xBF",
                                        "-",
                                        "?",
                                        "=",
                                        "<<",
                                        ".inf",
                                        "0x1F",
                                        "a,b",
                                        "k=v",
                                        "NO",
                                        "---",
                                        "...",
                                        "/tmp/x.y",
                                        "it's"};
    static const char *const numbers[] = {"0.1",    "1e-300", "0.30000000000000004",   "5e-324",
                                          "123456", "1e+22",  "1.7976931348623157e308"};
    static const char *const sizes[] = {"1K", "1025", "8G", "3T", "1.3G", "9223372036854774784"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        run first, second;
        char note[64];
        snprintf(note, sizeof note, "--note=%s", texts[i]);
        assert_int_equal(PARSE(&first, note, "--method-option", texts[i][0] == '-' ? "x" : texts[i],
                               "--method-option", "x", "--lr", numbers[i % 7], "--memory-budget",
                               sizes[i % 6], i % 2 ? "--strict" : "--no-shuffle", "--seed",
                               "-9223372036854775808", "--stop-at", "0"),
                         FTH_OK);
        assert_int_equal(fth_options_dump(first.groups, 2, &first.parsed.output), FTH_OK);
        write_config(first.parsed.output.text);
        assert_int_equal(PARSE(&second, "--config", config), FTH_OK);
        assert_same(&first, &second);
        assert_string_equal(second.train.note, texts[i]);
        assert_true(fth_option_was_set(second.groups, 2, "stop_at"));
        fth_parsed_fini(&first.parsed);
        fth_parsed_fini(&second.parsed);
    }
}

static void numbers_are_short_and_exact(void **state) {
    (void)state;
    assert_string_equal(fth_double_text(0.1).text, "0.1");
    assert_string_equal(fth_double_text(0.1 + 0.2).text, "0.30000000000000004");
    assert_string_equal(fth_double_text(-1e22).text, "-1e+22");
    assert_string_equal(fth_size_text(0).text, "0");
    assert_string_equal(fth_size_text(1000).text, "1000");
    assert_string_equal(fth_size_text(1536ull << 20).text, "1536M");
    assert_string_equal(fth_size_text(5ull << 50).text, "5120T");
    fth_rng rng;
    fth_rng_init(&rng, 5, 0);
    for (int i = 0; i < 20000; i++) {
        double x = (fth_rng_uniform(&rng) - 0.5) * (double)(1 + fth_rng_below(&rng, 1000));
        assert_true(strtod(fth_double_text(x).text, NULL) == x);
    }
}

static void help_shows_every_option(void **state) {
    (void)state;
    run r;
    assert_int_equal(PARSE(&r, "--config", "/nowhere", "--lr", "0", "--help"), FTH_OK);
    const char *text = r.parsed.output.text;
    static const char *const parts[] = {
        "usage: fathom train DATA [options]\n\nTrains a model.\n\nmodel:\n",
        "\n  --heads N                   attention heads; at least 1 (default 8)\n",
        "\n  --encoder-layers N          layers of the encoder; from 0 to 100000 (default 6)\n",
        "\n  --dropout X                 share of activations set to zero; at least 0 and below 1 "
        "(default 0.1)\n",
        "\n  --method-option KEY=VALUE   a setting of the method; may be repeated (no default)\n",
        "\n\ntraining:\n  --lr X                      peak learning rate; above 0",
        "\n  --save-dir FOLDER           where the run is kept (default run)\n",
        "\n  --device auto|cpu|cuda|ref  where to compute (default auto)\n",
        "\n  --lr-scheduler WORD         how the learning rate goes up",
        "                              one of inverse_sqrt, inverse_sqrt_nowarmup, constant, ",
        "\n  --[no-]strict               stop at the first warning (default off)\n",
        "\n  --[no-]shuffle              another order in each epoch (default on)\n",
        "\n  --memory-budget SIZE        memory the plan may use; at least 1K (no default)\n",
        "\n  --threads N                 threads (of a CPU); from 1 to 64 (default: one for each "
        "core)\n",
        "\n\ngeneral:\n  --config FILE",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i])) {
            printf("%s", text);
            fail_msg("the help text lacks: %s", parts[i]);
        }
    assert_null(strstr(text, "(default\n"));
    for (const char *p = text; *p; p++) { /* no line is too long */
        assert_true(strcspn(p, "\n") <= 100);
        p += strcspn(p, "\n");
    }
    fth_parsed_fini(&r.parsed);
}

#define TWICE_LINES(X) X(I64, heads, "8", FTH_ANY, "the same name again")
FTH_OPTIONS(twice_options, "twice", TWICE_LINES)
#define BAD_LINES(X) X(I64, count, "0", FTH_MIN(1), "a default that is not allowed")
FTH_OPTIONS(bad_options, "bad", BAD_LINES)

static void mistakes_in_tables_are_found(void **state) {
    (void)state;
    model_options model;
    twice_options twice;
    bad_options bad;
    fth_parsed parsed;
    fth_option_group groups[2] = {model_options_group(&model), twice_options_group(&twice)};
    assert_int_equal(fth_options_parse(&usage, groups, 2, 0, NULL, &parsed), FTH_FAILED);
    assert_string_equal(fth_error_message(), "--heads is in the tables of options twice");
    fth_parsed_fini(&parsed);
    groups[1] = bad_options_group(&bad);
    assert_int_equal(fth_options_parse(&usage, groups, 2, 0, NULL, &parsed), FTH_FAILED);
    assert_string_equal(fth_error_message(),
                        "default \"0\" of count: must be a whole number of at least 1");
    fth_parsed_fini(&parsed);
}

#define OWN_LINES(X) X(STR, config, "", FTH_SHOWN_AS("FILE"), "config.json of the model")
FTH_OPTIONS(own_options, "own", OWN_LINES)

static void a_verb_may_have_its_own_config(void **state) {
    (void)state;
    own_options own;
    fth_parsed parsed;
    fth_option_group group = own_options_group(&own);
    char *const words[] = {"--config", "/nowhere/c.json", "--config=c.json"};
    assert_int_equal(fth_options_parse(&usage, &group, 1, 3, words, &parsed), FTH_OK);
    assert_string_equal(own.config, "c.json");
    fth_str help = {0};
    assert_int_equal(fth_options_help(&usage, &group, 1, &help), FTH_OK);
    assert_non_null(strstr(help.text, "  --config FILE  config.json of the model"));
    assert_null(strstr(help.text, "YAML file"));
    fth_str_fini(&help);
    fth_parsed_fini(&parsed);
}

static void nearest_words(void **state) {
    (void)state;
    static const char *const words[] = {"train", "trace", "generate", "score", "encoder-layers"};
    static const struct {
        const char *word, *nearest;
    } cases[] = {{"train", "train"},
                 {"trian", "train"},
                 {"generat", "generate"},
                 {"genrates", "generate"},
                 {"scroe", "score"},
                 {"translate", NULL},
                 {"", NULL},
                 {"x", NULL},
                 {"encoder", "encoder-layers"},
                 {"gen", "generate"},
                 {"sc", "score"},
                 {"zzzzz", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = fth_nearest(cases[i].word, words, 5);
        if (cases[i].nearest) {
            assert_non_null(found);
            assert_string_equal(found, cases[i].nearest);
        } else if (found) {
            fail_msg("%s suggests %s", cases[i].word, found);
        }
    }
    assert_int_equal(fth_edit_distance("", ""), 0);
    assert_int_equal(fth_edit_distance("", "abc"), 3);
    assert_int_equal(fth_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(fth_edit_distance("ab", "ba"), 1);
    char longer[300];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_true(fth_edit_distance(longer, "b") > 0);
    assert_null(fth_nearest("a", NULL, 0));
}

/* Changes a text in up to eight places: bytes overwritten, removed, copied from elsewhere. */
static size_t mutate(fth_rng *rng, char *text, size_t length, size_t capacity) {
    static const char likely[] = ":-[]{}#&*!|>'\"%@`,?\n\n\n  \t=0123456789\\xu\xC3\xFF";
    for (uint64_t n = 1 + fth_rng_below(rng, 8); n && length; n--) {
        size_t at = fth_rng_below(rng, length);
        uint64_t what = fth_rng_below(rng, 4);
        if (what == 0) text[at] = (char)fth_rng_u32(rng);
        if (what == 1) text[at] = likely[fth_rng_below(rng, sizeof likely - 1)];
        if (what == 2) {
            size_t gone = 1 + fth_rng_below(rng, length - at);
            if (gone > 12) gone = 12 < length - at ? 12 : length - at;
            memmove(text + at, text + at + gone, length - at - gone);
            length -= gone;
        }
        if (what == 3) {
            size_t from = fth_rng_below(rng, length), more = 1 + fth_rng_below(rng, 16);
            if (more > length - from) more = length - from;
            if (length + more > capacity) continue;
            memmove(text + at + more, text + at, length - at);
            memmove(text + at, text + (from >= at ? from + more : from), more);
            length += more;
        }
    }
    return length;
}

/* Mutated YAML gives values or a one-line message, and never anything worse. */
static void damaged_yaml_is_refused_in_peace(void **state) {
    (void)state;
    static const char seed[] = "heads: 4\nlr: 0.25 # c\nmethod-option: {steps: 10, growth: l}\n"
                               "strict: yes\nnote: |\n  two\n  lines\nsave-dir: 'x y'\n"
                               "device: \"c\\x70u\"\n? a\n: [b, \"c\"]\n";
    int read = 0, refused = 0;
    fth_rng rng;
    fth_rng_init(&rng, 7, 0);
    for (int i = 0; i < 5000; i++) {
        char text[600];
        size_t start = fth_rng_below(&rng, 3) ? 0 : fth_rng_below(&rng, sizeof seed - 1);
        size_t length = sizeof seed - 1 - start;
        memcpy(text, seed + start, length);
        length = mutate(&rng, text, length, sizeof text);
        char *exact = malloc(length ? length : 1); /* so that reading past the end is seen */
        assert_non_null(exact);
        memcpy(exact, text, length);
        fth_arena arena = {0};
        fth_yaml_entry *first;
        fth_err err = fth_yaml_read("f", exact, length, &arena, &first);
        if (err) {
            assert_int_equal(err, FTH_BAD_INPUT);
            assert_memory_equal(fth_error_message(), "f:", 2);
            assert_null(strchr(fth_error_message(), '\n'));
            refused++;
        } else {
            for (; first; first = first->next)
                for (size_t k = 0; k < first->count; k++) assert_non_null(first->items[k]);
            read++;
        }
        fth_arena_fini(&arena);
        free(exact);
    }
    assert_true(read > 100 && refused > 1000); /* both ways were really taken */
}

/* The same for whole command lines with a file. */
static void damaged_options_are_refused_in_peace(void **state) {
    (void)state;
    static const char *const words[] = {
        "--heads", "4",        "--lr=1e-3", "--strict", "--no-shuffle", "--method-option",
        "a=b",     "--device", "cpu",       "--seed",   "-5",           "--",
        "-",       "x",        "--config",  "--note",   "--save-dir=",  "--memory-budget",
        "8G",      "-h"};
    enum { N = sizeof words / sizeof *words };
    int fine = 0, refused = 0;
    fth_rng rng;
    fth_rng_init(&rng, 8, 0);
    for (int i = 0; i < 5000; i++) {
        char text[8][64];
        const char *line[9] = {0};
        size_t n = fth_rng_below(&rng, 8);
        for (size_t k = 0; k < n; k++) {
            const char *word = words[fth_rng_below(&rng, N)];
            size_t length = strlen(word);
            memcpy(text[k], word, length);
            if (fth_rng_below(&rng, 4) == 0) length = mutate(&rng, text[k], length, 63);
            text[k][length] = '\0';
            line[k] = text[k];
        }
        run r;
        fth_err err = parse(&r, line);
        if (err) {
            assert_true(err == FTH_USAGE || err == FTH_NOT_FOUND || err == FTH_IO);
            assert_true(strlen(fth_error_message()) > 0);
            refused++;
        } else {
            fth_str dump = {0};
            assert_int_equal(fth_options_dump(r.groups, 2, &dump), FTH_OK);
            fth_str_fini(&dump);
            fine++;
        }
        fth_parsed_fini(&r.parsed);
    }
    assert_true(fine > 500 && refused > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_set),
        cmocka_unit_test(flags_are_read),
        cmocka_unit_test(files_come_before_the_command_line),
        cmocka_unit_test(wrong_flags_say_what_is_wrong),
        cmocka_unit_test(wrong_files_say_where),
        cmocka_unit_test(options_without_effect_are_refused),
        cmocka_unit_test(dump_shows_the_result),
        cmocka_unit_test(dump_reads_back),
        cmocka_unit_test(numbers_are_short_and_exact),
        cmocka_unit_test(help_shows_every_option),
        cmocka_unit_test(mistakes_in_tables_are_found),
        cmocka_unit_test(a_verb_may_have_its_own_config),
        cmocka_unit_test(nearest_words),
        cmocka_unit_test(damaged_yaml_is_refused_in_peace),
        cmocka_unit_test(damaged_options_are_refused_in_peace),
    };
    return cmocka_run_group_tests(tests, make_config, remove_config);
}
