/* format.h: what a format is, and what formats share. */
#ifndef FTH_EXCHANGE_FORMAT_H
#define FTH_EXCHANGE_FORMAT_H

#include "exchange/exchange.h"
#include "exchange/rows.h"
#include "model/model.h"
#include "store/safetensors.h"
#include "text/tokenizer.h"

/* A model with its parameters. Zeroed: none, may be freed. It does not move. */
typedef struct fth_weighted {
    fth_model model;
    float *flat; /* [model.params.size] */
    bool there;
} fth_weighted;

void fth_weighted_fini(fth_weighted *w);

/* A model that is being written. */
typedef struct fth_export_job {
    const fth_export_spec *spec;
    const struct fth_format *format;
    const fth_model *model; /* as the format can hold it */
    float *flat;            /* its parameters, as the format keeps them */
    fth_storage_kind storage;
    fth_tokenizer *src, *tgt; /* NULL: the model has none; the same where they are one */
    const char *folder;       /* where the files go */
} fth_export_job;

/* Numbers that a format keeps in another scale: E sqrt(d) for E, say. out: from fathom's to the
 * format's, else back. */
typedef void fth_adjust(const fth_model *m, float *flat, bool out);

typedef struct fth_format {
    const char *name, *title;
    bool any_method; /* it needs no fold */
    bool int8;       /* it can store weights in 8 bits */
    bool one_eps;    /* both stacks have one eps */
    double eps;      /* the only one that it knows; 0: it can store it */
    bool table;      /* positions are a table */
    /* Why it cannot hold such a model, in words after its title; NULL: it can. The method is looked
     * at elsewhere: it is one that folds to fold's norm place. */
    const char *(*lacks)(const fth_model *m, fth_norm_place norm);
    fth_adjust *adjust; /* NULL: nothing */
    /* Writes the files of the model, the tokenizer and the settings of generation into
     * job->folder. NULL: it is read alone, and lacks says so. */
    fth_err (*write)(const fth_export_job *job);
    /* Reads a folder: the check of an export, and import. */
    fth_err (*read)(const char *folder, fth_weighted *out);
    /* Says what is strange about a model that was read; NULL: nothing. */
    void (*remarks)(const fth_weighted *w, fth_import_note *note, void *context);
    bool imports;        /* read is complete: a model can be made of it */
    const char *example; /* of the model card: Python that runs the model */
} fth_format;

#define FORMAT(name) extern const fth_format fth_format_##name;
#include "exchange/formats.def"
#undef FORMAT

/* Ended by NULL. */
const fth_format *const *fth_formats(void);
fth_err fth_format_find(const char *name, const fth_format **out);

/* ---- plain.c ---- */

/* The same model as the format wants it: folded, with one eps, with a table of positions. */
fth_err fth_plain_make(const fth_format *format, const fth_weighted *from, fth_weighted *out);

/* Makes it a configuration of the plain method with this norm place. */
void fth_plain_method(fth_config *c, fth_norm_place norm);

/* Gives a model whose matrix of the logits is that of its words one of its own, in which the last
 * `more` words have no say: they are only read. */
fth_err fth_untie(fth_weighted *w, int32_t more);

/* Multiplies a parameter by its name; one that is not there is left alone. */
void fth_scale_param(const fth_model *m, float *flat, const char *name, double factor);
/* The weight and bias of the last layer norm below the logits. */
void fth_scale_top(const fth_model *m, float *flat, double factor);
/* Formats that do not multiply embeddings by sqrt(d): a tied matrix makes larger logits too, which
 * the last norm undoes. */
void fth_adjust_embeddings(const fth_model *m, float *flat, bool out);

/* ---- check.c ---- */

/* Runs both models on the same 8 sentences and compares the logits of the words that both have. */
fth_err fth_check(const fth_weighted *a, const fth_weighted *b, fth_check_result *result);

/* ---- files.c ---- */

/* Writes what fth_rows_out gives, and more tensors (NULL: none), as NAME of the folder. */
fth_err fth_write_tensors(const fth_export_job *job, const fth_row *rows, fth_tensors *more,
                          const char *name);
/* The pieces of a tokenizer as JSON: by number, or (ids) {piece: number}. */
fth_err fth_write_vocabulary(const fth_export_job *job, const fth_tokenizer *t, int32_t size,
                             bool ids, const char *name);
/* A SentencePiece model of the source's folder under another name; where there is none, nothing. */
fth_err fth_copy_tokenizer(const fth_export_job *job, bool source, const char *name);
/* The tokenizers of the source's folder as they are, SentencePiece models or tokenizer.json. */
fth_err fth_copy_tokenizers(const fth_export_job *job);
/* fathom's own config.json, and back. */
fth_err fth_copy_config(const fth_export_job *job);
fth_err fth_read_config(const char *folder, fth_config *out);
/* README.md: what is known of the model. */
fth_err fth_write_card(const fth_export_job *job, const fth_weighted *source);
/* May a folder with an entry of this name be replaced by an export? */
int fth_is_export_file(const char *name);

#endif
