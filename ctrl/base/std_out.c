// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/std_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	const char *program;
	int status;
} watch;

static bool reader_is_gone(void)
{
	struct pollfd fd = {.fd = STDOUT_FILENO};
	return poll(&fd, 1, 0) > 0 && fd.revents & POLLERR;
}

// Some file systems tell of a full disk, or of a quota, at close.
static bool closes(void)
{
	int fd = dup(STDOUT_FILENO);
	return fd < 0 || close(fd) == 0;
}

static void on_exit_look(void)
{
	bool whole = !ferror(stdout);
	errno = 0;
	whole = fflush(stdout) == 0 && whole && closes();
	if (whole)
		return;
	int err = errno; // 0: an earlier write failed
	if (!reader_is_gone())
		fprintf(stderr, "%s: standard output could not be written whole%s%s\n",
			watch.program, err ? ": " : "", err ? strerror(err) : "");
	_exit(watch.status);
}

// What is opened gets the lowest number that is free. Plain system calls, since sanitizers replace
// the functions and are not there yet.
__attribute__((no_sanitize("address", "undefined", "thread"))) static void take_closed(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (syscall(SYS_fcntl, fd, F_GETFD) < 0)
			syscall(SYS_openat, AT_FDCWD, "/dev/null",
				fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

// libgrpc opens an eventfd before main(): this comes before the constructors of libraries.
[[gnu::section(".preinit_array"), gnu::used]] static void (*const before_all)(void) = take_closed;

void std_out_watch(const char *program, int status)
{
	take_closed();
	watch.program = program;
	watch.status = status;
	atexit(on_exit_look); // without memory for it: as before
}
