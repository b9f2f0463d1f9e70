/* amx.h: tiles of the matrix unit: asking the system for them, and their shape. */
#ifndef FTH_BACKEND_CPU_AMX_H
#define FTH_BACKEND_CPU_AMX_H

#include <stdbool.h>
#include <stdint.h>

/* Whether tiles of bf16, or of 8 bits, can be used in this process; asks the system for leave. */
bool fth_amx_usable(void);
bool fth_amx_int8_usable(void);

/* Gives this thread eight tiles of 16 rows of 64 bytes, and takes them back. */
void fth_amx_begin(void);
void fth_amx_end(void);

#endif
