/* safetensors_convert.c: numbers of tensors to and from the types that the program computes in. */
#include <string.h>

#include "base/bf16.h"
#include "store/safetensors.h"

static float f32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float f32_of_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31) return f32_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent) return f32_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float small = (float)fraction * 0x1p-24f; /* zero or subnormal: exact in a float */
    return sign ? -small : small;
}

fth_err fth_st_to_f32(const fth_st_file *f, const fth_st_tensor *t, float *out) {
    size_t n = fth_st_count(t), width = fth_st_dtype_size(t->dtype);
    const char *data = t->data;
    if (t->dtype == FTH_ST_F32) {
        if (n) memcpy(out, data, n * sizeof *out);
    } else if (t->dtype == FTH_ST_F64) {
        for (size_t i = 0; i < n; i++) {
            double value;
            memcpy(&value, data + i * width, sizeof value);
            out[i] = (float)value;
        }
    } else if (t->dtype == FTH_ST_F16 || t->dtype == FTH_ST_BF16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t half;
            memcpy(&half, data + i * width, sizeof half);
            out[i] = t->dtype == FTH_ST_F16 ? f32_of_f16(half) : fth_float_of_bf16(half);
        }
    } else {
        return fth_fail(FTH_BAD_INPUT,
                        "%s: tensor \"%s\" has dtype %s, but must have F64, F32, F16 or BF16",
                        f->path, t->name, fth_st_dtype_name(t->dtype));
    }
    return FTH_OK;
}

fth_err fth_st_to_i32(const fth_st_file *f, const fth_st_tensor *t, int32_t *out) {
    size_t n = fth_st_count(t);
    const char *data = t->data;
    if (t->dtype == FTH_ST_I32) {
        if (n) memcpy(out, data, n * sizeof *out);
        return FTH_OK;
    }
    if (t->dtype != FTH_ST_I64)
        return fth_fail(FTH_BAD_INPUT, "%s: tensor \"%s\" has dtype %s, but must have I32 or I64",
                        f->path, t->name, fth_st_dtype_name(t->dtype));
    for (size_t i = 0; i < n; i++) {
        int64_t value;
        memcpy(&value, data + i * sizeof value, sizeof value);
        if (value < INT32_MIN || value > INT32_MAX)
            return fth_fail(FTH_BAD_INPUT,
                            "%s: tensor \"%s\": element %zu is %lld, which is no 32-bit number",
                            f->path, t->name, i, (long long)value);
        out[i] = (int32_t)value;
    }
    return FTH_OK;
}

fth_err fth_st_fill_from_f32(void *context, const fth_st_tensor *t, size_t first, size_t count,
                             void *out) {
    (void)context;
    const float *data = (const float *)t->data + first;
    if (t->dtype == FTH_ST_F32) {
        memcpy(out, data, count * sizeof *data);
    } else if (t->dtype == FTH_ST_BF16) {
        uint16_t *halves = out;
        for (size_t i = 0; i < count; i++) halves[i] = fth_bf16_of_float(data[i]);
    } else if (t->dtype == FTH_ST_F64) {
        double *doubles = out;
        for (size_t i = 0; i < count; i++) doubles[i] = data[i];
    } else {
        return fth_fail(FTH_FAILED, "tensor \"%s\": floats cannot be stored as %s", t->name,
                        fth_st_dtype_name(t->dtype));
    }
    return FTH_OK;
}
