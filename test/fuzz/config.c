/* config.json: what is read is printed, and reads back as itself. */
#include "base/str.h"
#include "fuzz.h"
#include "store/config_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_config a, b;
    if (fth_config_parse((const char *)data, size, "config.json", &a) != FTH_OK) return 0;
    const char *key;
    fth_str text = {0};
    if (fth_config_print(&a, &text) != FTH_OK ||
        fth_config_parse(text.text, text.length, "printed", &b) != FTH_OK ||
        fth_config_difference(&a, &b, &key) != FTH_OK || key)
        abort();
    fth_str_fini(&text);
    return 0;
}
