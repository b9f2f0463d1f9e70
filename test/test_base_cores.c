/* links: base */
/* How many cores a process may use: on machines and in containers as their files in /proc and /sys say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define PLACE_FILE "machine"
#include "base/cores.h"
#include "base/str.h"
#include "place.h"

enum { MOST_FILES = 6, THREADS = 8 };

#define SIBLINGS(i) "sys/devices/system/cpu/cpu" #i "/topology/thread_siblings_list"
#define GROUP       "proc/self/cgroup"

typedef struct machine {
    const char *name;
    const char *may_run; /* a character for each hardware thread: x or . */
    struct {
        const char *path, *text;
    } file[MOST_FILES];
    int threads, cores;
} machine;

static const machine machines[] = {
    {"nothing is known", "xx", {{0}}, 2, 2},
    {"two threads a core, side by side",
     "xxxx",
     {{SIBLINGS(0), "0-1\n"},
      {SIBLINGS(1), "0-1\n"},
      {SIBLINGS(2), "2-3\n"},
      {SIBLINGS(3), "2-3\n"}},
     4,
     2},
    {"two threads a core, far apart",
     "xxxx",
     {{SIBLINGS(0), "0,2\n"},
      {SIBLINGS(1), "1,3\n"},
      {SIBLINGS(2), "0,2\n"},
      {SIBLINGS(3), "1,3\n"}},
     4,
     2},
    {"one thread of each of two cores",
     ".xx.",
     {{SIBLINGS(1), "0-1\n"}, {SIBLINGS(2), "2-3\n"}},
     2,
     2},
    {"both threads of one core", "..xx", {{SIBLINGS(2), "2-3\n"}, {SIBLINGS(3), "2-3\n"}}, 2, 1},
    {"cores of one thread and of two",
     "xxx",
     {{SIBLINGS(0), "0,1\n"}, {SIBLINGS(1), "0,1\n"}, {SIBLINGS(2), "2\n"}},
     3,
     2},
    {"files of nonsense", "xx", {{SIBLINGS(1), "?\n"}, {GROUP, "a\n:\n7:cpu\n"}}, 2, 2},
    {"a container",
     "xxxx",
     {{GROUP, "0::/\n"}, {"sys/fs/cgroup/cpu.max", "200000 100000\n"}},
     2,
     2},
    {"a container of half a processor",
     "xxxx",
     {{GROUP, "0::/\n"}, {"sys/fs/cgroup/cpu.max", "50000 100000\n"}},
     1,
     1},
    {"a container of one and a half",
     "xxxx",
     {{GROUP, "0::/\n"}, {"sys/fs/cgroup/cpu.max", "150000 100000\n"}},
     2,
     2},
    {"a container without a limit",
     "xxxx",
     {{GROUP, "0::/\n"}, {"sys/fs/cgroup/cpu.max", "max 100000\n"}},
     4,
     4},
    {"more time than there are cores",
     "xxxx",
     {{GROUP, "0::/\n"},
      {"sys/fs/cgroup/cpu.max", "300000 100000\n"},
      {SIBLINGS(0), "0-1\n"},
      {SIBLINGS(1), "0-1\n"},
      {SIBLINGS(2), "2-3\n"},
      {SIBLINGS(3), "2-3\n"}},
     3,
     2},
    {"a group above has less time",
     "xxxxxxxx",
     {{GROUP, "0::/user/job\n"},
      {"sys/fs/cgroup/user/cpu.max", "300000 100000\n"},
      {"sys/fs/cgroup/user/job/cpu.max", "500000 100000\n"}},
     3,
     3},
    {"an older container, whose own name is not there",
     "xxxx",
     {{GROUP, "9:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/docker/1\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
     2,
     2},
    {"an older one without a limit",
     "xxxx",
     {{GROUP, "4:cpuacct,cpu:/\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
     4,
     4},
    {"a period of nothing", "xx", {{GROUP, "0::/\n"}, {"sys/fs/cgroup/cpu.max", "100 0\n"}}, 2, 2},
    {"no thread at all", "..", {{0}}, 1, 1},
};

static void write_file(const char *root, const char *path, const char *text) {
    char *whole = fth_strdup_printf("%s/%s", root, path);
    assert_non_null(whole);
    char *last = strrchr(whole, '/');
    *last = 0;
    assert_int_equal(fth_make_dirs(whole), FTH_OK);
    *last = '/';
    assert_int_equal(fth_file_write(whole, text, strlen(text)), FTH_OK);
    free(whole);
}

static void machines_are_understood(void **state) {
    place *p = *state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const machine *m = &machines[i];
        bool may_run[THREADS] = {false};
        for (int t = 0; m->may_run[t]; t++) may_run[t] = m->may_run[t] == 'x';
        assert_int_equal(fth_remove_tree(p->file), FTH_OK);
        for (int f = 0; f < MOST_FILES && m->file[f].path; f++)
            write_file(p->file, m->file[f].path, m->file[f].text);
        const fth_cores found = fth_cores_under(p->file, may_run, THREADS);
        if (found.threads != m->threads || found.cores != m->cores)
            fail_msg("%s: %d threads of %d cores", m->name, found.threads, found.cores);
    }
}

static void this_machine_has_some(void **state) {
    (void)state;
    const fth_cores here = fth_cores_usable();
    assert_in_range(here.cores, 1, here.threads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(machines_are_understood, set_up, tear_down),
        cmocka_unit_test(this_machine_has_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
