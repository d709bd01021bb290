/* Shifts the clocks of a process by what a file says: loaded before the C library, it answers in its place.

   CLOCK_SHIFT names a file of two 64-bit integers, seconds for the wall clock and for the monotonic clock, which may change
   while the process runs: the file is mapped. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shifts(void) {
    static volatile int64_t none[2];
    static volatile int64_t *mapped;
    if (mapped == NULL) {
        const char *path = getenv("CLOCK_SHIFT");
        int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
        void *found = file < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0)
            close(file);
        mapped = found == MAP_FAILED ? none : found;
    }
    return mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        time->tv_sec += shifts()[0];
    if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME))
        time->tv_sec += shifts()[1];
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told != NULL)
        *told = now.tv_sec;
    return now.tv_sec;
}
