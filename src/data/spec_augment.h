/* spec_augment.h: SpecAugment (Park et al. 2019): bands of frequencies and stretches of time of an
 * utterance are hidden in training. Nothing is drawn: what is hidden follows from seed, epoch and
 * utterance. */
#ifndef FTH_DATA_SPEC_AUGMENT_H
#define FTH_DATA_SPEC_AUGMENT_H

#include <stdint.h>

/* By fairseq's names: N masks of at most F bins or T frames, and T at most the share p of the
 * utterance. Widths are below F and T, as there. */
typedef struct fth_spec_augment {
    int32_t freq_n, freq_f;
    int32_t time_n, time_t;
    double time_p;
    uint64_t seed;
} fth_spec_augment;

/* "lb", "ld", "sm", "ss": the policies of the paper without warping; "none". 0: no such name. */
int fth_spec_augment_policy(const char *name, fth_spec_augment *out);

/* frames [n, bins], in place: what is hidden gets the mean of the utterance. */
void fth_spec_augment_apply(const fth_spec_augment *a, int64_t epoch, int64_t item, int64_t n,
                            int32_t bins, float *frames);

#endif
