/* links: modelcase run */
/* The operations that bench divides by the time, counted by hand for a decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "close.h"
#include "graph/flops.h"
#include "model_case.h"

/* Of each product 2 operations a weight and row forward, and twice that backward; of attention 2
 * products of the width for each pair of positions of a sentence forward, and 5 backward. */
static void those_of_a_decoder(void **state) {
    (void)state;
    fth_config c = model_case_config("postln", FTH_DEC);
    model_case m;
    model_case_init(&m, &c, "ref", 1, 0, 0);
    const fth_packed_side *side = &m.store.batch.side[FTH_TGT];
    const double d = c.d_model, rows = side->rows, layers = c.decoder_layers;
    double pairs = 0;
    for (int32_t s = 0; s < m.store.batch.n_sent; s++) {
        const double n = side->offsets[s + 1] - side->offsets[s];
        pairs += n * n;
    }
    assert_true(m.store.batch.n_sent > 1 && pairs < rows * rows);
    const double weights = layers * (4 * d * d + 2 * d * c.ffn_dim) + d * c.tgt_vocab;
    const double expected = 6 * rows * weights + 14 * d * pairs * layers;
    assert_close(fth_graph_flops(fth_program_graph(m.trainer.program), &m.store.batch), expected,
                 0);
    model_case_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(those_of_a_decoder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
