/* links: modelcase */
/* The paths of the matrix unit (AMX) as they are compiled, on machines that lack the unit too:
 * there each of its instructions raises SIGILL, and a handler does what the instruction would have
 * done, with the checks that the unit makes. The twins in plain C say what the results must be. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bf16.h"
#include "backend/cpu/tile/digits.h"
#include "backend/cpu/tile/pairs.h"
#include "base/philox.h"
#include "model_case.h"

#ifdef __x86_64__

#include <ucontext.h>

/* The program's own file, under another name for what asks the machine: here the answer is yes. */
#define FTH_CPU_X86
#define fth_amx_usable      machine_has_bf16_tiles
#define fth_amx_int8_usable machine_has_int8_tiles
#include "backend/cpu/tile/amx.c"
#include "close.h"
#undef fth_amx_usable
#undef fth_amx_int8_usable

bool fth_amx_usable(void) {
    return true;
}
bool fth_amx_int8_usable(void) {
    return true;
}

/* ---- the unit ---- */

typedef struct unit_state {
    bool configured;
    tile_config config;
    unsigned char tile[8][16][64];
} unit_state;

static _Thread_local unit_state unit; /* tiles belong to a thread */
static volatile sig_atomic_t emulated;
static volatile sig_atomic_t crowded; /* factors that were loaded are multiplied slowly */

static void refuse(const char *why) {
    fprintf(stderr, "test_cpu_amx: %s\n", why);
    _exit(1);
}

/* ldtilecfg faults on anything else. */
static void configure(const void *from) {
    memcpy(&unit.config, from, sizeof unit.config);
    const tile_config *c = &unit.config;
    if (c->palette != 1 || c->start_row != 0) refuse("a configuration of no known palette");
    for (size_t i = 0; i < sizeof c->reserved; i++)
        if (c->reserved[i]) refuse("a configuration with reserved bytes");
    for (int t = 0; t < 16; t++)
        if (t < 8 ? c->rows[t] != 16 || c->row_bytes[t] != 64 : c->rows[t] || c->row_bytes[t])
            refuse("tiles that are not 16 rows of 64 bytes");
    memset(unit.tile, 0, sizeof unit.tile);
    unit.configured = true;
}

static float bf16_at(const unsigned char *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    const uint32_t bits = (uint32_t)half << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static int64_t nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What the other hardware thread of a core does to this one. By the clock: how long a product takes
 * here depends on the machine and on the sanitizers, and this has to be much longer. */
static void wait_for_places(int a) {
    const unsigned char *first = unit.tile[a][0];
    if (!crowded || (first[0] | first[1]) == 0) return;
    const int64_t end = nanoseconds() + 300000;
    while (nanoseconds() < end) continue;
}

/* Sums in the order of the twin. */
static void dot_bf16(int c, int a, int b) {
    wait_for_places(a);
    for (int i = 0; i < 16; i++)
        for (int p = 0; p < 16; p++)
            for (int j = 0; j < 16; j++) {
                const unsigned char *x = &unit.tile[a][i][4 * p], *y = &unit.tile[b][p][4 * j];
                float sum;
                memcpy(&sum, &unit.tile[c][i][4 * j], sizeof sum);
                sum += bf16_at(x) * bf16_at(y) + bf16_at(x + 2) * bf16_at(y + 2);
                memcpy(&unit.tile[c][i][4 * j], &sum, sizeof sum);
            }
}

/* The second factor has a sign, the first one may have. */
static void dot_bytes(int c, int a, int b, bool has_sign) {
    for (int i = 0; i < 16; i++)
        for (int p = 0; p < 16; p++)
            for (int j = 0; j < 16; j++) {
                int32_t sum;
                memcpy(&sum, &unit.tile[c][i][4 * j], sizeof sum);
                for (int q = 0; q < 4; q++) {
                    const unsigned char byte = unit.tile[a][i][4 * p + q];
                    const int x = has_sign ? (int8_t)byte : byte;
                    sum += x * (int8_t)unit.tile[b][p][4 * j + q];
                }
                memcpy(&unit.tile[c][i][4 * j], &sum, sizeof sum);
            }
}

/* ---- its instructions: C4, two bytes of prefix, an opcode, operands ---- */

enum { NO_PREFIX, PREFIX_66, PREFIX_F3, PREFIX_F2 };

typedef struct operand {
    char *address;
    int64_t stride; /* of tiles in memory */
    int length;     /* bytes from the operand's first on */
} operand;

static int64_t reg(const ucontext_t *u, int n) {
    static const int names[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    return u->uc_mcontext.gregs[names[n]];
}

/* at: the operand's first byte; p: the instruction's. */
static operand memory_operand(const ucontext_t *u, const unsigned char *at,
                              const unsigned char *p) {
    const int mode = at[0] >> 6, low = at[0] & 7, x = p[1] & 0x40 ? 0 : 8, b = p[1] & 0x20 ? 0 : 8;
    operand o = {.length = 1};
    int64_t base = 0;
    int32_t moved = 0;
    bool far = mode == 2;
    if (low == 4) { /* base, index, scale */
        const int index = (at[1] >> 3 & 7) + x;
        o.length = 2;
        o.stride = index == 4 ? 0 : reg(u, index) << (at[1] >> 6);
        far |= mode == 0 && (at[1] & 7) == 5;
        if (!(mode == 0 && (at[1] & 7) == 5)) base = reg(u, (at[1] & 7) + b);
    } else if (mode == 0 && low == 5) { /* from the end of the instruction on */
        far = true;
        base = (int64_t)(intptr_t)at + 5;
    } else {
        base = reg(u, low + b);
    }
    if (far) memcpy(&moved, at + o.length, sizeof moved);
    if (mode == 1) moved = (int8_t)at[o.length];
    o.length += far ? 4 : mode == 1;
    o.address = (char *)(intptr_t)(base + moved);
    return o;
}

/* Loads or stores a tile. */
static int move_tile(const ucontext_t *u, const unsigned char *p, int prefix) {
    const int t = p[4] >> 3 & 7;
    const operand o = memory_operand(u, p + 4, p);
    if (prefix == PREFIX_F3)
        for (int i = 0; i < 16; i++) memcpy(o.address + i * o.stride, unit.tile[t][i], 64);
    else
        for (int i = 0; i < 16; i++) memcpy(unit.tile[t][i], o.address + i * o.stride, 64);
    return 4 + o.length;
}

/* Returns the instruction's length, 0: it is none of the unit's. */
static int do_instruction(const ucontext_t *u, const unsigned char *p) {
    if (p[0] != 0xc4 || (p[1] & 0x1f) != 2) return 0;
    const int prefix = p[2] & 3, third = ~p[2] >> 3 & 15, low = p[4] & 7, middle = p[4] >> 3 & 7;
    if (p[3] == 0x49 && prefix == NO_PREFIX && p[4] == 0xc0) {
        unit.configured = false;
        return 5;
    }
    if (p[3] == 0x49 && prefix == NO_PREFIX) {
        const operand o = memory_operand(u, p + 4, p);
        configure(o.address);
        return 4 + o.length;
    }
    if (!unit.configured) refuse("tiles are used before they are configured");
    if (p[3] == 0x49 && prefix == PREFIX_F2) {
        memset(unit.tile[middle], 0, sizeof unit.tile[middle]);
        return 5;
    }
    if (p[3] == 0x4b && prefix != NO_PREFIX) /* PREFIX_66: a load past the first-level cache */
        return move_tile(u, p, prefix);
    if (p[3] == 0x5c && prefix == PREFIX_F3)
        dot_bf16(middle, low, third);
    else if (p[3] == 0x5e && (prefix == PREFIX_66 || prefix == PREFIX_F2))
        dot_bytes(middle, low, third, prefix == PREFIX_F2);
    else
        return 0;
    return 5;
}

static void illegal(int signal_, siginfo_t *info, void *context) {
    (void)signal_;
    (void)info;
    ucontext_t *u = context;
    const unsigned char *p = (const unsigned char *)(intptr_t)u->uc_mcontext.gregs[REG_RIP];
    const int length = do_instruction(u, p);
    if (!length) refuse("an instruction that neither this machine nor the matrix unit has");
    u->uc_mcontext.gregs[REG_RIP] += length;
    emulated = 1;
}

/* Where the unit is, it is used; elsewhere the handler stands in for it. In every test anew, since
 * the library that runs the tests has a handler of its own. */
static void stand_in(void) {
    const struct sigaction action = {.sa_sigaction = illegal, .sa_flags = SA_SIGINFO};
    static int absent = -1;
    if (absent < 0) absent = !machine_has_bf16_tiles() || !machine_has_int8_tiles();
    if (absent) assert_int_equal(sigaction(SIGILL, &action, NULL), 0);
}

/* ---- products ---- */

static void count(void *context) {
    ++*(int *)context;
}

/* Factors of a block, in up to three parts: rows of A, and tiles of B that lie one behind the
 * other. */
enum { STEPS = 3, LDA = 32 * STEPS + 8, A_PART = 32 * LDA, B_PART = 1024, LDC = 40 };

/* A row of A times a column of B: all parts that meet (amx.h). */
static double dot_of(const uint16_t *a, const uint16_t *b, int parts) {
    double sum = 0;
    for (int q = 0; q < parts; q++)
        for (int r = 0; r < parts - q; r++)
            for (int l = 0; l < 32 * STEPS; l++) {
                const int at = (l / 32 * parts + q) * B_PART + l % 32 / 2 * 32 + l % 2;
                sum +=
                    (double)fth_float_of_bf16(a[r * A_PART + l]) * (double)fth_float_of_bf16(b[at]);
            }
    return sum;
}

/* Blocks of 32 or 16 rows and columns, their rows and tiles apart from each other; by the twin, the
 * unit, and the unit with few tiles. */
static void try_blocks(int parts) {
    const fth_cpu_pairs_path *paths[] = {fth_cpu_pairs_path_named("plain-amx"),
                                         fth_cpu_pairs_path_named("amx"),
                                         fth_cpu_pairs_path_named("amx")};
    uint16_t a[3 * A_PART], b[STEPS * 3 * B_PART];
    float c[3][32 * LDC] = {{0}};
    fth_rng r;
    fth_rng_init(&r, 3, 0);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = (uint16_t)(0x3f00 + fth_rng_below(&r, 256));
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = (uint16_t)(0xbf00 + fth_rng_below(&r, 256));
    for (int way = 0; way < 6; way++)
        for (int k = 0; k < 3; k++) {
            int calls = 0;
            paths[k]->tiles.begin();
            paths[k]->tiles.product(
                &(fth_tiles_block){.two = way % 2 == 0,
                                   .half = way > 3,
                                   .narrow = k == 2,
                                   .parts = parts > 1,
                                   .add = way > 0,
                                   .a = {a, 2 * LDA, 32 * LDA, 64, 2 * A_PART},
                                   .b = {b, 64, 1024, 2 * parts * B_PART, 2 * B_PART},
                                   .steps = STEPS,
                                   .c = c[k],
                                   .c_stride = 4 * LDC,
                                   .meanwhile = {way < 3 ? count : NULL, way < 2 ? count : NULL},
                                   .context = &calls});
            paths[k]->tiles.end();
            assert_int_equal(calls, (way < 2 ? 2 : way < 3 ? 1 : 0) * parts * STEPS);
        }
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) { /* half of the ways have all rows, two thirds all columns */
            const double ways = (i < 16 ? 2 : 1) * (j < 16 ? 3 : 2);
            const double sum = ways * dot_of(a + i * LDA, b + j / 16 * 512 + j % 16 * 2, parts);
            for (int k = 0; k < 2; k++)
                assert_close((double)c[k][i * LDC + j], sum, 1e-5 * fabs(sum));
        }
    if (emulated) assert_memory_equal(c[0], c[1], sizeof c[0]);
    assert_memory_equal(c[1], c[2], sizeof c[1]);
}

static void blocks_are_those_of_the_twin(void **state) {
    (void)state;
    stand_in();
    try_blocks(1);
    try_blocks(3);
}

/* Whether the answer comes in some tries: other work on the machine can disturb a few. */
static bool answers(bool expected) {
    for (int i = 0; i < 20; i++)
        if (others_work_here() == expected) return true;
    return false;
}

static void a_crowded_core_is_known(void **state) {
    (void)state;
    stand_in();
    fth_amx_is_crowded(1);
    if (!emulated) skip(); /* what the answer is, the machine knows */
    assert_true(answers(false));
    crowded = 1;
    assert_true(answers(true));
    crowded = 0;
}

static void bytes_are_those_of_the_twin(void **state) {
    (void)state;
    stand_in();
    enum { GROUPS = 32, DEPTH = GROUPS * FTH_INT8_DEPTH };
    const fth_int8_path *plain = fth_int8_path_named("plain-amx");
    const fth_int8_path *amx = fth_int8_path_named("amx");
    if (!amx) skip(); /* its rest goes to VNNI, which this machine lacks */
    uint8_t x[48 * DEPTH];
    int8_t *panel = test_malloc(DEPTH * FTH_INT8_COLUMNS);
    int32_t sums[2][48 * FTH_INT8_COLUMNS];
    fth_rng r;
    fth_rng_init(&r, 4, 0);
    for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)fth_rng_below(&r, 256);
    for (int i = 0; i < DEPTH * FTH_INT8_COLUMNS; i++)
        panel[i] = (int8_t)((int)fth_rng_below(&r, 255) - 127);
    for (int64_t m = 1; m <= 48; m += m < 15 ? 7 : 11) {
        memset(sums, 0, sizeof sums);
        plain->product(m, x, DEPTH, panel, GROUPS, sums[0]);
        amx->product(m, x, DEPTH, panel, GROUPS, sums[1]);
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    }
    test_free(panel);
}

/* Digit r of x meets digit q of w, in sums of their own for each r + q; by the twin and the unit,
 * with many tiles in use and few. */
static void digits_are_those_of_the_twin(void **state) {
    (void)state;
    stand_in();
    enum { X_STEP = FTH_DIGITS_X * FTH_DIGITS_TILE, W_STEP = FTH_DIGITS_W * FTH_DIGITS_TILE };
    static const char *const names[] = {"plain-amx", "amx"};
    int8_t *x = test_malloc(STEPS * X_STEP), *w = test_malloc(STEPS * W_STEP);
    int32_t sums[FTH_DIGITS_SUMS], expected[FTH_DIGITS_SUMS] = {0};
    fth_rng r;
    fth_rng_init(&r, 5, 0);
    for (int i = 0; i < STEPS * X_STEP; i++) x[i] = (int8_t)((int)fth_rng_below(&r, 256) - 128);
    for (int i = 0; i < STEPS * W_STEP; i++) w[i] = (int8_t)((int)fth_rng_below(&r, 256) - 128);
    for (int d = 0; d < FTH_DIGITS_X; d++)
        for (int q = 0; q < FTH_DIGITS_W && d + q < 4; q++)
            for (int i = 0; i < 256; i++)
                for (int l = 0; l < 64 * STEPS; l++) {
                    const int8_t *row = x + l / 64 * X_STEP + d * FTH_DIGITS_TILE + i / 16 * 64;
                    const int8_t *column = w + l / 64 * W_STEP + q * FTH_DIGITS_TILE + i % 16 * 4;
                    expected[(d + q) * 256 + i] += row[l % 64] * column[l % 64 / 4 * 64 + l % 4];
                }
    for (int way = 0; way < 4; way++) {
        const fth_digits_path *path = fth_digits_path_named(names[way / 2]);
        fth_digits_product *product = way % 2 ? path->narrow : path->product;
        int calls = 0;
        fth_digits_block b = {x, w, STEPS - 1, false, sums, count, &calls};
        path->begin();
        product(&b); /* whatever lay there */
        b.x += (STEPS - 1) * X_STEP, b.w += (STEPS - 1) * W_STEP;
        b.steps = 1, b.add = true;
        product(&b);
        path->end();
        assert_memory_equal(sums, expected, sizeof expected);
        assert_int_equal(calls, STEPS);
    }
    test_free(x);
    test_free(w);
}

/* ---- a training, on two threads ---- */

/* The parameters after three updates [n]; gradient [n]: that of the start. */
static float *train(const char *isa, float **gradient, size_t *n) {
    fth_config c = model_case_config("branchnorm", FTH_ENCDEC);
    c.d_model = 64, c.ffn_dim = 96, c.heads = 2;
    setenv("FATHOM_CPU_ISA", isa, 1);
    model_case m;
    model_case_init(&m, &c, "cpu-bf16", 2, 0.05, 0);
    unsetenv("FATHOM_CPU_ISA");
    *n = (size_t)m.model.params.size;
    *gradient = malloc(sizeof **gradient * *n);
    model_case_gradients(&m, 100, *gradient);
    const fth_batch *batch = &m.store.batch;
    for (int64_t t = 1; t <= 3; t++) {
        fth_update u;
        assert_int_equal(fth_trainer_update(&m.trainer, t, &batch, 1, &u), FTH_OK);
        assert_true(u.finite);
    }
    float *out = malloc(sizeof *out * *n);
    assert_int_equal(fth_arena_get(m.device, m.trainer.arenas.master, (int64_t)*n, out), FTH_OK);
    model_case_fini(&m);
    return out;
}

/* ||a - b|| / ||b|| */
static double distance(const float *a, const float *b, size_t n) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

/* The unit itself sums up in another order than the twin: its gradients are compared, not what Adam
 * makes of their signs. */
static void a_training_is_that_of_the_twin(void **state) {
    (void)state;
    stand_in();
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512dq"))
        skip(); /* nothing has tiles without these */
    size_t n;
    float *expected, *gradient, *twin = train("avx512-plain-amx", &expected, &n),
                                *tiles = train("amx", &gradient, &n);
    if (emulated) assert_memory_equal(twin, tiles, sizeof *twin * n);
    assert_close(distance(gradient, expected, n), 0, 2e-2);
    free(expected);
    free(gradient);
    free(twin);
    free(tiles);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_of_the_twin),
        cmocka_unit_test(a_crowded_core_is_known),
        cmocka_unit_test(bytes_are_those_of_the_twin),
        cmocka_unit_test(digits_are_those_of_the_twin),
        cmocka_unit_test(a_training_is_that_of_the_twin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    puts("this machine has no instructions of x86");
    return 77; /* skipped */
}

#endif
