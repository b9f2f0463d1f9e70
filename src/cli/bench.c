/* bench.c: fathom bench WHAT: how fast things are on this machine. */
#include "cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device/device.h"
#include "base/option_uses.h"
#include "cli/model_path.h"
#include "cli/verb.h"
#include "data/frames.h"

/* Bytes of this process: resident now, or at their peak. */
static int64_t process_bytes(const char *key) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) sscanf(line + strlen(key), ": %lld", &kib);
    if (f) fclose(f);
    return kib * 1024;
}

fth_err fth_bench_bytes(fth_device *dev, bool peak, int64_t *out) {
    if (strcmp(dev->backend->name, "cuda") != 0) {
        *out = process_bytes(peak ? "VmHWM" : "VmRSS");
        return FTH_OK;
    }
    int64_t available, total;
    FTH_TRY(dev->backend->memory(dev, &available, &total));
    *out = total - available;
    return FTH_OK;
}

void fth_bench_print_profile(const double *times, double total, double n, const char *unit) {
    double known = 0;
    printf("\n%-18s %12s %7s\n", "operation", unit, "share");
    for (int k = 0; k < FTH_N_KINDS; k++) {
        known += times[k];
        if (times[k] > 0)
            printf("%-18s %12.3f %6.1f%%\n", fth_kind_name((fth_kind)k), 1e3 * times[k] / n,
                   100 * times[k] / total);
    }
    printf("%-18s %12.3f %6.1f%%\n", "rest", 1e3 * (total - known) / n,
           100 * (total - known) / total);
}

enum { FEATURES = 80, CONV_CHANNELS = 1024 }; /* of recordings */

static fth_err take_speech(const bench_options *o, fth_config *c) {
    const int32_t rows = (int32_t)fth_frame_rows(o->frames);
    if (c->arch != FTH_ENCDEC) return fth_fail(FTH_USAGE, "--front speech: needs --arch encdec");
    if (o->image_size > 0) return fth_fail(FTH_USAGE, "--front speech: not with --image-size");
    c->front = FTH_FRONT_SPEECH;
    c->src_vocab = 0;
    if (c->share == FTH_SHARE_ALL) c->share = FTH_SHARE_DEC;
    c->features = FEATURES;
    c->conv_channels = CONV_CHANNELS;
    if (c->max_positions < rows) c->max_positions = rows;
    return FTH_OK;
}

/* What only a front or a head has. */
static fth_err take_parts(const bench_options *o, fth_config *c) {
    if (strcmp(o->front, "speech") == 0) FTH_TRY(take_speech(o, c));
    const int32_t side = (int32_t)o->image_size;
    if (side > 0 && c->arch != FTH_ENC)
        return fth_fail(FTH_USAGE, "--image-size %d: needs --arch enc", side);
    if (side > 0) {
        if (c->head == FTH_HEAD_NEXT_TOKEN) c->head = FTH_HEAD_CLASS;
        c->front = FTH_FRONT_IMAGE;
        c->src_vocab = 0;
        c->share = FTH_SHARE_NONE;
        c->image_size[0] = c->image_size[1] = side;
        c->channels = 3;
        c->patch = (int32_t)o->patch;
        const int32_t rows = fth_config_patches(c) + fth_config_has_cls(c);
        if (c->max_positions < rows) c->max_positions = rows;
    }
    if (fth_config_has(c, "classes")) c->classes = (int32_t)o->classes;
    if (fth_config_has(c, "visual_tokens")) c->visual_tokens = (int32_t)o->classes;
    return FTH_OK;
}

fth_err fth_bench_config(const fth_bench *b, fth_config *out) {
    FTH_TRY(fth_config_from_options(b->model, out));
    out->src_vocab = out->arch == FTH_DEC ? 0 : (int32_t)b->o->vocab;
    out->tgt_vocab = out->arch == FTH_ENC ? 0 : (int32_t)b->o->vocab;
    if (out->max_positions < b->o->sentence_length)
        out->max_positions = (int32_t)b->o->sentence_length;
    return take_parts(b->o, out);
}

/* groups: of bench, model, device. */
static fth_err check(const fth_bench *b, const char *part, const fth_option_group *groups) {
    static const fth_option_use uses[] = {{"vocab", " train generate scaling "},
                                          {"sentence_length", " train generate scaling "},
                                          {"max_tokens", " train scaling "},
                                          {"updates", " train "},
                                          {"update_freq", " train scaling "},
                                          {"pipeline", " train scaling "},
                                          {"reduce", " train scaling "},
                                          {"ranks", " scaling "},
                                          {"ranks_per_host", " scaling "},
                                          {"link_gb_s", " scaling "},
                                          {"net_gb_s", " scaling "},
                                          {"latency_us", " scaling "},
                                          {"batch_ms", " scaling "},
                                          {"update_ms", " scaling "},
                                          {"topology", " scaling "},
                                          {"classes", " train "},
                                          {"image_size", " train "},
                                          {"front", " train "},
                                          {"frames", " train "},
                                          {"patch", " train "},
                                          {"memory_budget", " train "},
                                          {"telemetry", " train "},
                                          {"batch", " generate "},
                                          {"beam", " generate "},
                                          {"length", " generate "},
                                          {"repeats", " generate "},
                                          {"tokens", " generate "},
                                          {"quantize", " generate "},
                                          {"shape", " gemm "},
                                          {"path", " gemm "},
                                          {"profile", " train generate "}};
    const bool gemm = strcmp(part, "gemm") == 0;
    if (b->folder && strcmp(part, "generate") != 0)
        return fth_fail(FTH_USAGE, "bench %s %s: only bench generate takes a model", part,
                        b->folder);
    FTH_TRY(fth_check_uses(groups, 1, uses, sizeof uses / sizeof *uses, part));
    if (strcmp(b->o->front, "text") == 0)
        FTH_TRY(fth_refuse_option(groups, 1, "frames", "needs --front speech"));
    if (b->folder) FTH_TRY(fth_refuse_option(groups, 1, "vocab", "MODEL has its own vocabulary"));
    if (b->folder) FTH_TRY(fth_refuse_group(&groups[1], "MODEL has its own shape"));
    return gemm ? fth_refuse_group(&groups[1], "gemm has no model, only --shape") : FTH_OK;
}

static fth_err run_part(const fth_bench *b, const char *part, const fth_option_group *groups) {
    static const struct {
        const char *name;
        fth_err (*run)(const fth_bench *b);
    } parts[] = {{"train", fth_bench_train},
                 {"generate", fth_bench_generate},
                 {"gemm", fth_bench_gemm},
                 {"scaling", fth_bench_scaling}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(part, parts[i].name) != 0) continue;
        FTH_TRY(check(b, part, groups));
        return parts[i].run(b);
    }
    return fth_fail(FTH_USAGE, "bench %s: must be train, generate, gemm or scaling", part);
}

/* Reads the options once more, with those of the file below those of the command line. */
static fth_err read_topology(const fth_usage *usage, fth_option_group *groups, int argc,
                             char **argv, const char *file, fth_parsed *parsed) {
    bool done;
    fth_parsed before = *parsed; /* has the name of the file */
    char **words = calloc((size_t)argc + 2, sizeof *words), config[] = "--config";
    if (!words) return fth_fail(FTH_NO_MEMORY, "no memory for arguments");
    memcpy(words, argv, sizeof *words * (size_t)argc);
    words[argc] = config;
    words[argc + 1] = (char *)file;
    fth_err err = fth_verb_options(usage, groups, 3, argc + 2, words, parsed, &done);
    fth_parsed_fini(&before);
    free(words);
    return err;
}

fth_err fth_verb_bench(int argc, char **argv) {
    bench_options options;
    fth_model_options model;
    fth_device_options device;
    fth_option_group groups[] = {bench_options_group(&options), fth_model_options_group(&model),
                                 fth_device_options_group(&device)};
    const fth_usage usage = {
        "fathom bench", "train | generate [MODEL] | gemm | scaling",
        "train: times updates of a model on made-up sentences: tokens (source and target) per "
        "second, memory, and where the time goes. generate: generated tokens per second, of a "
        "fresh model or of one that is given. gemm: the products of linear maps on the CPU, every "
        "path that this machine has beside the measured peak of the unit that it uses. scaling: "
        "how "
        "fast the model would train on ranks that are not here.",
        1, 2};
    fth_parsed parsed;
    bool done;
    fth_err err = fth_verb_options(&usage, groups, 3, argc, argv, &parsed, &done);
    if (err == FTH_OK && !done && options.topology[0])
        err = read_topology(&usage, groups, argc, argv, options.topology, &parsed);
    if (err == FTH_OK && !done) {
        err = fth_model_paths(&parsed, 1, 1);
        const fth_bench b = {&options, &model, &device,
                             parsed.n_positionals > 1 ? parsed.positionals[1] : NULL};
        if (err == FTH_OK) err = run_part(&b, parsed.positionals[0], groups);
    }
    fth_parsed_fini(&parsed);
    return err;
}
