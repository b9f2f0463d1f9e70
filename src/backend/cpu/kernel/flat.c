/* flat.c: work on the flat arenas: Adam (doc/mathematics.md#optimiser-and-rates), sums of squares
 * over all or over ranges, the copy that products read. Adam reads 4n and writes 3n floats: bound
 * by memory. */
#include "backend/cpu/kernel/adam.h"

/* Elements [begin, begin + n) of a range. */
static stretch stretch_of(const fth_arenas *a, const fth_adam_range *range, int64_t begin,
                          int64_t n) {
    const int64_t at = range->begin + begin;
    return (stretch){.p = (float *)a->master + at,
                     .m = (float *)a->m + at,
                     .v = (float *)a->v + at,
                     .grad = (const float *)a->grad + range->grad + begin,
                     .w = a->weights == a->master ? NULL : (real *)a->weights + at,
                     .n = n};
}

void FTH_NAME(adam)(const fth_arenas *a, const fth_adam *args, const fth_team *team) {
    int64_t all = 0, before = 0; /* elements of all ranges, and of those before the one at hand */
    for (int32_t r = 0; r < args->n_ranges; r++) all += args->range[r].end - args->range[r].begin;
    const fth_cpu_share mine = fth_team_share(team, all, ADAM_STRETCH);
    for (int32_t r = 0; r < args->n_ranges && before < mine.end; r++) {
        const fth_adam_range *range = &args->range[r];
        const int64_t n = range->end - range->begin;
        const int64_t begin = mine.begin > before ? mine.begin - before : 0;
        const int64_t end = mine.end - before < n ? mine.end - before : n;
        const adam_numbers numbers = adam_numbers_of(args, args->lr * (double)range->lr_scale);
        for (int64_t i = begin; i < end; i += ADAM_STRETCH) {
            const stretch s =
                stretch_of(a, range, i, end - i < ADAM_STRETCH ? end - i : ADAM_STRETCH);
            adam_stretch(&s, &numbers);
        }
        before += n;
    }
}

void FTH_NAME(sum_squares)(const float *x, int64_t n, double *sums, const fth_team *team) {
    const fth_cpu_share mine = fth_team_share(team, FTH_CPU_PIECES, 1);
    for (int64_t piece = mine.begin; piece < mine.end; piece++) {
        const int64_t begin = n / FTH_CPU_PIECES * piece;
        const int64_t end = piece == FTH_CPU_PIECES - 1 ? n : begin + n / FTH_CPU_PIECES;
        sums[piece] = square_sum(x + begin, end - begin);
    }
}

void FTH_NAME(square_sums)(const float *x, int64_t n, int64_t piece, double *sums,
                           const fth_team *team) {
    const fth_cpu_share mine = fth_team_share(team, (n + piece - 1) / piece, 1);
    for (int64_t k = mine.begin; k < mine.end; k++)
        sums[k] = square_sum(x + k * piece, n - k * piece < piece ? n - k * piece : piece);
}

/* Stretch by stretch, so that the sum stays in the cache while the addends come. */
void FTH_NAME(add_up)(float *to, const fth_addends *from, int64_t n, const fth_team *team) {
    const fth_cpu_share mine = fth_team_share(team, n, ADAM_STRETCH);
    for (int64_t begin = mine.begin; begin < mine.end; begin += ADAM_STRETCH) {
        const int64_t end = begin + ADAM_STRETCH < mine.end ? begin + ADAM_STRETCH : mine.end;
        for (int32_t k = 0; k < from->many; k++) {
            const float *x = (const float *)from->data + k * from->stride;
            if (k == 0 && from->fresh) {
                memcpy(to + begin, x + begin, sizeof *to * (size_t)(end - begin));
                continue;
            }
#pragma omp simd
            for (int64_t i = begin; i < end; i++) to[i] += x[i];
        }
    }
}

void FTH_NAME(refresh)(const fth_arenas *a, const fth_team *team) {
    const float *p = a->master;
    real *w = a->weights;
    const fth_cpu_share mine = fth_team_share(team, a->n, ADAM_STRETCH);
#pragma omp simd
    for (int64_t i = mine.begin; i < mine.end; i++) w[i] = to_real(p[i]);
}

void FTH_NAME(range_sums)(const fth_arenas *a, const fth_adam *args, double *out,
                          const fth_team *team) {
    const fth_cpu_share mine = fth_team_share(team, args->n_ranges, 1);
    for (int64_t r = mine.begin; r < mine.end; r++) {
        const fth_adam_range *range = &args->range[r];
        const stretch s = stretch_of(a, range, 0, range->end - range->begin);
        change_sums(&s, args, args->lr * (double)range->lr_scale, out + r * FTH_RANGE_SUMS);
    }
}
