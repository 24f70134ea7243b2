// SPDX-License-Identifier: Apache-2.0
// What operators are told of a port.
// Thread: ctrl.
#pragma once

#include "lb/base/gateways.h"

#include <stdint.h>

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
	const char *error; // why the device cannot be reopened; "" = it is only absent
};
