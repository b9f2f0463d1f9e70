/* bench_gemm.c: fathom bench gemm: the products of linear maps on this CPU, path by path, beside
 * the peak of the unit that each of them uses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/rate.h"
#include "backend/cpu/tile/unit.h"
#include "backend/device/device.h"
#include "cli/bench.h"

/* Without --shape: training at width 512 and 64, then steps of generation. */
static const fth_product_shape usual[] = {{1024, 512, 512},  {1024, 512, 1536}, {1024, 512, 2048},
                                          {1024, 2048, 512}, {1024, 512, 8192}, {1024, 64, 64},
                                          {1024, 64, 192},   {1024, 64, 128},   {1024, 128, 64},
                                          {32, 512, 512},    {32, 512, 2048},   {1, 512, 2048}};

/* A way to compute products; unit: the one whose peak it is measured by. */
typedef struct path {
    const char *isa, *numbers;
    fth_cpu_unit unit;
} path;

static const path paths[] = {
    {"plain", "fp32", FTH_UNIT_PLAIN},      {"avx2", "fp32", FTH_UNIT_AVX2},
    {"avx512", "fp32", FTH_UNIT_AVX512},    {"avx512", "bf16", FTH_UNIT_AVX512},
    {"avx512-bf16", "bf16", FTH_UNIT_BF16}, {"amx", "bf16", FTH_UNIT_AMX},
    {"amx", "fp32", FTH_UNIT_AMX},          {"plain", "int8", FTH_N_UNITS},
    {"avx2", "int8", FTH_UNIT_AVX_VNNI},    {"avx512", "int8", FTH_UNIT_VNNI},
    {"amx", "int8", FTH_UNIT_AMX_INT8}};

/* Products of the path's unit for one of its numbers. Floats are multiplied on tiles in parts, with
 * as few rows as steps of generation have in digits of 8 bits: nine products, each in half of the
 * time. */
static double products_for_one(const path *way, const fth_product_shape *s, int product) {
    if (way->unit != FTH_UNIT_AMX || strcmp(way->numbers, "fp32") != 0) return 1;
    return product == FTH_FORWARD && fth_product_has_digits(s) ? 4.5 : 6;
}

static bool is_wanted(const path *way, const char *name) {
    return (strcmp(name, "all") == 0 || strcmp(name, way->isa) == 0) &&
           fth_product_path_present(way->isa);
}

static bool is_unit_wanted(fth_cpu_unit unit, const char *name) {
    if (strcmp(name, "all") == 0) return fth_cpu_unit_present(unit);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i].unit == unit && is_wanted(&paths[i], name)) return fth_cpu_unit_present(unit);
    return false;
}

/* ---- the table ---- */

static void print_cpu(bool json) {
    char line[256], name[256] = "unknown";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %255[^\n]", name) == 1) break;
    if (f) fclose(f);
    printf(json ? "{\"cpu\": \"%s\"" : "%s\n", name);
}

static fth_err print_peaks(const char *name, int threads, bool json, double peaks[FTH_N_UNITS]) {
    if (json)
        printf(", \"threads\": %d, \"peaks\": [", threads);
    else
        printf("peaks of %d thread%s, in G operations/s:\n", threads, threads == 1 ? "" : "s");
    const char *comma = "";
    for (int u = 0; u < FTH_N_UNITS; u++) {
        const bool wanted = is_unit_wanted((fth_cpu_unit)u, name);
        if (wanted) FTH_TRY(fth_cpu_unit_peak((fth_cpu_unit)u, threads, &peaks[u]));
        if (json && wanted)
            printf("%s{\"unit\": \"%s\", \"numbers\": \"%s\", \"gops\": %.6g}", comma,
                   fth_cpu_unit_name((fth_cpu_unit)u), fth_cpu_unit_numbers((fth_cpu_unit)u),
                   peaks[u] / 1e9);
        else if (wanted)
            printf("  %-12s %s %8.1f\n", fth_cpu_unit_name((fth_cpu_unit)u),
                   fth_cpu_unit_numbers((fth_cpu_unit)u), peaks[u] / 1e9);
        if (wanted) comma = ", ";
    }
    return FTH_OK;
}

static void print_rate(double rate, double peak) {
    if (rate <= 0)
        printf("              -");
    else if (peak <= 0)
        printf(" %9.1f     ", rate / 1e9);
    else
        printf(" %9.1f %3.0f%%", rate / 1e9, 100 * rate / peak);
}

/* peak: of the path's unit. */
static void print_product(const fth_product_shape *s, const path *way, const double *rates,
                          double peak, bool json, const char *comma) {
    if (json) {
        printf("%s{\"rows\": %" PRId64 ", \"k\": %" PRId64 ", \"n\": %" PRId64
               ", \"path\": \"%s\", \"numbers\": \"%s\", \"peak\": %.6g",
               comma, s->rows, s->k, s->n, way->isa, way->numbers,
               peak / products_for_one(way, s, FTH_FORWARD) / 1e9);
        static const char *const names[] = {"forward", "dx", "dw"};
        for (int i = 0; i < FTH_N_PRODUCTS; i++)
            if (rates[i] > 0) printf(", \"%s\": %.6g", names[i], rates[i] / 1e9);
        printf("}");
        return;
    }
    printf("%5" PRId64 " x %4" PRId64 " x %5" PRId64 "  %-12s %s", s->rows, s->k, s->n, way->isa,
           way->numbers);
    for (int i = 0; i < FTH_N_PRODUCTS; i++)
        print_rate(rates[i], peak / products_for_one(way, s, i));
    printf("\n");
}

/* ---- all shapes together ---- */

/* Products one after the other. */
typedef struct total {
    double operations, seconds;
    double peak_seconds; /* as long as they would take at the peak */
} total;

enum { TOGETHER = FTH_N_PRODUCTS, N_TOTALS }; /* of each product, and of the three together */

static void add_to(total *t, double operations, double rate, double peak) {
    t->operations += operations;
    t->seconds += operations / rate;
    t->peak_seconds += peak > 0 ? operations / peak : 0;
}

static void add_product(total totals[N_TOTALS], int product, const fth_product_shape *s,
                        double rate, double peak) {
    const double operations = 2.0 * (double)s->rows * (double)s->k * (double)s->n;
    if (rate <= 0) return;
    add_to(&totals[product], operations, rate, peak);
    add_to(&totals[TOGETHER], operations, rate, peak);
}

static void print_totals(const path *way, const total totals[N_TOTALS], bool json,
                         const char *comma) {
    static const char *const names[N_TOTALS] = {"forward", "dx", "dw", "together"};
    if (json)
        printf("%s{\"path\": \"%s\", \"numbers\": \"%s\"", comma, way->isa, way->numbers);
    else
        printf("   all of them        %-12s %s", way->isa, way->numbers);
    for (int i = 0; i < N_TOTALS; i++) {
        const total *t = &totals[i];
        const double rate = t->seconds > 0 ? t->operations / t->seconds : 0;
        if (json && rate > 0) printf(", \"%s\": %.6g", names[i], rate / 1e9);
        if (!json && i == TOGETHER) printf("  together");
        if (!json) print_rate(rate, t->peak_seconds > 0 ? t->operations / t->peak_seconds : 0);
    }
    printf(json ? "}" : "\n");
}

/* ---- measuring ---- */

enum { N_PATHS = sizeof paths / sizeof *paths };

static fth_err measure(const fth_product_shape *s, const path *way, int threads, double peak,
                       bool json, const char *comma, total totals[N_TOTALS]) {
    double rates[FTH_N_PRODUCTS];
    FTH_TRY(fth_product_rates(way->isa, way->numbers, threads, s, rates));
    print_product(s, way, rates, peak, json, comma);
    for (int i = 0; i < FTH_N_PRODUCTS; i++)
        add_product(totals, i, s, rates[i], peak / products_for_one(way, s, i));
    fflush(stdout);
    return FTH_OK;
}

/* name: of a path, or all. */
static fth_err measure_all(const fth_product_shape *shapes, size_t n, const char *name, int threads,
                           bool json) {
    double peaks[FTH_N_UNITS + 1] = {0}; /* the last: no unit is named */
    total totals[N_PATHS][N_TOTALS] = {{{0}}};
    print_cpu(json);
    FTH_TRY(print_peaks(name, threads, json, peaks));
    printf(json
               ? "], \"products\": ["
               : "\n rows x    k x     n  path         as     forward           dx           dw\n");
    const char *comma = "";
    for (size_t i = 0; i < n; i++)
        for (size_t w = 0; w < N_PATHS; w++) {
            if (!is_wanted(&paths[w], name)) continue;
            FTH_TRY(measure(&shapes[i], &paths[w], threads, peaks[paths[w].unit], json, comma,
                            totals[w]));
            comma = ", ";
        }
    if (json) printf("], \"all\": [");
    comma = "";
    for (size_t w = 0; w < N_PATHS && n > 1; w++) {
        if (!is_wanted(&paths[w], name)) continue;
        print_totals(&paths[w], totals[w], json, comma);
        comma = ", ";
    }
    if (json) printf("]}\n");
    return FTH_OK;
}

static fth_err read_shape(const char *text, fth_product_shape *out) {
    int end = 0;
    const bool read = sscanf(text, "%" SCNd64 "x%" SCNd64 "x%" SCNd64 "%n", &out->rows, &out->k,
                             &out->n, &end) == 3 &&
                      text[end] == '\0';
    const int64_t most = 1 << 20;
    if (read && out->rows > 0 && out->k > 0 && out->n > 0 && out->rows <= most && out->k <= most &&
        out->n <= most)
        return FTH_OK;
    return fth_fail(FTH_USAGE,
                    "--shape %s: must be three numbers from 1 to %" PRId64 ", as 1024x512x2048",
                    text, most);
}

fth_err fth_bench_gemm(const fth_bench *b) {
    const fth_list *list = &b->o->shape;
    if (strcmp(b->device->device, "cuda") == 0 || strcmp(b->device->device, "ref") == 0)
        return fth_fail(FTH_USAGE, "--device %s: bench gemm is about the CPU", b->device->device);
    if (strcmp(b->o->path, "all") != 0 && !fth_product_path_present(b->o->path))
        return fth_fail(FTH_USAGE, "--path %s: this CPU does not have it", b->o->path);
    fth_product_shape *shapes = calloc(list->count + 1, sizeof *shapes);
    if (!shapes) return fth_fail(FTH_NO_MEMORY, "no memory for %zu shapes", list->count);
    fth_err err = FTH_OK;
    for (size_t i = 0; i < list->count && err == FTH_OK; i++)
        err = read_shape(list->items[i], &shapes[i]);
    fth_device *dev = NULL; /* to know the number of threads that are meant by default */
    if (err == FTH_OK) err = fth_device_open("cpu", "fp32", (int)b->device->threads, &dev);
    const int threads = dev ? dev->threads : 1;
    fth_device_close(dev);
    if (err == FTH_OK && list->count)
        err = measure_all(shapes, list->count, b->o->path, threads, b->o->json);
    else if (err == FTH_OK)
        err = measure_all(usual, sizeof usual / sizeof *usual, b->o->path, threads, b->o->json);
    free(shapes);
    return err;
}
