// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/std_out.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void std_out_watch(const char *program, int status)
{
	watch.program = program;
	watch.status = status;
	atexit(on_exit_look); // without memory for it: as before
}
