// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/place.h"

#include "ctrl/access_log/words.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// O_NONBLOCK: a FIFO without a reader, or with a slow one, is not waited for.
#define FLAGS (O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define MODE 0640
#define PRIVATE_MODE 0600

static int flags_of(const struct access_place *p)
{
	return p->is_new ? FLAGS | O_EXCL : FLAGS;
}

const char *access_place_name(const struct access_place *p)
{
	switch (p->kind) {
	case ACCESS_FILE:
	case ACCESS_COLLECTOR:
		return p->path;
	case ACCESS_STDOUT:
		return "stdout";
	case ACCESS_STDERR:
		return "stderr";
	}
	return "";
}

bool access_place_eq(const struct access_place *a, const struct access_place *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case ACCESS_FILE:
		return strcmp(a->path, b->path) == 0;
	case ACCESS_COLLECTOR:
		return strcmp(a->path, b->path) == 0 && strcmp(a->log_name, b->log_name) == 0 &&
		       a->batch_bytes == b->batch_bytes && a->batch_ns == b->batch_ns;
	default:
		return true;
	}
}

// One name of a path: neither empty nor one that leads elsewhere.
static bool is_plain(const char *name, size_t len)
{
	if (!len || (len == 1 && name[0] == '.') || (len == 2 && memcmp(name, "..", 2) == 0))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return false;
	return true;
}

int access_place_check(const struct access_place *p, struct lb_err *reterr)
{
	if (p->kind != ACCESS_FILE || !p->below)
		return 0;
	size_t n = strlen(p->below);
	if (strlen(p->path) > ACCESS_PATH_MAX)
		return lb_err_set(reterr, "the path has more than %d bytes", ACCESS_PATH_MAX);
	if (strncmp(p->path, p->below, n) != 0 || p->path[n] != '/')
		return lb_err_set(reterr, "\"%.128s\" is not below %s", p->path, p->below);
	for (const char *at = p->path + n; *at;) {
		size_t len = strcspn(++at, "/");
		if (!is_plain(at, len))
			return lb_err_set(reterr,
				"\"%.128s\" has a part that is empty, \".\", \"..\" or not text",
				p->path);
		at += len;
	}
	return 0;
}

static bool is_same(const struct stat *s, int fd)
{
	struct stat other;
	return fd >= 0 && fstat(fd, &other) == 0 && other.st_dev == s->st_dev &&
	       other.st_ino == s->st_ino;
}

// Of a file that somebody else may have put there, or that a mount or the way to the directory has
// there, too.
static int why_not(int fd, int own_fd)
{
	struct stat s;
	if (fstat(fd, &s))
		return errno;
	if (!S_ISREG(s.st_mode))
		return EPERM;
	if (is_same(&s, STDOUT_FILENO) || is_same(&s, STDERR_FILENO) || is_same(&s, own_fd))
		return EEXIST;
	if (s.st_nlink != 1)
		return s.st_nlink ? EMLINK : ENOENT; // it has just been removed
	return 0;
}

// The directory itself is the operator's, and may be reached by links. It is looked up each time,
// since it may have been made anew.
static int open_below(const struct access_place *p, int own_fd)
{
	const struct open_how how = {
		.flags = (unsigned)flags_of(p),
		.mode = p->is_private ? PRIVATE_MODE : MODE,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int folder = open(p->below, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -1;
	const char *rest = p->path + strlen(p->below) + 1;
	int fd = (int)syscall(SYS_openat2, folder, rest, &how, sizeof(how));
	int error = errno;
	close(folder);
	int reason = fd < 0 ? 0 : why_not(fd, own_fd);
	if (reason) {
		close(fd);
		fd = -1;
		error = reason;
	}
	errno = error;
	return fd;
}

int access_place_open(const struct access_place *p, int own_fd)
{
	if (p->kind == ACCESS_FILE)
		return p->below ? open_below(p, own_fd) : open(p->path, flags_of(p), MODE);
	return fcntl(p->kind == ACCESS_STDOUT ? STDOUT_FILENO : STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

const char *access_place_error(int error)
{
	const char *status = error < 0 ? access_grpc_name((unsigned)-error, true) : NULL;
	if (error < 0)
		return status ? status : "The collector answers with an unknown status";
	switch (error) {
	case EMLINK:
		return "The file has other names (hard links)";
	case EEXIST:
		return "It is a file that the daemon has of its own: its log, or access_log.path";
	default:
		return strerror(error);
	}
}
