// SPDX-License-Identifier: Apache-2.0
// Where operators and their tools reach this process: the stats sockets, the status port, the
// metrics' port, and the ready file. While another process of ours is in front, ports and file are
// its own, and our sockets have the generation behind their names: "/run/shunt/stats.sock.3". Names
// and ports lead to a process that serves at every moment: one takes them before the other leaves
// them. The sockets of ports are passed on: both processes have them until the older one closes its
// own.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "ctrl/listen_port.h"
#include "ctrl/ready_file.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct credentials;
struct loop;
struct metrics_port;
struct show;
struct stats_sockets;
struct status_port;
struct xds_bootstrap;
struct xds_federation;

struct reach_conf { // all borrowed, outlives it
	const struct config *config;
	const struct xds_bootstrap *bootstrap;
	struct xds_federation *xds;
	struct credentials *credentials;
	struct show *show;
	struct loop *loop;
	struct slice slice; // of long answers
	uint32_t generation; // of this process
};

struct reach { // zero = closed
	struct reach_conf conf;
	struct stats_sockets *stats;
	struct status_port *status; // NULL = off
	struct status_port *next_status; // between prepare and change; NULL = off from then on
	struct metrics_port *metrics; // NULL = off
	struct ready_file ready;
	bool serving; // what the status port says of health
	bool is_in_front; // the names, the ports and the ready file are ours
	bool follows; // another process had them before, whose file is there until we are ready
	struct listen_ports inherited; // of the older process, none of which is open here yet
	// The same ports once another process has them, with those who are not answered yet.
	struct status_port *left_status;
	struct metrics_port *left_metrics;
};

// Opens the sockets by their names, or by those of one who is not in front, and the ports only for
// the one who is. Returns 0, or -EINVAL with reterr, which names the field.
[[nodiscard]] int reach_start(
	struct reach *, const struct reach_conf *, bool is_in_front, struct lb_err *reterr);
// Somebody comes who may take the names: we get others beside them. opens: it does not know of
// ports that are passed on, and opens them beside us. Returns likewise: nobody is to come.
[[nodiscard]] int reach_share(struct reach *, bool opens, struct lb_err *reterr);
// The sockets of our ports, borrowed; returns how many.
uint32_t reach_listeners(const struct reach *, int ret[LISTEN_PORTS_MAX]);
void reach_inherit(struct reach *, int listener); // one of those; borrows it
// Opens the ports, with what was inherited, and does not accept yet. beside: somebody has them who
// lets us. Returns as reach_start(); then another call is for what is missing.
[[nodiscard]] int reach_open_ports(struct reach *, bool beside, struct lb_err *reterr);
// Takes the names, and accepts at all ports. Returns likewise.
[[nodiscard]] int reach_take_names(struct reach *, struct lb_err *reterr);
// Whether the host is ready, as the ready file is to say: at once when that may have changed, and
// several times a second.
void reach_look(struct reach *);
// The same, and what the status port says of health.
void reach_set_serving(struct reach *, bool serving);
// shunt.yaml is about to have another csds, or none. The first makes the new port beside the one
// that serves, and does not accept yet; returns 0, or -EINVAL with reterr, which names the field,
// and nothing is changed. Then the second, with the configuration in force, has it serve instead,
// and sends away who is at the one before; who waits at the same address is answered. Who is not in
// front has no port to change.
[[nodiscard]] int reach_prepare_status(
	struct reach *, const struct config *new, struct lb_err *reterr);
void reach_change_status(struct reach *);
// Leaves all to who has come. Who is at the ports is answered here still,
void reach_step_back(struct reach *);
// but those of the status port, who may stay for long, are sent away now.
void reach_send_away(struct reach *);
void reach_stop(struct reach *); // what is closed, or never was open, is fine
