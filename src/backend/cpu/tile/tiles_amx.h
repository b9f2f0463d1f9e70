/* tiles_amx.h: the products of TILES_SOURCE, tile_product.h or digits_tiles.h, on the matrix unit.
 * DOT_AMX is the instruction that multiplies two tiles and adds to a third. */
#define zero_tile(t)              _tile_zero(t)
#define load_tile(t, p, stride)   _tile_loadd(t, p, stride)
#define stream_tile(t, p, stride) _tile_stream_loadd(t, p, stride)
#define store_tile(t, p, stride)  _tile_stored(t, p, stride)
#define dot_tiles(c, a, b)        DOT_AMX(c, a, b)
#include TILES_SOURCE
