/* exchange.h: models to and from the files of other programs (doc/exchange.md).
 *
 * A format is one file of this folder and a line in formats.def. Where a program has no place for a
 * method, the model is first folded to plain Post-LN or Pre-LN. */
#ifndef FTH_EXCHANGE_EXCHANGE_H
#define FTH_EXCHANGE_EXCHANGE_H

#include <stdbool.h>

#include "base/error.h"

/* How weights are stored. */
typedef enum fth_storage_kind { FTH_STORE_F32, FTH_STORE_BF16, FTH_STORE_INT8 } fth_storage_kind;

typedef struct fth_export_spec {
    const char *model; /* folder to read */
    const char *to;    /* name of a format */
    const char *out;   /* folder to write */
    fth_storage_kind storage;
    bool check; /* read back what was written, run it, compare */
} fth_export_spec;

/* What the check found. */
typedef struct fth_check_result {
    bool made;
    double difference; /* the largest between logits */
    double largest;    /* logit, by its absolute value */
} fth_check_result;

/* Writes the folder whole or not at all. FTH_BAD_CONFIG: the format cannot hold such a model; the
 * message says why, and which format could. */
fth_err fth_export(const fth_export_spec *spec, fth_check_result *check);

/* Told of what could not be taken over, in one line. */
typedef void fth_import_note(void *context, const char *text);

/* Reads a folder of another program and writes a model folder. FTH_BAD_INPUT names the file, the
 * key or tensor, the value and the rule. */
fth_err fth_import(const char *from, const char *folder, const char *out, fth_import_note *note,
                   void *context);

/* The names of all formats, for option tables, and of those that can be read. test_exchange
 * compares them with formats.def. */
#define FTH_EXPORT_NAMES "ctranslate2|hf-marian|hf-fsmt|hf-bert|hf-opt|hf-gpt2|onnx"
#define FTH_IMPORT_NAMES "hf-marian|hf-fsmt|hf-bert|hf-opt|hf-gpt2|fairseq"

#endif
