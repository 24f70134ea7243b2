// SPDX-License-Identifier: Apache-2.0
// The file of a Unix socket that was bound. It keeps to its socket when it is renamed, but another
// process may have taken the name since: only the file of our own is removed.
// Thread: ctrl.
#pragma once

#include <sys/types.h>

struct socket_file { // zero = none
	dev_t device;
	ino_t inode;
};

void socket_file_note(struct socket_file *, const char *path); // right after bind
void socket_file_remove(const struct socket_file *, const char *path);
