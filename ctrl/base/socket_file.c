// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/socket_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void socket_file_note(struct socket_file *f, const char *path)
{
	struct stat st;
	*f = (struct socket_file){0};
	if (lstat(path, &st) == 0)
		*f = (struct socket_file){st.st_dev, st.st_ino};
}

static bool is_at(const struct socket_file *f, const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode;
}

void socket_file_remove(const struct socket_file *f, const char *path)
{
	if (is_at(f, path))
		unlink(path);
}

int socket_file_share(const struct socket_file *f, const char *path, const char *also)
{
	struct stat st;
	if (!is_at(f, path))
		return -ENOENT;
	if (is_at(f, also))
		return 0;
	if (lstat(also, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(also); // an error shows as link's
	return link(path, also) == 0 ? 0 : -errno;
}

int socket_file_move(const struct socket_file *f, const char *path, const char *to)
{
	if (!is_at(f, path))
		return -ENOENT;
	if (strcmp(path, to) == 0)
		return 0;
	if (is_at(f, to)) { // of two names of one file rename() does nothing
		unlink(path);
		return 0;
	}
	return rename(path, to) == 0 ? 0 : -errno;
}

// A socket file nobody listens on is left over from a process that died.
static int remove_stale(const struct sockaddr_un *addr, struct lb_err *reterr)
{
	struct stat st;
	if (lstat(addr->sun_path, &st) != 0)
		return 0; // nothing there; what else is wrong, bind says
	if (!S_ISSOCK(st.st_mode))
		return lb_err_set(reterr, "exists and is not a socket");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	int err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : errno;
	close(fd);
	if (err == 0)
		return lb_err_set(reterr, "another process serves this socket");
	if (err == ECONNREFUSED && unlink(addr->sun_path) != 0)
		return lb_err_set(reterr, "removing the stale socket: %s", strerror(errno));
	return 0;
}

static void make_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return;
	*slash = 0;
	mkdir(dir, 0755); // an error shows as bind's
}

// -EINVAL with reterr, or 0: the descriptor is bound, and listens.
static int listen_at(int fd, const struct sockaddr_un *addr, struct socket_file *f, unsigned mode,
	struct lb_err *reterr)
{
	// Bound closed, then opened: at no moment is it wider than asked for.
	mode_t old = umask(0777);
	int failed = bind(fd, (const struct sockaddr *)addr, sizeof(*addr));
	int err = errno;
	umask(old);
	if (failed)
		return lb_err_set(reterr, "bind: %s", strerror(err));
	socket_file_note(f, addr->sun_path);
	if (chmod(addr->sun_path, mode) != 0 || listen(fd, 16) != 0)
		return lb_err_set(reterr, "%s", strerror(errno));
	return 0;
}

int socket_file_listen(
	struct socket_file *f, const char *path, unsigned mode, struct lb_err *reterr)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr.sun_path))
		return lb_err_set(reterr, "path longer than %zu bytes", sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	make_directory(path);
	if (remove_stale(&addr, reterr))
		return -EINVAL;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return lb_err_set(reterr, "socket: %s", strerror(errno));
	if (listen_at(fd, &addr, f, mode, reterr) == 0)
		return fd;
	close(fd);
	return -EINVAL;
}
