/* Questions with endings, by their own form and by keys that lead through lists. */
#include <string.h>

#include "data/choices.h"
#include "fuzz.h"

static void look_at(fth_questions *q) {
    for (int64_t i = 0; i < q->n; i++) {
        const fth_question *one = &q->items[i];
        if (one->n < 2 || one->answer < 0 || one->answer >= one->n) abort();
        for (int32_t k = 0; k < one->n; k++)
            if (one->choices[k].bytes < 1 ||
                strlen(one->choices[k].ending) < (size_t)one->choices[k].bytes)
                abort();
    }
    fth_questions_fini(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const fth_choice_form own = {"keys", "a,b.c", "d.e,f", "g", 1, false};
    const char *path = fuzz_file(data, size);
    fth_questions q;
    if (fth_questions_read(path, NULL, &q) == FTH_OK) look_at(&q);
    if (fth_questions_read(path, &own, &q) == FTH_OK) look_at(&q);
    return 0;
}
