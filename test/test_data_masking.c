/* links: data base */
/* Masks and augmentations: shares, units, and that they follow from seed, epoch and item alone. */
#include <math.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "data/augment.h"
#include "data/class_map.h"
#include "data/mixup.h"
#include "data/masking.h"

enum { VOCAB = 100, MASK = 4, N = 50, ITEMS = 2000 };

static fth_masking masking(fth_mask_unit unit, const uint8_t *word_start) {
    return (fth_masking){.share = 0.15,
                         .keep = 0.1,
                         .random = 0.1,
                         .unit = unit,
                         .seed = 7,
                         .mask = MASK,
                         .vocab = VOCAB,
                         .special = {0, 1, 2, 3},
                         .word_start = word_start};
}

/* bos, then words of three pieces each of which the first has an even id, then eos. */
static void make_text(int64_t item, int32_t ids[N]) {
    for (int i = 0; i < N; i++) ids[i] = 10 + 2 * (int32_t)((item + i) % 40) + (i % 3 != 1);
    ids[0] = 0;
    ids[N - 1] = 2;
}

static void the_shares_are_right(void **state) {
    (void)state;
    uint8_t starts[VOCAB];
    for (int i = 0; i < VOCAB; i++) starts[i] = i % 2 == 0;
    for (int unit = FTH_MASK_PIECES; unit <= FTH_MASK_SPANS; unit++) {
        const fth_masking m = masking((fth_mask_unit)unit, starts);
        int64_t chosen = 0, masks = 0, kept = 0, other = 0, runs = 0;
        for (int64_t item = 0; item < ITEMS; item++) {
            int32_t ids[N], before[N], targets[N];
            make_text(item, ids);
            memcpy(before, ids, sizeof ids);
            assert_int_equal(fth_masking_apply(&m, 1, item, N, ids, targets), FTH_OK);
            assert_true(targets[0] < 0 && targets[N - 1] < 0); /* special ones are never chosen */
            for (int i = 0; i < N; i++) {
                if (targets[i] < 0) {
                    assert_int_equal(ids[i], before[i]);
                    continue;
                }
                assert_int_equal(targets[i], before[i]);
                assert_true(ids[i] != 0 && ids[i] != 1 && ids[i] != 2);
                chosen++;
                masks += ids[i] == MASK;
                kept += ids[i] == before[i];
                other += ids[i] != MASK && ids[i] != before[i];
                runs += targets[i - 1] < 0;
                if (unit == FTH_MASK_WORDS) /* all of a word or nothing */
                    for (int k = i - (i - 1) % 3; k < i - (i - 1) % 3 + 3 && k < N - 1; k++)
                        assert_true(targets[k] >= 0);
            }
        }
        const double n = (double)chosen, all = (double)ITEMS * (N - 2);
        /* 7 or 8 of 48 tokens are wanted: three whole words have 9 */
        assert_true(fabs(n / all - (unit == FTH_MASK_WORDS ? 9.0 / 48 : 0.15)) < 0.002);
        assert_true(fabs((double)masks / n - 0.8) < 0.02);
        assert_true(fabs((double)kept / n - 0.1) < 0.02);
        assert_true(fabs((double)other / n - 0.1) < 0.02);
        const double run = n / (double)runs;
        if (unit == FTH_MASK_PIECES) assert_true(run > 1.0 && run < 1.35);
        if (unit == FTH_MASK_SPANS) assert_true(run > 2.0 && run < 3.5);
        if (unit == FTH_MASK_WORDS) assert_true(run >= 3.0);
    }
}

static void epochs_and_items_differ(void **state) {
    (void)state;
    const fth_masking m = masking(FTH_MASK_PIECES, NULL);
    int same_epoch = 0, same_item = 0;
    for (int64_t item = 0; item < 200; item++) {
        int32_t ids[4][N], targets[4][N];
        const int64_t epochs[4] = {1, 1, 2, 1}, items[4] = {item, item, item, item + 1};
        for (int k = 0; k < 4; k++) {
            make_text(0, ids[k]);
            assert_int_equal(fth_masking_apply(&m, epochs[k], items[k], N, ids[k], targets[k]),
                             FTH_OK);
        }
        assert_memory_equal(ids[0], ids[1], sizeof ids[0]); /* the same twice */
        assert_memory_equal(targets[0], targets[1], sizeof targets[0]);
        same_epoch += memcmp(targets[0], targets[2], sizeof targets[0]) == 0;
        same_item += memcmp(targets[0], targets[3], sizeof targets[0]) == 0;
    }
    assert_int_equal(same_epoch, 0);
    assert_int_equal(same_item, 0);
}

static void blocks_cover_the_share(void **state) {
    (void)state;
    static const struct {
        int32_t rows, columns, wanted;
    } cases[] = {{8, 8, 26}, {14, 14, 78}, {1, 10, 4}, {3, 5, 6}, {1, 1, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int64_t item = 0; item < 300; item++) {
            int32_t masked[196], again[196], sum = 0;
            const int32_t rows = cases[c].rows, columns = cases[c].columns;
            const int64_t n = fth_masking_blocks(3, 1, item, 0.4, rows, columns, masked);
            for (int i = 0; i < rows * columns; i++) sum += masked[i];
            assert_int_equal(n, cases[c].wanted);
            assert_int_equal(sum, cases[c].wanted);
            fth_masking_blocks(3, 1, item, 0.4, rows, columns, again);
            assert_memory_equal(masked, again, sizeof *masked * (size_t)(rows * columns));
        }
}

static void pictures_move(void **state) {
    (void)state;
    enum { C = 2, H = 6, W = 5 };
    float from[C * H * W], to[C * H * W];
    for (int i = 0; i < C * H * W; i++) from[i] = (float)(i + 1);
    const fth_augment nothing = {.seed = 1};
    fth_augment_apply(&nothing, 1, 0, C, H, W, from, to);
    assert_memory_equal(from, to, sizeof from);
    const fth_augment flip = {.flip = true, .seed = 1};
    int flipped = 0;
    for (int64_t item = 0; item < 400; item++) {
        fth_augment_apply(&flip, 1, item, C, H, W, from, to);
        const int mirrored = to[0] == from[W - 1];
        for (int i = 0; i < C * H; i++)
            for (int x = 0; x < W; x++)
                assert_true(to[i * W + x] == from[i * W + (mirrored ? W - 1 - x : x)]);
        flipped += mirrored;
    }
    assert_true(flipped > 150 && flipped < 250);
    const fth_augment crop = {.crop = 2, .seed = 1};
    int corners = 0;
    for (int64_t item = 0; item < 400; item++) {
        fth_augment_apply(&crop, 1, item, C, H, W, from, to);
        corners += to[0] == from[0]; /* one shift of 25 */
    }
    assert_true(corners > 4 && corners < 40);
    const fth_augment erase = {.erase = 1, .seed = 1};
    for (int64_t item = 0; item < 100; item++) {
        int hidden = 0;
        fth_augment_apply(&erase, 1, item, C, H, W, from, to);
        for (int i = 0; i < C * H * W; i++) {
            assert_true(to[i] == 0 || to[i] == from[i]);
            hidden += to[i] == 0;
        }
        assert_true(hidden >= C && hidden <= C * H * W * 2 / 3);
    }
}

/* The class of a pixel goes where the pixel goes, in every epoch; what is hidden keeps its own. */
static void maps_move_with_pictures(void **state) {
    (void)state;
    enum { H = 6, W = 5, NONE = 255 };
    const fth_augment change = {.crop = 2, .flip = true, .erase = 0.3, .seed = 4};
    float from[H * W], to[H * W];
    uint8_t map[H * W], changed[H * W], again[H * W];
    int moved = 0;
    for (int i = 0; i < H * W; i++) from[i] = (float)(map[i] = (uint8_t)(i + 1));
    for (int64_t item = 0; item < 300; item++) {
        fth_augment_apply(&change, item % 3, item, 1, H, W, from, to);
        fth_augment_map(&change, item % 3, item, H, W, NONE, map, changed);
        fth_augment_map(&change, item % 3, item, H, W, NONE, map, again);
        assert_memory_equal(changed, again, sizeof changed);
        moved += memcmp(map, changed, sizeof map) != 0;
        for (int i = 0; i < H * W; i++)
            assert_true(to[i] == (changed[i] == NONE ? 0 : (float)changed[i]) || to[i] == 0);
    }
    assert_true(moved > 200);
}

/* Shares are those of the Beta distribution, the class follows the share, and all of it follows
 * from seed, epoch and picture. */
static void pictures_are_mixed(void **state) {
    (void)state;
    enum { PICTURES = 7, DRAWS = 20000 };
    static const double as[] = {0.1, 0.2, 1, 4};
    for (size_t k = 0; k < sizeof as / sizeof *as; k++) {
        const fth_mixup m = {as[k], 5};
        double mean = 0, square = 0, mine = 0;
        int others[PICTURES] = {0}, kept = 0;
        for (int64_t i = 0; i < DRAWS; i++) {
            const fth_mixed x = fth_mixup_draw(&m, 3, i, PICTURES),
                            y = fth_mixup_draw(&m, 3, i, PICTURES);
            assert_true(x.other == y.other && x.share == y.share && x.takes_other == y.takes_other);
            assert_true(x.other >= 0 && x.other < PICTURES && x.share >= 0 && x.share <= 1);
            mean += x.share / DRAWS;
            square += (x.share - 0.5) * (x.share - 0.5) / DRAWS;
            others[x.other]++;
            kept += !x.takes_other;
            mine += x.takes_other ? 0 : x.share / DRAWS;
        }
        const double variance = 1 / (4 * (2 * as[k] + 1)); /* of Beta(a, a) */
        assert_true(fabs(mean - 0.5) < 0.02 && fabs(square - variance) < 0.01);
        assert_true(abs(kept - DRAWS / 2) < 500);
        assert_true(fabs(mine - (variance + 0.25)) < 0.01); /* E[l^2]: the class follows l */
        for (int j = 0; j < PICTURES; j++) assert_true(abs(others[j] - DRAWS / PICTURES) < 300);
    }
    const fth_mixup m = {0.2, 5}, other_seed = {0.2, 6};
    assert_true(fth_mixup_draw(&m, 1, 0, PICTURES).share !=
                fth_mixup_draw(&m, 2, 0, PICTURES).share);
    assert_true(fth_mixup_draw(&m, 1, 0, PICTURES).share !=
                fth_mixup_draw(&m, 1, 1, PICTURES).share);
    assert_true(fth_mixup_draw(&m, 1, 0, PICTURES).share !=
                fth_mixup_draw(&other_seed, 1, 0, PICTURES).share);
    float picture[] = {1, 2, 4};
    fth_mixup_apply(0.75, (const float[]){5, 2, 0}, 3, picture);
    assert_memory_equal(picture, ((const float[]){2, 2, 3}), sizeof picture);
}

/* A patch's number stands in its middle: between two middles it changes evenly, outside of them not
 * at all. */
static void pixels_get_the_class_of_the_largest_number(void **state) {
    (void)state;
    const double two[] = {1, 0, 0, 3}; /* classes 0 and 1 in a row of two patches */
    uint8_t map[8];
    fth_class_map(two, 1, 2, 2, 1, 8, map);
    /* 1 - t against 3 t, t = 0, 0, 1/8, 3/8, 5/8, ...: class 1 from t = 1/4 on */
    assert_memory_equal(map, ((const uint8_t[]){0, 0, 0, 1, 1, 1, 1, 1}), 8);
    fth_class_map(two, 2, 1, 2, 8, 1, map); /* a column */
    assert_memory_equal(map, ((const uint8_t[]){0, 0, 0, 1, 1, 1, 1, 1}), 8);
    fth_class_map(two, 1, 2, 2, 1, 2, map); /* as many pixels as patches */
    assert_memory_equal(map, ((const uint8_t[]){0, 1}), 2);
    fth_class_map(two, 1, 1, 4, 2, 2, map); /* one patch of four classes */
    assert_memory_equal(map, ((const uint8_t[]){3, 3, 3, 3}), 4);
    const double equal[] = {2, 2};
    fth_class_map(equal, 1, 1, 2, 1, 1, map); /* the first of equal ones */
    assert_int_equal(map[0], 0);
}

static void patches_are_in_reading_order(void **state) {
    (void)state;
    /* 2 channels of 2 x 4, patches of 2 x 2 */
    const float picture[16] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17};
    const float wanted[16] = {0, 1, 4, 5, 10, 11, 14, 15, 2, 3, 6, 7, 12, 13, 16, 17};
    float patches[16];
    fth_cut_patches(picture, 2, 2, 4, 2, patches);
    assert_memory_equal(patches, wanted, sizeof wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shares_are_right),
        cmocka_unit_test(epochs_and_items_differ),
        cmocka_unit_test(blocks_cover_the_share),
        cmocka_unit_test(pictures_move),
        cmocka_unit_test(pictures_are_mixed),
        cmocka_unit_test(maps_move_with_pictures),
        cmocka_unit_test(pixels_get_the_class_of_the_largest_number),
        cmocka_unit_test(patches_are_in_reading_order),
    };
    return cmocka_run_group_tests_name("data: masks and augmentation", tests, NULL, NULL);
}
