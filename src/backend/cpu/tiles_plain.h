/* tiles_plain.h: tiles of the matrix unit in plain C, for TILES_SOURCE, tiles.h or digits_tiles.h: what is
 * the same whatever they hold. DOT_PLAIN is the function that multiplies two and adds to a third. */
#ifndef FTH_BACKEND_CPU_TILES_PLAIN_H
#define FTH_BACKEND_CPU_TILES_PLAIN_H

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
