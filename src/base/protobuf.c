/* protobuf.c: varints, lengths and fixed numbers of protocol buffers. */
#include "base/protobuf.h"

#include <string.h>

void fth_pb_fini(fth_pb *m) {
    fth_str_fini(&m->text);
    m->err = FTH_OK;
}

static void add(fth_pb *m, const void *data, size_t size) {
    if (m->err == FTH_OK && size) m->err = fth_str_add(&m->text, data, size);
}

static void varint(fth_pb *m, uint64_t value) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    add(m, bytes, n);
}

static void key(fth_pb *m, int field, int wire) {
    varint(m, (uint64_t)field << 3 | (uint64_t)wire);
}

void fth_pb_int(fth_pb *m, int field, int64_t value) {
    key(m, field, FTH_PB_VARINT);
    varint(m, (uint64_t)value);
}

void fth_pb_float(fth_pb *m, int field, float value) {
    key(m, field, FTH_PB_32);
    add(m, &value, sizeof value);
}

void fth_pb_double(fth_pb *m, int field, double value) {
    key(m, field, FTH_PB_64);
    add(m, &value, sizeof value);
}

void fth_pb_begin(fth_pb *m, int field, size_t size) {
    key(m, field, FTH_PB_BYTES);
    varint(m, size);
}

void fth_pb_bytes(fth_pb *m, int field, const void *data, size_t size) {
    fth_pb_begin(m, field, size);
    add(m, data, size);
}

void fth_pb_text(fth_pb *m, int field, const char *text) {
    fth_pb_bytes(m, field, text, strlen(text));
}

void fth_pb_message(fth_pb *m, int field, fth_pb *inner) {
    if (m->err == FTH_OK) m->err = inner->err;
    fth_pb_bytes(m, field, inner->text.text, inner->text.length);
    fth_str_clear(&inner->text);
    inner->err = FTH_OK;
}

void fth_pb_doubles(fth_pb *m, int field, const double *values, size_t n) {
    fth_pb_bytes(m, field, values, sizeof *values * n);
}

static bool read_varint(fth_pb_in *b, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64 && b->left; shift += 7) {
        const uint8_t byte = *b->at++;
        b->left--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

bool fth_pb_next(fth_pb_in *m, fth_pb_field *f) {
    uint64_t head, length = 0;
    if (!read_varint(m, &head)) return false;
    *f = (fth_pb_field){.number = head >> 3, .wire = (int)(head & 7)};
    switch (f->wire) {
    case FTH_PB_VARINT: return read_varint(m, &f->value);
    case FTH_PB_64: length = 8; break;
    case FTH_PB_32: length = 4; break;
    case FTH_PB_BYTES:
        if (!read_varint(m, &length)) return false;
        break;
    default: return false;
    }
    if (length > m->left) return false;
    f->content = (fth_pb_in){m->at, (size_t)length};
    m->at += length;
    m->left -= (size_t)length;
    return true;
}

uint32_t fth_pb_u32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
