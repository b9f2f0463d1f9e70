/* quantize.h: the weights of a program in 8 bits (int8.h), made when the program is. */
#ifndef FTH_BACKEND_CPU_QUANTIZE_H
#define FTH_BACKEND_CPU_QUANTIZE_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/int8.h"

/* What fth_exec.own is on a device with 8-bit weights. */
typedef struct fth_quantized {
    const fth_int8_path *path;
    fth_int8 *map; /* [n_values] weights of linear maps; n is 0 for all other values */
    void *data;    /* of all of them */
} fth_quantized;

fth_err fth_cpu_quantize(fth_exec *ex);
void fth_cpu_unquantize(fth_exec *ex);

/* The 8-bit weights of a value; NULL: it has none. */
static inline const fth_int8 *fth_quantized_map(const fth_exec *ex, fth_val w) {
    const fth_quantized *q = ex->own;
    return q && q->map[w].n ? &q->map[w] : NULL;
}

#endif
