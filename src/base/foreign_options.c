/* foreign_options.c: the table of foreign names, and the search in it. */
#include "base/foreign_options.h"

#include <stdbool.h>
#include <string.h>

/* The first line of a name counts whose option the verb at hand has. */
static const fth_option_hint hints[] = {
    {"accumulation-steps", "update-freq", ""},
    {"bf16", "precision", " bf16"},
    {"batch-size", "batch", ""},
    {"batch-size", "max-tokens", ", which counts tokens"},
    {"beam-size", "beam", ""},
    {"betas", "adam-betas", ""},
    {"checkpoint", "restore-file", ""},
    {"cpu", "device", " cpu"},
    {"cuda", "device", " cuda"},
    {"decoder-embed-dim", "d-model", ""},
    {"decoder-attention-heads", "heads", ""},
    {"dim", "d-model", ""},
    {"embed-dim", "d-model", ""},
    {"encoder-attention-heads", "heads", ""},
    {"encoder-embed-dim", "d-model", ""},
    {"encoder-ffn-embed-dim", "ffn-dim", ""},
    {"decoder-ffn-embed-dim", "ffn-dim", ""},
    {"epochs", "max-epoch", ""},
    {"eval-interval", "validate-interval-updates", ""},
    {"eval-steps", "validate-interval-updates", ""},
    {"ffn", "ffn-dim", ""},
    {"fp16", "precision", " bf16"},
    {"gpu", "device", " cuda"},
    {"grad-clip", "clip-norm", ""},
    {"gradient-accumulation-steps", "update-freq", ""},
    {"half", "precision", " bf16"},
    {"hidden-size", "d-model", ""},
    {"hidden-dim", "d-model", ""},
    {"iterations", "max-update", ""},
    {"layers", "encoder-layers", " and --decoder-layers"},
    {"learning-rate", "lr", ""},
    {"length-penalty", "lenpen", ""},
    {"logging-steps", "log-interval", ""},
    {"max-epochs", "max-epoch", ""},
    {"max-grad-norm", "clip-norm", ""},
    {"max-length", "max-len-b", ""},
    {"max-length", "max-positions", ""},
    {"max-new-tokens", "max-len-b", ""},
    {"max-steps", "max-update", ""},
    {"mixed-precision", "precision", " bf16"},
    {"model-dim", "d-model", ""},
    {"n-best", "nbest", ""},
    {"num-beams", "beam", ""},
    {"num-epochs", "max-epoch", ""},
    {"num-heads", "heads", ""},
    {"num-layers", "encoder-layers", " and --decoder-layers"},
    {"num-steps", "max-update", ""},
    {"num-train-epochs", "max-epoch", ""},
    {"num-workers", "threads", ""},
    {"optimizer", "adam-betas", ": Adam is the only optimizer"},
    {"optim", "adam-betas", ": Adam is the only optimizer"},
    {"output-dir", "save-dir", ""},
    {"out", "save-dir", ""},
    {"resume", "save-dir", ": the same command goes on with its run"},
    {"resume-from-checkpoint", "save-dir", ": the same command goes on with its run"},
    {"save-steps", "save-interval-updates", ""},
    {"save-interval", "save-interval-updates", ""},
    {"scheduler", "lr-scheduler", ""},
    {"steps", "max-update", ""},
    {"tgt-vocab-size", "vocab-size", ""},
    {"src-vocab-size", "vocab-size", ""},
    {"top-k", "sampling-topk", ""},
    {"top-p", "sampling-topp", ""},
    {"train-steps", "max-update", ""},
    {"updates", "max-update", ""},
    {"val-interval", "validate-interval-updates", ""},
    {"validate-interval", "validate-interval-updates", ""},
    {"warmup", "warmup-updates", ""},
    {"warmup-steps", "warmup-updates", ""},
    {"workers", "threads", ""},
};

static bool is_among(const char *name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

const fth_option_hint *fth_option_hint_for(const char *typed, const char *const *names, size_t n) {
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(typed, hints[i].typed) == 0 && is_among(hints[i].option, names, n))
            return &hints[i];
    return NULL;
}
