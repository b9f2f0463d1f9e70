/* cifar.c: CIFAR-10's binary files: records of one label byte, then 1,024 red, green and blue bytes
 * each. */
#include <stdlib.h>

#include "base/file.h"
#include "image/image.h"

enum { RECORD = 1 + FTH_CIFAR_PIXELS };

fth_err fth_cifar_open(const char *path, fth_cifar *out) {
    size_t size = 0;
    *out = (fth_cifar){0};
    FTH_TRY(fth_file_read(path, &out->data, &size));
    out->records = (int64_t)(size / RECORD);
    if (size && size % RECORD == 0) return FTH_OK;
    fth_cifar_fini(out);
    return fth_fail(FTH_BAD_INPUT, "%s: %zu bytes; a CIFAR file has records of %d bytes", path,
                    size, RECORD);
}

void fth_cifar_fini(fth_cifar *c) {
    free(c->data);
    *c = (fth_cifar){0};
}

const uint8_t *fth_cifar_at(const fth_cifar *c, int64_t i, int32_t *label) {
    const uint8_t *record = (const uint8_t *)c->data + i * RECORD;
    *label = record[0];
    return record + 1;
}
