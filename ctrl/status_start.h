// SPDX-License-Identifier: Apache-2.0
// Starts the gRPC status port which shunt.yaml asks for, and accepts its clients.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct config;
struct loop;
struct socket_counts;
struct status_port;
struct xds_bootstrap;
struct xds_federation;

// Of the listener, which it takes, on failure too. What else it is given is borrowed, and outlives
// it. Returns 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int status_start(int listener, const struct xds_bootstrap *, struct xds_federation *,
	struct loop *, struct socket_counts *, struct status_port **ret, struct lb_err *reterr);
void status_begin(struct status_port *); // accepts from now on
int status_listener(const struct status_port *); // borrowed; -1 = it has left
void status_set_serving(struct status_port *, bool serving); // NULL is fine
// Another process has the listener: nobody is accepted, who is here stays until status_stop().
void status_leave(struct status_port *);
// Ends all calls; waits a bounded part of a second for clients to read. NULL is fine.
void status_stop(struct status_port *);
