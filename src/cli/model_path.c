/* model_path.c: a folder with checkpoints is a run, and checkpoints/best in it is meant. */
#include "cli/model_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

fth_err fth_model_path(const char **path, fth_arena *arena) {
    static const char best[] = "/checkpoints/best";
    size_t length = strlen(*path);
    if (!fth_folder_has(*path, "checkpoints/last") && !fth_folder_has(*path, "checkpoints/best"))
        return FTH_OK;
    while (length > 1 && (*path)[length - 1] == '/') length--;
    if (!fth_folder_has(*path, "checkpoints/best"))
        return fth_fail(FTH_NOT_FOUND,
                        "%s: is a run without a best model yet; %.*s/checkpoints/last is its "
                        "newest",
                        *path, (int)length, *path);
    char *model = fth_arena_alloc(arena, length + sizeof best);
    if (!model) return fth_fail(FTH_NO_MEMORY, "no memory for a name");
    memcpy(model, *path, length);
    memcpy(model + length, best, sizeof best);
    *path = model;
    return FTH_OK;
}

fth_err fth_model_paths(fth_parsed *parsed, size_t first, size_t last) {
    for (size_t i = first; i <= last && i < parsed->n_positionals; i++)
        FTH_TRY(fth_model_path(&parsed->positionals[i], &parsed->arena));
    return FTH_OK;
}
