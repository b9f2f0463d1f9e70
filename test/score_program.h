/* score_program.h: what the tests of `fathom score` share: the program, run in the folder of all
 * tests. */
#ifndef FTH_TEST_SCORE_PROGRAM_H
#define FTH_TEST_SCORE_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/str.h"
#include "group_folder.h"

static void put_text(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(fth_file_write(path, text, strlen(text)), FTH_OK);
}

/* Runs "fathom score ARGUMENTS" in the folder; both outputs go to out. */
static int run(const char *arguments, fth_str *out) {
    char *command =
        fth_strdup_printf("cd %s && %s score %s 2>&1", folder, FATHOM_PROGRAM, arguments);
    char piece[4096];
    size_t n;
    assert_non_null(command);
    fth_str_clear(out);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    while ((n = fread(piece, 1, sizeof piece, p)) > 0)
        assert_int_equal(fth_str_add(out, piece, n), FTH_OK);
    int status = pclose(p);
    free(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#endif
