/* A configuration file: one flat mapping; every value written as a scalar reads back as itself. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "fuzz.h"

static void round_trip(const char *value) {
    fth_arena arena;
    fth_arena_init(&arena);
    fth_str text = {0};
    fth_yaml_entry *e = NULL;
    if (fth_str_add(&text, "key: ", 5) != FTH_OK || fth_yaml_add_scalar(&text, value) != FTH_OK ||
        fth_str_add(&text, "\n", 1) != FTH_OK)
        abort();
    if (fth_yaml_read("again", text.text, text.length, &arena, &e) != FTH_OK || !e || e->is_list ||
        (e->is_null ? "" : e->items[0])[0] != value[0] || strcmp(e->items[0], value) != 0)
        abort();
    fth_str_fini(&text);
    fth_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fth_arena arena;
    fth_arena_init(&arena);
    fth_yaml_entry *e = NULL;
    if (fth_yaml_read("file", (const char *)data, size, &arena, &e) == FTH_OK)
        for (; e; e = e->next)
            for (size_t i = 0; i < e->count && !e->is_null; i++) round_trip(e->items[i]);
    fth_arena_fini(&arena);
    return 0;
}
