/* A wall clock that tests can move: preloaded into a server, it adds what a file says to the time of day.
 *
 * The file named by TOLLGATE_CLOCK holds one signed number of microseconds, mapped into memory, so that whoever writes
 * the file moves the clock between two instructions of the server. The kernel is asked directly: looking up the real
 * functions would allocate, and allocators ask for the time before they are ready. The monotonic clock stays as it is,
 * as in a machine whose administrator sets the date. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset_us;

/* Runs before the program, while it has one thread. */
__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("TOLLGATE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED) offset_us = map;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result != 0 || !offset_us || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
    int64_t offset = *offset_us;
    int64_t nanos = now->tv_nsec + offset % 1000000 * 1000;
    now->tv_sec += offset / 1000000;
    if (nanos < 0) nanos += 1000000000, now->tv_sec -= 1;
    if (nanos >= 1000000000) nanos -= 1000000000, now->tv_sec += 1;
    now->tv_nsec = nanos;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    if (result == 0 && now) now->tv_sec = exact.tv_sec, now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return (time_t)-1;
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
