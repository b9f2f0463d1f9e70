/* common_options.h: options that several verbs take. */
#ifndef FTH_CLI_COMMON_OPTIONS_H
#define FTH_CLI_COMMON_OPTIONS_H

#include "base/config.h"
#include "base/options.h"
#include "method/method.h"
#include "train/trainer.h"

#define DEVICE_OPTIONS_FROM(X, standard)                                                           \
    X(CHOICE, device, standard, FTH_OF_MACHINE(FTH_CHOICES("auto|cpu|cuda|ref")),                  \
      "where to compute; auto takes a GPU when there is one")                                      \
    X(CHOICE, precision, "fp32", FTH_KEPT(FTH_CHOICES("fp32|bf16")), "of weights and activations") \
    X(I64, threads, "", FTH_OF_MACHINE(FTH_RANGE(1, 1024)),                                        \
      "CPU threads; default: one for each core")
#define DEVICE_OPTIONS(X)     DEVICE_OPTIONS_FROM(X, "auto")
#define CPU_DEVICE_OPTIONS(X) DEVICE_OPTIONS_FROM(X, "cpu")
FTH_OPTIONS(fth_device_options, "device", DEVICE_OPTIONS)
/* Of verbs whose numbers are compared with those of other programs. */
FTH_OPTION_GROUP(fth_cpu_device_options_group, fth_device_options, "device", CPU_DEVICE_OPTIONS)

/* Of verbs that only run models. */
#define QUANTIZE_OPTIONS(X)                                                                        \
    X(CHOICE, quantize, "none", FTH_CHOICES("none|int8"),                                          \
      "int8: weights of linear maps in 8 bits, a quarter of the memory to read; device cpu only")

#define FTH_QUANTIZE_RULE "--quantize int8 needs weights that are finite"

#define OPTIMISER_OPTIONS(X)                                                                       \
    X(F64, lr, "0.0005", FTH_SAID(FTH_ABOVE(0)), "peak learning rate")                             \
    X(CHOICE, lr_scheduler, "inverse_sqrt",                                                        \
      FTH_SAID(FTH_CHOICES(                                                                        \
          "inverse_sqrt|inverse_sqrt_nowarmup|constant|linear|cosine|polynomial|wsd")),            \
      "how the rate changes")                                                                      \
    X(I64, warmup_updates, "4000", FTH_SAID(FTH_RANGE(0, 1e12)),                                   \
      "updates in which the rate rises to its peak")                                               \
    X(F64, warmup_init_lr, "1e-7", FTH_SAID(FTH_MIN(0)), "rate where the rise begins")             \
    X(I64, max_update, "100000", FTH_SAID(FTH_MIN(1)), "updates of the whole run")                 \
    X(F64, end_learning_rate, "", FTH_SAID(FTH_MIN(0)),                                            \
      "polynomial, wsd: the rate at --max-update; default: 0")                                     \
    X(F64, power, "", FTH_SAID(FTH_ABOVE(0)), "polynomial: of the share that is left; default: 1") \
    X(I64, decay_updates, "", FTH_SAID(FTH_MIN(1)),                                                \
      "wsd: updates of the way down, the last ones; default: a fifth of --max-update")             \
    X(STR, adam_betas, "0.9,0.98", FTH_KEPT(FTH_SHOWN_AS("B1,B2")),                                \
      "decay of Adam's two averages")                                                              \
    X(F64, adam_eps, "1e-8", FTH_KEPT(FTH_ABOVE(0)), "added to the root of Adam's second average") \
    X(F64, weight_decay, "0.0001", FTH_KEPT(FTH_MIN(0)), "decoupled, of every parameter")          \
    X(F64, clip_norm, "0", FTH_KEPT(FTH_MIN(0)),                                                   \
      "largest gradient norm; 0: no clipping, and no memory for the gradients of layers")          \
    X(F64, label_smoothing, "0", FTH_KEPT(FTH_BELOW(0, 1)),                                        \
      "share of the target spread over all words")
FTH_OPTIONS(fth_optimiser_options, "optimiser", OPTIMISER_OPTIONS)

#define MODEL_OPTIONS(X)                                                                           \
    X(CHOICE, arch, "encdec", FTH_CHOICES("encdec|enc|dec"), "stacks of the model")                \
    X(CHOICE, head, "auto",                                                                        \
      FTH_CHOICES("auto|next-token|masked-token|class|regression|token-class"),                    \
      "what an encoder (--arch enc) predicts; auto: by the data set")                              \
    X(CHOICE, pool, "first", FTH_CHOICES("first|mean"),                                            \
      "what stands for a sample: its first row, or the mean")                                      \
    X(STR, method, FTH_DEFAULT_METHOD, FTH_SHOWN_AS("ID"), "see fathom methods")                   \
    X(LIST, method_option, "", FTH_SHOWN_AS("K=V"), "option of the method")                        \
    X(I64, encoder_layers, "6", FTH_RANGE(1, 100000), "layers of the encoder")                     \
    X(I64, decoder_layers, "6", FTH_RANGE(1, 100000), "layers of the decoder")                     \
    X(I64, d_model, "512", FTH_RANGE(4, 65536), "width")                                           \
    X(I64, ffn_dim, "2048", FTH_RANGE(1, 1048576), "inner width of the feed-forward")              \
    X(I64, heads, "8", FTH_RANGE(1, 65536), "attention heads; must divide the width")              \
    X(CHOICE, share, "all", FTH_CHOICES("all|dec|none"),                                           \
      "embeddings that are one matrix: all; decoder input and output; none")                       \
    X(STR, adaptive_cutoffs, "", FTH_SHOWN_AS("A,B"),                                              \
      "words in three bands, each with narrower vectors than the one before (arch dec; in place "  \
      "of share)")                                                                                 \
    X(F64, adaptive_factor, "4", FTH_MIN(1), "by which each band's vectors are narrower")          \
    X(CHOICE, activation, "relu", FTH_CHOICES("relu|gelu"), "of the feed-forward")                 \
    X(CHOICE, positions, "sinusoidal", FTH_CHOICES("sinusoidal|learned"), "kind of positions")     \
    X(I64, max_positions, "1024", FTH_RANGE(1, 65535), "longest sentence in tokens")               \
    X(F64, layer_norm_eps, "1e-5", FTH_INSIDE(0, 1), "in every layer norm")                        \
    X(F64, dropout, "0.1", FTH_BELOW(0, 1), "of embeddings and sub-layer outputs")                 \
    X(F64, attention_dropout, "0", FTH_BELOW(0, 1), "of attention probabilities")                  \
    X(F64, activation_dropout, "0", FTH_BELOW(0, 1), "after the feed-forward's activation")        \
    X(F64, word_dropout, "0", FTH_BELOW(0, 1), "of whole words")
FTH_OPTIONS(fth_model_options, "model", MODEL_OPTIONS)

/* The configuration that the options describe; vocabularies are the caller's to set. */
fth_err fth_config_from_options(const fth_model_options *o, fth_config *out);

/* Refuses options of other schedules than the one that is asked for. */
fth_err fth_check_schedule(const fth_option_group *groups, size_t n,
                           const fth_optimiser_options *o);

/* Everything of a recipe but dropout and seed. */
fth_err fth_recipe_from_options(const fth_optimiser_options *o, fth_recipe *out);

#endif
