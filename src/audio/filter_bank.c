/* filter_bank.c: tables of the window, the triangles and the transform, whose size is the power
 * of two above the window; then one pass over the windows. */
#include "audio/filter_bank.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One triangle on the mel scale over bins of the spectrum. */
typedef struct triangle {
    int32_t first, n;
    double *weight; /* [n] */
} triangle;

struct fth_filter_bank {
    int32_t bins, window, shift; /* of values, of samples */
    int32_t points;              /* of the transform: the power of two from `window` on */
    double *shape;               /* [window] Povey's window */
    double *turn;                /* [points / 2, 2] cosines and sines of the transform */
    triangle *bank;              /* [bins] */
    double *weights;             /* what the triangles hold */
};

/* In floats, as Kaldi and torchaudio have them: a narrow triangle shows the difference. */
static float mel(float hertz) {
    return 1127.0f * logf(1.0f + hertz / 700.0f);
}

static void make_triangles(fth_filter_bank *f, int32_t rate) {
    const double low = 1127 * log(1 + 20.0 / 700), high = 1127 * log(1 + 0.5 * rate / 700);
    const float width = (float)rate / (float)f->points;
    const float step = (float)((high - low) / (f->bins + 1)), first = (float)low;
    double *at = f->weights;
    for (int32_t b = 0; b < f->bins; b++) {
        const float left = first + (float)b * step, centre = first + (float)(b + 1) * step,
                    right = first + (float)(b + 2) * step;
        triangle *t = &f->bank[b];
        *t = (triangle){.weight = at};
        for (int32_t i = 0; i < f->points / 2; i++) {
            const float m = mel(width * (float)i);
            const float up = (m - left) / (centre - left), down = (right - m) / (right - centre);
            const float weight = fminf(up, down);
            if (!(weight > 0)) continue;
            if (t->n == 0) t->first = i;
            t->n = i - t->first + 1;
            t->weight[i - t->first] = (double)weight;
        }
        at += t->n;
    }
}

static void make_tables(fth_filter_bank *f) {
    for (int32_t i = 0; i < f->window; i++)
        f->shape[i] = pow(0.5 - 0.5 * cos(2 * M_PI * i / (f->window - 1)), 0.85);
    for (int32_t i = 0; i < f->points / 2; i++) {
        f->turn[2 * i] = cos(-2 * M_PI * i / f->points);
        f->turn[2 * i + 1] = sin(-2 * M_PI * i / f->points);
    }
}

fth_err fth_filter_bank_new(int32_t rate, int32_t bins, fth_filter_bank **out) {
    *out = NULL;
    if (rate < 1000 || rate > 384000)
        return fth_fail(FTH_USAGE, "%d samples a second: must be 1000 to 384000", rate);
    if (bins < 3 || bins > 256) return fth_fail(FTH_USAGE, "%d features: must be 3 to 256", bins);
    fth_filter_bank *f = calloc(1, sizeof *f);
    if (!f) return fth_fail(FTH_NO_MEMORY, "no memory for a filter bank");
    f->bins = bins;
    f->window = (int32_t)(rate * 0.025);
    f->shift = (int32_t)(rate * 0.010);
    for (f->points = 1; f->points < f->window;) f->points *= 2;
    f->shape = malloc(sizeof *f->shape * (size_t)f->window);
    f->turn = malloc(sizeof *f->turn * (size_t)f->points);
    f->bank = malloc(sizeof *f->bank * (size_t)bins);
    f->weights =
        malloc(sizeof *f->weights * (size_t)(f->points + 2 * bins)); /* each point is in two */
    if (!f->shape || !f->turn || !f->bank || !f->weights) {
        fth_filter_bank_free(f);
        return fth_fail(FTH_NO_MEMORY, "no memory for a filter bank of %d values", bins);
    }
    make_tables(f);
    make_triangles(f, rate);
    *out = f;
    return FTH_OK;
}

void fth_filter_bank_free(fth_filter_bank *f) {
    if (!f) return;
    free(f->shape);
    free(f->turn);
    free(f->bank);
    free(f->weights);
    free(f);
}

int64_t fth_filter_bank_frames(const fth_filter_bank *f, int64_t n) {
    return n < f->window ? 0 : 1 + (n - f->window) / f->shift;
}

/* x[points] of complex numbers, in place: decimation in time. */
static void transform(const fth_filter_bank *f, double (*x)[2]) {
    const int32_t n = f->points;
    for (int32_t i = 1, j = 0; i < n; i++) { /* bits of the place turned round */
        int32_t bit = n >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i >= j) continue;
        for (int k = 0; k < 2; k++) {
            const double t = x[i][k];
            x[i][k] = x[j][k];
            x[j][k] = t;
        }
    }
    for (int32_t size = 2; size <= n; size *= 2)
        for (int32_t begin = 0; begin < n; begin += size)
            for (int32_t k = 0; k < size / 2; k++) {
                const double *turn = f->turn + 2 * (int64_t)k * (n / size);
                double *a = x[begin + k], *b = x[begin + k + size / 2];
                const double re = b[0] * turn[0] - b[1] * turn[1];
                const double im = b[0] * turn[1] + b[1] * turn[0];
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
}

/* One window of samples into x. */
static void take_window(const fth_filter_bank *f, const float *sample, double (*x)[2]) {
    double mean = 0;
    memset(x, 0, sizeof *x * (size_t)f->points);
    for (int32_t i = 0; i < f->window; i++) mean += 32768.0 * (double)sample[i] / f->window;
    for (int32_t i = 0; i < f->window; i++) {
        const double now = 32768.0 * (double)sample[i] - mean;
        const double before = 32768.0 * (double)sample[i ? i - 1 : 0] - mean;
        x[i][0] = (now - 0.97 * before) * f->shape[i];
    }
}

fth_err fth_filter_bank_apply(const fth_filter_bank *f, const float *sample, int64_t n,
                              float *out) {
    double(*x)[2] = malloc(sizeof *x * (size_t)f->points);
    if (!x) return fth_fail(FTH_NO_MEMORY, "no memory for a spectrum of %d points", f->points);
    for (int64_t frame = 0; frame < fth_filter_bank_frames(f, n); frame++) {
        take_window(f, sample + frame * f->shift, x);
        transform(f, x);
        for (int32_t b = 0; b < f->bins; b++) {
            const triangle *t = &f->bank[b];
            double energy = 0;
            for (int32_t i = 0; i < t->n; i++) {
                const double *z = x[t->first + i];
                energy += t->weight[i] * (z[0] * z[0] + z[1] * z[1]);
            }
            out[frame * f->bins + b] = (float)log(fmax(energy, (double)FLT_EPSILON));
        }
    }
    free(x);
    return FTH_OK;
}

void fth_filter_bank_normalise(float *frames, int64_t n, int32_t bins) {
    for (int32_t b = 0; b < bins; b++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) mean += (double)frames[i * bins + b] / (double)n;
        for (int64_t i = 0; i < n; i++) {
            const double off = (double)frames[i * bins + b] - mean;
            squares += off * off / (double)n;
        }
        const double factor = squares > 1e-10 ? 1 / sqrt(squares) : 0;
        for (int64_t i = 0; i < n; i++)
            frames[i * bins + b] = (float)(((double)frames[i * bins + b] - mean) * factor);
    }
}
