/* A SentencePiece model or a tokenizer.json, and a line cut and put together by it. */
#include "text/tokenizer.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char line[] = "a small t\xc3\xa9st of \xef\xac\x81ve words, 12  it's <mask>";
    fth_tokenizer *t = NULL;
    if (fth_tokenizer_parse(data, size, "model", &t) != FTH_OK) return 0;
    fth_ids ids = {0};
    fth_str text = {0};
    if (fth_tokenizer_encode(t, line, sizeof line - 1, &ids) == FTH_OK)
        for (size_t i = 0; i < ids.n; i++)
            if (ids.ids[i] < 0 || ids.ids[i] >= fth_tokenizer_size(t)) abort();
    fth_tokenizer_decode(t, ids.ids, ids.n, &text);
    fth_str_fini(&text);
    fth_ids_fini(&ids);
    fth_tokenizer_free(t);
    return 0;
}
