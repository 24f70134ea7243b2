// SPDX-License-Identifier: Apache-2.0
#include "ctrl/base/socket_file.h"

#include <sys/stat.h>
#include <unistd.h>

void socket_file_note(struct socket_file *f, const char *path)
{
	struct stat st;
	*f = (struct socket_file){0};
	if (lstat(path, &st) == 0)
		*f = (struct socket_file){st.st_dev, st.st_ino};
}

void socket_file_remove(const struct socket_file *f, const char *path)
{
	struct stat st;
	if (lstat(path, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode)
		unlink(path);
}
