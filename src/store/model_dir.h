/* model_dir.h: a model folder: config.json, model.safetensors and the tokenizer
 * (doc/formats.md#a-model-folder). */
#ifndef FTH_STORE_MODEL_DIR_H
#define FTH_STORE_MODEL_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "store/safetensors.h"

/* What is written. */
typedef struct fth_model_content {
    const fth_config *config;
    const fth_st_tensor *tensors; /* [n_tensors] every parameter, in any order */
    size_t n_tensors;
    fth_st_fill *fill; /* gives the data as for fth_st_write; NULL: they are in memory */
    void *context;
    const char *tokenizer_from; /* folder whose tokenizer files are copied along; NULL: none */
} fth_model_content;

/* Makes the folder appear whole, or leaves everything as it was. A model folder (or checkpoint) of
 * that name is replaced; any other folder that holds something is refused. */
fth_err fth_model_dir_write(const char *path, const fth_model_content *m);

/* What was read. The tensors are views into a mapped file; compare them with what the model needs
 * by fth_st_expect(m->weights, ...). */
typedef struct fth_model_dir {
    char *path; /* the folder that was read */
    fth_config config;
    fth_st_file *weights;
} fth_model_dir;

fth_err fth_model_dir_open(const char *path, fth_model_dir **out);
void fth_model_dir_close(fth_model_dir *m);

/* Size and check sum of a file that was written into a folder. */
typedef struct fth_file_sum {
    char name[32];
    fth_st_sum sum;
} fth_file_sum;

enum { FTH_MAX_FILE_SUMS = 12 };

typedef struct fth_file_sums {
    size_t n;
    fth_file_sum files[FTH_MAX_FILE_SUMS]; /* [n] */
} fth_file_sums;

/* name: shorter than fth_file_sum's. */
void fth_file_sums_add(fth_file_sums *sums, const char *name, fth_st_sum sum);

/* Writes the files of a model into a folder that is there, and notes their sums. For checkpoints,
 * which have two more files. */
fth_err fth_model_files_write(const char *folder, const fth_model_content *m, fth_file_sums *sums);

/* Is this the name of a file of a model folder or checkpoint? */
int fth_is_model_file(const char *name);

/* FTH_USAGE when a folder holds anything else. */
fth_err fth_model_may_replace(const char *path);

#endif
