/* positions.h: the sinusoidal table of positions (doc/mathematics.md#embeddings-and-positions). */
#ifndef FTH_GRAPH_POSITIONS_H
#define FTH_GRAPH_POSITIONS_H

#include <math.h>
#include <stdint.h>

/* Entry i of width d for the k-th token of a sentence (from 0), which stands at position k + 2:
 * fairseq's layout, sines in the first half, cosines in the second; the last entry of an odd width
 * is 0. */
static inline double fth_sinusoid(int64_t k, int64_t i, int64_t d) {
    int64_t half = d / 2;
    if (i >= 2 * half) return 0;
    double w = exp(-(double)(i % half) * log(10000.0) / (double)(half - 1));
    return i < half ? sin((double)(k + 2) * w) : cos((double)(k + 2) * w);
}

#endif
