/* onnx_graph.c: the messages of onnx.proto that a graph needs: NodeProto, AttributeProto,
 * TensorProto, ValueInfoProto; opset 17, IR version 8. */
#include "exchange/onnx_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/writer.h"

enum { OPSET = 17, IR_VERSION = 8, LARGE = 256 << 20 /* bytes of weights in one file */ };
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_TENSOR = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_KIND = 4, NODE_ATTRIBUTE = 5 };
enum { ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_T = 5, ATTR_INTS = 8, ATTR_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_TENSOR = 4, TYPE_INTS = 7 };
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};
enum { ONNX_FLOAT = 1, ONNX_INT64 = 7 };

static const char data_name[] = "model.onnx.data";

void fth_onnx_fini(fth_onnx *g) {
    fth_pb_fini(&g->nodes);
    fth_pb_fini(&g->spare);
    fth_tensors_fini(&g->stored);
}

/* ---- nodes ---- */

static void add_attribute(fth_onnx *g, fth_pb *a, int type) {
    fth_pb_int(a, ATTR_TYPE, type);
    fth_pb_message(&g->spare, NODE_ATTRIBUTE, a);
    fth_pb_fini(a);
}

void fth_onnx_int(fth_onnx *g, const char *name, int64_t value) {
    fth_pb a = {0};
    fth_pb_text(&a, ATTR_NAME, name);
    fth_pb_int(&a, ATTR_I, value);
    add_attribute(g, &a, TYPE_INT);
}

void fth_onnx_real(fth_onnx *g, const char *name, double value) {
    fth_pb a = {0};
    fth_pb_text(&a, ATTR_NAME, name);
    fth_pb_float(&a, ATTR_F, (float)value);
    add_attribute(g, &a, TYPE_FLOAT);
}

void fth_onnx_ints(fth_onnx *g, const char *name, const int64_t *values, int n) {
    fth_pb a = {0};
    fth_pb_text(&a, ATTR_NAME, name);
    for (int i = 0; i < n; i++) fth_pb_int(&a, ATTR_INTS, values[i]);
    add_attribute(g, &a, TYPE_INTS);
}

void fth_onnx_named(fth_onnx *g, const char *out, const char *kind, const char *a, const char *b,
                    const char *c, const char *d) {
    const char *const in[] = {a, b, c, d};
    fth_pb node = {0};
    for (int i = 0; i < 4 && in[i]; i++) fth_pb_text(&node, NODE_INPUT, in[i]);
    fth_pb_text(&node, NODE_OUTPUT, out);
    fth_pb_text(&node, NODE_KIND, kind);
    if (node.err == FTH_OK && g->spare.text.length)
        node.err = fth_str_add(&node.text, g->spare.text.text, g->spare.text.length);
    if (g->spare.err != FTH_OK) node.err = g->spare.err;
    fth_str_clear(&g->spare.text);
    fth_pb_message(&g->nodes, GRAPH_NODE, &node);
    fth_pb_fini(&node);
}

static fth_onnx_name fresh(fth_onnx *g) {
    fth_onnx_name name;
    snprintf(name.text, sizeof name.text, "_%d", g->made++);
    return name;
}

fth_onnx_name fth_onnx_node(fth_onnx *g, const char *kind, const char *a, const char *b,
                            const char *c, const char *d) {
    const fth_onnx_name out = fresh(g);
    fth_onnx_named(g, out.text, kind, a, b, c, d);
    return out;
}

static fth_onnx_name constant(fth_onnx *g, fth_pb *tensor) {
    fth_pb a = {0};
    fth_pb_text(&a, ATTR_NAME, "value");
    fth_pb_message(&a, ATTR_T, tensor);
    fth_pb_fini(tensor);
    add_attribute(g, &a, TYPE_TENSOR);
    return fth_onnx_node(g, "Constant", NULL, NULL, NULL, NULL);
}

fth_onnx_name fth_onnx_scalar(fth_onnx *g, double value) {
    const float f = (float)value;
    fth_pb t = {0};
    fth_pb_int(&t, TENSOR_TYPE, ONNX_FLOAT);
    fth_pb_bytes(&t, TENSOR_RAW, &f, sizeof f);
    return constant(g, &t);
}

fth_onnx_name fth_onnx_numbers(fth_onnx *g, const int64_t *values, int n) {
    fth_pb t = {0};
    fth_pb_int(&t, TENSOR_DIMS, n);
    fth_pb_int(&t, TENSOR_TYPE, ONNX_INT64);
    fth_pb_bytes(&t, TENSOR_RAW, values, sizeof *values * (size_t)n);
    return constant(g, &t);
}

void fth_onnx_store(fth_onnx *g, const char *name, int rank, const int64_t *shape,
                    const float *data) {
    if (g->err == FTH_OK)
        g->err = fth_tensors_add(&g->stored, name, FTH_ST_F32, rank, shape, data, NULL);
}

void fth_onnx_value(fth_onnx *g, bool output, const char *name, const char *const *dims,
                    int64_t width) {
    fth_pb value = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    for (; *dims; dims++) {
        fth_pb_text(&dim, 2, *dims);
        fth_pb_message(&shape, 1, &dim);
    }
    if (width > 0) {
        fth_pb_int(&dim, 1, width);
        fth_pb_message(&shape, 1, &dim);
    }
    fth_pb_int(&tensor, 1, output ? ONNX_FLOAT : ONNX_INT64);
    fth_pb_message(&tensor, 2, &shape);
    fth_pb_message(&type, 1, &tensor);
    fth_pb_text(&value, 1, name);
    fth_pb_message(&value, 2, &type);
    fth_pb_message(&g->nodes, output ? GRAPH_OUTPUT : GRAPH_INPUT, &value);
    fth_pb *all[] = {&value, &type, &tensor, &shape, &dim};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fth_pb_fini(all[i]);
}

/* ---- the file ---- */

static size_t bytes_of(const fth_st_tensor *t) {
    return fth_st_count(t) * sizeof(float);
}

static void add_entry(fth_pb *tensor, const char *name, const char *value) {
    fth_pb entry = {0};
    fth_pb_text(&entry, 1, name);
    fth_pb_text(&entry, 2, value);
    fth_pb_message(tensor, TENSOR_EXTERNAL, &entry);
    fth_pb_fini(&entry);
}

/* A tensor without its numbers: they follow, or lie at `offset` of the other file. */
static void tensor_head(fth_pb *m, const fth_st_tensor *t, bool beside, uint64_t offset) {
    char number[32];
    for (int i = 0; i < t->rank; i++) fth_pb_int(m, TENSOR_DIMS, t->shape[i]);
    fth_pb_int(m, TENSOR_TYPE, ONNX_FLOAT);
    fth_pb_text(m, TENSOR_NAME, t->name);
    if (!beside) {
        fth_pb_begin(m, TENSOR_RAW, bytes_of(t));
        return;
    }
    add_entry(m, "location", data_name);
    snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
    add_entry(m, "offset", number);
    snprintf(number, sizeof number, "%zu", bytes_of(t));
    add_entry(m, "length", number);
    fth_pb_int(m, TENSOR_LOCATION, 1);
}

/* The tensors as fields of the graph, into out; with numbers unless they are beside. */
static fth_err put_tensors(const fth_tensors *tensors, bool beside, fth_pb *out) {
    uint64_t offset = 0;
    fth_pb head = {0};
    for (size_t i = 0; i < tensors->n; i++) {
        const fth_st_tensor *t = &tensors->tensors[i];
        tensor_head(&head, t, beside, offset);
        fth_pb_begin(out, GRAPH_TENSOR, head.text.length + (beside ? 0 : bytes_of(t)));
        if (out->err == FTH_OK) out->err = head.err;
        if (out->err == FTH_OK)
            out->err = fth_str_add(&out->text, head.text.text, head.text.length);
        if (out->err == FTH_OK && !beside) out->err = fth_str_add(&out->text, t->data, bytes_of(t));
        fth_str_clear(&head.text);
        offset += bytes_of(t);
    }
    fth_pb_fini(&head);
    return out->err;
}

static fth_err save_data(const fth_tensors *tensors, const char *folder) {
    fth_writer w = {0};
    char *path = fth_strdup_printf("%s/%s", folder, data_name);
    fth_err err = path ? fth_writer_open(&w, path) : fth_fail(FTH_NO_MEMORY, "no memory");
    for (size_t i = 0; i < tensors->n && err == FTH_OK; i++)
        err = fth_writer_put(&w, tensors->tensors[i].data, bytes_of(&tensors->tensors[i]));
    if (err == FTH_OK) err = fth_writer_commit(&w);
    fth_writer_fini(&w);
    free(path);
    return err;
}

static fth_err save_model(fth_onnx *g, const char *folder, bool beside) {
    fth_pb model = {0}, opset = {0};
    char *path = fth_strdup_printf("%s/model.onnx", folder);
    fth_pb_text(&g->nodes, GRAPH_NAME, "fathom");
    fth_err err = put_tensors(&g->stored, beside, &g->nodes);
    fth_pb_int(&model, MODEL_IR, IR_VERSION);
    fth_pb_text(&model, MODEL_PRODUCER, "fathom");
    fth_pb_text(&model, MODEL_VERSION, FATHOM_VERSION);
    fth_pb_int(&opset, 2, OPSET);
    fth_pb_message(&model, MODEL_OPSET, &opset);
    fth_pb_message(&model, MODEL_GRAPH, &g->nodes);
    if (err == FTH_OK) err = model.err;
    if (err == FTH_OK && !path) err = fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK) err = fth_file_write(path, model.text.text, model.text.length);
    fth_pb_fini(&opset);
    fth_pb_fini(&model);
    free(path);
    return err;
}

fth_err fth_onnx_save(fth_onnx *g, const char *folder) {
    size_t bytes = 0;
    for (size_t i = 0; i < g->stored.n; i++) bytes += bytes_of(&g->stored.tensors[i]);
    const bool beside = bytes > LARGE;
    if (g->err != FTH_OK) return g->err;
    if (beside) FTH_TRY(save_data(&g->stored, folder));
    return save_model(g, folder, beside);
}

/* ---- reading back ---- */

typedef struct read_tensor {
    char name[256];
    int64_t shape[FTH_ST_MAX_RANK];
    int rank;
    fth_pb_in raw;
    uint64_t offset; /* in the other file */
    bool beside;
} read_tensor;

static fth_err broken(void) {
    return fth_fail(FTH_BAD_INPUT, "the message is broken");
}

static fth_err read_entry(fth_pb_in m, read_tensor *t) {
    fth_pb_field f;
    bool is_offset = false;
    while (m.left) {
        char text[32] = "";
        if (!fth_pb_next(&m, &f) || f.wire != FTH_PB_BYTES) return broken();
        snprintf(text, sizeof text, "%.*s", (int)(f.content.left < 31 ? f.content.left : 31),
                 (const char *)f.content.at);
        if (f.number == 1) is_offset = strcmp(text, "offset") == 0;
        if (f.number == 2 && is_offset) t->offset = strtoull(text, NULL, 10);
    }
    return FTH_OK;
}

static fth_err parse_tensor(fth_pb_in m, read_tensor *t) {
    fth_pb_field f;
    *t = (read_tensor){.rank = 0};
    while (m.left) {
        if (!fth_pb_next(&m, &f)) return broken();
        if (f.number == TENSOR_DIMS && t->rank < FTH_ST_MAX_RANK)
            t->shape[t->rank++] = (int64_t)f.value;
        if (f.number == TENSOR_NAME)
            snprintf(t->name, sizeof t->name, "%.*s", (int)(f.content.left & 0xff),
                     (const char *)f.content.at);
        if (f.number == TENSOR_RAW) t->raw = f.content;
        if (f.number == TENSOR_EXTERNAL) FTH_TRY(read_entry(f.content, t));
        if (f.number == TENSOR_LOCATION) t->beside = f.value == 1;
    }
    return FTH_OK;
}

static fth_err take_tensor(fth_onnx_file *f, fth_pb_in m, size_t data_size) {
    read_tensor t;
    FTH_TRY(parse_tensor(m, &t));
    fth_st_tensor shape = {.rank = t.rank};
    memcpy(shape.shape, t.shape, sizeof t.shape);
    const size_t bytes = bytes_of(&shape);
    if (t.beside && f->data && t.offset <= data_size && bytes <= data_size - t.offset)
        t.raw = (fth_pb_in){(const uint8_t *)f->data + t.offset, bytes};
    if (t.raw.left != bytes)
        return fth_fail(FTH_BAD_INPUT, "tensor %s has %zu bytes of %zu", t.name, t.raw.left, bytes);
    return fth_tensors_add(&f->tensors, t.name, FTH_ST_F32, t.rank, t.shape, t.raw.at, NULL);
}

static fth_err read_model(fth_onnx_file *f, fth_pb_in model, size_t data_size) {
    fth_pb_field field, inner;
    while (model.left) {
        if (!fth_pb_next(&model, &field)) return broken();
        if (field.number != MODEL_GRAPH) continue;
        fth_pb_in graph = field.content;
        while (graph.left) {
            if (!fth_pb_next(&graph, &inner)) return broken();
            if (inner.number == GRAPH_TENSOR) FTH_TRY(take_tensor(f, inner.content, data_size));
        }
    }
    return FTH_OK;
}

static int by_name(const void *a, const void *b) {
    const fth_st_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

fth_err fth_onnx_open(const char *folder, fth_onnx_file *f) {
    size_t size = 0, data_size = 0;
    *f = (fth_onnx_file){0};
    f->file.path = fth_strdup_printf("%s/model.onnx", folder);
    if (!f->file.path) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    FTH_TRY(fth_file_read(f->file.path, &f->model, &size));
    char *beside = fth_strdup_printf("%s/%s", folder, data_name);
    fth_err err = beside ? FTH_OK : fth_fail(FTH_NO_MEMORY, "no memory for a name");
    if (err == FTH_OK && fth_file_exists(beside)) err = fth_file_read(beside, &f->data, &data_size);
    free(beside);
    if (err == FTH_OK) err = read_model(f, (fth_pb_in){(const uint8_t *)f->model, size}, data_size);
    if (err != FTH_OK) return fth_fail_in(err, "%s", f->file.path);
    if (f->tensors.n) qsort(f->tensors.tensors, f->tensors.n, sizeof *f->tensors.tensors, by_name);
    f->file.n = f->tensors.n;
    f->file.tensors = f->tensors.tensors;
    return FTH_OK;
}

void fth_onnx_close(fth_onnx_file *f) {
    free(f->file.path);
    free(f->model);
    free(f->data);
    fth_tensors_fini(&f->tensors);
    *f = (fth_onnx_file){0};
}
