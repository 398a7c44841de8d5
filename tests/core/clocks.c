/* Preloaded into a child process of a test: moves the clocks of that process.

   LATELY_CLOCKS names a file of two numbers of nanoseconds: what is added to the wall clock, and what is added to the
   clock that counts from the start of the machine. A process of the test writes to it. LATELY_BOOT, if there is one,
   names the file that identifies the start of the machine. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static volatile int64_t *moved(void) {
    static volatile int64_t *file;
    if (!file) {
        int descriptor = open(getenv("LATELY_CLOCKS"), O_RDONLY);
        file = mmap(NULL, 16, PROT_READ, MAP_SHARED, descriptor, 0);
    }
    return file;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*system_clock)(clockid_t, struct timespec *);
    if (!system_clock)
        system_clock = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = system_clock(clock, time);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME))
        return failed;
    int64_t nanoseconds = time->tv_sec * INT64_C(1000000000) + time->tv_nsec + moved()[clock == CLOCK_BOOTTIME];
    time->tv_sec = nanoseconds / 1000000000;
    time->tv_nsec = nanoseconds % 1000000000;
    return 0;
}

int open64(const char *path, int flags, ...) {
    static int (*system_open)(const char *, int, ...);
    if (!system_open)
        system_open = dlsym(RTLD_NEXT, "open64");
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    const char *boot = getenv("LATELY_BOOT");
    return system_open(boot && !strcmp(path, "/proc/sys/kernel/random/boot_id") ? boot : path, flags, mode);
}
