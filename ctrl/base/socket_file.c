// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/socket_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
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

// Of two names of one file rename() does nothing.
int socket_file_move(const struct socket_file *f, const char *path, const char *to)
{
	if (!is_at(f, path))
		return -ENOENT;
	if (is_at(f, to)) {
		unlink(path);
		return 0;
	}
	return rename(path, to) == 0 ? 0 : -errno;
}
