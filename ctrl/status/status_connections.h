// SPDX-License-Identifier: Apache-2.0
// The connections of the status port, which are libgrpc's, that tells nothing of them, or the
// relay's in front of it: a second descriptor of each says when it is over. There are so many at
// most, since descriptors are what ports are opened with, too: who comes when all places are taken
// gets that of the oldest, whose client sees the end of the connection, and of those that are let
// in only if all are. A client that closes its side has ended it whole.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct socket_counts;
struct status_connections;

// counts is borrowed and outlives it. NULL = out of memory.
struct status_connections *status_connections_new(
	struct event_base *, uint32_t max, struct socket_counts *counts);
// fd: a socket that the caller gives to libgrpc or to the relay then. False = out of memory or
// descriptors: the caller closes it instead.
[[nodiscard]] bool status_connections_add(struct status_connections *, int fd);
// Of one that was added last with this descriptor: it keeps its place while another is not let in.
void status_connections_let_in(struct status_connections *, int fd);
// Ends all, as a client that does not read may have to be. NULL is fine.
void status_connections_cut(struct status_connections *);
// Those that are open stay so. NULL is fine.
void status_connections_free(struct status_connections *);
