// SPDX-License-Identifier: Apache-2.0
// What operators are told of a port.
// Thread: ctrl.
#pragma once

#include "lb/base/gateways.h"

#include <stdbool.h>
#include <stdint.h>

// A member of a port that is a bond.
#define SHOW_MAX_MEMBERS 8
struct show_member {
	const char *driver; // of DPDK
	char mac[18];
	// "active", "standby"; of LACP "distributing", "collecting", "waiting"; "down", "gone".
	// Static.
	const char *state;
	bool carries; // "active" or "distributing"
	bool stands_by;
	char partner[18]; // of LACP: the system at the other end; "" = none is known
	uint64_t since_ns;
	uint32_t mbps; // 0 = unknown
	uint64_t n_downs, rx_frames, tx_frames;
};

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
	// In the order of the configuration; the time is that of a worker's clock.
	struct lb_gateway gateways[LB_MAX_GATEWAYS];
	struct show_member members[SHOW_MAX_MEMBERS]; // in the order of the configuration
	uint32_t n_members; // 0 = it is no bond
	const char *error; // why the device cannot be reopened; "" = it is only absent
};
