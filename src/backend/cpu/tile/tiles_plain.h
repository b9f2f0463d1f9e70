/* tiles_plain.h: tiles of the matrix unit in plain C, for TILES_SOURCE, tile_product.h or
 * digits_tiles.h: what is the same whatever they hold. DOT_PLAIN is the function that multiplies
 * two and adds to a third. */
#ifndef FTH_BACKEND_CPU_TILE_TILES_PLAIN_H
#define FTH_BACKEND_CPU_TILE_TILES_PLAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct plain_tile {
    unsigned char row[16][64];
} plain_tile;

static _Thread_local plain_tile registers[8];

static inline void load_plain(plain_tile *t, const void *from, int64_t stride) {
    for (int i = 0; i < 16; i++) memcpy(t->row[i], (const char *)from + i * stride, 64);
}

static inline void store_plain(const plain_tile *t, void *to, int64_t stride) {
    for (int i = 0; i < 16; i++) memcpy((char *)to + i * stride, t->row[i], 64);
}

/* Tiles of bytes as they lie in memory: four neighbours along k to a group; b: [group][column][4].
 * The second factor has a sign, the first one may have. */
static inline void dot_plain_bytes(const bool has_sign, void *sum, const void *a, const void *b) {
    int32_t c[16][16];
    uint8_t x[16][64];
    int8_t y[16][64];
    memcpy(c, sum, sizeof c);
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (int i = 0; i < 16; i++)
        for (int l = 0; l < 64; l++) {
            const int factor = has_sign ? (int8_t)x[i][l] : x[i][l];
            for (int j = 0; j < 16; j++) c[i][j] += factor * y[l / 4][4 * j + l % 4];
        }
    memcpy(sum, c, sizeof c);
}

#endif

#define ON
#define zero_tile(t)              memset(&registers[t], 0, sizeof registers[t])
#define load_tile(t, p, stride)   load_plain(&registers[t], p, stride)
#define stream_tile(t, p, stride) load_plain(&registers[t], p, stride)
#define store_tile(t, p, stride)  store_plain(&registers[t], p, stride)
#define dot_tiles(c, a, b)        DOT_PLAIN(&registers[c], &registers[a], &registers[b])
#include TILES_SOURCE
#undef ON
#undef zero_tile
#undef load_tile
#undef stream_tile
#undef store_tile
#undef dot_tiles
