/* bench.h: what the parts of fathom bench share. */
#ifndef FTH_CLI_BENCH_H
#define FTH_CLI_BENCH_H

#include "backend/device/device.h"
#include "cli/device_options.h"
#include "cli/model_options.h"

#define BENCH_OPTIONS(X)                                                                           \
    X(I64, vocab, "8192", FTH_RANGE(5, 16777216), "words of the vocabulary")                       \
    X(I64, sentence_length, "32", FTH_RANGE(1, 65535), "tokens of every sentence")                 \
    X(I64, max_tokens, "1024", FTH_RANGE(1, 16777216), "train: tokens of the batch, of each side") \
    X(I64, classes, "10", FTH_RANGE(2, 16777216),                                                  \
      "train: of a head with classes, or visual tokens")                                           \
    X(I64, image_size, "0", FTH_RANGE(0, 16384),                                                   \
      "train: pictures of so many points a side in place of words (--arch enc); 0: words")         \
    X(CHOICE, front, "text", FTH_CHOICES("text|speech"),                                           \
      "train: speech: recordings in place of source words (--arch encdec)")                        \
    X(I64, frames, "320", FTH_RANGE(1, 262140), "train: of every recording; four make a row")      \
    X(I64, patch, "4", FTH_RANGE(1, 1024), "train: points a side of a patch of a picture")         \
    X(I64, update_freq, "1", FTH_RANGE(1, 65536),                                                  \
      "train, scaling: batches of an update; ranks share them")                                    \
    X(I64, pipeline, "1", FTH_RANGE(1, 65536), "train, scaling: stages of layers")                 \
    X(CHOICE, reduce, "exact", FTH_CHOICES("exact|fast"), "train, scaling: as in fathom train")    \
    X(I64, ranks, "2", FTH_RANGE(1, 65536), "scaling: ranks that would train together")            \
    X(I64, ranks_per_host, "8", FTH_RANGE(1, 65536), "scaling: of them on a host")                 \
    X(F64, link_gb_s, "300", FTH_ABOVE(0),                                                         \
      "scaling: gigabytes a second out of a rank, to others of its host")                          \
    X(F64, net_gb_s, "50", FTH_ABOVE(0), "scaling: gigabytes a second from a host to others")      \
    X(F64, latency_us, "20", FTH_MIN(0), "scaling: microseconds until a message begins to come")   \
    X(F64, batch_ms, "0", FTH_MIN(0),                                                              \
      "scaling: forward and backward of a batch on one rank; 0: measured here")                    \
    X(F64, update_ms, "0", FTH_MIN(0), "scaling: the rest of an update, with --batch-ms")          \
    X(STR, topology, "", FTH_SHOWN_AS("FILE"), "scaling: YAML with the options of scaling")        \
    X(I64, updates, "10", FTH_RANGE(1, 1000000), "train: updates to time, after two to warm up")   \
    X(SIZE, memory_budget, "", FTH_ANY, "train: as in fathom train")                               \
    X(BOOL, telemetry, "false", FTH_ANY,                                                           \
      "train: time measured updates too, in turn with plain ones, as train --telemetry has them")  \
    X(I64, batch, "32", FTH_RANGE(1, 65536), "generate: sentences at once")                        \
    X(I64, beam, "1", FTH_RANGE(1, 256), "generate: hypotheses kept; 1: greedy")                   \
    X(I64, length, "32", FTH_RANGE(2, 65535),                                                      \
      "generate: tokens of every output, end symbol included")                                     \
    X(I64, repeats, "3", FTH_RANGE(1, 1000), "generate: batches to time, after one to warm up")    \
    X(STR, tokens, "", FTH_SHOWN_AS("FILE"),                                                       \
      "generate: write sources and outputs there, as numbers, a line for each")                    \
    QUANTIZE_OPTIONS(X)                                                                            \
    X(LIST, shape, "", FTH_SHOWN_AS("RxKxN"),                                                      \
      "gemm: rows, input and output width of a linear map")                                        \
    X(CHOICE, path, "all", FTH_CHOICES("all|plain|avx2|avx512|avx512-bf16|amx"),                   \
      "gemm: time this path alone")                                                                \
    X(BOOL, profile, "false", FTH_ANY, "time every kind of operation (operations run one by one)") \
    X(BOOL, json, "false", FTH_ANY, "print one JSON object")
FTH_OPTIONS(bench_options, "bench", BENCH_OPTIONS)

/* What a part of bench gets. */
typedef struct fth_bench {
    const bench_options *o;
    const fth_model_options *model;
    const fth_device_options *device;
    const char *folder; /* generate: a model, NULL: a fresh one */
} fth_bench;

fth_err fth_bench_train(const fth_bench *b);
fth_err fth_bench_generate(const fth_bench *b);
fth_err fth_bench_gemm(const fth_bench *b);
fth_err fth_bench_scaling(const fth_bench *b);

/* Bytes taken on the device, now or at their peak: of a GPU what the driver says, else what the
 * process has. */
fth_err fth_bench_bytes(fth_device *dev, bool peak, int64_t *out);

/* Times by kind of operation and of all (in seconds, of n runs), in milliseconds of one; unit: 
 * "ms/update". */
void fth_bench_print_profile(const double *times, double total, double n, const char *unit);

/* The configuration that the options describe. */
fth_err fth_bench_config(const fth_bench *b, fth_config *out);

#endif
