/* config.h: what a model is: its sizes, its method and its special ids (doc/formats.md#configjson).
 *
 * Data only; the fields have the names of the keys of config.json. store/config_json.h reads and
 * writes the file. The method and its options are kept as they were given: only the methods
 * themselves know which ids and options exist. */
#ifndef FTH_BASE_CONFIG_H
#define FTH_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum fth_arch { FTH_ENCDEC, FTH_ENC, FTH_DEC } fth_arch;
typedef enum fth_share { FTH_SHARE_NONE, FTH_SHARE_DEC, FTH_SHARE_ALL } fth_share;
typedef enum fth_activation { FTH_RELU, FTH_GELU } fth_activation;
typedef enum fth_positions { FTH_SINUSOIDAL, FTH_LEARNED } fth_positions;
typedef enum fth_pool { FTH_POOL_FIRST, FTH_POOL_MEAN } fth_pool;

/* How the input becomes rows (src/front), and what is predicted from the rows (src/head). */
typedef enum fth_front_id { FTH_FRONT_TEXT, FTH_FRONT_IMAGE, FTH_FRONT_SPEECH } fth_front_id;
typedef enum fth_head_id {
    FTH_HEAD_NEXT_TOKEN, /* also of an enc model that names no head */
    FTH_HEAD_MASKED_TOKEN,
    FTH_HEAD_CLASS,
    FTH_HEAD_REGRESSION,
    FTH_HEAD_TOKEN_CLASS
} fth_head_id;
typedef enum fth_option_type { FTH_OPT_NUMBER, FTH_OPT_STRING, FTH_OPT_BOOL } fth_option_type;

enum { FTH_MAX_METHOD_OPTIONS = 16 };

/* The largest number of updates, or count of a run: one more overflows nothing, and a double holds
 * it. */
#define FTH_MAX_COUNT (INT64_C(1) << 53)

/* One entry of method_options. */
typedef struct fth_method_option {
    char key[32];
    fth_option_type type;
    double number; /* FTH_OPT_NUMBER: the value; FTH_OPT_BOOL: 0 or 1 */
    char text[64]; /* FTH_OPT_STRING: the value */
} fth_method_option;

typedef struct fth_config {
    fth_arch arch;
    char method[32]; /* an id of methods.def */
    int32_t n_options;
    fth_method_option options[FTH_MAX_METHOD_OPTIONS]; /* [n_options] */
    int32_t encoder_layers, decoder_layers;            /* 0 for a stack that is not there */
    int32_t d_model, ffn_dim, heads;
    int32_t src_vocab, tgt_vocab; /* 0 for a stack that is not there */
    fth_share share;
    fth_activation activation;
    fth_positions positions;
    int32_t max_positions;
    double layer_norm_eps;
    double encoder_layer_norm_eps, decoder_layer_norm_eps; /* resolved: what each stack uses */
    double dropout, attention_dropout, activation_dropout, word_dropout;
    int32_t bos, pad, eos, unk;
    fth_front_id front;
    fth_head_id head;
    /* What only some fronts and heads have; 0 in the others. */
    int32_t classes;                 /* class, token-class */
    int32_t visual_tokens;           /* masked-token of images */
    fth_pool pool;                   /* class, regression and images: what stands for a sample */
    int32_t image_size[2];           /* rows, columns of a picture */
    int32_t channels, patch;         /* of a picture; a patch has patch x patch points */
    int32_t features, conv_channels; /* speech: numbers of a frame; of the first convolution */
    int32_t adaptive_cutoffs[2];     /* words below the first, below the second, and the others have
                                        vectors of their own width; 0: all have one */
    double adaptive_factor;          /* by which each band is narrower */
    int64_t step;                    /* completed updates */
} fth_config;

/* A 6-6 encoder-decoder of width 512 without a method: the caller names one. */
fth_config fth_config_default(void);

/* Checks every rule that needs no knowledge of a method. FTH_BAD_CONFIG names the key, its value
 * and the rule. */
fth_err fth_config_validate(const fth_config *c);

/* The number of logits: of the head's classes, of the visual tokens, else of the words. */
int32_t fth_config_output_vocab(const fth_config *c);

/* Whether words come in bands, and the width of the vectors of band i (0 to 2). */
bool fth_config_is_adaptive(const fth_config *c);
int32_t fth_config_band_width(const fth_config *c, int i);

/* Patches of a picture, and whether a class token stands before them. */
int32_t fth_config_patches(const fth_config *c);
bool fth_config_has_cls(const fth_config *c);

/* The names that config.json and the command line use; NULL outside the enum. */
const char *fth_arch_name(fth_arch arch);
const char *fth_share_name(fth_share share);
const char *fth_activation_name(fth_activation activation);
const char *fth_positions_name(fth_positions positions);
const char *fth_pool_name(fth_pool pool);
const char *fth_front_name(fth_front_id front);
const char *fth_head_name(fth_head_id head);

/* Whether a model like c has the key: a size or a choice that only some archs, fronts and heads
 * have (config.json's other keys: false). */
bool fth_config_has(const fth_config *c, const char *key);

#endif
