/* generate_output.h: prints what generate has found, in one of its formats. */
#ifndef FTH_CLI_GENERATE_OUTPUT_H
#define FTH_CLI_GENERATE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "decode/align.h"
#include "decode/generator.h"

/* Everything but text and aligner is borrowed. Zeroed: prints nothing, may be freed. */
typedef struct fth_printer {
    const char *format; /* "text", "fairseq", "jsonl" */
    int64_t nbest;      /* hypotheses of a line */
    const fth_tokenizer *tgt;
    int32_t bos, eos;
    fth_aligner *aligner; /* NULL: no alignments */
    bool hard;            /* they are the source token looked at most, not the shares of all */
    FILE *out;
    fth_str text; /* of one hypothesis */
} fth_printer;

/* A fth_generator_take; context is the printer. */
fth_err fth_print_output(void *context, const fth_output *output);
void fth_printer_fini(fth_printer *p);

#endif
