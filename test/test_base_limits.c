/* links: base */
/* How many cores and how much memory a process may use: on machines and in containers as their
 * files in /proc and /sys say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define PLACE_FILE "machine"
#include "base/cores.h"
#include "base/machine_memory.h"
#include "base/str.h"
#include "place.h"

enum { MOST_FILES = 6, THREADS = 8 };

#define SIBLINGS(i) "sys/devices/system/cpu/cpu" #i "/topology/thread_siblings_list"
#define GROUP       "proc/self/cgroup"

/* What lies below the root of a machine. */
typedef struct file {
    const char *path, *text;
} file;

typedef struct machine {
    const char *name;
    const char *may_run; /* a character for each hardware thread: x or . */
    file file[MOST_FILES];
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

/* A machine of these files and no others. */
static void make_machine(const char *root, const file files[MOST_FILES]) {
    assert_int_equal(fth_remove_tree(root), FTH_OK);
    for (int f = 0; f < MOST_FILES && files[f].path; f++)
        write_file(root, files[f].path, files[f].text);
}

static void machines_are_understood(void **state) {
    place *p = *state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const machine *m = &machines[i];
        bool may_run[THREADS] = {false};
        for (int t = 0; m->may_run[t]; t++) may_run[t] = m->may_run[t] == 'x';
        make_machine(p->file, m->file);
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

/* ---- memory ---- */

#define MEMINFO "proc/meminfo"
#define OF_10                                                                                      \
    "MemTotal:  10 kB\nMemFree: 1 kB\nMemAvailable:   8 kB\n" /* 10,240 bytes, 8,192 free */

static const struct amount {
    const char *name;
    file file[MOST_FILES];
    int64_t free, total;
} amounts[] = {
    {"no container", {{MEMINFO, OF_10}}, 8192, 10240},
    {"a container without a limit",
     {{MEMINFO, OF_10},
      {GROUP, "0::/\n"},
      {"sys/fs/cgroup/memory.max", "max\n"},
      {"sys/fs/cgroup/memory.current", "100\n"}},
     8192,
     10240},
    {"a container of 5,000 bytes",
     {{MEMINFO, OF_10},
      {GROUP, "0::/\n"},
      {"sys/fs/cgroup/memory.max", "5000\n"},
      {"sys/fs/cgroup/memory.current", "1000\n"}},
     4000,
     5000},
    {"files that were read can be dropped",
     {{MEMINFO, OF_10},
      {GROUP, "0::/\n"},
      {"sys/fs/cgroup/memory.max", "5000\n"},
      {"sys/fs/cgroup/memory.current", "4900\n"},
      {"sys/fs/cgroup/memory.stat", "anon 900\ninactive_file_x 7\ninactive_file 4000\n"}},
     4100,
     5000},
    {"full",
     {{MEMINFO, OF_10},
      {GROUP, "0::/\n"},
      {"sys/fs/cgroup/memory.max", "5000\n"},
      {"sys/fs/cgroup/memory.current", "5001\n"}},
     0,
     5000},
    {"a group above has less",
     {{MEMINFO, OF_10},
      {GROUP, "0::/user/job\n"},
      {"sys/fs/cgroup/user/memory.max", "3000\n"},
      {"sys/fs/cgroup/user/memory.current", "500\n"},
      {"sys/fs/cgroup/user/job/memory.max", "4000\n"}},
     2500,
     3000},
    {"an older group, with its files",
     {{MEMINFO, OF_10},
      {GROUP, "9:memory:/job\n0::/\n"},
      {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "6000\n"},
      {"sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3000\n"},
      {"sys/fs/cgroup/memory/job/memory.stat", "inactive_file 5\ntotal_inactive_file 1000\n"}},
     4000,
     6000},
    {"an older one without a limit",
     {{MEMINFO, OF_10},
      {GROUP, "9:memory:/\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n"}},
     8192,
     10240},
};

static void memory_is_understood(void **state) {
    place *p = *state;
    int64_t left, total;
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        make_machine(p->file, amounts[i].file);
        assert_int_equal(fth_machine_memory_under(p->file, &left, &total), FTH_OK);
        if (left != amounts[i].free || total != amounts[i].total)
            fail_msg("%s: %lld of %lld bytes are free", amounts[i].name, (long long)left,
                     (long long)total);
    }
    assert_int_equal(fth_remove_tree(p->file), FTH_OK);
    assert_int_equal(fth_machine_memory_under(p->file, &left, &total), FTH_FAILED);
    assert_int_equal(fth_machine_memory_under("", &left, &total), FTH_OK);
    assert_in_range(left, 1, total);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(machines_are_understood, set_up, tear_down),
        cmocka_unit_test(this_machine_has_some),
        cmocka_unit_test_setup_teardown(memory_is_understood, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
