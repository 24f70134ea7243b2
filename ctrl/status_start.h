// SPDX-License-Identifier: Apache-2.0
// Starts the gRPC status port which shunt.yaml asks for, and accepts its clients: in the clear, or
// by TLS with what providers of the bootstrap have at the moment.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct config;
struct config_csds;
struct credentials;
struct loop;
struct socket_counts;
struct status_port;
struct xds_bootstrap;
struct xds_federation;

struct status_start_conf { // all borrowed, outlives it
	const struct config_csds *config;
	const struct xds_bootstrap *bootstrap;
	struct xds_federation *xds;
	struct credentials *credentials;
	struct loop *loop;
	struct socket_counts *counts;
};

// Whether the bootstrap has the providers that csds.tls names, with what is wanted of them. Returns
// 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int status_check_providers(
	const struct config *, const struct xds_bootstrap *, struct lb_err *reterr);
// Of the listener, which it takes, on failure too. Returns 0, or -EINVAL with reterr, which names
// the field.
[[nodiscard]] int status_start(int listener, const struct status_start_conf *,
	struct status_port **ret, struct lb_err *reterr);
// Accepts from now on; with TLS once it is known whether the files are good: who comes before that
// waits.
void status_begin(struct status_port *);
// Whether it can make handshakes, before it begins: waits a quarter of a second at most, and what
// is not known by then is taken for good. Returns 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int status_await(struct status_port *, struct lb_err *reterr);
int status_listener(const struct status_port *); // borrowed; -1 = it has left
void status_set_serving(struct status_port *, bool serving); // NULL is fine
// Another process has the listener: nobody is accepted, who is here stays until status_stop().
void status_leave(struct status_port *);
// Ends all calls; waits a bounded part of a second for clients to read. NULL is fine.
void status_stop(struct status_port *);
