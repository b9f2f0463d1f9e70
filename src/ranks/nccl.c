/* nccl.c: opens libnccl by dlopen and finds each function by its name. */
#include "ranks/nccl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The address of a function; POSIX lets an object's address stand for it. */
static fth_err find(void *library, const char *name, void *function, size_t size) {
    void *address = dlsym(library, name);
    if (!address) return fth_fail(FTH_NOT_FOUND, "NCCL: this library has no %s", name);
    memcpy(function, &address, size);
    return FTH_OK;
}

#define FIND(name, field) FTH_TRY(find(out->library, name, &out->field, sizeof out->field))

static fth_err find_all(fth_nccl *out) {
    FIND("ncclGetVersion", get_version);
    FIND("ncclGetUniqueId", get_unique_id);
    FIND("ncclCommInitRank", comm_init_rank);
    FIND("ncclCommDestroy", comm_destroy);
    FIND("ncclCommAbort", comm_abort);
    FIND("ncclGroupStart", group_start);
    FIND("ncclGroupEnd", group_end);
    FIND("ncclSend", send);
    FIND("ncclRecv", recv);
    FIND("ncclCommGetAsyncError", async_error);
    FIND("ncclGetErrorString", error_string);
    return FTH_OK;
}

fth_err fth_nccl_open(fth_nccl *out) {
    const char *name = getenv("FATHOM_NCCL");
    *out = (fth_nccl){.library = dlopen(name ? name : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL)};
    if (!out->library) return fth_fail(FTH_NOT_FOUND, "NCCL: %s", dlerror());
    return find_all(out);
}
