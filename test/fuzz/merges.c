/* The merges.txt beside a vocab.json of GPT-2's form. */
#include "fuzz.h"
#include "text/byte_bpe.h"

static char folder[] = "/dev/shm/fathom-fuzz-XXXXXX", vocab[sizeof folder + 12],
            merges[sizeof folder + 12];

/* The bytes, an end symbol and a few words. */
static void put_vocab(void) {
    FILE *f;
    if (!mkdtemp(folder)) abort();
    snprintf(vocab, sizeof vocab, "%s/vocab.json", folder);
    snprintf(merges, sizeof merges, "%s/merges.txt", folder);
    if (!(f = fopen(vocab, "w"))) abort();
    fprintf(f, "{\"</s>\": 0");
    for (int i = 0; i < 256; i++)
        fprintf(f, ", \"\\u%04x\": %d", (unsigned)fth_bpe_letter((unsigned char)i), i + 1);
    fprintf(f, ", \"th\": 257, \"the\": 258, \"he\": 259}");
    if (fclose(f) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!vocab[0]) put_vocab();
    FILE *f = fopen(merges, "w");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
    fth_tokenizer *t = NULL;
    if (fth_tokenizer_load(vocab, &t) != FTH_OK) return 0;
    fth_ids ids = {0};
    if (fth_tokenizer_encode(t, "the other", 9, &ids) == FTH_OK)
        for (size_t i = 0; i < ids.n; i++)
            if (ids.ids[i] < 0 || ids.ids[i] >= fth_tokenizer_size(t)) abort();
    fth_ids_fini(&ids);
    fth_tokenizer_free(t);
    return 0;
}
