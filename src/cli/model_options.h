/* model_options.h: what a new model is like, of train, init and bench. */
#ifndef FTH_CLI_MODEL_OPTIONS_H
#define FTH_CLI_MODEL_OPTIONS_H

#include "base/config.h"
#include "base/options.h"
#include "method/method.h"

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

#endif
