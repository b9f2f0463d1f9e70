/* hash.c: CRC-32 by zlib, and a 64-bit hash that mixes eight bytes at a time, read as
 * little-endian. */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

uint32_t fth_crc32(uint32_t crc, const void *data, size_t size) {
    if (!data) return crc; /* zlib would begin anew */
    return (uint32_t)crc32_z(crc, data, size);
}

/* A multiplication by an odd number carries low bits upwards, the shift brings them down again. */
static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 32;
}

/* The first size (at most 8) bytes as a number, lowest first. */
static uint64_t little_endian(const unsigned char *p, size_t size) {
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) word |= (uint64_t)p[i] << 8 * i;
    return word;
}

uint64_t fth_hash64(const void *data, size_t size) {
    const unsigned char *p = data;
    uint64_t h = mix(UINT64_C(0x243F6A8885A308D3), size);
    for (; size >= 8; p += 8, size -= 8) h = mix(h, little_endian(p, 8));
    h = mix(h, little_endian(p, size));
    return mix(mix(h, 0), 0);
}

void fth_hash_text(uint64_t hash, char text[FTH_HASH_TEXT]) {
    snprintf(text, FTH_HASH_TEXT, "%016llx", (unsigned long long)hash);
}
