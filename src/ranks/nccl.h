/* nccl.h: NCCL's functions, found in the library when the program runs: one program serves machines
 * with and without it. Types and numbers are those of NCCL 2's interface, which its versions
 * keep. */
#ifndef FTH_RANKS_NCCL_H
#define FTH_RANKS_NCCL_H

#include <stddef.h>

#include "base/error.h"

typedef struct fth_nccl_id {
    char bytes[128];
} fth_nccl_id;

enum { FTH_NCCL_FLOAT = 7, FTH_NCCL_SUM = 0 };

typedef struct fth_nccl {
    void *library;
    int (*get_version)(int *version);
    int (*get_unique_id)(fth_nccl_id *id);
    int (*comm_init_rank)(void **comm, int count, fth_nccl_id id, int rank);
    int (*comm_destroy)(void *comm);
    int (*comm_abort)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *data, size_t n, int type, int peer, void *comm, void *stream);
    int (*recv)(void *data, size_t n, int type, int peer, void *comm, void *stream);
    int (*async_error)(void *comm, int *code);
    const char *(*error_string)(int code);
} fth_nccl;

/* Opens libnccl.so.2, or what FATHOM_NCCL names. FTH_NOT_FOUND: there is none. */
fth_err fth_nccl_open(fth_nccl *out);

#endif
