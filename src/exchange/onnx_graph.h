/* onnx_graph.h: nodes and tensors of an ONNX model, added one by one. */
#ifndef FTH_EXCHANGE_ONNX_GRAPH_H
#define FTH_EXCHANGE_ONNX_GRAPH_H

#include "base/protobuf.h"
#include "exchange/rows.h"

/* A name of a value; returned by value, so that calls can be nested. */
typedef struct fth_onnx_name {
    char text[96];
} fth_onnx_name;

/* Zeroed: empty, may be freed. Errors are kept until fth_onnx_save. */
typedef struct fth_onnx {
    fth_pb nodes;       /* fields of the graph */
    fth_pb spare;       /* attributes of the node at hand */
    fth_tensors stored; /* floats that the file holds, under their names */
    int32_t made;       /* names given so far */
    fth_err err;
} fth_onnx;

void fth_onnx_fini(fth_onnx *g);

/* Attributes of the next node; constants are nodes too, so they are made before. */
void fth_onnx_int(fth_onnx *g, const char *name, int64_t value);
void fth_onnx_real(fth_onnx *g, const char *name, double value);
void fth_onnx_ints(fth_onnx *g, const char *name, const int64_t *values, int n);

/* Adds a node with up to four inputs (NULL: no more) and gives its output a name of its own. */
fth_onnx_name fth_onnx_node(fth_onnx *g, const char *kind, const char *a, const char *b,
                            const char *c, const char *d);
/* The same with a name that is given. */
void fth_onnx_named(fth_onnx *g, const char *out, const char *kind, const char *a, const char *b,
                    const char *c, const char *d);

/* A constant. */
fth_onnx_name fth_onnx_scalar(fth_onnx *g, double value);
fth_onnx_name fth_onnx_numbers(fth_onnx *g, const int64_t *values, int n);

/* Floats that the file holds under a name. */
void fth_onnx_store(fth_onnx *g, const char *name, int rank, const int64_t *shape,
                    const float *data);

/* An input of ids [batch, length] or the output of floats, with names of their dimensions; width:
 * of the last one, 0: none. */
void fth_onnx_value(fth_onnx *g, bool output, const char *name, const char *const *dims,
                    int64_t width);

/* Writes FOLDER/model.onnx; large weights go into model.onnx.data beside it. */
fth_err fth_onnx_save(fth_onnx *g, const char *folder);

/* Reads the floats of such a file back, as a file of tensors. close frees all. */
typedef struct fth_onnx_file {
    fth_st_file file;
    fth_tensors tensors;
    char *model, *data;
} fth_onnx_file;

fth_err fth_onnx_open(const char *folder, fth_onnx_file *out);
void fth_onnx_close(fth_onnx_file *f);

#endif
