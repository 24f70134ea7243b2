// SPDX-License-Identifier: Apache-2.0
#include "ctrl/log_file.h"

#include "lb/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[PATH_MAX]; // "" = stderr is no file; one for the process, as stderr is
static mode_t mode;

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

bool log_file_reopen(void)
{
	if (!path[0]) {
		log_info("log", "text=\"stderr is not a file: nothing to reopen\"");
		return false;
	}
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, mode);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0) {
		log_error("log", "file=%s error=%s text=\"reopening failed\"", log_quote(path),
			log_quote(strerror(errno)));
		if (fd >= 0)
			close(fd);
		return false;
	}
	close(fd);
	log_info("log", "file=%s text=\"reopened\"", log_quote(path));
	return true;
}
