/* group_folder.h: one folder for all tests of a program: set-up and tear-down of the group. */
#ifndef FTH_TEST_GROUP_FOLDER_H
#define FTH_TEST_GROUP_FOLDER_H

#include <stdlib.h>

#include "base/file.h"

static char folder[] = "/tmp/fathom-test-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return fth_remove_tree(folder);
}

#endif
