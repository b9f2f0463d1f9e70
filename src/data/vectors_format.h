/* vectors_format.h: how a file of vectors begins, for vectors.c and vectors_writer.c. doc/data.md
 * explains it.
 *
 *     header | offsets, unless every record has one vector | vectors
 *
 * Little endian; every part begins at a multiple of 64 and the gaps are zero. */
#ifndef FTH_DATA_VECTORS_FORMAT_H
#define FTH_DATA_VECTORS_FORMAT_H

#include <stdint.h>

#include "data/spill.h"

#define FTH_VECTORS_MAGIC "FTHVECS\n"
enum { FTH_VECTORS_VERSION = 1, FTH_VECTORS_HEADER = 128 };
#define FTH_VECTORS_ORDER UINT32_C(0x01020304) /* reads differently on a big endian machine */

typedef struct fth_vectors_header {
    char magic[8];
    uint32_t version, order;
    uint32_t type, width; /* fth_vector_type; numbers of a vector */
    uint32_t single;      /* 1: every record has one vector, there are no offsets */
    uint32_t offsets_crc, data_crc, unused;
    uint64_t records, vectors, longest, file_size;
    uint8_t zero[FTH_VECTORS_HEADER - 72 - 4];
    uint32_t crc; /* fth_crc32 of all that is before it */
} fth_vectors_header;

_Static_assert(sizeof(fth_vectors_header) == FTH_VECTORS_HEADER, "the header has a fixed size");

#endif
