/* tensorboard.h: RUN/tensorboard: what log.jsonl has, as files that TensorBoard reads. A process
 * that trains writes one file; records are framed as in TFRecord, with masked CRC-32C. */
#ifndef FTH_RUN_TENSORBOARD_H
#define FTH_RUN_TENSORBOARD_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

/* Zeroed: closed, takes everything and writes nothing. */
typedef struct fth_events {
    char *path;
    int fd; /* while path is not NULL */
} fth_events;

/* Begins a file in RUN/tensorboard. */
fth_err fth_events_open(fth_events *e, const char *run);
void fth_events_close(fth_events *e);

/* A line of the log: numbers become scalars, the values of layers a histogram, configuration and
 * warnings text. */
fth_err fth_events_line(fth_events *e, const json_t *line);

/* Appends what fth_events_line would write at this time, in seconds since 1970. */
fth_err fth_events_record(const json_t *line, double time, fth_str *out);

/* CRC-32C (Castagnoli) of bytes. */
uint32_t fth_crc32c(const void *data, size_t size);

#endif
