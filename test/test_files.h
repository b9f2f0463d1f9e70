/* test_files.h: what the tests of files share: a folder of their own and files made by hand. */
#ifndef TEST_FILES_H
#define TEST_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

/* A fresh folder for each test, as its state. */
static int make_folder(void **state) {
    const char *where = getenv("TMPDIR");
    char name[256];
    snprintf(name, sizeof name, "%s/fathom-io-XXXXXX", where ? where : "/tmp");
    *state = mkdtemp(name) ? strdup(name) : NULL;
    return *state ? 0 : -1;
}

static int remove_folder(void **state) {
    fth_err err = fth_remove_tree(*state);
    free(*state);
    return err ? -1 : 0;
}

/* FOLDER/name into a buffer of the caller's. */
#define PATH(buffer, folder, name)                                                                 \
    snprintf(buffer, sizeof(buffer), "%s/%s", (const char *)(folder), name)

__attribute__((unused)) static void put_bytes(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

__attribute__((unused)) static void assert_ok(fth_err err) {
    if (err) fail_msg("unexpected error: %s", fth_error_message());
}

/* The call failed with that code and a one-line message that holds every one of the words. */
__attribute__((unused)) static void assert_failed(fth_err err, fth_err code,
                                                  const char *const *words) {
    const char *message = fth_error_message();
    if (err != code) fail_msg("error %d, not %d: %s", (int)err, (int)code, err ? message : "none");
    assert_null(strchr(message, '\n'));
    for (; *words; words++)
        if (!strstr(message, *words)) fail_msg("no \"%s\" in: %s", *words, message);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

#endif
