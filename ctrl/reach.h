// SPDX-License-Identifier: Apache-2.0
// Where operators and their tools reach this process: the stats sockets, the status port, the
// metrics' port. While another process of ours is in front, ports are its own, and our sockets have
// the generation behind their names: "/run/shunt/stats.sock.3". Names and ports lead to a process
// that serves at every moment: one takes them before the other leaves them.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "lb/base/err.h"

#include <stdint.h>

struct config;
struct loop;
struct metrics_port;
struct show;
struct stats_sockets;
struct status_server;
struct xds_bootstrap;
struct xds_federation;

struct reach_conf { // all borrowed, outlives it
	const struct config *config;
	const struct xds_bootstrap *bootstrap;
	struct xds_federation *xds;
	struct show *show;
	struct loop *loop;
	struct slice slice; // of long answers
	uint32_t generation; // of this process
};

struct reach { // zero = closed
	struct reach_conf conf;
	struct stats_sockets *stats;
	struct status_server *status; // NULL = off
	struct metrics_port *metrics; // NULL = off
};

// Opens the sockets by their names, or by those of one who is not in front, and the ports only for
// the one who is. Returns 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int reach_start(
	struct reach *, const struct reach_conf *, bool is_in_front, struct lb_err *reterr);
// Somebody comes who may take the names: we get others beside them.
void reach_share(struct reach *);
// Opens the ports, beside who has them. Returns as reach_start(); then another call is for what is
// missing.
[[nodiscard]] int reach_open_ports(struct reach *, struct lb_err *reterr);
// Takes the names. Returns likewise.
[[nodiscard]] int reach_take_names(struct reach *, struct lb_err *reterr);
// Leaves both to who has come.
void reach_step_back(struct reach *);
void reach_stop(struct reach *); // what is closed, or never was open, is fine
