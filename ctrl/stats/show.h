// SPDX-License-Identifier: Apache-2.0
// The answers of the stats socket's commands (docs/stats.md).
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct assembler;
struct config;
struct load_report;
struct show;
struct twheel;
struct workers;
struct xds_federation;

// The state of a port, besides shunt.yaml.
enum show_link { SHOW_LINK_DOWN, SHOW_LINK_UP, SHOW_LINK_GONE };
struct show_port {
	const char *driver; // of DPDK
	char mac[18];
	uint16_t mtu; // in use
	const char *checksums; // who verifies those of TCP: "device", "software"
	enum show_link link; // GONE: the device itself
	uint64_t since_ns;
	uint32_t mbps; // 0 = unknown
	uint64_t n_link_downs, n_losses;
	const char *merged; // what was done about frames longer than the MTU; "" = none came
	const char *error; // why the device cannot be reopened; "" = it is only absent
};

struct show_conf { // all borrowed, outlives it
	const struct config *config;
	const struct workers *workers;
	struct assembler *assembler;
	const struct xds_federation *xds;
	const struct load_report *loads; // NULL = no load reports
	const struct twheel *wheel;
	// What a frontend's next configuration waits for; "" = nothing. Valid until the next call.
	const char *(*waiting)(void *ctx, uint32_t frontend);
	// Why its newest listener or routes were rejected; "" = they were not. Likewise.
	const char *(*refused)(void *ctx, uint32_t frontend);
	void *ctx;
	const struct show_port *ports; // of the configuration, with their present state
	// What steers frames of a port to their workers: "device", "software", or "none" with one
	// worker; a constant text.
	const char *(*steering)(void *ctx, uint32_t port);
	void *ctx_ports;
};

struct show *show_new(const struct show_conf *); // NULL = out of memory
void show_free(struct show *); // NULL is fine
// "starting", "ready", "draining"; a constant text.
void show_set_state(struct show *, const char *state);
// A stats_answer_fn (ctrl/stats/stats_server.h); ctx is the show.
char *show_answer(void *ctx, const char *command);
