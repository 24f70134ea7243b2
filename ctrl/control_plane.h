// SPDX-License-Identifier: Apache-2.0
// The control plane as a whole, on its event loop: xDS, names, load reports, the assembler, the
// stats socket and signals, born in one order and ended in its mirror image. Not the data plane,
// which it knows by its links and the slot alone.
// Thread: ctrl.
#pragma once

#include "ctrl/takeover/takeover.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct control_plane;
struct events;
struct lb_link;
struct lb_slot;
struct show_port;
struct tlshs_keylog;
struct xds_bootstrap;

struct control_plane_conf { // all borrowed, outlives it, except the slot
	struct config *config; // follows its file on SIGHUP (ctrl/conf/reload.h)
	const char *config_path;
	struct xds_bootstrap *bootstrap;
	char **listener_names; // ctrl/frontends.h
	struct lb_slot *slot; // contains an empty first snapshot
	struct lb_link *const *links; // of running workers
	uint32_t n_links;
	uint32_t max_connections; // of each worker, for clients and backends together
	const struct show_port *ports; // as struct show_conf has them
	const char *(*steering)(void *ctx, uint32_t port);
	// Called several times a second: brings `ports` up to date. True = a link came up.
	// *next_ns: when it is called again, which it may bring forward.
	bool (*watch_ports)(void *ctx, uint64_t now_ns, uint64_t *next_ns);
	void *ctx_ports;
	void (*follow)(void *ctx_ports); // starts a process that takes over
	struct takeover_devices devices; // of ctx_ports
	struct takeover_seat seat; // its descriptor is taken by control_plane_start()
	struct events *events; // what `show events` tells
	struct tlshs_keylog *keys; // of handshakes, for captures
};

// Returns NULL if out of memory. Starts nothing.
struct control_plane *control_plane_new(const struct control_plane_conf *);
// Returns 0, or negative with reterr; call stop() and free() either way.
[[nodiscard]] int control_plane_start(struct control_plane *, struct lb_err *reterr);
// Runs until a signal arrives and the workers are drained, or the drain's time is over. True = a
// service manager waits for the end (service_is_ending()).
bool control_plane_run(struct control_plane *);
// Why it stopped though nobody asked for it; "" = somebody did.
const char *control_plane_error(const struct control_plane *);
// True if all workers have drained; retcut: how many requests the drain's deadline ended.
bool control_plane_drained(const struct control_plane *, uint64_t *retcut);
// Ends all connections of the control plane; the workers may still run. NULL is fine.
void control_plane_stop(struct control_plane *);
// Call after the workers stopped and the slot is freed. NULL is fine.
void control_plane_free(struct control_plane *);
