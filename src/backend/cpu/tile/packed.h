/* packed.h: the weights of a program's linear maps, packed once when the program is made: in 8 bits
 * (int8.h) on a device that quantizes, else, where they stay as they are, in fixed point (digits.h)
 * on tiles, or as panels (kernel/gemm_panels.c) for programs that make steps of generation, whose
 * products have few rows and read every weight each time. The copy costs as much memory as those
 * weights, in fixed point three quarters of it. Parameters that change later are not seen. */
#ifndef FTH_BACKEND_CPU_TILE_PACKED_H
#define FTH_BACKEND_CPU_TILE_PACKED_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/tile/digits.h"

/* With more rows than this products pack blocks of the weights themselves and are faster so: 320
 * rows, 512 to 512, 220 against 180 GFLOP/s on two cores of an Ice Lake; 160 rows are even. */
enum { FTH_PANEL_ROWS = 192 };

/* With fewer rows fixed point does not pay: one sentence, on crowded cores, takes 113 to 196 ms in
 * it and 92 to 144 in panels; eight take as long in both. */
enum { FTH_DIGITS_ROWS = 12 };

/* What fth_exec.own is in a program with packed weights. */
typedef struct fth_cpu_packed {
    const fth_int8_path *path;     /* of weights in whole numbers; NULL: panels */
    const fth_digits_path *digits; /* the same where they have digits; else NULL */
    fth_int8 *map;                 /* [n_values] such weights; n is 0 for all other values */
    void **panels;                 /* [n_values] the panels of weights; NULL for all other values */
    const fth_cpu_pairs_path
        *unit;  /* that they were packed for; NULL: the kernels' multiply-adds */
    void *data; /* of all of them */
} fth_cpu_packed;

/* Packs what the device and the program ask for, if anything. */
fth_err fth_cpu_pack(fth_exec *ex);
void fth_cpu_unpack(fth_exec *ex);

/* Packs the weights of all linear maps in fixed point where there are tiles for it, else, for maps
 * of few rows, as panels. */
fth_err fth_cpu_pack_whole(fth_exec *ex, bool few_rows);

/* The 8-bit weights and the panels of a value; NULL: it has none. */
static inline const fth_int8 *fth_cpu_packed_int8(const fth_exec *ex, fth_val w) {
    const fth_cpu_packed *p = ex->own;
    return p && p->map && p->map[w].n ? &p->map[w] : NULL;
}

static inline const fth_digits_path *fth_cpu_packed_digits(const fth_exec *ex) {
    const fth_cpu_packed *p = ex->own;
    return p ? p->digits : NULL;
}

static inline const void *fth_cpu_packed_panels(const fth_exec *ex, fth_val w) {
    const fth_cpu_packed *p = ex->own;
    return p && p->panels ? p->panels[w] : NULL;
}

static inline const fth_cpu_pairs_path *fth_cpu_packed_unit(const fth_exec *ex) {
    const fth_cpu_packed *p = ex->own;
    return p ? p->unit : NULL;
}

#endif
