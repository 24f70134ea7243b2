// SPDX-License-Identifier: Apache-2.0
// The file of a Unix socket that was bound. It keeps to its socket under any name, but another
// process may have taken a name since: only what is our own is removed or moved.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <sys/types.h>

struct socket_file { // zero = none
	dev_t device;
	ino_t inode;
};

// Binds the path with this mode and listens; removes a stale file of a dead process, but a live one
// is an error. Creates the last directory of the path if it is missing. The descriptor, which does
// not block, or -EINVAL with reterr.
[[nodiscard]] int socket_file_listen(
	struct socket_file *, const char *path, unsigned mode, struct lb_err *reterr);
void socket_file_note(struct socket_file *, const char *path); // right after bind
void socket_file_remove(const struct socket_file *, const char *path);
// A second name, in place of a socket that may be there. Returns 0, or -errno: -ENOENT if the path
// leads elsewhere by now.
[[nodiscard]] int socket_file_share(const struct socket_file *, const char *path, const char *also);
// Another name in place of this one, and of what is there: at no moment does nothing lead from the
// other name to a socket, if something did before. Returns likewise.
[[nodiscard]] int socket_file_move(const struct socket_file *, const char *path, const char *to);
