/* format.h: how a data set file begins, for dataset.c and dataset_writer.c. doc/data.md explains
 * it.
 *
 *     header | offsets of side 0 | ids of side 0 | offsets of side 1 | ids of side 1
 *
 * Little endian; every part begins at a multiple of 64 and the gaps are zero. */
#ifndef FTH_DATA_FORMAT_H
#define FTH_DATA_FORMAT_H

#include <stdint.h>

#define FTH_FDS_MAGIC "FTHDATA\n"
enum { FTH_FDS_VERSION = 1, FTH_FDS_ALIGN = 64, FTH_FDS_HEADER = 512, FTH_FDS_BLOCKS = 64 };
#define FTH_FDS_ORDER UINT32_C(0x01020304) /* reads differently on a big endian machine */

typedef struct fth_fds_side {
    uint64_t tokens, words, bytes;
    uint32_t vocab, longest;
    uint32_t offsets_crc, ids_crc; /* fth_crc32 of the parts */
    int32_t bos, pad, eos, unk;
} fth_fds_side;

typedef struct fth_fds_header {
    char magic[8];
    uint32_t version, order;
    uint32_t n_sides, id_bytes;
    uint64_t sentences, file_size;
    fth_fds_side side[2];
    uint32_t n_blocks; /* FTH_FDS_BLOCKS; 0 in older files, which have no block_crc */
    uint32_t block_crc[FTH_FDS_BLOCKS];
    uint8_t zero[FTH_FDS_HEADER - 44 - 2 * sizeof(fth_fds_side) - 4 * FTH_FDS_BLOCKS - 4];
    uint32_t crc; /* fth_crc32 of all that is before it */
} fth_fds_header;

_Static_assert(sizeof(fth_fds_header) == FTH_FDS_HEADER, "the header has a fixed size");

/* Where the parts lie. */
typedef struct fth_fds_layout {
    uint64_t offsets[2], ids[2], file_size;
} fth_fds_layout;

static inline uint64_t fth_fds_align(uint64_t at) {
    return (at + FTH_FDS_ALIGN - 1) / FTH_FDS_ALIGN * FTH_FDS_ALIGN;
}

/* 0 when the numbers of the header are too large to be true. */
static inline int fth_fds_layout_of(const fth_fds_header *h, fth_fds_layout *l) {
    const uint64_t limit = UINT64_C(1) << 56;
    uint64_t at = FTH_FDS_HEADER;
    *l = (fth_fds_layout){0};
    if (h->sentences >= limit) return 0;
    for (uint32_t s = 0; s < h->n_sides; s++) {
        if (h->side[s].tokens >= limit) return 0;
        l->offsets[s] = at;
        at = fth_fds_align(at + 8 * (h->sentences + 1));
        l->ids[s] = at;
        at = fth_fds_align(at + h->id_bytes * h->side[s].tokens);
    }
    l->file_size = at;
    return 1;
}

/* What comes after the header is FTH_FDS_BLOCKS blocks of this many bytes, the last ones shorter or
 * empty; each has its check sum in the header, so that damage has a place. */
static inline uint64_t fth_fds_block(const fth_fds_header *h) {
    return fth_fds_align((h->file_size - FTH_FDS_HEADER + FTH_FDS_BLOCKS - 1) / FTH_FDS_BLOCKS);
}

#endif
