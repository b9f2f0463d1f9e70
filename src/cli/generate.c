/* generate.c: fathom generate MODEL...: translates, summarises, continues. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/device/device.h"
#include "base/file.h"
#include "base/option_uses.h"
#include "base/writer.h"
#include "cli/device_options.h"
#include "cli/generate_input.h"
#include "cli/generate_output.h"
#include "cli/generate_recordings.h"
#include "cli/language_tags.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "train/weights.h"

#define GENERATE_OPTIONS(X)                                                                        \
    X(STR, input, "-", FTH_SHOWN_AS("FILE"),                                                       \
      "a line of text for each output; of a model that reads recordings: a file name, or a "       \
      "manifest (doc/speech.md); -: standard input")                                               \
    X(STR, output, "-", FTH_SHOWN_AS("FILE"), "where the output goes; -: standard output")         \
    X(STR, target_language, "", FTH_SHOWN_AS("CODE"),                                              \
      "models of many languages: into which, as de")                                               \
    X(STR, source_language, "", FTH_SHOWN_AS("CODE"),                                              \
      "those with tags of the source too: out of which")                                           \
    X(STR, prefix, "", FTH_SHOWN_AS("FILE"), "lines with the forced beginning of each output")     \
    X(STR, constraints, "", FTH_SHOWN_AS("FILE"),                                                  \
      "lines with phrases that each output must have, in their order, with tabs between")          \
    X(CHOICE, format, "text", FTH_CHOICES("text|fairseq|jsonl"), "of the output")                  \
    X(CHOICE, print_alignment, "", FTH_CHOICES("hard|soft"),                                       \
      "with --format fairseq or jsonl: for each output token the source token that the last "      \
      "layer's attention looked at most (hard), or its shares of all (soft)")                      \
    X(I64, beam, "5", FTH_RANGE(1, 256), "hypotheses kept; 1: greedy")                             \
    X(I64, nbest, "1", FTH_MIN(1), "hypotheses printed for each line; an empty one where none is") \
    X(I64, diverse_beam_groups, "1", FTH_RANGE(1, 256),                                            \
      "parts of the beam that shun each other's words; must divide --beam")                        \
    X(F64, diverse_beam_strength, "0.5", FTH_MIN(0),                                               \
      "what a word costs that an earlier part has chosen in the same step")                        \
    X(F64, lenpen, "1", FTH_ANY, "the score is divided by length^lenpen")                          \
    X(F64, unkpen, "0", FTH_ANY, "taken off the score of the unknown word")                        \
    X(F64, max_len_a, "0", FTH_MIN(0),                                                             \
      "an output has at most max(1, a * source tokens + b) tokens")                                \
    X(I64, max_len_b, "200", FTH_MIN(0), "the b of it")                                            \
    X(I64, min_len, "0", FTH_MIN(0), "fewest tokens before the end symbol")                        \
    X(I64, no_repeat_ngram_size, "0", FTH_MIN(0), "no run of so many tokens twice; 0: off")        \
    X(BOOL, sampling, "false", FTH_ANY, "draw tokens instead of searching; --beam samples a line") \
    X(I64, sampling_topk, "0", FTH_MIN(0), "draw from the k likeliest tokens; 0: all")             \
    X(F64, sampling_topp, "0", FTH_RANGE(0, 1),                                                    \
      "draw from the likeliest tokens that together have this probability; 0: all")                \
    X(F64, temperature, "1", FTH_ABOVE(0), "divides the logits when drawing")                      \
    X(I64, seed, "1", FTH_MIN(0), "of the drawing")                                                \
    X(CHOICE, on_bad_line, "skip", FTH_CHOICES("skip|replace|stop"),                               \
      "a line that is not UTF-8: skip prints an empty line for it and ends with status 1, "        \
      "replace takes U+FFFD for its wrong bytes")                                                  \
    X(BOOL, flush, "false", FTH_ANY,                                                               \
      "answer each line before the next is read; without it, those that have come")                \
    X(I64, batch, "64", FTH_RANGE(1, 65536), "sentences at once")                                  \
    X(I64, max_tokens, "8192", FTH_RANGE(1, 16777216), "source tokens at once")                    \
    X(BOOL, strict, "false", FTH_ANY, "a line that is too long is an error, instead of being cut") \
    X(BOOL, quiet, "false", FTH_ANY, "no totals")                                                  \
    QUANTIZE_OPTIONS(X)
FTH_OPTIONS(generate_options, "generation", GENERATE_OPTIONS)

enum { MAX_MODELS = 16 };

typedef struct work {
    const generate_options *o;
    const char *folder; /* of the first model */
    int n_models;
    fth_model model[MAX_MODELS];
    fth_arenas arenas[MAX_MODELS];
    fth_device *device;
    fth_tokenizer *src, *tgt; /* src may be tgt */
    fth_generator *generator;
    fth_printer printer;
    fth_ids tags; /* before each source; empty: none */
    fth_log log;
    int threads;
    int64_t skipped; /* lines that are not UTF-8, recordings that cannot be read */
} work;

/* ---- input ---- */

static fth_err generate_all(work *w, fth_generate_input *in) {
    const int64_t most = w->o->flush || w->o->batch == 1 ? 1 : FTH_MOST_LINES;
    for (;;) {
        FTH_TRY(fth_generate_input_next(in, most, &w->log));
        if (in->n == 0) return FTH_OK;
        for (int64_t i = 0; i < in->n; i++) in->lines[i].tags = &w->tags;
        FTH_TRY(fth_generate(w->generator, in->lines, in->n, fth_print_output, &w->printer));
        if (fflush(w->printer.out) != 0)
            return fth_fail(FTH_IO, "%s: cannot write: %s", w->o->output, strerror(errno));
    }
}

static fth_on_bad_line on_bad_line(const work *w) {
    const char *what = w->o->on_bad_line;
    return strcmp(what, "stop") == 0      ? FTH_BAD_LINE_STOP
           : strcmp(what, "replace") == 0 ? FTH_BAD_LINE_REPLACE
                                          : FTH_BAD_LINE_SKIP;
}

static fth_err run_lines(work *w) {
    fth_generate_input *in = calloc(1, sizeof *in);
    if (!in) return fth_fail(FTH_NO_MEMORY, "no memory for lines of text");
    fth_err err =
        fth_generate_input_open(in, w->o->input, w->o->prefix, w->o->constraints, on_bad_line(w));
    if (err == FTH_OK) err = generate_all(w, in);
    w->skipped = in->skipped;
    fth_generate_input_fini(in);
    free(in);
    return err;
}

static bool reads_recordings(const work *w) {
    return w->model[0].config.front == FTH_FRONT_SPEECH;
}

static fth_err run_recordings(work *w) {
    fth_recordings *in = NULL;
    const fth_input *lines;
    int64_t n;
    const fth_recordings_spec spec = {.list = w->o->input,
                                      .model = w->folder,
                                      .features = w->model[0].config.features,
                                      .stop = on_bad_line(w) == FTH_BAD_LINE_STOP,
                                      .threads = w->threads,
                                      .log = &w->log};
    FTH_TRY(fth_recordings_new(&spec, &in));
    fth_err err;
    while ((err = fth_recordings_next(in, &lines, &n)) == FTH_OK && n > 0) {
        FTH_TRY_OR(err, fth_generate(w->generator, lines, n, fth_print_output, &w->printer), end);
        if (fflush(w->printer.out) != 0) {
            err = fth_fail(FTH_IO, "%s: cannot write: %s", w->o->output, strerror(errno));
            break;
        }
    }
end:
    w->skipped = fth_recordings_skipped(in);
    fth_recordings_free(in);
    return err;
}

static fth_err run_input(work *w) {
    return reads_recordings(w) ? run_recordings(w) : run_lines(w);
}

/* A file appears whole or not at all; a device or a pipe is written to as it is. */
static fth_err run_to_output(work *w) {
    w->printer.out = stdout;
    if (strcmp(w->o->output, "-") == 0) return run_input(w);
    fth_writer file = {0};
    fth_err err = fth_writer_open(&file, w->o->output);
    FILE *out = err == FTH_OK ? fdopen(dup(file.fd), "w") : NULL;
    w->printer.out = out;
    if (err == FTH_OK && !out)
        err = fth_fail(FTH_IO, "%s: cannot write: %s", w->o->output, strerror(errno));
    if (err == FTH_OK) err = run_input(w);
    if (out && fclose(out) != 0 && err == FTH_OK)
        err = fth_fail(FTH_IO, "%s: cannot write: %s", w->o->output, strerror(errno));
    if (err == FTH_OK) err = fth_writer_commit(&file);
    fth_writer_fini(&file);
    return err;
}

/* ---- set-up ---- */

static fth_err check_vocab(const char *folder, const char *side, const fth_tokenizer *t,
                           int32_t vocab) {
    const int32_t ids = fth_tokenizer_size(t);
    if (ids == vocab) return FTH_OK;
    return fth_fail(FTH_BAD_INPUT,
                    "%s: its %s tokenizer has %d ids, the %s vocabulary of its model %d", folder,
                    side, ids, side, vocab);
}

static fth_err load_tokenizers(work *w, const char *folder) {
    FTH_TRY(fth_tokenizers_load(folder, &w->src, &w->tgt));
    const fth_config *c = &w->model[0].config;
    if (c->arch == FTH_ENCDEC && c->front == FTH_FRONT_TEXT)
        FTH_TRY(check_vocab(folder, "source", w->src, c->src_vocab));
    return check_vocab(folder, "target", w->tgt, c->tgt_vocab);
}

/* What cannot generate is said before anything else of it is looked at. */
static fth_err check_weights(const work *w, const char *folder, int i, const float *flat) {
    if (w->model[i].config.arch == FTH_ENC)
        return fth_fail(FTH_BAD_INPUT, "%s: an encoder-only model (arch enc) cannot generate",
                        folder);
    if (strcmp(w->o->quantize, "none") == 0) return FTH_OK;
    fth_err err = fth_weights_finite(&w->model[i], flat, FTH_QUANTIZE_RULE);
    return err == FTH_OK ? FTH_OK : fth_fail_in(err, "%s", folder);
}

static fth_err load_model(work *w, const char *folder, int i) {
    float *flat = NULL;
    FTH_TRY(fth_weights_read(folder, &w->model[i], &flat));
    w->n_models = i + 1;
    fth_err err = check_weights(w, folder, i, flat);
    if (err == FTH_OK)
        err = fth_arenas_new(w->device, w->model[i].params.size, 0, 0, &w->arenas[i]);
    if (err == FTH_OK) err = fth_arenas_load(w->device, &w->arenas[i], flat);
    free(flat);
    return err;
}

static fth_generator_spec spec_of(const work *w) {
    const generate_options *o = w->o;
    return (fth_generator_spec){.search = {.beam = (int32_t)o->beam,
                                           .lenpen = o->lenpen,
                                           .unkpen = o->unkpen,
                                           .max_len_a = o->max_len_a,
                                           .max_len_b = o->max_len_b,
                                           .min_len = o->min_len,
                                           .no_repeat_ngram = (int32_t)o->no_repeat_ngram_size,
                                           .constrained = o->constraints[0] != 0,
                                           .groups = (int32_t)o->diverse_beam_groups,
                                           .diversity = o->diverse_beam_strength,
                                           .sampling = o->sampling,
                                           .topk = (int32_t)o->sampling_topk,
                                           .topp = o->sampling_topp,
                                           .temperature = o->temperature,
                                           .seed = (uint64_t)o->seed},
                                .batch = (int32_t)o->batch,
                                .max_tokens = (int32_t)o->max_tokens,
                                .strict = o->strict,
                                .input = strcmp(o->input, "-") == 0 ? "standard input" : o->input,
                                .src = w->src,
                                .tgt = w->tgt};
}

static fth_err check(const generate_options *o, const fth_option_group *groups, size_t n) {
    static const char *const drawing[] = {"sampling_topk", "sampling_topp", "temperature", "seed",
                                          NULL};
    if (!o->sampling) FTH_TRY(fth_refuse_options(groups, n, drawing, "needs --sampling"));
    if (o->print_alignment[0] && strcmp(o->format, "text") == 0)
        return fth_fail(FTH_USAGE, "--print-alignment %s: needs --format fairseq or jsonl",
                        o->print_alignment);
    if (o->sampling)
        FTH_TRY(fth_refuse_option(groups, n, "diverse_beam_groups",
                                  "is of beam search, without --sampling"));
    if (o->diverse_beam_groups == 1)
        FTH_TRY(
            fth_refuse_option(groups, n, "diverse_beam_strength", "needs --diverse-beam-groups"));
    if (o->beam % o->diverse_beam_groups)
        return fth_fail(FTH_USAGE, "--diverse-beam-groups %lld: must divide --beam %lld",
                        (long long)o->diverse_beam_groups, (long long)o->beam);
    if (o->constraints[0] && (o->sampling || o->diverse_beam_groups > 1))
        return fth_fail(FTH_USAGE, "--constraints %s: cannot be given with --%s", o->constraints,
                        o->sampling ? "sampling" : "diverse-beam-groups");
    if (o->nbest > o->beam)
        return fth_fail(FTH_USAGE, "--nbest %lld: must be at most --beam %lld", (long long)o->nbest,
                        (long long)o->beam);
    if (o->max_len_a <= 0 && o->min_len > o->max_len_b)
        return fth_fail(FTH_USAGE, "--min-len %lld: must be at most --max-len-b %lld",
                        (long long)o->min_len, (long long)o->max_len_b);
    return FTH_OK;
}

/* The end symbol takes the last position. */
static fth_err check_length(const work *w) {
    for (int i = 0; i < w->n_models; i++)
        if (w->o->min_len >= w->model[i].config.max_positions)
            return fth_fail(FTH_USAGE, "--min-len %lld: must be below the model's max_positions %d",
                            (long long)w->o->min_len, w->model[i].config.max_positions);
    return FTH_OK;
}

/* What is of text alone. */
static fth_err check_recordings(const work *w) {
    const generate_options *o = w->o;
    if (!reads_recordings(w)) return FTH_OK;
    const char *option = o->prefix[0]                             ? "prefix"
                         : o->constraints[0]                      ? "constraints"
                         : o->print_alignment[0]                  ? "print-alignment"
                         : on_bad_line(w) == FTH_BAD_LINE_REPLACE ? "on-bad-line replace"
                         : o->flush                               ? "flush"
                                                                  : NULL;
    if (!option) return FTH_OK;
    return fth_fail(FTH_USAGE, "--%s: is for models that read text; %s reads recordings", option,
                    w->folder);
}

static fth_err run(work *w, const fth_parsed *parsed, const fth_device_options *d) {
    w->folder = parsed->positionals[0];
    w->threads = (int)d->threads;
    FTH_TRY(fth_device_open(d->device, d->precision, (int)d->threads, &w->device));
    FTH_TRY(fth_device_quantize(w->device, w->o->quantize));
    for (size_t i = 0; i < parsed->n_positionals; i++)
        FTH_TRY(load_model(w, parsed->positionals[i], (int)i));
    FTH_TRY(check_length(w));
    FTH_TRY(check_recordings(w));
    FTH_TRY(load_tokenizers(w, parsed->positionals[0]));
    FTH_TRY(fth_language_tags(parsed->positionals[0], w->src, w->o->source_language,
                              w->o->target_language, &w->tags));
    fth_generator_model models[MAX_MODELS];
    for (int i = 0; i < w->n_models; i++)
        models[i] = (fth_generator_model){parsed->positionals[i], &w->model[i], &w->arenas[i]};
    fth_generator_spec spec = spec_of(w);
    FTH_TRY(fth_generator_new(models, w->n_models, w->device, &spec, &w->generator));
    w->printer = (fth_printer){.format = w->o->format,
                               .nbest = w->o->nbest,
                               .tgt = w->tgt,
                               .bos = w->model[0].config.bos,
                               .eos = w->model[0].config.eos,
                               .hard = strcmp(w->o->print_alignment, "hard") == 0};
    if (w->o->print_alignment[0])
        FTH_TRY(fth_aligner_new(&w->model[0], w->device, &w->arenas[0], &w->printer.aligner));
    FTH_TRY(run_to_output(w));
    fth_generator_totals t = fth_generator_so_far(w->generator);
    if (!w->o->quiet)
        fprintf(stderr, "%lld sentences, %lld tokens in %.2f s: %.1f tokens/s\n",
                (long long)t.sentences, (long long)t.tokens, t.seconds,
                (double)t.tokens / (t.seconds + 1e-9));
    if (t.cut)
        fprintf(stderr, "fathom: warning: %lld %s than the model takes and were cut\n",
                (long long)t.cut,
                reads_recordings(w) ? "recordings had more frames" : "lines had more tokens");
    if (w->skipped && reads_recordings(w))
        return fth_fail(FTH_FAILED, "%lld of the recordings cannot be read and have no answer",
                        (long long)w->skipped);
    if (w->skipped)
        return fth_fail(FTH_FAILED,
                        "%lld of the lines are not UTF-8 and have no answer; --on-bad-line replace "
                        "answers them",
                        (long long)w->skipped);
    return FTH_OK;
}

static void work_fini(work *w) {
    fth_printer_fini(&w->printer);
    fth_generator_free(w->generator);
    for (int i = 0; i < w->n_models; i++) {
        fth_arenas_free(w->device, &w->arenas[i]);
        fth_model_fini(&w->model[i]);
    }
    fth_device_close(w->device);
    if (w->src != w->tgt) fth_tokenizer_free(w->src);
    fth_tokenizer_free(w->tgt);
    fth_ids_fini(&w->tags);
}

fth_err fth_verb_generate(int argc, char **argv) {
    generate_options options;
    fth_device_options device;
    fth_option_group groups[] = {generate_options_group(&options),
                                 fth_device_options_group(&device)};
    const fth_usage usage = {
        "fathom generate", "MODEL...",
        "Prints one line for each line of input: a translation or summary, what is said in a "
        "recording, or (dec models) a continuation. Several models of one vocabulary are an "
        "ensemble.",
        1, MAX_MODELS};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 2, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done) {
        work w = {.o = &options};
        fth_log_init(&w.log, stderr, false);
        err = check(&options, groups, 2);
        if (err == FTH_OK) err = fth_model_paths(&parsed, 0, MAX_MODELS);
        if (err == FTH_OK) err = run(&w, &parsed, &device);
        work_fini(&w);
    }
    fth_parsed_fini(&parsed);
    return err;
}
