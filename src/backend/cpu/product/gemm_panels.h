/* gemm_panels.h: products with weights that were packed into panels when the program was made
 * (backend/cpu/tile/packed.h). */
#ifndef FTH_BACKEND_CPU_PRODUCT_GEMM_PANELS_H
#define FTH_BACKEND_CPU_PRODUCT_GEMM_PANELS_H

#include "backend/cpu/product/gemm.h"

/* The whole team calls this, each thread with gemm_panels_bytes of its own. g says everything but
 * the weights, which are g->b in panels. Nobody waits. */
void FTH_NAME(gemm_panels)(const gemm *g, const void *panels, const fth_team *team, void *own);
int64_t FTH_NAME(gemm_panels_bytes)(void);

/* The same on a unit that multiplies pairs (bf16 alone), for rows and panels of C. own:
 * gemm_pairs_bytes. */
void FTH_NAME(gemm_pairs_panels)(const gemm *g, const void *panels, fth_cpu_share rows_,
                                 fth_cpu_share mine, void *own);

/* Columns of a panel: what a tile of sums in registers has. */
#if defined(__AVX512F__)
enum { GEMM_PANEL_COLUMNS = 64 };
#elif defined(__AVX2__)
enum { GEMM_PANEL_COLUMNS = 16 };
#else
enum { GEMM_PANEL_COLUMNS = 8 };
#endif
void FTH_NAME(pack_panels)(const fth_tensor *w, fth_cpu_share panels, void *to);

#endif
