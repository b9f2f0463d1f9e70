/* kernel_table.c: the table of one instruction set: a kernel for every line of kinds.def,
 * without which it does not link, and the scratch memory of those that need some. */
#include "backend/cpu/product/gemm_panels.h"

#define STRING2(x) #x
#define STRING(x)  STRING2(x)

extern const fth_cpu_table FTH_NAME(table);

#define SCRATCH(kind, from) [FTH_KIND_##kind] = FTH_NAME(from##_scratch)

const fth_cpu_table FTH_NAME(table) = {
    .isa = STRING(FTH_ISA),
#define KIND(name, text) .part[FTH_KIND_##name] = FTH_NAME(name),
#include "graph/kinds.def"
#undef KIND
    .scratch = {SCRATCH(embed, embed),
                SCRATCH(embed_bwd, embed_bwd),
                SCRATCH(linear, linear),
                SCRATCH(linear_dx, linear),
                SCRATCH(linear_dw, linear),
                SCRATCH(attention, attention),
                SCRATCH(attention_bwd, attention_bwd),
                SCRATCH(attention_cached, attention_cached),
                SCRATCH(join, join),
                SCRATCH(norm, join),
                SCRATCH(join_norm, join),
                SCRATCH(join_bwd, join_bwd),
                SCRATCH(norm_bwd, join_bwd),
                SCRATCH(join_norm_bwd, join_bwd),
                SCRATCH(dropout, dropout),
                SCRATCH(scale_shift_bwd, reduction),
                SCRATCH(head_scale_bwd, reduction),
                SCRATCH(mix_bwd, reduction),
                SCRATCH(xent, xent),
                SCRATCH(mean, mean),
                SCRATCH(patches, patches),
                SCRATCH(patches_bwd, patches_bwd),
                SCRATCH(update, update),
                SCRATCH(top, top),
                SCRATCH(gauge_positions, gauge_positions)},
    .adam = FTH_NAME(adam),
    .sum_squares = FTH_NAME(sum_squares),
    .square_sums = FTH_NAME(square_sums),
    .add_up = FTH_NAME(add_up),
    .refresh = FTH_NAME(refresh),
    .range_sums = FTH_NAME(range_sums),
    .panel_columns = GEMM_PANEL_COLUMNS,
    .pack_panels = FTH_NAME(pack_panels),
#ifdef FTH_REAL_IS_bf16
    .pack_tiles = FTH_NAME(pack_tiles),
#endif
};
