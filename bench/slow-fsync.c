/* Simulates a slow disk: fsync and fdatasync sleep before they do their work. Loaded with LD_PRELOAD. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void sleep_first(void)
{
	struct timespec pause = { 0, FSYNC_MS * 1000000L };
	nanosleep(&pause, NULL);
}

int fsync(int fd)
{
	sleep_first();
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	sleep_first();
	return (int)syscall(SYS_fdatasync, fd);
}
