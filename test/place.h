/* place.h: a fresh folder for each test of a group, and a file in it: set-up and tear-down for
 * cmocka. Included after PLACE_FILE is defined, the name of that file. */
#ifndef FTH_TEST_PLACE_H
#define FTH_TEST_PLACE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

typedef struct place {
    char folder[64], file[96];
} place;

static int set_up(void **state) {
    place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    snprintf(p->folder, sizeof p->folder, "/tmp/fathom-test-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->file, sizeof p->file, "%s/%s", p->folder, PLACE_FILE);
    *state = p;
    return 0;
}

static int tear_down(void **state) {
    place *p = *state;
    fth_remove_tree(p->folder);
    free(p);
    return 0;
}

#endif
