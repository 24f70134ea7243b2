// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/log_file.h"

#include "lb/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[PATH_MAX]; // "" = stderr is no file; one for the process, as stderr is
static mode_t mode;
static struct log_file_numbers numbers;

void log_file_begin(void)
{
	struct stat s;
	path[0] = 0;
	if (fstat(STDERR_FILENO, &s) != 0 || !S_ISREG(s.st_mode))
		return;
	ssize_t len = readlink("/proc/self/fd/2", path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = 0;
	mode = s.st_mode & 0777;
}

// 0 or an errno.
static int reopen(void)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags | O_NONBLOCK, mode); // a FIFO has no reader
	int error = fd < 0 || dup2(fd, STDERR_FILENO) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return error;
}

bool log_file_reopen(void)
{
	if (!path[0]) {
		log_info("log", "text=\"stderr is not a file: nothing to reopen\"");
		return false;
	}
	int error = reopen();
	if (error && error != numbers.error)
		log_error("log",
			"file=%s error=%s text=\"reopening failed; lines go on into the file that "
			"is open, and it is tried each second\"",
			log_quote(path), log_quote(strerror(error)));
	else if (!error)
		log_info("log", "file=%s text=\"reopened\"", log_quote(path));
	numbers.error = error;
	numbers.n_unopened += error != 0;
	return !error;
}

void log_file_look(void)
{
	if (numbers.error)
		log_file_reopen();
}

struct log_file_numbers log_file_numbers(void)
{
	return numbers;
}
