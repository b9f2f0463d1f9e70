/* protobuf.h: messages of protocol buffers, written field by field and walked through, for the few
 * formats that are made of them (SentencePiece models, ONNX, TensorBoard's events). */
#ifndef FTH_BASE_PROTOBUF_H
#define FTH_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* ---- writing: a message is a string that grows ---- */

/* A writer that remembers its first failure, so that calls need no check of their own. Zeroed: an
 * empty message. */
typedef struct fth_pb {
    fth_str text;
    fth_err err;
} fth_pb;

void fth_pb_fini(fth_pb *m);
void fth_pb_int(fth_pb *m, int field, int64_t value);
void fth_pb_float(fth_pb *m, int field, float value);
void fth_pb_double(fth_pb *m, int field, double value);
void fth_pb_bytes(fth_pb *m, int field, const void *data, size_t size);
void fth_pb_text(fth_pb *m, int field, const char *text);
/* Begins a field of so many bytes that the caller adds himself. */
void fth_pb_begin(fth_pb *m, int field, size_t size);
/* Adds a message as a field, and empties it. */
void fth_pb_message(fth_pb *m, int field, fth_pb *inner);
/* Many numbers as one field. */
void fth_pb_doubles(fth_pb *m, int field, const double *values, size_t n);

/* ---- reading ---- */

typedef struct fth_pb_in {
    const uint8_t *at;
    size_t left;
} fth_pb_in;

enum { FTH_PB_VARINT = 0, FTH_PB_64 = 1, FTH_PB_BYTES = 2, FTH_PB_32 = 5 };

/* One field of a message: its number and, by its wire type, a number or bytes. */
typedef struct fth_pb_field {
    uint64_t number, value;
    int wire;
    fth_pb_in content; /* of all wire types but the first */
} fth_pb_field;

/* Takes the next field; false when the message is broken. To be called while something is left. */
bool fth_pb_next(fth_pb_in *m, fth_pb_field *f);

/* Four bytes, the lowest first. */
uint32_t fth_pb_u32(const uint8_t *at);

#endif
