/* data_dir.h: begins the folder that a data set is written into. */
#ifndef FTH_DATA_DATA_DIR_H
#define FTH_DATA_DATA_DIR_H

#include "base/staged_dir.h"

/* What is at path already is replaced only with force, and only when it is a data set or an empty
 * folder. */
fth_err fth_data_dir_open(fth_staged_dir *d, const char *path, int force);

#endif
