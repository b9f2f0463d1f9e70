/* devices.h: --devices cuda:0,cuda:1: which rank computes where. */
#ifndef FTH_CLI_DEVICES_H
#define FTH_CLI_DEVICES_H

#include "base/error.h"

/* How many a list names, 0: it is empty. Each is cpu or cuda:N. */
fth_err fth_devices_count(const char *list, int *count);

/* The device of a rank, taken in turn: its name for fth_device_open goes to *name, and the process
 * sees that GPU alone. An empty list changes nothing. */
void fth_devices_choose(const char *list, int rank, const char **name);

#endif
