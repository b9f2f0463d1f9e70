/* hash.h: check sums and hashes of bytes. Both are the same on every machine and may be stored. */
#ifndef FTH_BASE_HASH_H
#define FTH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The CRC-32 of zlib and PNG, continued from crc (0 at the start): finds damaged data. */
uint32_t fth_crc32(uint32_t crc, const void *data, size_t size);

/* A fast hash for tables and fingerprints; no protection against people who want collisions. */
uint64_t fth_hash64(const void *data, size_t size);

/* A hash as files of fathom have it: 16 hexadecimal digits. */
enum { FTH_HASH_TEXT = 17 };
void fth_hash_text(uint64_t hash, char text[FTH_HASH_TEXT]);

#endif
