/* ter_shift.c: tries every run of words that stands elsewhere in the reference, and makes the shift
 * that saves the most edits until none saves any. */
#include "metric/ter_shift.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHIFT_SIZE = 10, MAX_SHIFT_DISTANCE = 50, MAX_TRIALS = 1000 };

/* A run of words that goes elsewhere, and what that saves. */
typedef struct shift {
    size_t start, length, target, gain;
} shift;

void fth_ter_work_fini(fth_ter_work *w) {
    fth_ter_distance_fini(&w->distance);
    free(w->order);
    free(w->trial);
    free(w->best);
    free(w->hyp_wrong);
    free(w->ref_wrong);
    free(w->place);
    *w = (fth_ter_work){0};
}

static fth_err make_room(fth_ter_work *w, size_t n) {
    if (n <= w->capacity) return FTH_OK;
    fth_ter_distance distance = w->distance;
    w->distance = (fth_ter_distance){0};
    fth_ter_work_fini(w);
    w->distance = distance;
    n *= 2;
    w->order = malloc(n * sizeof *w->order);
    w->trial = malloc(n * sizeof *w->trial);
    w->best = malloc(n * sizeof *w->best);
    w->hyp_wrong = malloc(n);
    w->ref_wrong = malloc(n);
    w->place = malloc(n * sizeof *w->place);
    if (!w->order || !w->trial || !w->best || !w->hyp_wrong || !w->ref_wrong || !w->place)
        return fth_fail(FTH_NO_MEMORY, "no memory for a line of %zu words", n / 2);
    w->capacity = n;
    return FTH_OK;
}

/* Walks the table back from its end: which words are wrong, and where reference words are. */
static void find_alignment(fth_ter_work *w) {
    size_t i = w->n, j = w->m;
    while (i > 0 || j > 0) {
        fth_ter_op op = fth_ter_distance_op(&w->distance, i, j);
        uint8_t wrong = op != FTH_TER_KEEP;
        if (op != FTH_TER_DROP) {
            w->place[j - 1] = i;
            w->ref_wrong[j - 1] = wrong;
            j--;
        }
        if (op != FTH_TER_INSERT) w->hyp_wrong[--i] = wrong;
    }
}

static int any(const uint8_t *flags, size_t n) {
    return memchr(flags, 1, n) != NULL;
}

/* Makes trial the order with a run shifted; returns how many words at the front stay. The target
 * counts words of the whole order; a target within or just behind the run means that many words
 * further on, as it does in sacreBLEU. */
static size_t make_trial(fth_ter_work *w, size_t start, size_t length, size_t target) {
    const uint32_t *from = w->order;
    uint32_t *to = w->trial;
    size_t rest = w->n - length; /* words that are not shifted */
    size_t at = target > start + length ? target - length : target < rest ? target : rest;
    size_t same = at < start ? at : start;
    memcpy(to, from, w->n * sizeof *to);
    memcpy(to + at, from + start, length * sizeof *to);
    if (at < start)
        memcpy(to + at + length, from + at, (start - at) * sizeof *to);
    else
        memcpy(to + start, from + start + length, (at - start) * sizeof *to);
    return same;
}

/* The larger gain, then the longer run, then the earlier run, then the earlier target. */
static int is_better(const shift *a, const shift *b) {
    if (a->gain != b->gain) return a->gain > b->gain;
    if (a->length != b->length) return a->length > b->length;
    if (a->start != b->start) return a->start < b->start;
    return a->target < b->target;
}

/* Tries to put the run at start, which equals the reference's at ref_start, before, within and
 * behind the place where the reference has it. */
static void try_run(fth_ter_work *w, size_t start, size_t ref_start, size_t length, size_t distance,
                    shift *best, size_t *trials) {
    size_t last = SIZE_MAX, aligned = w->place[ref_start];
    if (!any(w->hyp_wrong + start, length) || !any(w->ref_wrong + ref_start, length)) return;
    if (aligned > start && aligned <= start + length) return; /* it is there already */
    for (size_t k = 0; k <= length; k++) {
        size_t target = ref_start + k == 0 ? 0 : w->place[ref_start + k - 1];
        if (target == last) continue;
        last = target;
        size_t same = make_trial(w, start, length, target);
        size_t now = fth_ter_distance_of(&w->distance, w->trial, same);
        shift tried = {start, length, target, now < distance ? distance - now : 0};
        ++*trials;
        if (tried.gain == 0 || !is_better(&tried, best)) continue;
        *best = tried;
        memcpy(w->best, w->trial, w->n * sizeof *w->best);
    }
}

/* The best shift of all runs that hypothesis and reference have in common. */
static shift find_shift(fth_ter_work *w, size_t distance, size_t *trials) {
    shift best = {0};
    for (size_t i = 0; i < w->n; i++) {
        size_t first = i > MAX_SHIFT_DISTANCE ? i - MAX_SHIFT_DISTANCE : 0;
        for (size_t j = first; j < w->m && j <= i + MAX_SHIFT_DISTANCE; j++)
            for (size_t k = 0; k < MAX_SHIFT_SIZE && i + k < w->n && j + k < w->m; k++) {
                if (w->hyp[w->order[i + k]] != w->ref[j + k]) break;
                try_run(w, i, j, k + 1, distance, &best, trials);
                if (*trials >= MAX_TRIALS) return best;
            }
    }
    return best;
}

fth_err fth_ter_edits(fth_ter_work *w, const fth_word_ids *hyp, const fth_word_ids *ref,
                      size_t *edits) {
    size_t shifts = 0, trials = 0, distance;
    if (!hyp->n || !ref->n) {
        *edits = hyp->n + ref->n;
        return FTH_OK;
    }
    FTH_TRY(make_room(w, hyp->n > ref->n ? hyp->n : ref->n));
    FTH_TRY(fth_ter_distance_start(&w->distance, hyp, ref));
    w->hyp = hyp->id;
    w->ref = ref->id;
    w->n = hyp->n;
    w->m = ref->n;
    for (size_t i = 0; i < w->n; i++) w->order[i] = (uint32_t)i;
    for (;;) {
        distance = fth_ter_distance_table(&w->distance, w->order);
        if (distance == 0) break;
        find_alignment(w);
        shift best = find_shift(w, distance, &trials);
        if (trials >= MAX_TRIALS || best.gain == 0) break; /* out of trials: not even the best */
        memcpy(w->order, w->best, w->n * sizeof *w->order);
        shifts++;
    }
    *edits = shifts + distance;
    return FTH_OK;
}
