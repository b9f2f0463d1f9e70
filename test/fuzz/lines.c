/* Lines of text: plain, gzip or Zstandard, or records of the kinds that are one
 * file. */
#include <string.h>

#include "data/records.h"
#include "fuzz.h"
#include "text/lines.h"

static void read_records(fth_text_kind kind, const fth_text_file *file) {
    const fth_text_spec spec = {
        .kind = kind, .files = {file}, .n_files = {1}, .keys = {"src", "tgt", "refs"}};
    fth_records *r = NULL;
    if (fth_records_new(&spec, &r) != FTH_OK) return;
    fth_record record = {0};
    do {
        if (fth_records_next(r, &record) != FTH_OK) break;
        for (int i = 0; i < record.sides; i++)
            if (strlen(record.text[i]) != record.length[i] || strchr(record.text[i], '\n')) abort();
    } while (record.sides);
    fth_records_free(r);
}

static void read_text(const fth_text_file *file) {
    fth_lines *l = NULL;
    if (fth_lines_new(file, 1, &l) == FTH_OK) {
        const char *text = "";
        size_t length = 0;
        while (text && fth_lines_next(l, &text, &length) == FTH_OK)
            if (text && (strlen(text) != length || strchr(text, '\n'))) abort();
    }
    fth_lines_free(l);
}

/* The first byte says how the rest is read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const fth_text_file file = {fuzz_file(data + 1, size - 1), "text"};
    switch (data[0]) {
    case 't': read_records(FTH_TEXT_TSV, &file); break;
    case 'j': read_records(FTH_TEXT_JSONL, &file); break;
    default: read_text(&file); break;
    }
    return 0;
}
