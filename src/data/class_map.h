/* class_map.h: from what is said of patches to the classes of pixels. */
#ifndef FTH_DATA_CLASS_MAP_H
#define FTH_DATA_CLASS_MAP_H

#include <stdint.h>

/* Logits of a grid of patches [rows, columns, classes], drawn out to height x width pixels
 * (bilinear, a patch's number standing in its middle); map [height, width]: the class of the
 * largest. */
void fth_class_map(const double *logits, int32_t rows, int32_t columns, int32_t classes,
                   int32_t height, int32_t width, uint8_t *map);

#endif
