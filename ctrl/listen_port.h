// SPDX-License-Identifier: Apache-2.0
// TCP ports at which this process listens. Their sockets are passed on to the process that takes
// over, with the connections that wait there; a socket is known by its address.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

// Listens there. beside: another process of this user has the port and lets others. Returns the
// descriptor, or -EINVAL with reterr, which names the address.
[[nodiscard]] int listen_port_open(const char *address, bool beside, struct lb_err *reterr);
// Whether other sockets of this user may listen at its port, too (SO_REUSEPORT): any process of the
// user's can have a part of the connections then.
void listen_port_let(int fd, bool others);

// Those of another process.
#define LISTEN_PORTS_MAX 4
struct listen_ports { // zero = none
	uint32_t n;
	int fds[LISTEN_PORTS_MAX]; // owned
};
// Copies the descriptor. What does not listen or has no room is passed over.
void listen_ports_add(struct listen_ports *, int fd);
// The one at this address, to the caller. -1 = there is none.
[[nodiscard]] int listen_ports_take(struct listen_ports *, const char *address);
void listen_ports_let(const struct listen_ports *, bool others);
void listen_ports_close(struct listen_ports *);
