// SPDX-License-Identifier: Apache-2.0
// Where a process can be asked for its place: a socket, by its name, or with the generation behind
// that while another one is in front ("takeover.sock.3"). At every moment the name leads to a
// process that serves: the newer one takes it, rather than that the older one gives it away.
// Thread: ctrl.
#pragma once

#include "ctrl/base/socket_file.h"
#include "ctrl/takeover/guests.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

struct event;
struct event_base;

struct takeover_door { // zero = closed
	const char *path; // borrowed; the name
	char aside[sizeof(((struct sockaddr_un *)0)->sun_path)]; // with the generation
	bool is_aside; // the name may be another process's
	bool is_open;
	int fd;
	struct event *event; // owned
	struct socket_file file;
	struct takeover_guests guests;
};

// Listens, by its name or aside, and lets guests in. Returns 0, or -EINVAL with reterr.
[[nodiscard]] int takeover_door_open(struct takeover_door *, const char *path, uint32_t generation,
	bool is_aside, struct event_base *, takeover_guests_word_fn *, void *ctx,
	struct lb_err *reterr);
// Somebody may take the name: we are aside, and the name leads to us until then. Returns 0, or
// -EINVAL with reterr: nothing has changed.
[[nodiscard]] int takeover_door_share(struct takeover_door *, struct lb_err *reterr);
// Takes the name. Returns 0, or -EINVAL with reterr.
[[nodiscard]] int takeover_door_take(struct takeover_door *, struct lb_err *reterr);
// What guests have been told is still known. A closed one is fine.
void takeover_door_close(struct takeover_door *);
