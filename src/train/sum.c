/* sum.c: rounds of micro-batches: exchange of slices, then addition in order; one rank alone
 * adds without an exchange. */
#include "train/sum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/pipeline.h"

/* Where the trainer's numbers are: of this rank, then of all. */
typedef struct layout {
    int count, stages;     /* ranks; and those of them that share a model, the loss at the last */
    int64_t rounds;        /* of batches */
    int64_t pieces;        /* of a slice, at most */
    double *loss, *losses; /* [rounds, 2]; [count, rounds, 2] sums of loss and nll */
    double *square, *squares; /* [pieces]; [count, pieces] */
} layout;

static fth_ranks *ranks_of(const fth_trainer *t) {
    return t->exchange ? t->exchange->ranks : NULL;
}

static layout layout_of(const fth_trainer *t) {
    layout l = {.count = fth_rank_count(ranks_of(t))};
    l.stages = l.count / t->groups;
    l.rounds = (t->batches + t->groups - 1) / t->groups;
    l.pieces = fth_pieces(t->arenas.n) / l.count + 1;
    l.loss = t->numbers;
    l.losses = l.loss + 2 * l.rounds;
    l.square = l.losses + 2 * l.rounds * l.count;
    l.squares = l.square + l.pieces;
    return l;
}

fth_err fth_sum_init(fth_trainer *t, int64_t batches) {
    const int64_t own = t->own.end - t->own.begin;
    t->batches = batches > 1 ? (int)batches : 1;
    const layout l = layout_of(t);
    t->numbers = calloc((size_t)((2 * l.rounds + l.pieces) * (l.count + 1)), sizeof *t->numbers);
    if (!t->numbers) return fth_fail(FTH_NO_MEMORY, "no memory for a trainer");
    return t->device->backend->alloc(
        t->device, (own > 0 ? own : 1) * (int64_t)fth_dtype_size(t->device->full), &t->sum);
}

/* One gradient alone is squared by whoever has made it, as where there are no ranks; pieces of a
 * sum by those who have them. */
static fth_err measure(fth_trainer *t, const layout *l, int n_batches, double *gnorm) {
    const int64_t n = t->arenas.n, piece = fth_piece_size(n), own = t->own.end - t->own.begin;
    const fth_backend *backend = t->device->backend;
    double squares = 0;
    if (n_batches == 1) {
        if (t->pipeline) FTH_TRY(fth_pipeline_gather(t));
        if (fth_rank(ranks_of(t)) == 0)
            FTH_TRY(backend->sum_squares(t->device, t->arenas.grad, n, &squares));
        FTH_TRY(fth_ranks_broadcast(ranks_of(t), &squares, sizeof squares));
        *gnorm = sqrt(squares);
        return FTH_OK;
    }
    if (own > 0) FTH_TRY(backend->square_sums(t->device, t->sum, own, piece, l->square));
    FTH_TRY(fth_ranks_gather(ranks_of(t), l->square, sizeof *l->square * (size_t)l->pieces,
                             l->squares));
    for (int r = 0; r < l->count; r++) {
        const fth_slice s = fth_slice_of(n, r, l->count);
        const int64_t pieces = (s.end - s.begin + piece - 1) / piece;
        for (int64_t k = 0; k < pieces; k++) squares += l->squares[r * l->pieces + k];
    }
    *gnorm = sqrt(squares);
    return FTH_OK;
}

/* The gradients of a round, one batch of each rank, go to the sum. */
static fth_err add_round(fth_trainer *t, const layout *l, int round, int n_batches) {
    const int left = n_batches - round * l->count;
    if (t->exchange)
        return t->exchange->reduce(t->exchange, t->arenas.grad, left < l->count ? left : l->count,
                                   round == 0, t->sum);
    const fth_addends own = {.data = t->arenas.grad, .many = 1, .fresh = round == 0};
    return t->device->backend->add_up(t->device, t->sum, &own, t->arenas.n);
}

static fth_err add_losses(fth_trainer *t, const layout *l, int n, double scale, fth_update *out) {
    FTH_TRY(
        fth_ranks_gather(ranks_of(t), l->loss, sizeof *l->loss * 2 * (size_t)l->rounds, l->losses));
    for (int i = 0; i < n; i++) {
        const int rank = (i % t->groups + 1) * l->stages - 1;
        const double *sums = l->losses + 2 * (rank * l->rounds + i / t->groups);
        out->loss += sums[0] * scale;
        out->nll += sums[1] * scale;
    }
    return FTH_OK;
}

static void say(const fth_trainer *t, const fth_step *step, int i, int n) {
    char text[64];
    if (!t->exchange) return;
    snprintf(text, sizeof text, "computing micro-batch %d of %d", i + 1, n);
    fth_ranks_doing(ranks_of(t), step->update, text);
}

/* Each rank has the whole model and takes batches in turn. */
static fth_err sum_in_turn(fth_trainer *t, const layout *l, const fth_batches *batches,
                           fth_step *step) {
    const int rank = fth_rank(ranks_of(t)), n = batches->n;
    int64_t targets = 0;
    for (int i = 0; i < n; i++) {
        const int round = i / l->count;
        const fth_batch *batch = NULL;
        FTH_TRY(batches->next(batches->context, &batch));
        targets += fth_batch_targets(batch, t->outputs.rows);
        if (i % l->count == rank) {
            const bool fresh = round == 0 || !t->own_first;
            say(t, step, i, n);
            FTH_TRY(fth_trainer_batch(t, batch, step, fresh, l->loss + 2 * round));
        }
        int64_t rows[FTH_N_EXTENTS];
        fth_batch_rows(batch, rows);
        for (int e = 0; e < FTH_ROW_EXTENTS; e++) step->row_base[e] += rows[e];
        const bool full = i % l->count == l->count - 1 && !t->own_first;
        if (full || i == n - 1) FTH_TRY(add_round(t, l, t->own_first ? 0 : round, n));
    }
    if (targets == batches->targets) return FTH_OK;
    return fth_fail(FTH_FAILED, "an update over %lld targets got %lld", (long long)batches->targets,
                    (long long)targets);
}

/* Several of them are on their way at a time. */
static fth_err sum_in_pipeline(fth_trainer *t, const layout *l, const fth_batches *batches,
                               fth_step *step) {
    fth_err err = FTH_OK;
    if (!batches->kept) return fth_fail(FTH_FAILED, "batches of a pipeline must be kept");
    const fth_batch **all = calloc((size_t)batches->n, sizeof *all);
    if (!all) return fth_no_memory("an update");
    for (int i = 0; i < batches->n && err == FTH_OK; i++)
        err = batches->next(batches->context, &all[i]);
    if (err == FTH_OK) err = fth_pipeline_sum(t, all, batches->n, step, l->loss);
    free(all);
    return err;
}

fth_err fth_sum_batches(fth_trainer *t, const fth_batches *batches, fth_step *step,
                        fth_update *out) {
    const layout l = layout_of(t);
    const int n = batches->n;
    if (n > t->batches)
        return fth_fail(FTH_FAILED, "a trainer of %d batches got %d", t->batches, n);
    FTH_TRY(t->pipeline ? sum_in_pipeline(t, &l, batches, step)
                        : sum_in_turn(t, &l, batches, step));
    FTH_TRY(add_losses(t, &l, n, step->loss_scale, out));
    return measure(t, &l, n, &out->gnorm);
}
